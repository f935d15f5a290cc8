/* Pooling: maximum or average over windows. Takes and leaves the layout that is there.
 *
 * A window may reach beyond the input on every side; Caffe rounds the number of outputs up, so that
 * this is the rule rather than the exception. As in Caffe, a maximum starts at -FLT_MAX and the
 * first greater element wins: NaN never wins, and a window without an element greater than
 * -FLT_MAX gives that and the index -1, which gets no gradient. A window without any element has
 * the average 0. In the lanes of padding, winners are positions like others.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "base/memory.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/tiles.h"
#include "ops/cpu/vector/bf16_pooling.h"
#include "ops/cpu/vector/pooling.h"
#include "ops/cpu/vector/pooling_pairs.h"

struct pooling_state {
    struct ls_windows windows;
    const struct ls_vector_pooling_layout *loops;
    bool blank;  /* some windows are empty */
    bool native; /* loops over bf16 as it lies do it */
    bool paired; /* `pairs` is what there is to do */
    struct ls_pairs pairs;
    int32_t *tables;
    int64_t inside, outside; /* numbers of a plane of x, of y, as they lie */
    int64_t at_once;         /* planes; all, where values are fp32 */
    bool across;             /* their numbers side by side, as `loops` have it */
    /* Of values in bf16, where these planes are fp32: in scratch memory, counted in floats. */
    size_t inner_place, outer_place, row_place, index_place;
};

enum { NUMBERS_AT_ONCE = 4096, LANES = 16 };

/* x or dx, the tensor that windows move over, and y or dy. */
static const struct ls_value *inner_value(const struct ls_op *op)
{
    return op->kind == LS_OP_POOLING ? op->input[0] : op->output[0];
}

static const struct ls_value *outer_value(const struct ls_op *op)
{
    return op->kind == LS_OP_POOLING ? op->output[0] : op->input[0];
}

/* Positions within a plane are 32-bit. */
static bool pooling_accepts(const struct ls_op *op)
{
    const struct ls_shape *x = &inner_value(op)->shape;
    return x->rank >= 3 && x->rank <= 5 && op->attr.pooling.window.axes == x->rank - 2 &&
           ls_shape_count(x, 2, x->rank) < INT32_MAX / 2;
}

static int backward_layouts(const struct ls_op *op, struct ls_op_layouts *layouts,
                            struct ls_error *error)
{
    (void)error;
    /* Winners are in the layout that the forward pass had. */
    bool indexed = op->inputs > 1 && op->input[1] != NULL;
    layouts->in[0] = indexed ? layouts->in[1] : ls_gradient_layout(op, layouts);
    layouts->out[0] = layouts->in[0];
    return 0;
}

/* Fills one axis and its tables; returns whether some window covers nothing. */
static bool fill_axis(struct ls_pooling_axis *axis, int32_t *table)
{
    int32_t *begin = table, *end = begin + axis->out, *extent = end + axis->out;
    bool blank = false;
    axis->begin = begin;
    axis->end = end;
    axis->extent = extent;
    axis->full_begin = axis->out;
    for (int64_t o = 0; o < axis->out; o++) {
        int64_t first = o * axis->stride - axis->pad, behind = first + axis->kernel;
        int64_t padded = axis->in + axis->pad;
        extent[o] = (int32_t)((behind < padded ? behind : padded) - first);
        begin[o] = (int32_t)(first < 0 ? 0 : first < axis->in ? first : axis->in);
        end[o] = (int32_t)(behind > axis->in ? axis->in : behind > begin[o] ? behind : begin[o]);
        blank = blank || begin[o] == end[o];
        if (first < 0 || behind > axis->in)
            continue;
        axis->full_begin = o < axis->full_begin ? o : axis->full_begin;
        axis->full_end = o + 1;
    }
    if (axis->full_end == 0)
        axis->full_begin = 0;
    return blank;
}

/* Whether windows, in order, leave no input out. */
static bool axis_covered(const struct ls_pooling_axis *axis)
{
    int64_t next = 0;
    for (int64_t o = 0; o < axis->out; o++) {
        if (axis->begin[o] > next)
            return false;
        next = axis->end[o];
    }
    return next == axis->in;
}

