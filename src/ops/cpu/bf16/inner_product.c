/* Inner products of bf16 or fp32 numbers: y = x w^T + b, dx = dy w, dw = dy^T x, db = the sum of
 * dy.
 *
 * All operands lie in memory as they are read, but large weights of a product of bf16 numbers are
 * rounded while they are read: a view of them in bf16 would take half of their bytes once more, and
 * save no time, since they do not fit into caches and are read about once for each pass. Which of
 * the two operands is which is chosen so that the one whose lines come first in memory is
 * transposed as little as possible: weights never are.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/bf16/kernel.h"
#include "ops/cpu/bf16/product.h"
#include "ops/cpu/bf16/wide.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/vector/bf16_ends.h"

/* SIDE: of lines that are transposed at once. FEW_ROWS: of which a panel of columns would be nearly
 * empty. TILE_ROWS: of a tile at once, so that scratch memory is for no more. */
enum { LINE = 512, SIDE = 16, FEW_ROWS = 2, TILE_ROWS = 64 };

enum { LARGE = 8 << 20 }; /* bytes of weights: more than a core has in its caches */

/* A matrix of `columns` numbers a row: rows are lines, or (columns are lines) terms. */
static struct ls_bf16_operand rows_of(const void *data, int64_t rows, int64_t columns)
{
    return (struct ls_bf16_operand){.lines = rows, .data = data, .pitch = (size_t)columns};
}

static struct ls_bf16_operand columns_of(const void *data, int64_t columns)
{
    return (struct ls_bf16_operand){
        .lines = columns, .by_term = true, .data = data, .pitch = (size_t)columns};
}

/* ---- Weights --------------------------------------------------------------------------------- */

/* Whether a product of bf16 numbers reads its weights in fp32. */
static bool reads_wide(const struct ls_op *op)
{
    return op->bf16 && op->input[1]->type == LS_F32;
}

static int product_layouts(const struct ls_op *op, struct ls_op_layouts *layouts,
                           struct ls_error *error)
{
    const struct ls_value *weights = op->input[1];
    const size_t bytes = (size_t)ls_shape_size(&weights->shape) * sizeof(float);
    LS_TRY(ls_bf16_layouts(op, layouts, error));
    if (weights->storage == LS_STORE_PARAMETER && weights->type == LS_F32 && bytes >= LARGE)
        layouts->in_type[1] = LS_F32;
    return 0;
}

/* ---- Results --------------------------------------------------------------------------------- */

/* A matrix of `columns` numbers a row, to some columns of which the result goes as it is or
 * transposed. */
struct matrix {
    struct ls_bf16_ends ends;
    const float *bias; /* by column; NULL: there is none */
    void *data;
    bool bf16;
    int64_t columns, begin, end;
};

static void write_line(const struct matrix *matrix, int64_t row, int64_t begin, int64_t count,
                       float *sums)
{
    const struct ls_vector_bf16_ends *vector = ls_vector_bf16_ends();
    const int64_t column = matrix->begin + begin, at = row * matrix->columns + column;
    const float *bias = matrix->bias != NULL ? matrix->bias + column : NULL;
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
    const struct matrix *matrix = product->user;
    if (!matrix->bf16 && matrix->bias == NULL && !matrix->ends.relu) { /* as it is */
        ls_vector_bf16_ends()->transpose(tile, pitch, (size_t)rows, (size_t)columns,
                                         (float *)matrix->data + j * matrix->columns +
                                             matrix->begin + i,
                                         (size_t)matrix->columns);
        return;
    }
    float some[SIDE * LINE];
    for (int64_t begin = 0; begin < rows; begin += LINE) {
        const int64_t count = rows - begin < LINE ? rows - begin : LINE;
        for (int64_t c = 0; c < columns; c += SIDE) {
            const int64_t lines = columns - c < SIDE ? columns - c : SIDE;
            ls_vector_bf16_ends()->transpose(tile + (size_t)begin * pitch + c, pitch, (size_t)count,
                                             (size_t)lines, some, LINE);
            for (int64_t k = 0; k < lines; k++)
                write_line(matrix, j + c + k, i + begin, count, some + k * LINE);
        }
    }
}

/* ---- The three passes ------------------------------------------------------------------------ */

static bool is_data(const struct ls_op *op)
{
    return op->kind == LS_OP_INNER_PRODUCT_DATA;
}

