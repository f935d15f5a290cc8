/* Inner products with large weights, which lie in plain order: y = x w^T + b, dx = dy w. And the
 * record of their factors, from which the update computes dw = dy^T x.
 *
 * Each row of a result is the same whatever the number of rows: these kernels may see one
 * micro-batch or many.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/convert.h"
#include "ops/cpu/exact.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/tiles.h"
#include "ops/cpu/vector/product.h"

/* oneDNN's plain matrix product is better where nothing multiplies and adds at once. */
static bool accepts(const struct ls_op *op)
{
    return op->attr.inner_product.large && ls_cpu_isa() >= LS_ISA_AVX2;
}

/* Columns of the tile = rows [count, depth] times w, whose rows are added up (`combine`) or
 * multiplied with, to `columns` in all. */
static void multiply(const struct ls_product_tile *tile, bool combine, int64_t depth,
                     const float *w, int64_t columns)
{
    const int64_t q_row = combine ? columns : depth;
    const struct ls_product product = {.rows = (size_t)tile->count,
                                       .columns = (size_t)(tile->end - tile->begin),
                                       .depth = (size_t)depth,
                                       .p = {.data = tile->rows, .row = (size_t)depth, .step = 1},
                                       .q = w + tile->begin * (combine ? 1 : q_row),
                                       .q_row = (size_t)q_row,
                                       .out = (float *)tile->out + tile->begin,
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

static void finish(const struct ls_inner_product_attr *attr, const float *bias,
                   const struct ls_product_tile *tile)
{
    float *y = tile->out;
    for (int64_t m = 0; m < tile->count; m++, y += attr->n) {
        for (int64_t n = tile->begin; bias != NULL && n < tile->end; n++)
            y[n] = y[n] + bias[n];
        for (int64_t n = tile->begin; attr->relu && n < tile->end; n++)
            y[n] = relu(y[n], attr->relu_slope);
    }
}

static int forward_tile(const struct ls_prepared *prepared, void *const *in,
                        const struct ls_product_tile *tile, struct ls_error *error)
{
    (void)error;
    const struct ls_inner_product_attr *attr = &prepared->op->attr.inner_product;
    multiply(tile, attr->transpose, attr->k, in[1], attr->n);
    finish(attr, prepared->op->inputs > 2 ? in[2] : NULL, tile);
    return 0;
}

static int data_tile(const struct ls_prepared *prepared, void *const *in,
                     const struct ls_product_tile *tile, struct ls_error *error)
{
    (void)error;
    const struct ls_inner_product_attr *attr = &prepared->op->attr.inner_product;
    multiply(tile, !attr->transpose, attr->n, in[1], attr->k);
    return 0;
}

static int forward_run(const struct ls_prepared *prepared, void *local, void *const *in,
                       void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)scratch;
    const struct ls_inner_product_attr *attr = &prepared->op->attr.inner_product;
    const struct ls_product_tile all = {
        .rows = in[0], .count = attr->m, .end = attr->n, .out = out[0]};
    return forward_tile(prepared, in, &all, context->error);
}

static int data_run(const struct ls_prepared *prepared, void *local, void *const *in,
                    void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)scratch;
    const struct ls_inner_product_attr *attr = &prepared->op->attr.inner_product;
    const struct ls_product_tile all = {
        .rows = in[0], .count = attr->m, .end = attr->k, .out = out[0]};
    return data_tile(prepared, in, &all, context->error);
}

static int record_run(const struct ls_prepared *prepared, void *local, void *const *in,
                      void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)out, (void)scratch;
    const struct ls_record_attr *attr = &prepared->op->attr.record;
    size_t numbers = (size_t)(attr->rows * attr->columns);
    ls_cpu_convert(prepared->op->input[0]->type, in[0], LS_F32, context->factor.rows, numbers);
    *context->factor.largest = ls_largest(context->factor.rows, numbers);
    return 0;
}

const struct ls_kernel ls_kernel_product = {
    .kind = LS_OP_INNER_PRODUCT,
    .bits = LS_BITS_BY_SHAPES,
    .name = "inner product",
    .accepts = accepts,
    .prepare = ls_own_prepare,
    .run = forward_run,
    .tile = forward_tile,
    .in_place = -1,
};

const struct ls_kernel ls_kernel_product_data = {
    .kind = LS_OP_INNER_PRODUCT_DATA,
    .bits = LS_BITS_BY_SHAPES,
    .name = "inner product backward data",
    .accepts = accepts,
    .prepare = ls_own_prepare,
    .run = data_run,
    .tile = data_tile,
    .in_place = -1,
};

const struct ls_kernel ls_kernel_record = {
    .kind = LS_OP_RECORD,
    .bits = LS_BITS_EXACT,
    .name = "record factor",
    .takes_bf16 = ls_all_bf16,
    .prepare = ls_own_prepare,
    .run = record_run,
    .in_place = -1,
};
