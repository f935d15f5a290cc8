/* Which convolutions are computed directly, and how they are cut. See direct.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/bf16/direct.h"

#include "base/assert.h"
#include "base/memory.h"
#include "ops/cpu/bf16/direct_plan.h"

enum {
    LANES = LS_BF16_DIRECT_LANES,
    BLOCK = LS_BF16_BLOCK,
    PLANES_MAX = 96 * 1024,  /* words of planes: what the second cache holds */
    WEIGHTS_MAX = 128 * 1024 /* words of weights, or of their gradient */
};

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

size_t ls_bf16_direct_find(const struct ls_bf16_direct *direct, struct ls_bf16_areas *areas)
{
    const struct ls_bf16_windows *windows = &direct->windows;
    const size_t planes =
        (size_t)(ls_bf16_direct_planes(direct) * direct->variants * ls_bf16_direct_plane(direct));
    const size_t positions = (size_t)(direct->rows * direct->row);
    const size_t lanes = ls_bf16_rounded_up((size_t)direct->convolution->y_channels, LANES);
    const bool to_w = direct->convolution->pass == LS_BF16_TO_W;
    areas->planes = 0;
    areas->ones = ls_bf16_rounded_up(planes, LANES);
    areas->weights = areas->ones + ls_bf16_rounded_up(to_w ? positions : LANES * 3, LANES);
    if (to_w) {
        areas->sums = areas->weights;
        areas->y = areas->sums + (size_t)(windows->taps * windows->channels + 1) * lanes;
        return areas->y + (size_t)ls_bf16_direct_words(direct, (int64_t)positions) * lanes;
    }
    const int64_t terms =
        direct->words == LS_BF16_PAIRED_TERMS ? direct->steps->count : direct->depth;
    areas->y = areas->sums =
        areas->weights + ls_bf16_rounded_up((size_t)(direct->lines * terms), LANES);
    return areas->sums +
           (size_t)direct->lines *
               ls_bf16_rounded_up((size_t)ls_bf16_direct_positions_max(direct), LANES);
}

