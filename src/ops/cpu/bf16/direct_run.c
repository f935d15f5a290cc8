/* How convolutions with few channels are computed. See direct.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "ops/cpu/bf16/direct.h"
#include "ops/cpu/bf16/direct_plan.h"
#include "ops/cpu/bf16/kernel.h"

enum {
    LANES = LS_BF16_DIRECT_LANES,
    SUB_POSITIONS = 128 /* by weights, that are summed up together */
};

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- Planes ---------------------------------------------------------------------------------- */

/* Rows [first, first + rows) of a sample's positions, at place `front` along the axis in front. */
struct part {
    int64_t front, first, rows;
    bool again; /* the planes hold a sample already */
    bool skips; /* blocks that meet padding alone: zeros times weights that are finite */
};

/* Leaves out runs without numbers. */
static size_t without_zeros(struct ls_bf16_run *run, size_t runs)
{
    size_t left = 0;
    for (size_t i = 0; i < runs; i++)
        if (run[i].count > 0)
            run[left++] = run[i];
    return left;
}

/* Makes words of runs of `rows` rows, or of pairs of rows. */
static void copy(const struct ls_bf16_direct *direct, const struct ls_bf16_run *run, size_t runs,
                 const void *data, int64_t plane, size_t rows, void *to, size_t pitch)
{
    if (direct->convolution->f32)
        ls_vector_bf16_windows()->copy_floats(run, runs, data, plane, 1, rows, to, pitch);
    else if (direct->words == LS_BF16_PAIRED_TERMS)
        direct->pairs->fill(run, runs, data, plane, direct->steps->plane, rows, to, pitch);
    else if (direct->words == LS_BF16_PAIRED_POSITIONS)
        direct->pairs->fill_positions(run, runs, data, plane, rows, to, pitch);
    else
        ls_vector_bf16_direct()->widen(run, runs, data, plane, rows, to, pitch);
}

/* The planes of one variant, of all channels of a group. */
static void fill_variant(const struct ls_bf16_direct *direct, const struct ls_bf16_areas *areas,
                         const void *data, const struct part *part, int64_t variant,
                         uint32_t *scratch)
{
    const struct ls_bf16_windows *windows = &direct->windows;
    const int64_t plane = ls_bf16_direct_plane(direct), rows = part->rows + direct->further;
    const int64_t *offset = windows->offset[direct->typical[variant]];
    const size_t pitch = (size_t)(direct->variants * plane);
    uint32_t *to =
        scratch + areas->planes + ls_bf16_direct_slot(direct, variant, part->front) * plane;
    struct ls_bf16_run run[LS_BF16_DIRECT_RUNS];
    int64_t stands[3];
    for (int i = 0; i < 3; i++)
        stands[i] = offset[i] + (i < direct->axis ? part->front : 0);
    stands[direct->axis] = part->first - direct->before;
    size_t runs = ls_bf16_row_runs(windows, direct->axis, rows, stands, run);
    /* Rows of zeros are there since the sample before, if that had the same ones. */
    if (part->again && direct->fronts == 1 && part->rows == windows->grid[direct->axis])
        runs = without_zeros(run, runs);
    copy(direct, run, runs, data, windows->plane, (size_t)ls_bf16_direct_planes(direct), to, pitch);
}

