/* See direct.h. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/bf16/direct.h"

#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "ops/cpu/vector/bf16_direct.h"

enum {
    LANES = 16,
    BLOCK = 32,
    PLANES_MAX = 96 * 1024,   /* floats of widened planes: what the second cache holds */
    WEIGHTS_MAX = 128 * 1024, /* floats of weights, or of their gradient */
    SUB_POSITIONS = 128,      /* by weights, that are summed up together */
    RUNS_MAX = 1024
};

/* Rows of positions are along axis `axis`, the first one that there is or the one behind; a row has
 * `row` positions along the axes behind it. */
struct ls_bf16_direct {
    const struct ls_bf16_convolution *convolution;
    struct ls_bf16_windows windows; /* of one group; without data */
    int axis;
    int64_t row;
    int64_t rows;            /* of positions, at a time */
    int64_t before, further; /* rows that windows reach in front of a position's, and in all */
    int64_t fronts;          /* positions along the axis in front of it */
    int64_t variants;        /* ways in which windows stand along the other axes */
    int64_t lines, depth;    /* forward and by data: channels that come out, terms of each */
    int64_t *typical;        /* by variant: a tap that stands so */
    int64_t *variant;        /* by tap */
    int32_t *offset;         /* by term (tap, channel), and that of the ones behind the planes */
};

/* Floats of scratch, and where in it what lies. */
struct areas {
    size_t planes, ones, weights, sums, y;
};

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static size_t rounded_up(size_t n, size_t unit)
{
    return (n + unit - 1) / unit * unit;
}

/* Not so many floats that all planes would lie at the same places of the first cache. */
static int64_t plane_size(const struct ls_bf16_direct *direct)
{
    const int64_t size = (direct->rows + direct->further) * direct->row;
    return size % 256 == 0 ? size + LANES : size;
}

static size_t find_areas(const struct ls_bf16_direct *direct, struct areas *areas)
{
    const struct ls_bf16_windows *windows = &direct->windows;
    const size_t planes = (size_t)(windows->channels * direct->variants * plane_size(direct));
    const size_t positions = (size_t)(direct->rows * direct->row);
    const size_t lanes = rounded_up((size_t)direct->convolution->y_channels, LANES);
    const bool to_w = direct->convolution->pass == LS_BF16_TO_W;
    areas->planes = 0;
    areas->ones = rounded_up(planes, LANES);
    areas->weights = areas->ones + rounded_up(to_w ? positions : LANES * 3, LANES);
    if (to_w) {
        areas->sums = areas->weights;
        areas->y = areas->sums + (size_t)(windows->taps * windows->channels + 1) * lanes;
        return areas->y + positions * lanes;
    }
    areas->y = areas->sums =
        areas->weights + rounded_up((size_t)(direct->lines * direct->depth), LANES);
    return areas->sums + (size_t)direct->lines * rounded_up(ls_vector_bf16_direct()->positions, 16);
}

size_t ls_bf16_direct_scratch(const struct ls_bf16_direct *direct)
{
    struct areas areas;
    return find_areas(direct, &areas) * sizeof(float);
}

/* ---- Which convolutions ---------------------------------------------------------------------- */

static bool same_variant(const struct ls_bf16_windows *windows, int axis, int64_t a, int64_t b)
{
    for (int i = 0; i < 3; i++)
        if (i != axis && windows->offset[a][i] != windows->offset[b][i])
            return false;
    return true;
}

static void find_variants(struct ls_bf16_direct *direct)
{
    const struct ls_bf16_windows *windows = &direct->windows;
    int64_t low = windows->offset[0][direct->axis], high = low;
    direct->variants = 0;
    for (int64_t k = 0; k < windows->taps; k++) {
        const int64_t along = windows->offset[k][direct->axis];
        low = smaller(low, along);
        high = along > high ? along : high;
        int64_t v = 0;
        while (v < direct->variants && !same_variant(windows, direct->axis, direct->typical[v], k))
            v++;
        if (v == direct->variants)
            direct->typical[direct->variants++] = k;
        direct->variant[k] = v;
    }
    direct->before = -low;
    direct->further = high - low;
}