size_t ls_bf16_direct_scratch(const struct ls_bf16_direct *direct)
{
    struct ls_bf16_areas areas;
    return ls_bf16_direct_find(direct, &areas) * sizeof(float);
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

/* Different places of windows along the first axis, and the first of them. */
static int64_t count_fronts(const struct ls_bf16_windows *windows, int64_t *nearest)
{
    int64_t count = 0;
    *nearest = windows->offset[0][0];
    for (int64_t k = 0; k < windows->taps; k++) {
        int64_t other = 0;
        while (windows->offset[other][0] != windows->offset[k][0])
            other++;
        count += other == k;
        *nearest = smaller(*nearest, windows->offset[k][0]);
    }
    return count;
}

/* A variant's place among those that differ from it at most in the place along the first axis: the
 * number of that place, then of the variant there. -1: places do not follow each other. */
static int64_t slot_of(const struct ls_bf16_direct *direct, int64_t variant)
{
    const int64_t(*offset)[3] = direct->windows.offset;
    const int64_t each = direct->variants / direct->ring;
    const int64_t *own = offset[direct->typical[variant]];
    int64_t number = 0;
    for (int64_t v = 0; v < direct->variants; v++) {
        const int64_t *other = offset[direct->typical[v]];
        if (other[0] == direct->nearest && other[2] == own[2])
            return own[0] - direct->nearest < direct->ring && number < each
                       ? (own[0] - direct->nearest) * each + number
                       : -1;
        number += other[0] == direct->nearest;
    }
    return -1;
}

/* Where planes of a volume lie, whether they are kept for the next position or not. */
static void find_slots(struct ls_bf16_direct *direct)
{
    const bool whole = direct->rows == direct->windows.grid[direct->axis];
    direct->ring = count_fronts(&direct->windows, &direct->nearest);
    bool follow = direct->axis == 1 && whole && direct->variants % direct->ring == 0;
    for (int64_t v = 0; follow && v < direct->variants; v++) {
        direct->slot[v] = slot_of(direct, v);
        follow = direct->slot[v] >= 0;
    }
    if (follow)
        return;
    direct->ring = 1;
    for (int64_t v = 0; v < direct->variants; v++)
        direct->slot[v] = v;
}

/* Where a tap's numbers begin in a plane. */
static int32_t offset_of(const struct ls_bf16_direct *direct, int64_t plane, int64_t tap,
                         int64_t state)
{
    const int64_t along = direct->windows.offset[tap][direct->axis] + direct->before;
    const int64_t slot = ls_bf16_direct_slot(direct, direct->variant[tap], state);
    return (int32_t)((plane * direct->variants + slot) * ls_bf16_direct_plane(direct) +
                     ls_bf16_direct_words(direct, along * direct->row));
}

static void fill_offsets(struct ls_bf16_direct *direct, int64_t state)
{
    const struct ls_bf16_windows *windows = &direct->windows;
    int32_t *offset = direct->offset + state * direct->offsets;
    if (direct->words == LS_BF16_PAIRED_TERMS) {
        for (int64_t s = 0; s < direct->steps->count; s++) {
            const struct ls_bf16_step *step = &direct->steps->step[s];
            *offset++ = offset_of(direct, step->plane, step->upper / windows->channels, state);
        }
        return;
    }
    for (int64_t k = 0; k < windows->taps; k++)
        for (int64_t c = 0; c < windows->channels; c++)
            *offset++ = offset_of(direct, c, k, state);
    struct ls_bf16_areas areas;
    ls_bf16_direct_find(direct, &areas);
    *offset = (int32_t)areas.ones;
}

static bool meets_padding(const struct ls_bf16_direct *direct, int64_t block, int64_t first,
                          int64_t last)
{
    const struct ls_bf16_reach *reach = &direct->reach[block];
    return last + reach->high < 0 || first + reach->low >= direct->windows.extent[direct->axis];
}

struct ls_bf16_some ls_bf16_direct_blocks(const struct ls_bf16_direct *direct, int64_t first,
                                          int64_t last)
{
    struct ls_bf16_some some = {.end = direct->steps->blocks};
    while (some.begin < some.end - 1 && meets_padding(direct, some.begin, first, last))
        some.begin++;
    while (some.begin < some.end - 1 && meets_padding(direct, some.end - 1, first, last))
        some.end--;
    return some;
}

/* How far blocks reach, and whether the first or the last tile can do without some. */
static void fill_reach(struct ls_bf16_direct *direct)
{
    const struct ls_bf16_windows *windows = &direct->windows;
    const struct ls_bf16_steps *steps = direct->steps;
    int64_t step = 0;
    for (int64_t b = 0; b < steps->blocks; b++) {
        struct ls_bf16_reach *reach = &direct->reach[b];
        *reach = (struct ls_bf16_reach){.low = INT64_MAX, .high = INT64_MIN, .step = step};
        step += steps->block[b].even + steps->block[b].odd;
        for (int64_t s = reach->step; s < step; s++) {
            const int64_t tap = steps->step[s].upper / windows->channels;
            const int64_t along = windows->offset[tap][direct->axis];
            reach->low = smaller(reach->low, along);
            reach->high = along > reach->high ? along : reach->high;
        }
    }
    const int64_t rows = windows->grid[direct->axis];
    const int64_t tile = (ls_bf16_direct_positions_max(direct) - 1) / direct->row;
    const struct ls_bf16_some top = ls_bf16_direct_blocks(direct, 0, tile);
    const struct ls_bf16_some bottom = ls_bf16_direct_blocks(direct, rows - 1 - tile, rows - 1);
    direct->skips =
        top.end - top.begin < steps->blocks || bottom.end - bottom.begin < steps->blocks;
}

/* As many rows as the cache holds, in equal parts; by weights such that blocks end with them. 0
 * where there are none. */
static int64_t choose_rows(const struct ls_bf16_direct *direct, int64_t all)
{
    const int64_t unit = ls_bf16_direct_words(direct, ls_bf16_direct_planes(direct) *
                                                          direct->variants * direct->row);
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
    /* What one weight meets is in memory as a product wants it. */
    if (!convolution->f32 && ls_cpu_unit() != LS_UNIT_NONE && convolution->taps == 1)
        return false;
    return convolution->class_count == 1 &&
           (convolution->f32 ? ls_cpu_isa() >= LS_ISA_AVX2 : ls_cpu_unit() != LS_UNIT_AMX) &&
           (convolution->x_channels * convolution->taps + 1) * (convolution->y_channels + LANES) <=
               WEIGHTS_MAX;
}

/* Registers are filled with positions well enough. */
static bool fills_well(int64_t positions)
{
    return positions * 8 >= (int64_t)ls_bf16_rounded_up((size_t)positions, LANES) * 7;
}

/* Pairs are made of four positions at a time, which must be of one row. */
static enum ls_bf16_words choose_words(const struct ls_bf16_direct *direct)
{
    if (direct->convolution->pass == LS_BF16_TO_W)
        return direct->pairs != NULL && direct->axis < 2 && direct->windows.grid[2] % 4 == 0
                   ? LS_BF16_PAIRED_POSITIONS
                   : LS_BF16_FLOATS;
    return direct->steps != NULL ? LS_BF16_PAIRED_TERMS : LS_BF16_FLOATS;
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
    direct->words = choose_words(direct);
    find_variants(direct);
    direct->rows = choose_rows(direct, grid[axis]);
    const int64_t last = axis < 2 ? grid[2] : direct->rows + direct->further;
    if (direct->rows == 0 ||
        (direct->rows + direct->further) * direct->row > LS_BF16_DIRECT_RUNS * last ||
        (convolution->pass != LS_BF16_TO_W && !fills_well(direct->rows * direct->row)))
        return false;
    if (direct->steps != NULL)
        fill_reach(direct);
    find_slots(direct);
    for (int64_t state = 0; state < direct->ring; state++)
        fill_offsets(direct, state);
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

/* Terms in pairs, where the processor multiplies pairs and most terms are in one. */
static int choose_steps(struct ls_bf16_direct *direct, struct ls_error *error)
{
    const struct ls_bf16_windows *windows = &direct->windows;
    if (direct->pairs == NULL || direct->convolution->pass == LS_BF16_TO_W)
        return 0;
    LS_TRY(ls_bf16_steps_new(windows->taps, windows->channels, &direct->steps, error));
    if (direct->steps->count * 4 > windows->taps * windows->channels * 3) {
        ls_bf16_steps_free(direct->steps);
        direct->steps = NULL;
        return 0;
    }
    direct->reach = ls_alloc((size_t)direct->steps->blocks, sizeof *direct->reach);
    return direct->reach != NULL ? 0 : ls_fail_memory(error, "tables of a convolution");
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
    direct->pairs = convolution->f32 ? NULL : ls_bf16_unit_pairs();
    direct->typical = ls_alloc(taps, sizeof *direct->typical);
    direct->variant = ls_alloc(taps, sizeof *direct->variant);
    direct->slot = ls_alloc(taps, sizeof *direct->slot);
    direct->offsets = convolution->taps * direct->windows.channels + 1;
    const int64_t states = count_fronts(&direct->windows, &direct->nearest);
    direct->offset = ls_alloc((size_t)(states * direct->offsets), sizeof *direct->offset);
    bool there = direct->typical != NULL && direct->variant != NULL && direct->slot != NULL &&
                 direct->offset != NULL;
    int status =
        there ? choose_steps(direct, error) : ls_fail_memory(error, "tables of a convolution");
    if (status == 0 && set_up_any(direct)) {
        *result = direct;
        return 0;
    }
    ls_bf16_direct_free(direct);
    return status;
}

void ls_bf16_direct_free(struct ls_bf16_direct *direct)
{
    if (direct == NULL)
        return;
    ls_free(direct->typical);
    ls_free(direct->variant);
    ls_free(direct->slot);
    ls_free(direct->offset);
    ls_free(direct->reach);
    ls_bf16_steps_free(direct->steps);
    ls_free(direct);
}