/* What windows of a part meet, but for what is there since the part before. */
static void fill_planes(const struct ls_bf16_direct *direct, const struct ls_bf16_areas *areas,
                        const void *data, const struct part *part, uint32_t *scratch)
{
    const int64_t last = direct->nearest + direct->ring - 1;
    for (int64_t v = 0; v < direct->variants; v++)
        if (direct->ring == 1 || part->front == 0 ||
            direct->windows.offset[direct->typical[v]][0] == last)
            fill_variant(direct, areas, data, part, v, scratch);
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

/* By term or step, for the positions of a part. */
static const int32_t *offsets_of(const struct ls_bf16_direct *direct, const struct part *part)
{
    return direct->offset + part->front % direct->ring * direct->offsets;
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
        copy(direct, &all, 1, w, filter, (size_t)out, to, (size_t)filter);
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

/* Forward in pairs: the steps of each line one after the other. */
static void pair_lines(const struct ls_bf16_direct *direct, const uint16_t *w, uint32_t *to)
{
    const struct ls_bf16_steps *steps = direct->steps;
    for (int64_t line = 0; line < direct->lines; line++, w += direct->depth, to += steps->count) {
        if (steps->fours) {
            direct->pairs->pair_terms(w, (size_t)direct->depth, to);
            continue;
        }
        for (int64_t s = 0; s < steps->count; s++) {
            const struct ls_bf16_step *step = &steps->step[s];
            const uint32_t lower = step->lower < 0 ? 0 : w[step->lower];
            to[s] = (uint32_t)w[step->upper] << 16 | lower;
        }
    }
}

/* By data in pairs: all lines of a step, then those of the next. */
static void pair_channels(const struct ls_bf16_direct *direct, const uint16_t *w, uint32_t *to)
{
    const struct ls_bf16_convolution *convolution = direct->convolution;
    const int64_t in = convolution->x_channels, out = convolution->y_channels;
    const int64_t filter = convolution->taps * in, *tap = convolution->classes[0].tap;
    for (int64_t s = 0; s < direct->steps->count; s++, to += in) {
        const int64_t k = direct->steps->step[s].upper;
        const uint16_t *upper = w + k % out * filter + tap[k / out] * in;
        const bool two = direct->steps->step[s].lower >= 0; /* two channels further */
        direct->pairs->join(upper, two ? upper + 2 * filter : NULL, (size_t)in, to);
    }
}

static void lay_out_weights(const struct ls_bf16_direct *direct, const void *w, void *to)
{
    if (direct->words == LS_BF16_FLOATS)
        widen_weights(direct, w, to);
    else if (direct->convolution->pass == LS_BF16_TO_X)
        pair_channels(direct, w, to);
    else
        pair_lines(direct, w, to);
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
                                        .to_pitch = (size_t)target->plane,
                                        .step = 1};
    const struct ls_bf16_ends *ends = &direct->convolution->ends;
    if (target->bf16)
        vector->block_to_bf16(ends, &block, (uint16_t *)(void *)target->data + first);
    else
        vector->block_to_f32(ends, &block, (float *)(void *)target->data + first);
}

/* `count` positions of a part, from `first` of those in the planes on, into the sums. */
static void sum_pairs(const struct ls_bf16_direct *direct, const struct ls_bf16_areas *areas,
                      const struct part *part, uint32_t *scratch, int64_t first, int64_t count,
                      float *sums, size_t pitch)
{
    const struct ls_bf16_steps *steps = direct->steps;
    const bool transposed = direct->convolution->pass == LS_BF16_TO_X;
    const int64_t row = part->first + first / direct->row;
    const int64_t last = part->first + (first + count - 1) / direct->row;
    struct ls_bf16_some some = {.end = steps->blocks};
    if (part->skips)
        some = ls_bf16_direct_blocks(direct, row, last);
    const size_t begin = (size_t)direct->reach[some.begin].step;
    const size_t step = transposed ? (size_t)direct->lines : 1;
    const struct ls_bf16_pair_positions all = {.w = scratch + areas->weights + begin * step,
                                               .line = transposed ? 1 : (size_t)steps->count,
                                               .step = step,
                                               .lines = (size_t)direct->lines,
                                               .x = scratch + areas->planes + first,
                                               .offset = offsets_of(direct, part) + begin,
                                               .block = steps->block + some.begin,
                                               .blocks = (size_t)(some.end - some.begin),
                                               .positions = (size_t)count,
                                               .sums = sums,
                                               .pitch = pitch};
    direct->pairs->over_positions(&all);
}

static void sum_floats(const struct ls_bf16_direct *direct, const struct ls_bf16_areas *areas,
                       const struct part *part, uint32_t *scratch, int64_t first, int64_t count,
                       float *sums, size_t pitch)
{
    const float *floats = (const float *)(const void *)scratch;
    const struct ls_bf16_over_positions all = {.w = floats + areas->weights,
                                               .lines = (size_t)direct->lines,
                                               .depth = (size_t)direct->depth,
                                               .x = floats + areas->planes + first,
                                               .offset = offsets_of(direct, part),
                                               .positions = (size_t)count,
                                               .sums = sums,
                                               .pitch = pitch};
    ls_vector_bf16_direct()->over_positions(&all);
}

static void sum_positions(const struct ls_bf16_direct *direct, const struct ls_bf16_areas *areas,
                          uint32_t *scratch, const struct part *part, const struct target *target)
{
    const int64_t first = begin_of(direct, part), positions = positions_of(direct, part);
    const int64_t most = ls_bf16_direct_positions_max(direct), width = most / 3;
    const size_t pitch = ls_bf16_rounded_up((size_t)most, LANES);
    float *sums = (float *)(void *)(scratch + areas->sums);
    for (int64_t done = 0, count; done < positions; done += count) {
        const int64_t left = positions - done;
        /* Two and two registers are better than three and one. */
        count = left > most && left <= 4 * width ? 2 * width : smaller(left, most);
        if (direct->words == LS_BF16_PAIRED_TERMS)
            sum_pairs(direct, areas, part, scratch, done, count, sums, pitch);
        else
            sum_floats(direct, areas, part, scratch, done, count, sums, pitch);
        write_tile(direct, target, first + done, count, sums, pitch);
    }
}

void ls_bf16_direct_positions(const struct ls_bf16_direct *direct, const void *from, const void *w,
                              const float *bias, void *to, bool bf16, void *scratch)
{
    const struct ls_bf16_convolution *convolution = direct->convolution;
    const struct ls_bf16_windows *windows = &direct->windows;
    const int64_t plane = whole_plane(direct);
    const size_t element = bf16 ? sizeof(uint16_t) : sizeof(float);
    uint32_t *words = scratch;
    struct ls_bf16_areas areas;
    ls_bf16_direct_find(direct, &areas);
    for (int64_t g = 0; g < convolution->groups; g++) {
        lay_out_weights(direct,
                        ls_bf16_element(w, convolution->f32, g * direct->lines * direct->depth),
                        words + areas.weights);
        const bool skips = direct->words == LS_BF16_PAIRED_TERMS && direct->skips &&
                           direct->pairs->finite(words + areas.weights,
                                                 (size_t)(direct->lines * direct->steps->count));
        for (int64_t n = 0; n < windows->samples; n++) {
            const struct target target = {
                .bias = bias != NULL ? bias + g * direct->lines : NULL,
                .data = (char *)to +
                        (size_t)((n * convolution->groups + g) * direct->lines * plane) * element,
                .bf16 = bf16,
                .plane = plane};
            const int64_t at = n * windows->sample + g * windows->channels * windows->plane;
            const void *data = ls_bf16_element(from, convolution->f32, at);
            for (struct part part = {.again = g + n > 0, .skips = skips};
                 next_part(direct, &part);) {
                fill_planes(direct, &areas, data, &part, words);
                sum_positions(direct, &areas, words, &part, &target);
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

/* Positions [first, first + count) of those in the planes, the first ones of all if `begins`. */
static void sum_some_lines(const struct ls_bf16_direct *direct, const struct ls_bf16_areas *areas,
                           const int32_t *offset, uint32_t *scratch, int64_t first, int64_t count,
                           bool db, bool begins)
{
    const size_t columns = ls_bf16_rounded_up((size_t)direct->convolution->y_channels, LANES);
    const size_t lines = (size_t)(direct->depth + db);
    const uint32_t *x = scratch + areas->planes + ls_bf16_direct_words(direct, first);
    const uint32_t *y = scratch + areas->y + (size_t)ls_bf16_direct_words(direct, first) * columns;
    float *sums = (float *)(void *)(scratch + areas->sums);
    if (direct->words == LS_BF16_PAIRED_POSITIONS) {
        const bool in_fours = direct->windows.channels % 4 == 0;
        const struct ls_bf16_pair_lines all = {
            .x = x,
            .offset = offset,
            .stride = in_fours ? (size_t)(direct->variants * ls_bf16_direct_plane(direct)) : 0,
            .lines = lines,
            .y = y,
            .positions = (size_t)count,
            .columns = columns,
            .sums = sums,
            .pitch = columns,
            .first = begins};
        direct->pairs->over_lines(&all);
        return;
    }
    const struct ls_bf16_over_lines all = {.x = (const float *)(const void *)x,
                                           .offset = offset,
                                           .lines = lines,
                                           .y = (const float *)(const void *)y,
                                           .positions = (size_t)count,
                                           .columns = columns,
                                           .sums = sums,
                                           .pitch = columns,
                                           .first = begins};
    ls_vector_bf16_direct()->over_lines(&all);
}

/* A part of a sample; y begins with it. */
static void sum_lines(const struct ls_bf16_direct *direct, const struct ls_bf16_areas *areas,
                      uint32_t *scratch, const void *y, const struct part *part, bool db,
                      bool first)
{
    const int64_t positions = positions_of(direct, part);
    const size_t out = (size_t)direct->convolution->y_channels,
                 lanes = ls_bf16_rounded_up(out, LANES);
    const int64_t plane = ls_bf16_plane(direct->convolution->y);
    void *transposed = scratch + areas->y;
    if (direct->words == LS_BF16_PAIRED_POSITIONS)
        direct->pairs->transpose(y, plane, out, (size_t)positions, transposed, lanes);
    else if (direct->convolution->f32)
        ls_vector_bf16_direct()->transpose_f32(y, plane, out, (size_t)positions, transposed, lanes);
    else
        ls_vector_bf16_direct()->transpose_bf16(y, plane, out, (size_t)positions, transposed,
                                                lanes);
    for (int64_t done = 0; done < positions; done += SUB_POSITIONS)
        sum_some_lines(direct, areas, offsets_of(direct, part), scratch, done,
                       smaller(SUB_POSITIONS, positions - done), db, first && done == 0);
}

/* Words that hold a one, or two of them. */
static void fill_ones(const struct ls_bf16_direct *direct, const struct ls_bf16_areas *areas,
                      uint32_t *scratch)
{
    const uint32_t one = (uint32_t)LS_BF16_ONE << 16;
    for (size_t i = areas->ones; i < areas->sums; i++)
        scratch[i] = direct->words == LS_BF16_PAIRED_POSITIONS ? one | LS_BF16_ONE : one;
}

void ls_bf16_direct_weights(const struct ls_bf16_direct *direct, const void *x, const void *y,
                            float *dw, float *db, void *scratch)
{
    const struct ls_bf16_convolution *convolution = direct->convolution;
    const struct ls_bf16_windows *windows = &direct->windows;
    const int64_t in = windows->channels, out = convolution->y_channels;
    const int64_t plane = whole_plane(direct);
    uint32_t *words = scratch;
    struct ls_bf16_areas areas;
    ls_bf16_direct_find(direct, &areas);
    fill_ones(direct, &areas, words);
    for (int64_t g = 0; g < convolution->groups; g++) {
        for (int64_t n = 0; n < windows->samples; n++) {
            const int64_t at = n * windows->sample + g * in * windows->plane;
            const void *data = ls_bf16_element(x, convolution->f32, at);
            const int64_t dy = (n * convolution->groups + g) * out * plane;
            for (struct part part = {.again = g + n > 0}; next_part(direct, &part);) {
                fill_planes(direct, &areas, data, &part, words);
                sum_lines(direct, &areas, words,
                          ls_bf16_element(y, convolution->f32, dy + begin_of(direct, &part)), &part,
                          db != NULL, n == 0 && part.front == 0 && part.first == 0);
            }
        }
        write_weights(direct, (const float *)scratch + areas.sums,
                      ls_bf16_rounded_up((size_t)out, LANES), dw + g * out * in * windows->taps,
                      db != NULL ? db + g * out : NULL);
    }
}