static int fill_state(struct pooling_state *state, const struct ls_op *op)
{
    const struct ls_shape *x = &inner_value(op)->shape, *y = &outer_value(op)->shape;
    const struct ls_window *window = &op->attr.pooling.window;
    struct ls_windows *windows = &state->windows;
    size_t entries = 0;
    for (int i = 0; i < 3; i++) {
        int from = i - (3 - window->axes); /* the spatial axis; negative: added in front */
        struct ls_pooling_axis *axis = &windows->axis[i];
        *axis = (struct ls_pooling_axis){.in = 1, .out = 1, .kernel = 1, .stride = 1};
        if (from >= 0) {
            axis->in = x->dim[2 + from];
            axis->out = y->dim[2 + from];
            axis->kernel = window->kernel[from];
            axis->stride = window->stride[from];
            axis->pad = window->pad[from];
        }
        entries += 3 * (size_t)axis->out;
    }
    state->tables = ls_alloc(entries, sizeof *state->tables);
    if (state->tables == NULL)
        return -1;
    int32_t *table = state->tables;
    windows->disjoint = windows->covered = true;
    for (int i = 0; i < 3; i++) {
        struct ls_pooling_axis *axis = &windows->axis[i];
        state->blank = fill_axis(axis, table) || state->blank;
        windows->disjoint = windows->disjoint && axis->stride >= axis->kernel;
        windows->covered = windows->covered && axis_covered(axis);
        table += 3 * axis->out;
    }
    return 0;
}

static void pooling_release(struct ls_prepared *prepared)
{
    struct pooling_state *state = prepared->state;
    if (state != NULL)
        ls_free(state->tables);
    ls_free(state);
    prepared->state = NULL;
}

static const struct ls_vector_pooling_layout *loops_for(int64_t block)
{
    if (block == 1)
        return &ls_vector_pooling_plain()->plain;
    return block == 8 ? &ls_vector_pooling()->blocked8 : &ls_vector_pooling()->blocked16;
}

/* Whether a plain maximum is one over windows of 2 x 2 side by side; fills `pairs` then. */
static bool find_pairs(struct pooling_state *state, const struct ls_op *op)
{
    const struct ls_windows *windows = &state->windows;
    bool found = op->attr.pooling.method == LS_POOL_MAX && inner_value(op)->layout->block == 1 &&
                 windows->axis[0].in == 1 && windows->axis[0].out == 1 &&
                 ls_vector_pooling_pairs()->maximum != NULL;
    for (int i = 1; i < 3; i++) {
        const struct ls_pooling_axis *axis = &windows->axis[i];
        found = found && axis->kernel == 2 && axis->stride == 2 && axis->pad == 0 &&
                axis->in == 2 * axis->out;
    }
    state->pairs = (struct ls_pairs){
        .planes = windows->planes, .height = windows->axis[1].in, .width = windows->axis[2].in};
    return found;
}

/* A row of a narrow plane does not fill a register: then the lanes are planes. */
static bool is_narrow(const struct pooling_state *state, const struct ls_op *op)
{
    return op->kind == LS_OP_POOLING && op->input[0]->type == LS_BF16 && !state->native &&
           !state->paired && state->windows.axis[2].out <= LANES &&
           state->windows.planes >= LANES / 2;
}

/* Takes the next `floats` of scratch memory. */
static size_t take_floats(size_t *taken, size_t floats)
{
    size_t place = *taken;
    *taken += (floats + LANES - 1) / LANES * LANES;
    return place;
}

/* Scratch memory for what is not native: some planes are converted together, so that small ones are
 * not called for one by one. */
static void place_planes(struct pooling_state *state, struct ls_prepared *prepared)
{
    const int64_t larger = state->inside > state->outside ? state->inside : state->outside;
    size_t taken = 0;
    (void)take_floats(&taken, prepared->scratch_bytes / sizeof(float));
    state->at_once = state->across ? LANES : NUMBERS_AT_ONCE / larger;
    if (state->at_once > state->windows.planes && !state->across)
        state->at_once = state->windows.planes;
    if (state->at_once < 1)
        state->at_once = 1;
    state->inner_place = take_floats(&taken, (size_t)(state->at_once * state->inside));
    state->outer_place = take_floats(&taken, (size_t)(state->at_once * state->outside));
    state->row_place = take_floats(&taken, state->across ? (size_t)larger : 0);
    state->index_place =
        take_floats(&taken, state->across ? (size_t)(state->at_once * state->outside) : 0);
    prepared->scratch_bytes = taken * sizeof(float);
}

/* How many planes from plane p on are the next ones. */
static int64_t next_planes(const struct pooling_state *state, int64_t p)
{
    const int64_t left = state->windows.planes - p;
    return left < state->at_once ? left : state->at_once;
}