static void fill_offsets(struct ls_bf16_direct *direct)
{
    const struct ls_bf16_windows *windows = &direct->windows;
    const int64_t plane = plane_size(direct);
    int32_t *offset = direct->offset;
    for (int64_t k = 0; k < windows->taps; k++)
        for (int64_t c = 0; c < windows->channels; c++)
            *offset++ =
                (int32_t)((c * direct->variants + direct->variant[k]) * plane +
                          (windows->offset[k][direct->axis] + direct->before) * direct->row);
    struct areas areas;
    find_areas(direct, &areas);
    *offset = (int32_t)areas.ones;
}

/* As many rows as the cache holds, in equal parts; by weights such that blocks end with them. 0
 * where there are none. */
static int64_t choose_rows(const struct ls_bf16_direct *direct, int64_t all)
{
    const struct ls_bf16_windows *windows = &direct->windows;
    const int64_t unit = windows->channels * direct->variants * direct->row;
    LS_ASSERT(unit > 0); /* no axis is empty */
    int64_t most = smaller(PLANES_MAX / unit - direct->further, all), step = 1;
    if (direct->convolution->pass == LS_BF16_TO_W)
        while (step * direct->row % BLOCK != 0)
            step++;
    if (direct->convolution->pass == LS_BF16_TO_W && all % step != 0)
        return 0;
    most = most / step * step;
    if (most < 1)
        return 0;
    const int64_t parts = (all + most - 1) / most;
    return ((all + parts - 1) / parts + step - 1) / step * step;
}

static bool is_small(const struct ls_bf16_convolution *convolution)
{
    for (int i = 0; i < 3; i++)
        if (convolution->stride[i] != 1)
            return false;
    return convolution->class_count == 1 &&
           (convolution->f32 ? ls_cpu_isa() >= LS_ISA_AVX2 : ls_cpu_unit() == LS_UNIT_NONE) &&
           (convolution->x_channels * convolution->taps + 1) * (convolution->y_channels + LANES) <=
               WEIGHTS_MAX;
}

/* Registers are filled with positions well enough. */
static bool fills_well(int64_t positions)
{
    return positions * 8 >= (int64_t)rounded_up((size_t)positions, LANES) * 7;
}

/* Rows along `axis`, which has something in front of it at most along one other. */
static bool set_up(struct ls_bf16_direct *direct, int axis)
{
    const struct ls_bf16_convolution *convolution = direct->convolution;
    const struct ls_bf16_windows *windows = &direct->windows;
    const int64_t *grid = windows->grid;
    direct->axis = axis;
    direct->fronts = direct->row = 1;
    for (int i = 0; i < 3; i++)
        *(i < axis ? &direct->fronts : &direct->row) *= i == axis ? 1 : grid[i];
    const bool to_x = convolution->pass == LS_BF16_TO_X;
    direct->lines = to_x ? convolution->x_channels : convolution->y_channels;
    direct->depth = windows->taps * windows->channels;
    find_variants(direct);
    direct->rows = choose_rows(direct, grid[axis]);
    const int64_t last = axis < 2 ? grid[2] : direct->rows + direct->further;
    if (direct->rows == 0 || (direct->rows + direct->further) * direct->row > RUNS_MAX * last ||
        (convolution->pass != LS_BF16_TO_W && !fills_well(direct->rows * direct->row)))
        return false;
    fill_offsets(direct);
    return true;
}

/* Whole planes of a volume are better than one at a time, if so many find room. */
static bool set_up_any(struct ls_bf16_direct *direct)
{
    const int64_t *grid = direct->windows.grid, *extent = direct->windows.extent;
    if (grid[0] > 1 || extent[0] > 1)
        return set_up(direct, 0) || set_up(direct, 1);
    return set_up(direct, grid[1] > 1 || extent[1] > 1 ? 1 : 2);
}

