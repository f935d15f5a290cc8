/* Inner products of bf16 numbers: y = x w^T + b, dx = dy w, dw = dy^T x, db = the sum of dy.
 *
 * All operands lie in memory as they are read. Which of the two is which is chosen so that the one
 * whose lines come first in memory is transposed as little as possible: weights never are.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/bf16/kernel.h"
#include "ops/cpu/bf16/product.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/vector/bf16_ends.h"

enum { LINE = 512 };

/* A matrix of `columns` numbers a row: rows are lines, or (columns are lines) terms. */
static struct ls_bf16_operand rows_of(const uint16_t *data, int64_t rows, int64_t columns)
{
    return (struct ls_bf16_operand){.lines = rows, .data = data, .pitch = (size_t)columns};
}

static struct ls_bf16_operand columns_of(const uint16_t *data, int64_t columns)
{
    return (struct ls_bf16_operand){
        .lines = columns, .by_term = true, .data = data, .pitch = (size_t)columns};
}

/* ---- Results --------------------------------------------------------------------------------- */

/* A matrix of `columns` numbers a row, to which the result goes as it is or transposed. */
struct matrix {
    struct ls_bf16_ends ends;
    const float *bias; /* by column; NULL: there is none */
    void *data;
    bool bf16;
    int64_t columns;
};

static void write_line(const struct matrix *matrix, int64_t row, int64_t begin, int64_t count,
                       float *sums)
{
    const struct ls_vector_bf16_ends *vector = ls_vector_bf16_ends();
    const float *bias = matrix->bias != NULL ? matrix->bias + begin : NULL;
    const int64_t at = row * matrix->columns + begin;
    if (matrix->bf16)
        vector->to_bf16(&matrix->ends, bias, sums, (uint16_t *)matrix->data + at, (size_t)count);
    else
        vector->to_f32(&matrix->ends, bias, sums, (float *)matrix->data + at, (size_t)count);
}

static void write_rows(const struct ls_bf16_product *product, int64_t i, int64_t rows, int64_t j,
                       int64_t columns, float *tile, size_t pitch)
{
    for (int64_t r = 0; r < rows; r++)
        write_line(product->user, i + r, j, columns, tile + (size_t)r * pitch);
}

static void write_columns(const struct ls_bf16_product *product, int64_t i, int64_t rows, int64_t j,
                          int64_t columns, float *tile, size_t pitch)
{
    float line[LINE];
    for (int64_t begin = 0; begin < rows; begin += LINE) {
        const int64_t count = rows - begin < LINE ? rows - begin : LINE;
        for (int64_t c = 0; c < columns; c++) {
            for (int64_t r = 0; r < count; r++)
                line[r] = tile[(size_t)(begin + r) * pitch + (size_t)c];
            write_line(product->user, j + c, i + begin, count, line);
        }
    }
}

/* ---- The three passes ------------------------------------------------------------------------ */

/* rows w^T, or rows w where `combine`, with `w` of `columns` numbers a row. */
static void multiply(const uint16_t *rows, int64_t count, int64_t depth, const uint16_t *w,
                     bool combine, const struct matrix *out, void *scratch)
{
    struct ls_bf16_product product = {.depth = depth, .user = out};
    if (combine) {
        product.a = rows_of(rows, count, depth);
        product.b = columns_of(w, out->columns);
        product.write = write_rows;
    } else {
        product.a = rows_of(w, out->columns, depth);
        product.b = rows_of(rows, count, depth);
        product.write = write_columns;
    }
    ls_bf16_multiply(&product, scratch);
}

static int forward_run(const struct ls_prepared *prepared, void *local, void *const *in,
                       void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)context;
    const struct ls_op *op = prepared->op;
    const struct ls_inner_product_attr *attr = &op->attr.inner_product;
    const struct matrix y = {.ends = {.relu = attr->relu, .slope = attr->relu_slope},
                             .bias = op->inputs > 2 ? in[2] : NULL,
                             .data = out[0],
                             .bf16 = op->output[0]->type == LS_BF16,
                             .columns = attr->n};
    multiply(in[0], attr->m, attr->k, in[1], attr->transpose, &y, scratch);
    return 0;
}

