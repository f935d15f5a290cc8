/* Gated linear units, y = value f(gate), and their gradients. Each operation rounds to fp32:
 *
 *   y = value * f(gate);  dvalue = dy * f(gate);  dgate = (dy * value) f'(gate)
 *
 * with f and f' those of ops/cpu/activation.c.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/activation.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/tiles.h"
#include "ops/cpu/vector/activation.h"
#include "ops/cpu/vector/elementwise.h"

#include <string.h>

/* `outer` times a run of values and one of gates. */
struct runs {
    int64_t outer, run;
    int64_t step;        /* from a run of values, or of gates, to the next of them */
    int64_t value, gate; /* where the first ones begin: in one array, or each in its own */
};

static struct runs runs_of(const struct ls_glu_attr *attr, const struct ls_value *x, bool halves)
{
    if (!halves)
        return (struct runs){.outer = 1, .run = ls_shape_size(&x->shape)};
    struct runs runs = {.outer = ls_shape_count(&x->shape, 0, attr->axis),
                        .step = ls_shape_count(&x->shape, attr->axis, x->shape.rank)};
    runs.run = runs.step / 2;
    runs.value = attr->gate_first ? runs.run : 0;
    runs.gate = runs.run - runs.value;
    return runs;
}

/* Some numbers of a value, and the buffer that they may be widened to. */
struct part {
    const struct ls_value *value;
    const void *array;
    int64_t from;
    float tile[LS_TILE];
};

static const float *read_part(struct part *part, int64_t at, size_t count)
{
    return ls_tile_read(part->value, part->array, (size_t)(part->from + at), count, part->tile);
}

static void apply(const struct ls_glu_attr *attr, const float *gate, float *f, size_t n)
{
    if (attr->linear)
        memcpy(f, gate, n * sizeof *f);
    else
        ls_activation_run(&attr->gate, gate, f, n);
}

static size_t next_count(int64_t left)
{
    return left < LS_TILE ? (size_t)left : LS_TILE;
}

static int glu_run(const struct ls_prepared *prepared, void *local, void *const *in,
                   void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)scratch, (void)context;
    const struct ls_op *op = prepared->op;
    const struct ls_glu_attr *attr = &op->attr.glu;
    const bool halves = op->inputs == 1;
    const int second = halves ? 0 : 1;
    const struct runs runs = runs_of(attr, op->input[0], halves);
    struct part value = {.value = op->input[0], .array = in[0]};
    struct part gate = {.value = op->input[second], .array = in[second]};
    float f[LS_TILE], tile[LS_TILE];
    for (int64_t o = 0; o < runs.outer; o++) {
        value.from = runs.value + o * runs.step;
        gate.from = runs.gate + o * runs.step;
        for (int64_t at = 0; at < runs.run; at += LS_TILE) {
            const size_t count = next_count(runs.run - at), to = (size_t)(o * runs.run + at);
            float *y = ls_tile_begin(op->output[0], out[0], to, tile);
            apply(attr, read_part(&gate, at, count), f, count);
            ls_vector_elementwise()->multiply(read_part(&value, at, count), f, y, count);
            ls_tile_end(op->output[0], out[0], to, count, y);
        }
    }
    return 0;
}

/* The gradients of `count` numbers; either may be NULL. */
static void differentiate(const struct ls_glu_attr *attr, const float *dy, const float *value,
                          const float *gate, float *dvalue, float *dgate, size_t count)
{
    float f[LS_TILE], product[LS_TILE];
    const bool keeps_x = ls_activation_keeps_x(&attr->gate);
    const bool at_once = dvalue != NULL && dgate != NULL && !attr->linear && keeps_x;
    if (!at_once && (dvalue != NULL || (!attr->linear && !keeps_x)))
        apply(attr, gate, f, count);
    if (dgate != NULL) {
        ls_vector_elementwise()->multiply(dy, value, product, count);
        if (at_once)
            ls_vector_activation()->both(&attr->gate, product, gate, f, dgate, count);
        else if (attr->linear)
            memcpy(dgate, product, count * sizeof *dgate);
        else
            ls_activation_run_backward(&attr->gate, product, keeps_x ? gate : f, dgate, count);
    }
    if (dvalue != NULL)
        ls_vector_elementwise()->multiply(dy, f, dvalue, count);
}

/* in: dy, x; out: dx; or in: dy, value, gate; out: (dvalue), (dgate). */
static int backward_run(const struct ls_prepared *prepared, void *local, void *const *in,
                        void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)scratch, (void)context;
    const struct ls_op *op = prepared->op;
    const struct ls_glu_attr *attr = &op->attr.glu;
    const bool halves = op->inputs == 2;
    const int second = halves ? 1 : 2, other = halves ? 0 : 1;
    const struct runs runs = runs_of(attr, op->input[1], halves);
    struct part dy = {.value = op->input[0], .array = in[0]};
    struct part value = {.value = op->input[1], .array = in[1]};
    struct part gate = {.value = op->input[second], .array = in[second]};
    void *const to_value = out[0], *const to_gate = other < op->outputs ? out[other] : NULL;
    float tile[LS_TILE], other_tile[LS_TILE];
    for (int64_t o = 0; o < runs.outer; o++) {
        dy.from = o * runs.run;
        value.from = runs.value + o * runs.step;
        gate.from = runs.gate + o * runs.step;
        for (int64_t at = 0; at < runs.run; at += LS_TILE) {
            const size_t count = next_count(runs.run - at);
            const size_t v = (size_t)(value.from + at), g = (size_t)(gate.from + at);
            float *dvalue = NULL, *dgate = NULL;
            if (to_value != NULL)
                dvalue = ls_tile_begin(op->output[0], to_value, v, tile);
            if (to_gate != NULL)
                dgate = ls_tile_begin(op->output[other], to_gate, g, other_tile);
            differentiate(attr, read_part(&dy, at, count), read_part(&value, at, count),
                          read_part(&gate, at, count), dvalue, dgate, count);
            if (to_value != NULL)
                ls_tile_end(op->output[0], to_value, v, count, dvalue);
            if (to_gate != NULL)
                ls_tile_end(op->output[other], to_gate, g, count, dgate);
        }
    }
    return 0;
}

const struct ls_kernel ls_kernel_glu = {
    .kind = LS_OP_GLU,
    .bits = LS_BITS_DEFINED,
    .name = "gated linear unit",
    .takes_bf16 = ls_all_bf16,
    .prepare = ls_own_prepare,
    .run = glu_run,
    .in_place = -1,
};

const struct ls_kernel ls_kernel_glu_backward = {
    .kind = LS_OP_GLU_BACKWARD,
    .bits = LS_BITS_DEFINED,
    .name = "gated linear unit backward",
    .takes_bf16 = ls_all_bf16,
    .prepare = ls_own_prepare,
    .run = backward_run,
    .in_place = -1,
};