int ls_bf16_direct_new(const struct ls_bf16_convolution *convolution,
                       struct ls_bf16_direct **result, struct ls_error *error)
{
    *result = NULL;
    if (!is_small(convolution))
        return 0;
    struct ls_bf16_direct *direct = ls_alloc(1, sizeof *direct);
    if (direct == NULL)
        return ls_fail_memory(error, "a convolution");
    const size_t taps = (size_t)convolution->taps;
    direct->convolution = convolution;
    direct->windows = ls_bf16_class_windows(convolution, &convolution->classes[0], NULL);
    direct->typical = ls_alloc(taps, sizeof *direct->typical);
    direct->variant = ls_alloc(taps, sizeof *direct->variant);
    direct->offset = ls_alloc(taps * (size_t)direct->windows.channels + 1, sizeof *direct->offset);
    bool there = direct->typical != NULL && direct->variant != NULL && direct->offset != NULL;
    if (there && set_up_any(direct)) {
        *result = direct;
        return 0;
    }
    ls_bf16_direct_free(direct);
    return there ? 0 : ls_fail_memory(error, "tables of a convolution");
}

void ls_bf16_direct_free(struct ls_bf16_direct *direct)
{
    if (direct == NULL)
        return;
    ls_free(direct->typical);
    ls_free(direct->variant);
    ls_free(direct->offset);
    ls_free(direct);
}

/* ---- Planes ---------------------------------------------------------------------------------- */

/* Rows [first, first + rows) of positions of one sample, at place `front` along the axis in front.
 */
struct part {
    int64_t front, first, rows;
};

/* Copies runs of `rows` rows, of bf16 numbers widened. */
static void widen(const struct ls_bf16_direct *direct, const struct ls_bf16_run *run, size_t runs,
                  const void *data, int64_t plane, size_t rows, float *to, size_t pitch)
{
    if (direct->convolution->f32)
        ls_vector_bf16_windows()->copy_floats(run, runs, data, plane, 1, rows, to, pitch);
    else
        ls_vector_bf16_direct()->widen(run, runs, data, plane, rows, to, pitch);
}

/* Widens what windows of a part meet, of all channels of a group. */
static void fill_planes(const struct ls_bf16_direct *direct, const void *data,
                        const struct part *part, float *planes)
{
    const struct ls_bf16_windows *windows = &direct->windows;
    const int64_t plane = plane_size(direct);
    struct ls_bf16_run run[RUNS_MAX];
    for (int64_t v = 0; v < direct->variants; v++) {
        int64_t stands[3];
        for (int i = 0; i < 3; i++)
            stands[i] =
                windows->offset[direct->typical[v]][i] + (i < direct->axis ? part->front : 0);
        stands[direct->axis] = part->first - direct->before;
        const size_t runs =
            ls_bf16_row_runs(windows, direct->axis, part->rows + direct->further, stands, run);
        widen(direct, run, runs, data, windows->plane, (size_t)windows->channels,
              planes + v * plane, (size_t)(direct->variants * plane));
    }
}

/* The next part of a sample behind `part`, whose rows are 0 at first; false: there is none. */
static bool next_part(const struct ls_bf16_direct *direct, struct part *part)
{
    const int64_t all = direct->windows.grid[direct->axis];
    part->first += part->rows;
    if (part->first == all) {
        part->first = 0;
        part->front++;
    }
    part->rows = smaller(direct->rows, all - part->first);
    return part->front < direct->fronts;
}

/* Where a part begins in a plane, and how many positions it has. */
static int64_t begin_of(const struct ls_bf16_direct *direct, const struct part *part)
{
    return (part->front * direct->windows.grid[direct->axis] + part->first) * direct->row;
}

static int64_t positions_of(const struct ls_bf16_direct *direct, const struct part *part)
{
    return part->rows * direct->row;
}

static int64_t whole_plane(const struct ls_bf16_direct *direct)
{
    return direct->fronts * direct->windows.grid[direct->axis] * direct->row;
}

/* ---- Forward and by data --------------------------------------------------------------------- */

