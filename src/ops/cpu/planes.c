/* Convolutions whose channels fill blocks badly: kernels over planes (ops/cpu/vector/planes.h).
 *
 * oneDNN's convolutions lay channels into the lanes of registers: 20 and 50 channels are computed
 * as 32 and 64, twice the work. These kernels lay positions of a plane there, in plain layouts, and
 * compute no channel that is not there; what they waste is the end of a plane that does not fill a
 * register. A static rule from shapes says which does less (docs/performance.md).
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>

#include "base/memory.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/primitive.h"
#include "ops/cpu/vector/planes.h"

enum {
    PLAIN_CHANNELS_MAX = 3,   /* of x, which oneDNN does not fill up then */
    SLOW_CHANNELS_MAX = 2,    /* of x, without AVX-512 */
    POSITIONS_TOGETHER = 512, /* about so many of dy are multiplied before lanes are added up */
    EXTENT_MAX = 4096,        /* of anything: products of four stay within 64 bits */
    SCRATCH_MAX = 1 << 19,    /* floats: what is more than caches hold is slow */
    WINDOW_MIN = 9, /* weights; with fewer memory sets the pace, and channels are its matter */
};

/* ---- Which convolutions ---------------------------------------------------------------------- */

static int64_t filled_up(int64_t count, int64_t block)
{
    return (count + block - 1) / block * block;
}

/* A stride of 1 along two axes, no groups, nothing large. */
static bool has_planes(const struct ls_op *op)
{
    const struct ls_convolution_attr *attr = &op->attr.convolution;
    const struct ls_window *window = &attr->window;
    const struct ls_shape *x = &ls_primitive_value(op, LS_SOURCE)->shape;
    const struct ls_shape *y = &ls_primitive_value(op, LS_TARGET)->shape;
    if (ls_cpu_isa() < LS_ISA_AVX2 || x->rank != 4 || y->rank != 4 || window->axes != 2 ||
        attr->group != 1 || attr->algorithm == LS_CONVOLUTION_WINOGRAD)
        return false;
    for (int i = 1; i < 4; i++)
        if (x->dim[i] > EXTENT_MAX || y->dim[i] > EXTENT_MAX)
            return false;
    for (int i = 0; i < 2; i++)
        if (window->stride[i] != 1 || window->kernel[i] > LS_PLANES_WINDOW_MAX ||
            window->dilation[i] > EXTENT_MAX || window->pad[i] > EXTENT_MAX)
            return false;
    return true;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* What follows from the definition, but for tables. */
static struct ls_planes describe(const struct ls_op *op)
{
    const struct ls_convolution_attr *attr = &op->attr.convolution;
    const struct ls_shape *x = &ls_primitive_value(op, LS_SOURCE)->shape;
    const struct ls_shape *y = &ls_primitive_value(op, LS_TARGET)->shape;
    struct ls_planes planes = {.samples = x->dim[0],
                               .in = x->dim[1],
                               .out = y->dim[1],
                               .relu = attr->relu,
                               .slope = attr->relu_slope};
    for (int i = 0; i < 2; i++) {
        planes.x[i] = x->dim[2 + i];
        planes.y[i] = y->dim[2 + i];
        planes.kernel[i] = attr->window.kernel[i];
        planes.pad[i] = attr->window.pad[i];
        planes.dilation[i] = attr->window.dilation[i];
    }
    planes.window = planes.kernel[0] * planes.kernel[1];
    planes.terms = planes.in * planes.window;
    planes.positions = planes.y[0] * planes.y[1];
    planes.rows = planes.y[0] + (planes.kernel[0] - 1) * planes.dilation[0];
    planes.sample = planes.in * planes.kernel[1] * planes.rows * planes.y[1];
    planes.chunk = smaller(POSITIONS_TOGETHER / planes.positions, SCRATCH_MAX / planes.sample);
    planes.chunk = smaller(planes.chunk > 1 ? planes.chunk : 1, planes.samples);
    return planes;
}

/* Whether blocks of channels are filled by so little, and registers of positions by so much, that
 * these kernels are faster (measured, docs/performance.md): a third less is computed, with AVX2
 * half of it. And AVX2's kernels of oneDNN take a gradient from one or two channels very slowly.
 * Blind to the number of samples, as layouts of parameters must be. */
static bool fills_badly(const struct ls_planes *planes)
{
    const bool wide = ls_cpu_isa() == LS_ISA_AVX512;
    const int64_t lanes = wide ? 16 : 8;
    const int64_t in = planes->in <= PLAIN_CHANNELS_MAX ? planes->in : filled_up(planes->in, lanes);
    const double channels =
        (double)(planes->in * planes->out) / (double)(in * filled_up(planes->out, lanes));
    const double positions =
        (double)planes->positions / (double)filled_up(planes->positions, lanes);
    if (!wide && planes->in <= SLOW_CHANNELS_MAX)
        return positions >= 0.5;
    return channels <= (wide ? 2.0 / 3 : 0.5) * positions;
}

static bool accepts(const struct ls_op *op)
{
    if (!has_planes(op))
        return false;
    const struct ls_planes planes = describe(op);
    return planes.window >= WINDOW_MIN && planes.window <= LS_PLANES_WINDOW_MAX &&
           planes.sample <= SCRATCH_MAX &&
           ls_vector_planes()->data_scratch(&planes) <= SCRATCH_MAX && fills_badly(&planes);
}

/* ---- The kernels ----------------------------------------------------------------------------- */

struct state {
    struct ls_planes planes;
    int64_t tables[];
};

static void fill_tables(const struct ls_planes *planes, int64_t *meets, int64_t *gradients)
{
    const int64_t width = planes->y[1], columns = planes->kernel[1];
    for (int64_t t = 0; t < planes->terms; t++) {
        int64_t column = t % columns, row = t / columns % planes->kernel[0];
        int64_t plane = t / planes->window * columns + column;
        meets[t] = (plane * planes->rows + row * planes->dilation[0]) * width;
    }
    for (int64_t o = 0; o < planes->out; o++)
        gradients[o] = o * planes->positions;
}

static int prepare(struct ls_prepared *prepared, struct ls_error *error)
{
    const struct ls_planes planes = describe(prepared->op);
    const size_t entries = (size_t)(planes.terms + planes.out);
    struct state *state = ls_alloc(1, sizeof *state + entries * sizeof *state->tables);
    prepared->state = state;
    if (state == NULL)
        return ls_fail_memory(error, "tables of a convolution");
    state->planes = planes;
    state->planes.meets = state->tables;
    state->planes.gradients = state->tables + planes.terms;
    fill_tables(&planes, state->tables, state->tables + planes.terms);
    int64_t floats = prepared->op->kind == LS_OP_CONVOLUTION
                         ? ls_vector_planes()->forward_scratch(&planes)
                     : prepared->op->kind == LS_OP_CONVOLUTION_DATA
                         ? ls_vector_planes()->data_scratch(&planes)
                         : ls_vector_planes_weights()->scratch(&planes);
    prepared->scratch_bytes = (size_t)floats * sizeof(float);
    snprintf(prepared->implementation, sizeof prepared->implementation, "lockstep:planes:%s",
             ls_cpu_isa_name(ls_cpu_isa()));
    return 0;
}

static int forward_run(const struct ls_prepared *prepared, void *local, void *const *in,
                       void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)context;
    const struct state *state = prepared->state;
    const float *bias = prepared->op->inputs > 2 ? in[2] : NULL;
    ls_vector_planes()->forward(&state->planes, in[0], in[1], bias, out[0], scratch);
    return 0;
}

