/* Inner products: y = x w^T + b, and its gradients dx = dy w, dw = dy^T x, db = sum dy.
 *
 * x is [M, K] and y [M, N] in plain order whatever their shapes are. The weights lie as the forward
 * pass likes them for a fixed number of rows, plain where one of the other passes has no kernel for
 * that, and all three passes use them as they lie: a second copy of a large matrix costs more than
 * a kernel gains by it.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/primitive.h"

static void set_tensor(struct ls_onednn_tensor *tensor, int64_t rows, int64_t columns)
{
    tensor->rank = 2;
    tensor->dim[0] = rows;
    tensor->dim[1] = columns;
    tensor->layout = &ls_layout_plain;
}

static struct ls_primitive_spec make_spec(const struct ls_op *op, enum ls_onednn_pass pass,
                                          int64_t rows, bool bias)
{
    const struct ls_inner_product_attr *attr = &op->attr.inner_product;
    struct ls_primitive_spec spec = {.kind = LS_PRIMITIVE_INNER_PRODUCT, .pass = pass};
    set_tensor(&spec.tensor[LS_SOURCE], rows, attr->k);
    set_tensor(&spec.tensor[LS_WEIGHTS], attr->n, attr->k);
    set_tensor(&spec.tensor[LS_TARGET], rows, attr->n);
    spec.tensor[LS_WEIGHTS].transposed = attr->transpose;
    ls_primitive_set_ends(&spec, attr->n, bias, attr->relu, attr->relu_slope);
    return spec;
}

/* Makes *weights plain where a pass cannot use weights that lie like that by something better than
 * plain loops. */
static int suit(const struct ls_op *op, enum ls_onednn_pass pass, const struct ls_layout **weights,
                struct ls_error *error)
{
    struct ls_primitive_spec spec = make_spec(op, pass, LS_QUERY_SAMPLES, false);
    struct ls_primitive_plan plan;
    spec.relu = false;
    spec.tensor[LS_WEIGHTS].layout = *weights;
    int status = ls_primitive_query(&spec, &plan, NULL);
    if (status == LOCKSTEP_RESOURCE)
        return ls_fail_memory(error, "an inner product");
    if (status != 0 || plan.reference)
        *weights = &ls_layout_plain;
    return 0;
}

static int choose(const struct ls_op *op, const struct ls_layout **weights, struct ls_error *error)
{
    struct ls_primitive_spec spec = make_spec(op, LS_PASS_FORWARD, LS_QUERY_SAMPLES, false);
    struct ls_primitive_plan plan;
    *weights = &ls_layout_plain;
    if (op->attr.inner_product.large) /* so that all kernels agree */
        return 0;
    spec.relu = false;
    LS_TRY(ls_primitive_query_weights(op, &spec, NULL, &plan, error));
    *weights = plan.weights;
    LS_TRY(suit(op, LS_PASS_DATA, weights, error));
    return suit(op, LS_PASS_WEIGHTS, weights, error);
}

static int layouts(const struct ls_op *op, struct ls_op_layouts *result, struct ls_error *error)
{
    const struct ls_layout *weights;
    LS_TRY(choose(op, &weights, error));
    for (int i = 0; i < LS_SLOTS; i++) {
        const struct ls_layout **layout = ls_primitive_layout(op, result, (enum ls_tensor_slot)i);
        if (layout != NULL)
            *layout = i == LS_WEIGHTS ? weights : &ls_layout_plain;
    }
    return 0;
}

static int prepare(struct ls_prepared *prepared, struct ls_error *error)
{
    const struct ls_op *op = prepared->op;
    struct ls_primitive_spec spec = make_spec(op, ls_primitive_pass(op), op->attr.inner_product.m,
                                              ls_primitive_value(op, LS_BIAS) != NULL);
    spec.tensor[LS_WEIGHTS].layout = ls_primitive_value(op, LS_WEIGHTS)->layout;
    return ls_primitive_prepare(prepared, &spec, error);
}

const struct ls_kernel ls_kernel_inner_product = {
    .kind = LS_OP_INNER_PRODUCT,
    .bits = LS_BITS_BY_SHAPES,
    .name = "inner product",
    .library = true,
    .layouts = layouts,
    .prepare = prepare,
    .release = ls_primitive_release,
    .bind = ls_primitive_bind,
    .unbind = ls_primitive_unbind,
    .run = ls_primitive_run,
    .in_place = -1,
};

const struct ls_kernel ls_kernel_inner_product_data = {
    .kind = LS_OP_INNER_PRODUCT_DATA,
    .bits = LS_BITS_BY_SHAPES,
    .name = "inner product backward data",
    .library = true,
    .layouts = layouts,
    .prepare = prepare,
    .release = ls_primitive_release,
    .bind = ls_primitive_bind,
    .unbind = ls_primitive_unbind,
    .run = ls_primitive_run,
    .in_place = -1,
};

const struct ls_kernel ls_kernel_inner_product_weights = {
    .kind = LS_OP_INNER_PRODUCT_WEIGHTS,
    .bits = LS_BITS_BY_SHAPES,
    .name = "inner product backward weights",
    .library = true,
    .layouts = layouts,
    .prepare = prepare,
    .release = ls_primitive_release,
    .bind = ls_primitive_bind,
    .unbind = ls_primitive_unbind,
    .run = ls_primitive_run,
    .in_place = -1,
};