/* Weights of a group in the order of terms: a line for each channel that comes out. */
static void widen_weights(const struct ls_bf16_direct *direct, const void *w, float *to)
{
    const struct ls_bf16_convolution *convolution = direct->convolution;
    const int64_t in = convolution->x_channels, out = convolution->y_channels;
    const int64_t taps = convolution->taps, filter = taps * in;
    const struct ls_bf16_run all = {.count = (int32_t)filter};
    if (convolution->pass != LS_BF16_TO_X) {
        widen(direct, &all, 1, w, filter, (size_t)out, to, (size_t)filter);
        return;
    }
    const struct ls_bf16_class *class = &convolution->classes[0];
    for (int64_t k = 0; k < class->taps; k++)
        for (int64_t o = 0; o < out; o++) {
            const int64_t at = o * filter + class->tap[k] * in;
            float *line = to + k * out + o;
            for (int64_t c = 0; c < in; c++, line += direct->depth) {
                const bool f32 = convolution->f32;
                const uint32_t bits = f32 ? 0 : (uint32_t)((const uint16_t *)w)[at + c] << 16;
                memcpy(line, f32 ? ls_bf16_element(w, true, at + c) : &bits, sizeof bits);
            }
        }
}

/* The group's channels of one sample. */
struct target {
    const float *bias; /* NULL: there is none */
    char *data;
    bool bf16;
    int64_t plane;
};

static void write_tile(const struct ls_bf16_direct *direct, const struct target *target,
                       int64_t first, int64_t count, float *sums, size_t pitch)
{
    const struct ls_vector_bf16_ends *vector = ls_vector_bf16_ends();
    const struct ls_bf16_block block = {.bias = target->bias,
                                        .sums = sums,
                                        .pitch = pitch,
                                        .rows = (size_t)direct->lines,
                                        .columns = (size_t)count,
                                        .to_pitch = (size_t)target->plane};
    const struct ls_bf16_ends *ends = &direct->convolution->ends;
    if (target->bf16)
        vector->block_to_bf16(ends, &block, (uint16_t *)(void *)target->data + first);
    else
        vector->block_to_f32(ends, &block, (float *)(void *)target->data + first);
}

static void sum_positions(const struct ls_bf16_direct *direct, const struct areas *areas,
                          float *scratch, int64_t first, int64_t positions,
                          const struct target *target)
{
    const struct ls_vector_bf16_direct *vector = ls_vector_bf16_direct();
    const int64_t most = (int64_t)vector->positions, width = most / 3;
    struct ls_bf16_over_positions sums = {.w = scratch + areas->weights,
                                          .lines = (size_t)direct->lines,
                                          .depth = (size_t)direct->depth,
                                          .offset = direct->offset,
                                          .sums = scratch + areas->sums,
                                          .pitch = rounded_up((size_t)most, LANES)};
    for (int64_t done = 0, count; done < positions; done += count) {
        const int64_t left = positions - done;
        /* Two and two registers are better than three and one. */
        count = left > most && left <= 4 * width ? 2 * width : smaller(left, most);
        sums.x = scratch + areas->planes + done;
        sums.positions = (size_t)count;
        vector->over_positions(&sums);
        write_tile(direct, target, first + done, count, sums.sums, sums.pitch);
    }
}

void ls_bf16_direct_positions(const struct ls_bf16_direct *direct, const void *from, const void *w,
                              const float *bias, void *to, bool bf16, void *scratch)
{
    const struct ls_bf16_convolution *convolution = direct->convolution;
    const struct ls_bf16_windows *windows = &direct->windows;
    const int64_t plane = whole_plane(direct);
    const size_t element = bf16 ? sizeof(uint16_t) : sizeof(float);
    float *floats = scratch;
    struct areas areas;
    find_areas(direct, &areas);
    for (int64_t g = 0; g < convolution->groups; g++) {
        widen_weights(direct,
                      ls_bf16_element(w, convolution->f32, g * direct->lines * direct->depth),
                      floats + areas.weights);
        for (int64_t n = 0; n < windows->samples; n++) {
            const struct target target = {
                .bias = bias != NULL ? bias + g * direct->lines : NULL,
                .data = (char *)to +
                        (size_t)((n * convolution->groups + g) * direct->lines * plane) * element,
                .bf16 = bf16,
                .plane = plane};
            const int64_t at = n * windows->sample + g * windows->channels * windows->plane;
            const void *data = ls_bf16_element(from, convolution->f32, at);
            for (struct part part = {0}; next_part(direct, &part);) {
                fill_planes(direct, data, &part, floats + areas.planes);
                sum_positions(direct, &areas, floats, begin_of(direct, &part),
                              positions_of(direct, &part), &target);
            }
        }
    }
}

