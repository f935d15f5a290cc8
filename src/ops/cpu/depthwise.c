/* The gradient by x of a convolution with a group for each channel (depthwise), in two dimensions.
 *
 *   dx[c, i] = sum over k of dy[c, o] w[c, k]    where o stride - pad + k dilation = i
 *
 * oneDNN's kernel for it reads and writes dx once for each weight where the stride is 2, and takes
 * several times what memory needs. This one writes each number once (ops/cpu/vector/depthwise.c).
 * Which weights come to which numbers is worked out here: numbers of a row that meet the same
 * weights, a stride apart, are one run; and rows that meet the same weights share their runs.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/vector/depthwise.h"

#include "base/memory.h"
#include "ops/cpu/kernels.h"

/* Along one axis: the number at o of dy meets weight k. */
struct tap {
    int64_t k, o;
};

/* What comes to one number along one axis. */
struct taps {
    struct tap tap[LS_DEPTHWISE_TAPS_MAX];
    int count;
};

struct depthwise {
    struct ls_depthwise shape;
    struct ls_depthwise_row *rows;
    struct ls_depthwise_run *runs;
    struct ls_depthwise_term *terms;
    size_t run_count, run_capacity, term_count, term_capacity;
};

/* Where a register is narrower than a block of channels oneDNN has no blocked convolutions, and
 * plain ones are its matter. */
static bool data_accepts(const struct ls_op *op)
{
    const struct ls_convolution_attr *attr = &op->attr.convolution;
    const struct ls_window *window = &attr->window;
    const struct ls_shape *x = &op->output[0]->shape, *y = &op->input[0]->shape;
    return ls_cpu_isa() >= LS_ISA_AVX2 && window->axes == 2 && x->rank == 4 && attr->group > 3 &&
           attr->group == x->dim[1] && attr->group == y->dim[1] &&
           window->kernel[0] * window->kernel[1] <= LS_DEPTHWISE_TAPS_MAX;
}

/* Activations as the forward pass has them (ops/cpu/convolution.c); the weights are few. */
static int data_layouts(const struct ls_op *op, struct ls_op_layouts *layouts,
                        struct ls_error *error)
{
    (void)op, (void)error;
    layouts->in[0] = ls_cpu_isa() == LS_ISA_AVX512 ? &ls_layout_blocked16 : &ls_layout_blocked8;
    layouts->in[1] = &ls_layout_plain;
    layouts->out[0] = layouts->in[0];
    return 0;
}

/* ---- Which weights come to which numbers ----------------------------------------------------- */

static void find_taps(const struct depthwise *state, const struct ls_window *window, int axis,
                      int64_t i, struct taps *taps)
{
    const int64_t stride = window->stride[axis];
    taps->count = 0;
    for (int64_t k = 0; k < window->kernel[axis]; k++) {
        int64_t from = i + window->pad[axis] - k * window->dilation[axis];
        if (from >= 0 && from % stride == 0 && from / stride < state->shape.out[axis])
            taps->tap[taps->count++] = (struct tap){.k = k, .o = from / stride};
    }
}

/* Whether `b` are the weights of `a`, and dy `apart` positions further. */
static bool follow(const struct taps *a, const struct taps *b, int64_t apart)
{
    bool same = a->count == b->count;
    for (int t = 0; same && t < a->count; t++)
        same = a->tap[t].k == b->tap[t].k && b->tap[t].o == a->tap[t].o + apart;
    return same;
}

/* A run that begins at column i: the weights of a row and of this column, in the order of both. */
static bool add_run(struct depthwise *state, const struct taps *along, const struct taps *across,
                    int64_t i, int64_t step)
{
    const struct ls_depthwise *shape = &state->shape;
    if (!LS_GROW(state->runs, state->run_count, state->run_capacity))
        return false;
    struct ls_depthwise_run *run = &state->runs[state->run_count++];
    *run =
        (struct ls_depthwise_run){.first = i, .step = step, .count = 1, .begin = state->term_count};
    for (int r = 0; r < along->count; r++)
        for (int c = 0; c < across->count; c++) {
            const struct tap *row = &along->tap[r], *column = &across->tap[c];
            if (!LS_GROW(state->terms, state->term_count, state->term_capacity))
                return false;
            state->terms[state->term_count++] = (struct ls_depthwise_term){
                .dy = ((row->o - along->tap[0].o) * shape->out[1] + column->o) * shape->block,
                .weight = (row->k * shape->kernel[1] + column->k) * shape->block};
        }
    run->end = state->term_count;
    return true;
}

