/* Inner products with large weights, which lie in plain order: y = x w^T + b, dx = dy w. And the
 * record of their factors, from which the update computes dw = dy^T x.
 *
 * Each row of a result is the same whatever the number of rows: these kernels may see one
 * micro-batch or many.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/kernels.h"
#include "ops/cpu/vector/product.h"

/* oneDNN's plain matrix product is better where nothing multiplies and adds at once. */
static bool accepts(const struct ls_op *op)
{
    return op->attr.inner_product.large && ls_cpu_isa() >= LS_ISA_AVX2;
}

/* out = rows [m, depth] times w, whose rows are added up (`combine`) or multiplied with. */
static void multiply(const struct ls_inner_product_attr *attr, bool combine, const float *rows,
                     int64_t depth, const float *w, float *out, int64_t columns)
{
    const struct ls_product product = {.rows = (size_t)attr->m,
                                       .columns = (size_t)columns,
                                       .depth = (size_t)depth,
                                       .p = {.data = rows, .row = (size_t)depth, .step = 1},
                                       .q = w,
                                       .q_row = (size_t)(combine ? columns : depth),
                                       .out = out,
                                       .out_row = (size_t)columns};
    if (combine)
        ls_vector_product()->combine(&product);
    else
        ls_vector_product()->dot(&product);
}

static float relu(float z, float slope)
{
    if (z > 0 || z != z)
        return z;
    return slope == 0 ? 0 : slope * z;
}

static void finish(const struct ls_inner_product_attr *attr, const float *bias, float *y)
{
    for (int64_t m = 0; m < attr->m; m++, y += attr->n) {
        for (int64_t n = 0; bias != NULL && n < attr->n; n++)
            y[n] = y[n] + bias[n];
        for (int64_t n = 0; attr->relu && n < attr->n; n++)
            y[n] = relu(y[n], attr->relu_slope);
    }
}

static void forward_run(const struct ls_prepared *prepared, void *local, void *const *in,
                        void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)scratch, (void)context;
    const struct ls_inner_product_attr *attr = &prepared->op->attr.inner_product;
    multiply(attr, attr->transpose, in[0], attr->k, in[1], out[0], attr->n);
    finish(attr, prepared->op->inputs > 2 ? in[2] : NULL, out[0]);
}

static void data_run(const struct ls_prepared *prepared, void *local, void *const *in,
                     void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)scratch, (void)context;
    const struct ls_inner_product_attr *attr = &prepared->op->attr.inner_product;
    multiply(attr, !attr->transpose, in[0], attr->n, in[1], out[0], attr->k);
}

static void record_run(const struct ls_prepared *prepared, void *local, void *const *in,
                       void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)out, (void)scratch;
    const struct ls_record_attr *attr = &prepared->op->attr.record;
    context->record(context->recorder, attr->parameter, attr->side, in[0],
                    (size_t)(attr->rows * attr->columns));
}

const struct ls_kernel ls_kernel_product = {
    .kind = LS_OP_INNER_PRODUCT,
    .name = "inner product",
    .accepts = accepts,
    .prepare = ls_own_prepare,
    .run = forward_run,
    .in_place = -1,
};

const struct ls_kernel ls_kernel_product_data = {
    .kind = LS_OP_INNER_PRODUCT_DATA,
    .name = "inner product backward data",
    .accepts = accepts,
    .prepare = ls_own_prepare,
    .run = data_run,
    .in_place = -1,
};

const struct ls_kernel ls_kernel_record = {
    .kind = LS_OP_RECORD,
    .name = "record factor",
    .prepare = ls_own_prepare,
    .run = record_run,
    .in_place = -1,
};