/* Scratch memory, in floats. */
static size_t loop_scratch(const struct pooling_state *state, const struct ls_op *op)
{
    if (state->native)
        return op->kind == LS_OP_POOLING ? 0 : (size_t)state->outside;
    return op->kind == LS_OP_POOLING && !state->paired
               ? (size_t)state->loops->scratch(&state->windows)
               : 0;
}

static int pooling_prepare(struct ls_prepared *prepared, struct ls_error *error)
{
    const struct ls_value *x = inner_value(prepared->op);
    struct pooling_state *state = ls_alloc(1, sizeof *state);
    prepared->state = state;
    if (state == NULL || fill_state(state, prepared->op) != 0) {
        pooling_release(prepared);
        return ls_fail_memory(error, "tables of windows");
    }
    int64_t block = x->layout->block, channels = x->shape.dim[1];
    state->windows.planes = x->shape.dim[0] * ((channels + block - 1) / block);
    state->loops = loops_for(block);
    state->native = x->type == LS_BF16 && block == 1 && ls_bf16_pooling_fits(&state->windows);
    state->paired = !state->native && find_pairs(state, prepared->op);
    state->inside = (int64_t)ls_value_elements(x) / state->windows.planes;
    state->outside = (int64_t)ls_value_elements(outer_value(prepared->op)) / state->windows.planes;
    state->at_once = state->windows.planes;
    state->across = is_narrow(state, prepared->op);
    if (state->across)
        state->loops = &ls_vector_pooling()->blocked16;
    prepared->scratch_bytes = loop_scratch(state, prepared->op) * sizeof(float);
    if (x->type == LS_BF16 && !state->native)
        place_planes(state, prepared);
    return ls_own_prepare(prepared, error);
}

/* Planes [plane, plane + count) of the windows, whose numbers are at x and y. */
static void pool(const struct ls_op *op, const struct pooling_state *state, int64_t count,
                 const float *x, float *y, int32_t *index, void *scratch)
{
    struct ls_windows windows = state->windows;
    struct ls_pairs pairs = state->pairs;
    windows.planes = pairs.planes = count;
    if (state->paired)
        ls_vector_pooling_pairs()->maximum(&pairs, x, y, index);
    else if (op->attr.pooling.method == LS_POOL_MAX)
        state->loops->maximum(&windows, x, y, index, scratch);
    else
        state->loops->average(&windows, x, y, scratch);
}

/* Planes [p, p + count) side by side in scratch memory, `inside` numbers each; lanes behind the
 * last plane repeat it. */
static void gather_planes(const struct ls_op *op, const struct pooling_state *state, int64_t p,
                          int64_t count, const void *x, float *scratch)
{
    float *to = scratch + state->inner_place, *row = scratch + state->row_place;
    for (int64_t l = 0; l < LANES; l++) {
        const int64_t plane = p + (l < count ? l : count - 1);
        const float *numbers = ls_tile_read(op->input[0], x, (size_t)(plane * state->inside),
                                            (size_t)state->inside, row);
        for (int64_t i = 0; i < state->inside; i++)
            to[i * LANES + l] = numbers[i];
    }
}

/* And what became of them, plane by plane. */
static void scatter_planes(const struct ls_op *op, const struct pooling_state *state, int64_t p,
                           int64_t count, float *scratch, void *y, int32_t *index)
{
    const float *from = scratch + state->outer_place;
    const int32_t *winners = (const int32_t *)(const void *)(scratch + state->index_place);
    float *row = scratch + state->row_place;
    for (int64_t l = 0; l < count; l++) {
        const int64_t first = (p + l) * state->outside;
        for (int64_t i = 0; i < state->outside; i++)
            row[i] = from[i * LANES + l];
        ls_tile_end(op->output[0], y, (size_t)first, (size_t)state->outside, row);
        for (int64_t i = 0; index != NULL && i < state->outside; i++)
            index[first + i] = winners[i * LANES + l];
    }
}

static void pool_across(const struct ls_op *op, const struct pooling_state *state, void *const *in,
                        void *const *out, float *scratch)
{
    int32_t *index = op->outputs > 1 ? out[1] : NULL;
    int32_t *winners = (int32_t *)(void *)(scratch + state->index_place);
    for (int64_t p = 0, count; p < state->windows.planes; p += count) {
        count = next_planes(state, p);
        gather_planes(op, state, p, count, in[0], scratch);
        pool(op, state, 1, scratch + state->inner_place, scratch + state->outer_place,
             index != NULL ? winners : NULL, scratch);
        scatter_planes(op, state, p, count, scratch, out[0], index);
    }
}