static int data_run(const struct ls_prepared *prepared, void *local, void *const *in,
                    void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)context;
    const struct state *state = prepared->state;
    ls_vector_planes()->data(&state->planes, in[0], in[1], out[0], scratch);
    return 0;
}

static int weights_run(const struct ls_prepared *prepared, void *local, void *const *in,
                       void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)context;
    const struct state *state = prepared->state;
    float *db = prepared->op->outputs > 1 ? out[1] : NULL;
    ls_vector_planes_weights()->run(&state->planes, in[0], in[1], out[0], db, scratch);
    return 0;
}

const struct ls_kernel ls_kernel_planes = {
    .kind = LS_OP_CONVOLUTION,
    .bits = LS_BITS_BY_SHAPES,
    .name = "convolution over planes",
    .accepts = accepts,
    .prepare = prepare,
    .release = ls_own_release,
    .run = forward_run,
    .in_place = -1,
};

const struct ls_kernel ls_kernel_planes_data = {
    .kind = LS_OP_CONVOLUTION_DATA,
    .bits = LS_BITS_BY_SHAPES,
    .name = "convolution over planes backward data",
    .accepts = accepts,
    .prepare = prepare,
    .release = ls_own_release,
    .run = data_run,
    .in_place = -1,
};

const struct ls_kernel ls_kernel_planes_weights = {
    .kind = LS_OP_CONVOLUTION_WEIGHTS,
    .bits = LS_BITS_BY_SHAPES,
    .name = "convolution over planes backward weights",
    .accepts = accepts,
    .prepare = prepare,
    .release = ls_own_release,
    .run = weights_run,
    .in_place = -1,
};
