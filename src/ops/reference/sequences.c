/* Gated linear units, and products of matrices in the declared order.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "device/product_sum.h"
#include "ir/matmul.h"
#include "ops/reference/portable.h"

/* ---- Gated linear units ---------------------------------------------------------------------- */

/* Where the value and the gate of element i of y are: in one array, or each in its own. */
struct gated {
    int64_t value, gate;
};

static struct gated gated_of(const struct ls_op *op, const struct ls_value *x, bool halves,
                             int64_t i)
{
    const struct ls_glu_attr *attr = &op->attr.glu;
    if (!halves)
        return (struct gated){i, i};
    const int64_t run = ls_shape_count(&x->shape, attr->axis, x->shape.rank) / 2;
    const int64_t first = i / run * 2 * run + i % run;
    return (struct gated){attr->gate_first ? first + run : first,
                          attr->gate_first ? first : first + run};
}

static double glu(const struct ls_call *call, int64_t i)
{
    const struct ls_glu_attr *attr = &call->op->attr.glu;
    const bool halves = call->op->inputs == 1;
    const struct gated at = gated_of(call->op, call->op->input[0], halves, i);
    const double gate = ls_at(call, halves ? 0 : 1, at.gate);
    return ls_at(call, 0, at.value) *
           (attr->linear ? gate : ls_ref_activation(&attr->gate, gate, false));
}

/* in: dy, x; out: dx; or in: dy, value, gate; out: (dvalue), (dgate). */
static void glu_backward(const struct ls_call *call)
{
    const struct ls_op *op = call->op;
    const struct ls_glu_attr *attr = &op->attr.glu;
    const bool halves = op->inputs == 2;
    for (int64_t i = 0; i < ls_size(op->input[0]); i++) {
        const struct gated at = gated_of(op, op->input[1], halves, i);
        const double dy = ls_at(call, 0, i), value = ls_at(call, 1, at.value);
        const double gate = ls_at(call, halves ? 1 : 2, at.gate);
        double f = gate, slope = 1;
        if (!attr->linear) {
            f = ls_ref_activation(&attr->gate, gate, false);
            slope =
                ls_ref_activation(&attr->gate, ls_activation_keeps_x(&attr->gate) ? gate : f, true);
        }
        if (call->sum[0] != NULL)
            call->sum[0][at.value] = dy * f;
        if (call->sum[halves ? 0 : 1] != NULL)
            call->sum[halves ? 0 : 1][at.gate] = dy * value * slope;
    }
}

static float portable_glu(const struct ls_call *call, int64_t i)
{
    const struct ls_glu_attr *attr = &call->op->attr.glu;
    const bool halves = call->op->inputs == 1;
    const struct gated at = gated_of(call->op, call->op->input[0], halves, i);
    const float gate = ls_number(call, halves ? 0 : 1, at.gate);
    return ls_number(call, 0, at.value) *
           (attr->linear ? gate : ls_portable_activation(&attr->gate, gate));
}

static void portable_glu_backward(const struct ls_call *call)
{
    const struct ls_op *op = call->op;
    const struct ls_glu_attr *attr = &op->attr.glu;
    const bool halves = op->inputs == 2;
    float *dvalue = call->out[0];
    float *dgate = halves ? dvalue : op->outputs > 1 ? call->out[1] : NULL;
    for (int64_t i = 0; i < ls_size(op->input[0]); i++) {
        const struct gated at = gated_of(op, op->input[1], halves, i);
        const float dy = ls_number(call, 0, i), gate = ls_number(call, halves ? 1 : 2, at.gate);
        const float product = dy * ls_number(call, 1, at.value);
        const float f = attr->linear ? gate : ls_portable_activation(&attr->gate, gate);
        if (dvalue != NULL)
            dvalue[at.value] = dy * f;
        if (dgate != NULL)
            dgate[at.gate] = attr->linear
                                 ? product
                                 : ls_portable_slope(&attr->gate, product,
                                                     ls_activation_keeps_x(&attr->gate) ? gate : f);
    }
}

/* ---- Products of matrices -------------------------------------------------------------------- */

/* Element (line, k) of a matrix, or (k, line) where it lies by terms. */
static float element(const float *matrix, bool by_term, int64_t lines, int64_t depth, int64_t line,
                     int64_t k)
{
    return by_term ? matrix[k * lines + line] : matrix[line * depth + k];
}

static void matmul(const struct ls_call *call)
{
    const struct ls_matmul_attr *attr = &call->op->attr.matmul;
    const struct ls_matmul of = ls_matmul_of(call->op);
    float *y = call->out[0];
    for (int64_t place = 0; place < of.outer.places; place++)
        for (int64_t i = 0; i < of.rows * of.columns; i++) {
            const float *a = ls_in(call, 0) + ls_matmul_at(&of.outer, 0, place);
            const float *b = ls_in(call, 1) + ls_matmul_at(&of.outer, 1, place);
            struct ls_product_sum sum = {.terms = 0};
            for (int64_t t = 0; t < of.terms.places * of.depth; t++) {
                const int64_t matrix = t / of.depth, k = t % of.depth;
                ls_product_sum_add(&sum,
                                   element(a + ls_matmul_at(&of.terms, 0, matrix),
                                           attr->transpose_a, of.rows, of.depth, i / of.columns, k),
                                   element(b + ls_matmul_at(&of.terms, 1, matrix),
                                           !attr->transpose_b, of.columns, of.depth, i % of.columns,
                                           k));
            }
            const float whole = ls_product_sum_end(&sum);
            *y++ = attr->scale == 1 ? whole : whole * attr->scale;
        }
}

const struct ls_compute ls_ref_sequences[LS_OP_KINDS] = {
    [LS_OP_GLU] = {.element = glu},
    [LS_OP_GLU_BACKWARD] = {.add = glu_backward},
    [LS_OP_MATMUL] = {.run = matmul},
};

const struct ls_compute ls_portable_sequences[LS_OP_KINDS] = {
    [LS_OP_GLU] = {.number = portable_glu},
    [LS_OP_GLU_BACKWARD] = {.run = portable_glu_backward},
};