/* The runs of a row to which `along` comes, those of each remainder by the stride by themselves. */
static bool add_runs(struct depthwise *state, const struct ls_window *window,
                     const struct taps *along)
{
    const int64_t stride = window->stride[1];
    for (int64_t start = 0; start < stride; start++) {
        struct taps first = {.count = -1}, here;
        for (int64_t i = start; i < state->shape.in[1]; i += stride) {
            find_taps(state, window, 1, i, &here);
            if (first.count >= 0 &&
                follow(&first, &here, state->runs[state->run_count - 1].count)) {
                state->runs[state->run_count - 1].count++;
                continue;
            }
            first = here;
            if (!add_run(state, along, &here, i, stride))
                return false;
        }
    }
    return true;
}

static bool fill_rows(struct depthwise *state, const struct ls_window *window)
{
    struct taps along, before;
    for (int64_t i = 0; i < state->shape.in[0]; i++) {
        struct ls_depthwise_row *row = &state->rows[i];
        find_taps(state, window, 0, i, &along);
        int64_t from = along.count > 0 ? along.tap[0].o : 0, same = i - window->stride[0];
        if (same >= 0)
            find_taps(state, window, 0, same, &before);
        if (same >= 0 && follow(&before, &along, 1)) {
            *row = state->rows[same];
        } else {
            row->begin = state->run_count;
            if (!add_runs(state, window, &along))
                return false;
            row->end = state->run_count;
        }
        row->from = from * state->shape.out[1];
    }
    return true;
}

static bool fill_state(struct depthwise *state, const struct ls_op *op)
{
    const struct ls_shape *x = &op->output[0]->shape, *y = &op->input[0]->shape;
    const struct ls_window *window = &op->attr.convolution.window;
    struct ls_depthwise *shape = &state->shape;
    *shape = (struct ls_depthwise){
        .samples = x->dim[0], .channels = x->dim[1], .block = op->output[0]->layout->block};
    for (int axis = 0; axis < 2; axis++) {
        shape->in[axis] = x->dim[2 + axis];
        shape->out[axis] = y->dim[2 + axis];
        shape->kernel[axis] = window->kernel[axis];
    }
    state->rows = ls_alloc((size_t)shape->in[0], sizeof *state->rows);
    if (state->rows == NULL || !fill_rows(state, window))
        return false;
    shape->row = state->rows;
    shape->run = state->runs;
    shape->term = state->terms;
    return true;
}

/* ---- The kernel ------------------------------------------------------------------------------ */

static void data_release(struct ls_prepared *prepared)
{
    struct depthwise *state = prepared->state;
    if (state != NULL) {
        ls_free(state->rows);
        ls_free(state->runs);
        ls_free(state->terms);
    }
    ls_own_release(prepared);
}

static int data_prepare(struct ls_prepared *prepared, struct ls_error *error)
{
    struct depthwise *state = ls_alloc(1, sizeof *state);
    prepared->state = state;
    if (state == NULL || !fill_state(state, prepared->op)) {
        data_release(prepared);
        return ls_fail_memory(error, "tables of windows");
    }
    prepared->channels = ls_sync_round(state->shape.channels);
    return ls_own_prepare(prepared, error);
}

static int data_run(const struct ls_prepared *prepared, void *local, void *const *in,
                    void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)scratch, (void)context;
    const struct depthwise *state = prepared->state;
    ls_vector_depthwise()->data(&state->shape, in[0], in[1], out[0], 0, state->shape.channels);
    return 0;
}

static int data_channels(const struct ls_prepared *prepared, void *const *in, void *const *out,
                         void *scratch, const struct ls_context *context, int64_t begin,
                         int64_t end)
{
    (void)scratch, (void)context;
    const struct depthwise *state = prepared->state;
    ls_vector_depthwise()->data(&state->shape, in[0], in[1], out[0], begin, end);
    return 0;
}

const struct ls_kernel ls_kernel_depthwise_data = {
    .kind = LS_OP_CONVOLUTION_DATA,
    .bits = LS_BITS_BY_SHAPES,
    .name = "depthwise convolution backward data",
    .accepts = data_accepts,
    .layouts = data_layouts,
    .prepare = data_prepare,
    .release = data_release,
    .run = data_run,
    .run_channels = data_channels,
    .in_place = -1,
};
