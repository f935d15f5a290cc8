/* What a step costs, roughly: enough to tell what is cheap to do twice from what is dear.
 *
 * Counted are FLOPs, and memory traffic by what it is worth in FLOPs: a core does about eight while
 * a byte comes from the caches that are shared.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "plan/program.h"

static double elements(const struct ls_value *value)
{
    return value == NULL ? 0 : (double)ls_value_bytes(value) / sizeof(float);
}

/* 2 for each product that is summed up: y positions, or x positions where it is transposed, times
 * what one of them takes part in. */
static double products(const struct ls_value *positions, const struct ls_value *weights)
{
    int64_t own = weights->shape.rank > 0 && weights->shape.dim[0] > 0 ? weights->shape.dim[0] : 1;
    return 2 * (double)ls_shape_size(&positions->shape) *
           ((double)ls_shape_size(&weights->shape) / (double)own);
}

static double window_points(const struct ls_window *window)
{
    double points = 1;
    for (int i = 0; i < window->axes; i++)
        points *= (double)window->kernel[i];
    return points;
}

/* FLOPs for each element that is written, where traffic does not say it all. */
static double flops_each(const struct ls_op *op)
{
    switch (op->kind) {
    case LS_OP_POOLING:
    case LS_OP_POOLING_BACKWARD:
        return window_points(&op->attr.pooling.window);
    case LS_OP_LRN:
    case LS_OP_LRN_BACKWARD:
        return 100 + 2 * (double)op->attr.lrn.size;
    case LS_OP_DROPOUT: /* Philox, sixteen at a time */
        return op->inputs > 1 ? 2 : 60;
    case LS_OP_FILL: /* one by one */
        return op->attr.fill.filler == NULL ? 1 : 300;
    case LS_OP_SOFTMAX:
        return 20;
    case LS_OP_ACTIVATION:
        return op->attr.activation.function == LS_RELU ? 1 : 20;
    default:
        return 2;
    }
}

static double flops_of(const struct ls_op *op)
{
    switch (op->kind) {
    case LS_OP_CONVOLUTION:
    case LS_OP_DECONVOLUTION_DATA:
        return products(op->output[0], op->input[1]);
    case LS_OP_CONVOLUTION_DATA:
    case LS_OP_DECONVOLUTION:
        return products(op->input[0], op->input[1]);
    case LS_OP_CONVOLUTION_WEIGHTS:
        return products(op->input[1], op->output[0]);
    case LS_OP_DECONVOLUTION_WEIGHTS:
        return products(op->input[0], op->output[0]);
    case LS_OP_INNER_PRODUCT:
    case LS_OP_INNER_PRODUCT_DATA:
    case LS_OP_INNER_PRODUCT_WEIGHTS:
        return 2 * (double)op->attr.inner_product.m * (double)op->attr.inner_product.k *
               (double)op->attr.inner_product.n;
    default:
        return op->outputs > 0 ? flops_each(op) * elements(op->output[0]) : 0;
    }
}

double ls_step_work(const struct ls_step *step)
{
    const struct ls_op *op = step->prepared.op;
    double moved = 0;
    if (op->kind == LS_OP_VIEW || op->kind == LS_OP_SYNC)
        return 0;
    for (int i = 0; i < op->inputs; i++)
        moved += elements(op->input[i]);
    for (int i = 0; i < op->outputs; i++)
        moved += elements(op->output[i]);
    return flops_of(op) + LS_WORK_OF_BYTE * sizeof(float) * moved;
}
