/* Import: products of matrices.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "onnx/import_view.h"

/* Rows become columns. */
static const float *transposed(struct ls_importer *x, const float *numbers, int64_t rows,
                               int64_t columns)
{
    float *out = numbers != NULL ? ls_import_new_reals(x, rows * columns) : NULL;
    for (int64_t i = 0; out != NULL && i < rows; i++)
        for (int64_t k = 0; k < columns; k++)
            out[k * rows + i] = numbers[i * columns + k];
    return out;
}

static const float *scaled(struct ls_importer *x, const float *numbers, int64_t count, float factor)
{
    float *out = factor == 1 || numbers == NULL ? NULL : ls_import_new_reals(x, count);
    for (int64_t i = 0; out != NULL && i < count; i++)
        out[i] = factor * numbers[i];
    return out != NULL ? out : numbers;
}

/* x [..., K] by weights [N, K], and a bias [N] or none. */
static int add_product(struct ls_importer *x, struct ls_onnx_value *bottom,
                       const struct ls_onnx_value *weight, const float *numbers, int64_t outputs,
                       struct ls_onnx_value *bias, float beta)
{
    struct ls_onnx_rows rows;
    LS_TRY(ls_import_rows(x, bottom, true, &rows));
    const struct ls_shape *in = &rows.shape;
    const int axis = in->rank - 1;
    const struct ls_shape shape = {.rank = 2, .dim = {outputs, in->dim[axis]}};
    const struct ls_shape each = {.rank = 1, .dim = {outputs}};
    if (outputs >= INT32_MAX)
        return ls_import_cannot(x, NULL, "it has too many outputs");
    ls_import_call_without(x, bias, "_bias");
    ls_import_call_without(x, bias, ".bias");
    ls_import_call(x, weight);
    const char *top =
        LS_LAYER(x, "InnerProduct", rows.top, "inner_product_param { num_output: %lld %s%s%s}",
                 (long long)outputs, bias == NULL ? "bias_term: false " : "",
                 axis > 1 ? "axis: " : "", axis > 1 ? (char[]){(char)('0' + axis), ' ', 0} : "");
    LS_TRY(ls_import_weight(x, top, "weight", weight, &shape, numbers));
    if (bias != NULL)
        LS_TRY(ls_import_weight(x, top, "bias", bias, &each,
                                scaled(x, ls_import_reals_of(x, bias), outputs, beta)));
    return ls_import_rows_result(x, 0, top, &rows, outputs);
}

/* A number for each output: [N] or [1, N]; one number stands for all. */
static bool is_bias(const struct ls_onnx_value *value, int64_t outputs)
{
    return value->shape.rank > 0 && value->shape.dim[value->shape.rank - 1] == outputs &&
           ls_shape_size(&value->shape) == outputs;
}

static int read_gemm(struct ls_importer *x)
{
    struct ls_onnx_value *in = ls_import_seen(x, 0), *weight = ls_import_constant(x, 1);
    if (in == NULL || weight == NULL)
        return x->status;
    const bool across = ls_import_integer(x, "transB", 0) != 0;
    if (ls_import_integer(x, "transA", 0) != 0)
        return ls_import_cannot(x, NULL, "transA would put samples among the numbers of each");
    if (in->shape.rank != 2 || weight->shape.rank != 2 ||
        weight->shape.dim[across] != in->shape.dim[1])
        return ls_import_cannot(x, NULL, "its weights do not fit its input");
    const int64_t k = in->shape.dim[1], n = weight->shape.dim[!across];
    struct ls_onnx_value *bias = ls_import_input(x, 2);
    if (bias != NULL && ((bias = ls_import_constant(x, 2)) == NULL))
        return x->status;
    if (bias != NULL && !is_bias(bias, n))
        return ls_import_cannot(x, NULL, "its third input has not one number for each output");
    const float *numbers = ls_import_reals_of(x, weight);
    if (!across)
        numbers = transposed(x, numbers, k, n);
    numbers = scaled(x, numbers, k * n, ls_import_real(x, "alpha", 1));
    return add_product(x, in, weight, numbers, n, bias, ls_import_real(x, "beta", 1));
}

/* The constant that the only reader of the product adds to it, as a bias. That node is done then.
 */
static struct ls_onnx_value *find_bias(struct ls_importer *x, int64_t outputs)
{
    const struct ls_onnx_value *out = ls_import_output(x, 0);
    if (out == NULL || out->uses != 1 || out->user == SIZE_MAX)
        return NULL;
    const Onnx__NodeProto *add = x->graph->node[out->user];
    if (strcmp(add->op_type, "Add") != 0 || add->n_input != 2 ||
        x->plan[out->user].fate != LS_ONNX_AS_IT_IS)
        return NULL;
    for (int i = 0; i < 2; i++) {
        size_t at;
        if (!ls_names_find(&x->names, add->input[i], &at) || !x->values[at].learned ||
            x->values[at].shape.rank != 1 || !is_bias(&x->values[at], outputs))
            continue;
        x->plan[out->user] =
            (struct ls_onnx_plan){.fate = LS_ONNX_SAME, .in = (size_t)(out - x->values)};
        return &x->values[at];
    }
    return NULL;
}

static int multiply_blobs(struct ls_importer *x, struct ls_onnx_value *a, struct ls_onnx_value *b)
{
    struct ls_shape out, front_a = a->shape, front_b = b->shape;
    LS_TRY(ls_import_write(x, a));
    LS_TRY(ls_import_write(x, b));
    if (a->shape.rank < 3)
        return ls_import_cannot(x, NULL, "it would mix the samples of a batch");
    if (a->shape.rank != b->shape.rank ||
        a->shape.dim[a->shape.rank - 1] != b->shape.dim[b->shape.rank - 2])
        return ls_import_cannot(x, NULL,
                                "its inputs have not the same number of axes, or do not fit");
    front_a.rank = front_b.rank = a->shape.rank - 2;
    if (!ls_import_broadcast(&front_a, &front_b, &out))
        return ls_import_cannot(x, NULL, "its inputs do not fit each other");
    out.rank = a->shape.rank;
    out.dim[out.rank - 2] = a->shape.dim[out.rank - 2];
    out.dim[out.rank - 1] = b->shape.dim[out.rank - 1];
    return ls_import_result(x, 0, LS_LAYER2(x, "MatMul", a->top, b->top, "%s", ""), &out);
}

static int read_matmul(struct ls_importer *x)
{
    struct ls_onnx_value *in = ls_import_seen(x, 0), *weight = ls_import_input(x, 1);
    if (in == NULL)
        return x->status;
    if (weight != NULL && !weight->constant)
        return multiply_blobs(x, in, weight);
    if ((weight = ls_import_constant(x, 1)) == NULL)
        return x->status;
    if (weight->shape.rank != 2 || in->shape.rank < 2 ||
        weight->shape.dim[0] != in->shape.dim[in->shape.rank - 1])
        return ls_import_cannot(x, NULL, "its weights are no matrix that fits its input");
    const int64_t k = weight->shape.dim[0], n = weight->shape.dim[1];
    return add_product(x, in, weight, transposed(x, ls_import_reals_of(x, weight), k, n), n,
                       find_bias(x, n), 1);
}

const struct ls_onnx_operator ls_onnx_read_products[] = {
    {"Gemm", read_gemm},
    {"MatMul", read_matmul},
    {NULL, NULL},
};
