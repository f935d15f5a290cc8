/* Products of the matrices of two values, of bf16 or fp32 numbers: y = scale op(a) op(b).
 *
 * Sums have the order of ops/cpu/bf16/product.h. Where y has one place along an outer axis of which
 * an operand has more, the terms of a sum come from several matrices, one after the other: where
 * these follow each other in memory as the terms of one would, they are read as one.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ir/matmul.h"

#include <string.h>

#include "ops/cpu/bf16/kernel.h"
#include "ops/cpu/bf16/product.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/vector/bf16_ends.h"
#include "ops/cpu/vector/elementwise.h"

enum { LINE = 512 };

/* One side of a product whose terms are those of several matrices. */
struct side {
    const struct ls_matmul *matmul;
    int operand;
    bool f32;
    const void *data;
    int64_t columns; /* of a matrix, as it lies */
};

/* Copies `count` numbers. */
static void copy(bool f32, void *to, size_t at, const void *from, int64_t first, int64_t count)
{
    const size_t size = f32 ? sizeof(float) : sizeof(uint16_t);
    memcpy((char *)to + at * size, (const char *)from + (size_t)first * size, (size_t)count * size);
}

static void read_terms(const struct ls_bf16_operand *operand, int64_t first, int64_t count,
                       int64_t begin, int64_t end, void *to, size_t pitch)
{
    const struct side *side = operand->user;
    const int64_t depth = side->matmul->depth;
    for (int64_t k = begin, run; k < end; k += run) {
        const int64_t within = k % depth;
        const int64_t matrix = ls_matmul_at(&side->matmul->terms, side->operand, k / depth);
        run = depth - within < end - k ? depth - within : end - k;
        for (int64_t i = 0; operand->by_term && i < run; i++)
            copy(side->f32, to, (size_t)(k - begin + i) * pitch, side->data,
                 matrix + (within + i) * side->columns + first, count);
        for (int64_t line = 0; !operand->by_term && line < count; line++)
            copy(side->f32, to, (size_t)line * pitch + (size_t)(k - begin), side->data,
                 matrix + (first + line) * side->columns + within, run);
    }
}

/* Whether the matrices whose terms are added lie one behind the other, in their order. */
static bool follow(const struct ls_matmul *matmul, int operand, int64_t size)
{
    const struct ls_matmul_axes *axes = &matmul->terms;
    for (int i = axes->count - 1; i >= 0; size *= axes->extent[i--])
        if (axes->extent[i] > 1 && axes->step[operand][i] != size)
            return false;
    return true;
}

/* The operand whose matrices begin at `data`. Lines are its rows, or (by_term) its columns. */
static struct ls_bf16_operand operand_of(struct side *side, int64_t lines, bool by_term)
{
    const int64_t depth = side->matmul->depth, columns = by_term ? lines : depth;
    struct ls_bf16_operand operand = {.lines = lines, .by_term = by_term};
    side->columns = columns;
    if (side->matmul->terms.places == 1 ||
        (by_term && follow(side->matmul, side->operand, depth * columns))) {
        operand.data = side->data;
        operand.pitch = (size_t)columns;
    } else {
        operand.read = read_terms;
        operand.user = side;
    }
    return operand;
}

/* A matrix of y. */
struct result {
    void *data;
    bool bf16;
    int64_t columns;
    float scale;
};

static void write_line(const struct result *result, int64_t row, int64_t column, int64_t count,
                       float *sums)
{
    static const struct ls_bf16_ends ends = {.relu = false};
    const struct ls_vector_bf16_ends *vector = ls_vector_bf16_ends();
    const int64_t at = row * result->columns + column;
    if (result->scale != 1)
        ls_vector_elementwise()->multiply_by(sums, result->scale, sums, (size_t)count);
    if (result->bf16)
        vector->to_bf16(&ends, NULL, sums, (uint16_t *)result->data + at, (size_t)count);
    else
        vector->to_f32(&ends, NULL, sums, (float *)result->data + at, (size_t)count);
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

/* Whether the operands change places, and the result is transposed: the first side had better not
 * lie by terms, and the second one should. */
static bool is_swapped(const struct ls_op *op)
{
    return op->attr.matmul.transpose_a && op->attr.matmul.transpose_b;
}

static int matmul_run(const struct ls_prepared *prepared, void *local, void *const *in,
                      void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)context;
    const struct ls_op *op = prepared->op;
    const struct ls_matmul_attr *attr = &op->attr.matmul;
    const struct ls_matmul matmul = ls_matmul_of(op);
    const bool f32 = !op->bf16, bf16_out = op->output[0]->type == LS_BF16;
    const int64_t size = matmul.rows * matmul.columns;
    struct result result = {.bf16 = bf16_out, .columns = matmul.columns, .scale = attr->scale};
    struct side a = {.matmul = &matmul, .operand = 0, .f32 = f32};
    struct side b = {.matmul = &matmul, .operand = 1, .f32 = f32};
    for (int64_t place = 0; place < matmul.outer.places; place++) {
        a.data = ls_bf16_element(in[0], f32, ls_matmul_at(&matmul.outer, 0, place));
        b.data = ls_bf16_element(in[1], f32, ls_matmul_at(&matmul.outer, 1, place));
        const struct ls_bf16_operand first = operand_of(&a, matmul.rows, attr->transpose_a);
        const struct ls_bf16_operand second = operand_of(&b, matmul.columns, !attr->transpose_b);
        result.data = (char *)out[0] + (size_t)(place * size) * (bf16_out ? 2 : sizeof(float));
        const struct ls_bf16_product product = {.a = is_swapped(op) ? second : first,
                                                .b = is_swapped(op) ? first : second,
                                                .f32 = f32,
                                                .depth = matmul.depth * matmul.terms.places,
                                                .write =
                                                    is_swapped(op) ? write_columns : write_rows,
                                                .user = &result};
        ls_bf16_multiply(&product, scratch);
    }
    return 0;
}

/* All plain. What is a parameter is read as bf16 if the op is. */
static int matmul_layouts(const struct ls_op *op, struct ls_op_layouts *layouts,
                          struct ls_error *error)
{
    LS_TRY(ls_bf16_layouts(op, layouts, error));
    layouts->in_type[0] = op->bf16 ? LS_BF16 : LS_F32;
    return 0;
}

static int matmul_prepare(struct ls_prepared *prepared, struct ls_error *error)
{
    (void)error;
    const struct ls_op *op = prepared->op;
    const struct ls_matmul matmul = ls_matmul_of(op);
    const bool swapped = is_swapped(op);
    prepared->scratch_bytes = ls_bf16_product_scratch(
        !op->bf16, swapped ? matmul.columns : matmul.rows, swapped ? matmul.rows : matmul.columns,
        matmul.depth * matmul.terms.places);
    return ls_own_prepare_bf16(prepared, ls_bf16_tiles_name());
}

static bool accepts_all(const struct ls_op *op)
{
    (void)op;
    return true;
}

LS_BF16_KERNEL(ls_kernel_matmul, LS_OP_MATMUL, "matrix product", accepts_all, matmul_layouts,
               matmul_prepare, NULL, matmul_run, NULL);