/* y, or dx, at `data`. */
static struct matrix result_of(const struct ls_op *op, void *const *in, void *data)
{
    const struct ls_inner_product_attr *attr = &op->attr.inner_product;
    const int64_t columns = is_data(op) ? attr->k : attr->n;
    struct matrix result = {
        .data = data, .bf16 = op->output[0]->type == LS_BF16, .columns = columns, .end = columns};
    if (!is_data(op)) {
        result.ends = (struct ls_bf16_ends){.relu = attr->relu, .slope = attr->relu_slope};
        result.bias = op->inputs > 2 ? in[2] : NULL;
    }
    return result;
}

/* The weights of the result's columns: as terms where they have as many numbers a row as the result
 * (`combine`), else as lines. `wide` is filled where they are rounded. */
static struct ls_bf16_operand weights_of(const struct ls_op *op, const void *w, bool combine,
                                         const struct matrix *result, struct ls_bf16_wide *wide)
{
    const struct ls_inner_product_attr *attr = &op->attr.inner_product;
    const int64_t depth = is_data(op) ? attr->n : attr->k, width = result->end - result->begin;
    const int64_t first = combine ? result->begin : result->begin * depth;
    const void *data = ls_bf16_element(w, op->input[1]->type == LS_F32, first);
    struct ls_bf16_operand weights =
        combine ? columns_of(data, result->columns) : rows_of(data, width, depth);
    weights.lines = width;
    if (reads_wide(op)) {
        *wide = (struct ls_bf16_wide){.data = data, .columns = (int64_t)weights.pitch};
        weights.read = ls_bf16_read_wide;
        weights.user = wide;
    }
    return weights;
}

/* Whether the rows that are given are a, although the weights lie line by line: transposing the
 * weights then takes less time than transposing more rows, and their result, or than panels with a
 * row or two. */
static bool transposes_weights(const struct ls_op *op, int64_t count)
{
    const struct ls_inner_product_attr *attr = &op->attr.inner_product;
    return !reads_wide(op) && is_data(op) == attr->transpose &&
           (count <= FEW_ROWS || count >= (is_data(op) ? attr->k : attr->n));
}

/* Rows of x, or of dy, times the weights w: rows w^T, or rows w where `combine`. */
static void multiply_rows(const struct ls_op *op, void *const *in, const void *rows, int64_t count,
                          const struct matrix *result, void *scratch)
{
    const struct ls_inner_product_attr *attr = &op->attr.inner_product;
    const int64_t depth = is_data(op) ? attr->n : attr->k;
    const bool combine = is_data(op) != attr->transpose;
    const bool first = combine || transposes_weights(op, count);
    struct ls_bf16_wide wide;
    const struct ls_bf16_operand weights = weights_of(op, in[1], combine, result, &wide);
    const struct ls_bf16_operand given = rows_of(rows, count, depth);
    const struct ls_bf16_product product = {.a = first ? given : weights,
                                            .b = first ? weights : given,
                                            .f32 = !op->bf16,
                                            .depth = depth,
                                            .write = first ? write_rows : write_columns,
                                            .user = result};
    ls_bf16_multiply(&product, scratch);
}

static int product_run(const struct ls_prepared *prepared, void *local, void *const *in,
                       void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)context;
    const struct ls_op *op = prepared->op;
    const struct matrix result = result_of(op, in, out[0]);
    multiply_rows(op, in, in[0], op->attr.inner_product.m, &result, scratch);
    return 0;
}

/* Some columns, for some of the rows at a time. */
static int product_tile(const struct ls_prepared *prepared, void *const *in,
                        const struct ls_product_tile *tile, struct ls_error *error)
{
    (void)error;
    const struct ls_op *op = prepared->op;
    const struct ls_inner_product_attr *attr = &op->attr.inner_product;
    const int64_t depth = is_data(op) ? attr->n : attr->k;
    for (int64_t first = 0; first < tile->count; first += TILE_ROWS) {
        const int64_t left = tile->count - first;
        struct matrix result = result_of(op, in, NULL);
        result.data = (char *)tile->out +
                      (size_t)(first * result.columns) * ls_dtype_size(op->output[0]->type);
        result.begin = tile->begin;
        result.end = tile->end;
        multiply_rows(op, in, ls_bf16_element(tile->rows, !op->bf16, first * depth),
                      left < TILE_ROWS ? left : TILE_ROWS, &result, tile->scratch);
    }
    return 0;
}

