/* Reductions: one number of each run of elements, or of all of them, and their gradients.
 *
 *   SUM, MEAN: dx = f          ASUM: dx = f sign(x), 0 where x is 0          SUMSQ: dx = 2 f x
 *
 * with f = coeff dy (MEAN: over the count) for a run, and coeff loss_weight / divisor where all is
 * one figure of the batch. Sums are in double, in the fixed order of ops/cpu/exact.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/exact.h"
#include "ops/cpu/kernels.h"

static double sum_of(const struct ls_reduction_attr *attr, const float *x, size_t n)
{
    switch (attr->method) {
    case LS_REDUCE_ASUM:
        return (double)attr->coeff * ls_sum_magnitudes(x, n);
    case LS_REDUCE_SUMSQ:
        return (double)attr->coeff * ls_sum_squares(x, n);
    default:
        return (double)attr->coeff * ls_sum_floats(x, n);
    }
}

/* SUM and MEAN do not read x. */
static void set_gradient(const struct ls_reduction_attr *attr, float factor, const float *x,
                         float *dx, size_t n)
{
    switch (attr->method) {
    case LS_REDUCE_ASUM:
        for (size_t i = 0; i < n; i++)
            dx[i] = x[i] > 0 ? factor : x[i] < 0 ? -factor : 0.0F;
        break;
    case LS_REDUCE_SUMSQ:
        for (size_t i = 0; i < n; i++)
            dx[i] = 2 * factor * x[i];
        break;
    default:
        for (size_t i = 0; i < n; i++)
            dx[i] = factor;
    }
}

/* Elements of one run of `x`, for one number of y. */
static size_t run_of(const struct ls_value *x, int axis)
{
    return (size_t)ls_shape_count(&x->shape, axis, x->shape.rank);
}

static int reduce_run(const struct ls_prepared *prepared, void *local, void *const *in,
                      void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)scratch, (void)context;
    const struct ls_op *op = prepared->op;
    const struct ls_reduction_attr *attr = &op->attr.reduction;
    const float *x = in[0];
    float *y = out[0];
    int64_t runs = ls_shape_size(&op->output[0]->shape);
    size_t run = run_of(op->input[0], attr->axis);
    double divisor = attr->method == LS_REDUCE_MEAN ? (double)run : 1;
    for (int64_t i = 0; i < runs; i++)
        y[i] = (float)(sum_of(attr, x + (size_t)i * run, run) / divisor);
    return 0;
}

static int reduce_backward_run(const struct ls_prepared *prepared, void *local, void *const *in,
                               void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)scratch, (void)context;
    const struct ls_op *op = prepared->op;
    const struct ls_reduction_attr *attr = &op->attr.reduction;
    const float *dy = in[0];
    float *dx = out[0];
    const float *x = op->inputs > 1 ? in[1] : dx;
    int64_t runs = ls_shape_size(&op->input[0]->shape);
    size_t run = run_of(op->output[0], attr->axis);
    double scale = (double)attr->coeff / (attr->method == LS_REDUCE_MEAN ? (double)run : 1);
    for (int64_t i = 0; i < runs; i++) {
        size_t first = (size_t)i * run;
        set_gradient(attr, (float)(scale * (double)dy[i]), x + first, dx + first, run);
    }
    return 0;
}

static int reduce_loss_run(const struct ls_prepared *prepared, void *local, void *const *in,
                           void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)out, (void)scratch;
    const struct ls_op *op = prepared->op;
    const struct ls_reduction_attr *attr = &op->attr.reduction;
    size_t n = (size_t)ls_shape_size(&op->input[0]->shape);
    context->partials[attr->metric_offset] += sum_of(attr, in[0], n);
    context->partials[attr->metric_offset + 1] += (double)n;
    return 0;
}

static int reduce_loss_backward_run(const struct ls_prepared *prepared, void *local,
                                    void *const *in, void *const *out, void *scratch,
                                    const struct ls_context *context)
{
    (void)local, (void)scratch;
    const struct ls_op *op = prepared->op;
    const struct ls_reduction_attr *attr = &op->attr.reduction;
    double divisor = attr->normalizer < 0 ? 1 : context->normalizers[attr->normalizer];
    double factor = (double)attr->coeff * (double)attr->loss_weight / divisor;
    set_gradient(attr, (float)factor, op->inputs > 0 ? in[0] : out[0], out[0],
                 (size_t)ls_shape_size(&op->output[0]->shape));
    return 0;
}

#define REDUCTION_KERNEL(symbol, kind_, bits_, name_, run_)                                        \
    const struct ls_kernel symbol = {                                                              \
        .kind = kind_,                                                                             \
        .bits = bits_,                                                                             \
        .name = name_,                                                                             \
        .prepare = ls_own_prepare,                                                                 \
        .run = run_,                                                                               \
        .in_place = -1,                                                                            \
    }

REDUCTION_KERNEL(ls_kernel_reduce, LS_OP_REDUCE, LS_BITS_OWN, "reduction", reduce_run);
REDUCTION_KERNEL(ls_kernel_reduce_backward, LS_OP_REDUCE_BACKWARD, LS_BITS_NOT_PROBED,
                 "reduction backward", reduce_backward_run);
REDUCTION_KERNEL(ls_kernel_reduce_loss, LS_OP_REDUCE_LOSS, LS_BITS_OWN, "reduction of the batch",
                 reduce_loss_run);
REDUCTION_KERNEL(ls_kernel_reduce_loss_backward, LS_OP_REDUCE_LOSS_BACKWARD, LS_BITS_NOT_PROBED,
                 "reduction of the batch backward", reduce_loss_backward_run);