/* ---- By weights ------------------------------------------------------------------------------ */

/* Some channels of y at a time, whose cache lines stay until other lines have written theirs. */
static void write_weights(const struct ls_bf16_direct *direct, const float *sums, size_t pitch,
                          float *dw, float *db)
{
    const int64_t taps = direct->windows.taps, in = direct->windows.channels;
    const int64_t out = direct->convolution->y_channels, filter = taps * in;
    const bool in_order = direct->convolution->f32; /* of terms, else in Caffe's order */
    for (int64_t begin = 0; begin < out; begin += LANES) {
        const int64_t end = smaller(begin + LANES, out);
        const float *from = sums;
        for (int64_t k = 0; k < taps; k++)
            for (int64_t c = 0; c < in; c++, from += pitch) {
                const int64_t at = in_order ? k * in + c : c * taps + k;
                for (int64_t o = begin; o < end; o++)
                    dw[o * filter + at] = from[o] + 0.0F; /* no -0 */
            }
        for (int64_t o = begin; db != NULL && o < end; o++)
            db[o] = from[o] + 0.0F;
    }
}

/* A part of a sample; y begins with it. */
static void sum_lines(const struct ls_bf16_direct *direct, const struct areas *areas,
                      float *scratch, const void *y, int64_t positions, bool db, bool first)
{
    const struct ls_vector_bf16_direct *vector = ls_vector_bf16_direct();
    const int64_t out = direct->convolution->y_channels;
    const size_t lanes = rounded_up((size_t)out, LANES);
    struct ls_bf16_over_lines sums = {.offset = direct->offset,
                                      .lines = (size_t)(direct->depth + db),
                                      .columns = lanes,
                                      .sums = scratch + areas->sums,
                                      .pitch = lanes,
                                      .first = first};
    const int64_t plane = ls_bf16_plane(direct->convolution->y);
    float *turned = scratch + areas->y;
    if (direct->convolution->f32)
        vector->turn_floats(y, plane, (size_t)out, (size_t)positions, turned, lanes);
    else
        vector->turn(y, plane, (size_t)out, (size_t)positions, turned, lanes);
    for (int64_t done = 0; done < positions; done += SUB_POSITIONS) {
        sums.positions = (size_t)smaller(SUB_POSITIONS, positions - done);
        sums.x = scratch + areas->planes + done;
        sums.y = scratch + areas->y + (size_t)done * lanes;
        vector->over_lines(&sums);
        sums.first = false;
    }
}

void ls_bf16_direct_weights(const struct ls_bf16_direct *direct, const void *x, const void *y,
                            float *dw, float *db, void *scratch)
{
    const struct ls_bf16_convolution *convolution = direct->convolution;
    const struct ls_bf16_windows *windows = &direct->windows;
    const int64_t in = windows->channels, out = convolution->y_channels;
    const int64_t plane = whole_plane(direct);
    float *floats = scratch;
    struct areas areas;
    find_areas(direct, &areas);
    for (size_t i = areas.ones; i < areas.sums; i++)
        floats[i] = 1;
    for (int64_t g = 0; g < convolution->groups; g++) {
        for (int64_t n = 0; n < windows->samples; n++) {
            const int64_t at = n * windows->sample + g * in * windows->plane;
            const void *data = ls_bf16_element(x, convolution->f32, at);
            const int64_t dy = (n * convolution->groups + g) * out * plane;
            for (struct part part = {0}; next_part(direct, &part);) {
                fill_planes(direct, data, &part, floats + areas.planes);
                sum_lines(direct, &areas, floats,
                          ls_bf16_element(y, convolution->f32, dy + begin_of(direct, &part)),
                          positions_of(direct, &part), db != NULL,
                          n == 0 && part.front == 0 && part.first == 0);
            }
        }
        write_weights(direct, floats + areas.sums, rounded_up((size_t)out, LANES),
                      dw + g * out * in * windows->taps, db != NULL ? db + g * out : NULL);
    }
}
