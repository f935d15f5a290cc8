/* Products with weights, and of two values.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "onnx/exporter.h"

/* ---- Windows --------------------------------------------------------------------------------- */

static void set_window(struct ls_exporter *x, const struct ls_window *window, int64_t group)
{
    const size_t axes = (size_t)window->axes;
    int64_t pads[6];
    for (size_t i = 0; i < axes; i++)
        pads[i] = pads[axes + i] = window->pad[i];
    ls_onnx_set_ints(x->writer, "dilations", window->dilation, axes);
    ls_onnx_set_int(x->writer, "group", group);
    ls_onnx_set_ints(x->writer, "kernel_shape", window->kernel, axes);
    ls_onnx_set_ints(x->writer, "pads", pads, 2 * axes);
    ls_onnx_set_ints(x->writer, "strides", window->stride, axes);
}

static void export_windows(struct ls_exporter *x, const struct ls_op *op, const char *type)
{
    const struct ls_convolution_attr *attr = &op->attr.convolution;
    const char *w = ls_onnx_in(x, 1), *b = ls_onnx_in(x, 2);
    const char *y = LS_EMIT(x, type, attr->relu ? NULL : ls_onnx_out(x, 0), ls_onnx_in(x, 0), w, b);
    set_window(x, &attr->window, attr->group);
    if (attr->relu)
        ls_onnx_relu(x, y, ls_onnx_out(x, 0), attr->relu_slope);
}

static void convolution(struct ls_exporter *x, const struct ls_op *op)
{
    export_windows(x, op, "Conv");
}

static void deconvolution(struct ls_exporter *x, const struct ls_op *op)
{
    export_windows(x, op, "ConvTranspose");
}

/* ---- Matrices -------------------------------------------------------------------------------- */

/* The weights [N, K] as [K, N]: turned around at run time where others read them as they are. */
static const char *turned_weights(struct ls_exporter *x, const struct ls_op *op)
{
    const struct ls_value *w = op->input[1];
    const int64_t k = op->attr.inner_product.k, n = op->attr.inner_product.n;
    if (op->attr.inner_product.transpose)
        return ls_onnx_in(x, 1);
    if (w->storage != LS_STORE_PARAMETER || x->names[w->index] != NULL ||
        w->parameter->share != NULL)
        return ls_onnx_transpose(x, ls_onnx_in(x, 1), NULL, (int64_t[]){1, 0}, 2);
    const float *numbers = ls_onnx_weights(x, w);
    float *turned = ls_onnx_new_numbers(x, (size_t)(k * n));
    for (int64_t i = 0; i < n && numbers != NULL && turned != NULL; i++)
        for (int64_t j = 0; j < k; j++)
            turned[j * n + i] = numbers[i * k + j];
    const struct ls_shape shape = {.rank = 2, .dim = {k, n}};
    return ls_onnx_add_weights(x, w->name, &shape, turned);
}

/* One row a sample: Gemm, of inputs that are in one axis. */
static const char *gemm(struct ls_exporter *x, const struct ls_op *op, const char *out)
{
    const struct ls_inner_product_attr *attr = &op->attr.inner_product;
    const struct ls_value *in = op->input[0];
    const char *rows = ls_onnx_in(x, 0);
    const bool flat = in->shape.rank == 2 && in->shape.dim[1] == attr->k;
    const bool whole = op->output[0]->shape.rank == 2;
    if (!flat)
        rows = ls_onnx_reshape(x, rows, NULL, (int64_t[]){-1, attr->k}, 2);
    const char *y =
        LS_EMIT(x, "Gemm", whole ? out : NULL, rows, ls_onnx_in(x, 1), ls_onnx_in(x, 2));
    if (!attr->transpose)
        ls_onnx_set_int(x->writer, "transB", 1);
    return whole ? y : ls_onnx_reshape_as(x, y, out, op->output[0]);
}

/* Many rows a sample: the last axis is multiplied. */
static const char *matmul_of_rows(struct ls_exporter *x, const struct ls_op *op, const char *out)
{
    const char *bias = ls_onnx_in(x, 2);
    const char *w = turned_weights(x, op);
    const char *y = LS_EMIT(x, "MatMul", bias != NULL ? NULL : out, ls_onnx_in(x, 0), w);
    return bias != NULL ? LS_EMIT(x, "Add", out, y, bias) : y;
}

static void inner_product(struct ls_exporter *x, const struct ls_op *op)
{
    const struct ls_inner_product_attr *attr = &op->attr.inner_product;
    const struct ls_shape *in = &op->input[0]->shape, *to = &op->output[0]->shape;
    const bool rows = in->rank > 2 && to->rank == in->rank && in->dim[in->rank - 1] == attr->k &&
                      to->dim[to->rank - 1] == attr->n;
    const char *out = attr->relu ? NULL : ls_onnx_out(x, 0);
    const char *y = rows ? matmul_of_rows(x, op, out) : gemm(x, op, out);
    if (attr->relu)
        ls_onnx_relu(x, y, ls_onnx_out(x, 0), attr->relu_slope);
}

/* The last two axes of a factor, in the order in which they are multiplied. */
static const char *factor(struct ls_exporter *x, int index, bool transposed)
{
    const int rank = x->op->input[index]->shape.rank;
    int64_t order[LS_RANK_MAX];
    for (int i = 0; i < rank; i++)
        order[i] = i;
    if (transposed) {
        order[rank - 2] = rank - 1;
        order[rank - 1] = rank - 2;
    }
    return ls_onnx_transpose(x, ls_onnx_in(x, index), NULL, order, rank);
}

static void matmul(struct ls_exporter *x, const struct ls_op *op)
{
    const struct ls_matmul_attr *attr = &op->attr.matmul;
    const char *out = ls_onnx_out(x, 0);
    const char *a = factor(x, 0, attr->transpose_a), *b = factor(x, 1, attr->transpose_b);
    const char *y = LS_EMIT(x, "MatMul", attr->scale != 1 ? NULL : out, a, b);
    if (attr->scale != 1)
        LS_EMIT(x, "Mul", out, y, ls_onnx_number(x->writer, attr->scale));
}

const ls_onnx_exporter ls_onnx_products[LS_OP_KINDS] = {
    [LS_OP_CONVOLUTION] = convolution,
    [LS_OP_DECONVOLUTION] = deconvolution,
    [LS_OP_INNER_PRODUCT] = inner_product,
    [LS_OP_MATMUL] = matmul,
};