static void read_ones(const struct ls_bf16_operand *operand, int64_t first, int64_t count,
                      int64_t begin, int64_t end, void *to, size_t pitch)
{
    const struct ls_op *op = operand->user;
    (void)first, (void)count, (void)pitch;
    ls_bf16_put_ones(!op->bf16, to, 0, (size_t)(end - begin));
}

/* Whether the side of dw with more numbers is b, and the result transposed: lines that lie as
 * terms take less time to pack into panels of b. */
static bool swaps_sides(const struct ls_op *op)
{
    const struct ls_inner_product_attr *attr = &op->attr.inner_product;
    const int64_t rows = attr->transpose ? attr->k : attr->n;
    return rows >= 2 * (attr->transpose ? attr->n : attr->k);
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
    const bool swapped = swaps_sides(prepared->op);
    struct ls_bf16_product product = {.a = attr->transpose != swapped ? x : dy,
                                      .b = attr->transpose != swapped ? dy : x,
                                      .f32 = !prepared->op->bf16,
                                      .depth = attr->m,
                                      .write = swapped ? write_columns : write_rows,
                                      .user = &dw};
    ls_bf16_multiply(&product, scratch);
    if (prepared->op->outputs > 1 && out[1] != NULL) {
        const struct matrix db = {.data = out[1], .columns = attr->n};
        product.a = (struct ls_bf16_operand){.lines = 1, .read = read_ones, .user = prepared->op};
        product.b = dy;
        product.write = write_rows;
        product.user = &db;
        ls_bf16_multiply(&product, scratch);
    }
    return 0;
}

/* ---- The kernels ----------------------------------------------------------------------------- */

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static int prepare(struct ls_prepared *prepared, struct ls_error *error)
{
    (void)error;
    const struct ls_op *op = prepared->op;
    const struct ls_inner_product_attr *attr = &op->attr.inner_product;
    const int64_t m = attr->m, n = attr->n, k = attr->k;
    const bool f32 = !op->bf16;
    if (op->kind == LS_OP_INNER_PRODUCT_WEIGHTS) {
        const int64_t rows = attr->transpose ? k : n, columns = attr->transpose ? n : k;
        const bool swapped = swaps_sides(op);
        prepared->scratch_bytes = larger(
            ls_bf16_product_scratch(f32, 1, n, m),
            ls_bf16_product_scratch(f32, swapped ? columns : rows, swapped ? rows : columns, m));
    } else {
        const int64_t columns = is_data(op) ? k : n, depth = is_data(op) ? n : k;
        const int64_t part = columns < LS_TILE_COLUMNS_MAX ? columns : LS_TILE_COLUMNS_MAX;
        const bool combine = is_data(op) != attr->transpose; /* as in multiply_rows */
        prepared->scratch_bytes =
            combine ? larger(ls_bf16_product_scratch(f32, m, columns, depth),
                             ls_bf16_product_scratch_up_to(f32, TILE_ROWS, part, depth))
                    : larger(transposes_weights(op, m)
                                 ? ls_bf16_product_scratch(f32, m, columns, depth)
                                 : ls_bf16_product_scratch(f32, columns, m, depth),
                             ls_bf16_product_scratch_up_to(f32, part, TILE_ROWS, depth));
        if (!combine && !reads_wide(op)) { /* some tiles transpose them */
            const int64_t rows = transposes_weights(op, TILE_ROWS) ? TILE_ROWS : FEW_ROWS;
            prepared->scratch_bytes = larger(prepared->scratch_bytes,
                                             ls_bf16_product_scratch_up_to(f32, rows, part, depth));
        }
    }
    return ls_own_prepare_bf16(prepared, ls_bf16_tiles_name());
}

#define KERNEL(kernel, op, words, layouts, run, tile)                                              \
    LS_BF16_KERNEL(kernel, op, words, ls_bf16_accepts, layouts, prepare, NULL, run, tile)

KERNEL(ls_kernel_bf16_inner_product, LS_OP_INNER_PRODUCT, "bf16 inner product", product_layouts,
       product_run, product_tile);
KERNEL(ls_kernel_bf16_inner_product_data, LS_OP_INNER_PRODUCT_DATA,
       "bf16 inner product backward data", product_layouts, product_run, product_tile);
KERNEL(ls_kernel_bf16_inner_product_weights, LS_OP_INNER_PRODUCT_WEIGHTS,
       "bf16 inner product backward weights", ls_bf16_layouts, weights_run, NULL);