static int pooling_run(const struct ls_prepared *prepared, void *local, void *const *in,
                       void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)context;
    const struct pooling_state *state = prepared->state;
    const struct ls_op *op = prepared->op;
    const struct ls_value *x = op->input[0], *y = op->output[0];
    float *inner = (float *)scratch + state->inner_place;
    float *outer = (float *)scratch + state->outer_place;
    int32_t *index = op->outputs > 1 ? out[1] : NULL;
    if (state->native && op->attr.pooling.method == LS_POOL_MAX) {
        ls_vector_bf16_pooling()->maximum(&state->windows, in[0], out[0], index);
        return 0;
    }
    if (state->native) {
        ls_vector_bf16_pooling()->average(&state->windows, in[0], out[0]);
        return 0;
    }
    if (state->across) {
        pool_across(op, state, in, out, scratch);
        return 0;
    }
    for (int64_t p = 0, count; p < state->windows.planes; p += count) {
        count = next_planes(state, p);
        const size_t from = (size_t)(p * state->inside), to = (size_t)(p * state->outside);
        const size_t numbers = (size_t)(count * state->outside);
        float *result = ls_tile_begin(y, out[0], to, outer);
        pool(op, state, count, ls_tile_read(x, in[0], from, (size_t)(count * state->inside), inner),
             result, index != NULL ? index + to : NULL, scratch);
        ls_tile_end(y, out[0], to, numbers, result);
    }
    if (!state->blank || y->type != LS_F32)
        return 0;
    /* Of windows without elements the maximum is not 0 in the lanes of padding either. */
    ls_clear_padding(op->output[0], out[0]);
    if (index != NULL)
        ls_clear_padding(op->output[1], out[1]);
    return 0;
}

/* The same planes, back. */
static void pool_back(const struct ls_op *op, const struct pooling_state *state, int64_t count,
                      const float *dy, const int32_t *index, float *dx)
{
    struct ls_windows windows = state->windows;
    struct ls_pairs pairs = state->pairs;
    windows.planes = pairs.planes = count;
    if (state->paired)
        ls_vector_pooling_pairs()->maximum_backward(&pairs, dy, index, dx);
    else if (op->attr.pooling.method == LS_POOL_MAX)
        state->loops->maximum_backward(&windows, dy, index, dx);
    else
        state->loops->average_backward(&windows, dy, dx);
}

static int pooling_backward_run(const struct ls_prepared *prepared, void *local, void *const *in,
                                void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)context;
    const struct pooling_state *state = prepared->state;
    const struct ls_op *op = prepared->op;
    const struct ls_value *dy = op->input[0], *dx = op->output[0];
    float *inner = (float *)scratch + state->inner_place;
    float *outer = (float *)scratch + state->outer_place;
    const int32_t *index = op->inputs > 1 ? in[1] : NULL;
    if (state->native && op->attr.pooling.method == LS_POOL_MAX) {
        ls_vector_bf16_pooling()->maximum_backward(&state->windows, in[0], index, out[0]);
        return 0;
    }
    if (state->native) {
        ls_vector_bf16_pooling()->average_backward(&state->windows, in[0], out[0], scratch);
        return 0;
    }
    for (int64_t p = 0, count; p < state->windows.planes; p += count) {
        count = next_planes(state, p);
        const size_t from = (size_t)(p * state->outside), to = (size_t)(p * state->inside);
        float *result = ls_tile_begin(dx, out[0], to, inner);
        pool_back(op, state, count,
                  ls_tile_read(dy, in[0], from, (size_t)(count * state->outside), outer),
                  index != NULL ? index + from : NULL, result);
        ls_tile_end(dx, out[0], to, (size_t)(count * state->inside), result);
    }
    return 0;
}

const struct ls_kernel ls_kernel_pooling = {
    .kind = LS_OP_POOLING,
    .bits = LS_BITS_OWN,
    .name = "pooling",
    .accepts = pooling_accepts,
    .takes_bf16 = ls_all_bf16,
    .layouts = ls_layouts_follow,
    .prepare = pooling_prepare,
    .release = pooling_release,
    .run = pooling_run,
    .in_place = -1,
};

const struct ls_kernel ls_kernel_pooling_backward = {
    .kind = LS_OP_POOLING_BACKWARD,
    .bits = LS_BITS_OWN,
    .name = "pooling backward",
    .accepts = pooling_accepts,
    .takes_bf16 = ls_all_bf16,
    .layouts = backward_layouts,
    .prepare = pooling_prepare,
    .release = pooling_release,
    .run = pooling_backward_run,
    .in_place = -1,
};