static int data_run(const struct ls_prepared *prepared, void *local, void *const *in,
                    void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)context;
    const struct ls_op *op = prepared->op;
    const struct ls_inner_product_attr *attr = &op->attr.inner_product;
    const struct matrix dx = {
        .data = out[0], .bf16 = op->output[0]->type == LS_BF16, .columns = attr->k};
    multiply(in[0], attr->m, attr->n, in[1], !attr->transpose, &dx, scratch);
    return 0;
}

static void read_ones(const struct ls_bf16_operand *operand, int64_t first, int64_t count,
                      int64_t begin, int64_t end, uint16_t *to, size_t pitch)
{
    (void)operand, (void)first, (void)count, (void)pitch;
    for (int64_t k = begin; k < end; k++)
        to[k - begin] = LS_BF16_ONE;
}

/* dw is [n, k], transposed [k, n]: the lines of the one side are rows of it, of the other columns.
 * db is the product of ones with dy. */
static int weights_run(const struct ls_prepared *prepared, void *local, void *const *in,
                       void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)context;
    const struct ls_inner_product_attr *attr = &prepared->op->attr.inner_product;
    const struct ls_bf16_operand x = columns_of(in[0], attr->k), dy = columns_of(in[1], attr->n);
    const struct matrix dw = {.data = out[0], .columns = attr->transpose ? attr->n : attr->k};
    struct ls_bf16_product product = {.a = attr->transpose ? x : dy,
                                      .b = attr->transpose ? dy : x,
                                      .depth = attr->m,
                                      .write = write_rows,
                                      .user = &dw};
    ls_bf16_multiply(&product, scratch);
    if (prepared->op->outputs > 1 && out[1] != NULL) {
        const struct matrix db = {.data = out[1], .columns = attr->n};
        product.a = (struct ls_bf16_operand){.lines = 1, .read = read_ones};
        product.b = dy;
        product.user = &db;
        ls_bf16_multiply(&product, scratch);
    }
    return 0;
}

/* ---- The kernels ----------------------------------------------------------------------------- */

static int prepare(struct ls_prepared *prepared, struct ls_error *error)
{
    (void)error;
    const struct ls_inner_product_attr *attr = &prepared->op->attr.inner_product;
    const int64_t m = attr->m, n = attr->n, k = attr->k;
    int64_t size[3] = {n, m, k}; /* lines of a, lines of b, terms */
    if (prepared->op->kind == LS_OP_INNER_PRODUCT_WEIGHTS) {
        size[0] = attr->transpose ? k : n;
        size[1] = attr->transpose ? n : k;
        size[2] = m;
        const size_t sums = ls_bf16_product_scratch(1, n, m);
        prepared->scratch_bytes = sums;
    } else {
        const bool data = prepared->op->kind == LS_OP_INNER_PRODUCT_DATA;
        const bool combine = data != attr->transpose;
        const int64_t columns = data ? k : n;
        size[0] = combine ? m : columns;
        size[1] = combine ? columns : m;
        size[2] = data ? n : k;
    }
    const size_t bytes = ls_bf16_product_scratch(size[0], size[1], size[2]);
    if (bytes > prepared->scratch_bytes)
        prepared->scratch_bytes = bytes;
    return ls_own_prepare_bf16(prepared, ls_bf16_tiles_name());
}

#define KERNEL(kernel, op, words, run)                                                             \
    LS_BF16_KERNEL(kernel, op, words, ls_bf16_accepts, ls_bf16_layouts, prepare, NULL, run)

KERNEL(ls_kernel_bf16_inner_product, LS_OP_INNER_PRODUCT, "bf16 inner product", forward_run);
KERNEL(ls_kernel_bf16_inner_product_data, LS_OP_INNER_PRODUCT_DATA,
       "bf16 inner product backward data", data_run);
KERNEL(ls_kernel_bf16_inner_product_weights, LS_OP_INNER_PRODUCT_WEIGHTS,
       "bf16 inner product backward weights", weights_run);
