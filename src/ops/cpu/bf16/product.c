/* The loops around the innermost part of a product of bf16 numbers, which is chosen by instruction
 * set (ops/cpu/vector/bf16_product.h).
 *
 *     for each part of the result that fits the second cache as fp32:  c
 *         for each piece of the terms, in their order:
 *             panels of b, for all columns of the part
 *             for some rows of the part at a time:
 *                 panels of a
 *                 for each panel of b (in the first cache), for each panel of a:  a tile of c
 *         write what is finished
 *
 * An operand that is not in memory is read into a small block first, which is packed from there.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/bf16/product.h"

#include <string.h>

#include "ops/cpu/vector/bf16_product.h"

enum {
    C_ROWS = 512,         /* rows of a part of the result */
    C_ELEMENTS = 1 << 17, /* of a part of the result, at most */
    A_LINES = 128,        /* that are packed together */
    B_LINES = 480,
    READ_BYTES = LS_BF16_READ_LINES * LS_BF16_READ_TERMS * 2
};

/* How a product is cut, and where in its scratch what lies. */
struct plan {
    const struct ls_vector_bf16_product *vector;
    int64_t rows, columns;  /* of a part of the result */
    int64_t a_lines, depth; /* of panels that are packed together */
    size_t c_pitch;
    size_t a_panel, b_panel;     /* bytes of a panel with `depth` terms */
    size_t read, a, b, c, bytes; /* offsets in scratch, and its size */
};

/* A part of a product while it is computed. */
struct part {
    const struct ls_bf16_product *product;
    const struct plan *plan;
    char *scratch;
    int64_t i, rows, j, columns; /* of the result */
    int64_t begin, end;          /* terms */
};

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t rounded_up(int64_t n, int64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

/* `n` cut into equal pieces of at most `most`, which are multiples of `unit`. */
static int64_t piece_of(int64_t n, int64_t most, int64_t unit)
{
    int64_t pieces = n > most ? (n + most - 1) / most : 1;
    int64_t piece = rounded_up((n + pieces - 1) / pieces, unit);
    return piece > unit ? piece : unit;
}

static struct plan make_plan(int64_t a_lines, int64_t b_lines, int64_t depth)
{
    struct plan plan = {.vector = ls_vector_bf16_product()};
    const int64_t rows = (int64_t)plan.vector->rows, columns = (int64_t)plan.vector->columns;
    plan.rows = piece_of(a_lines, C_ROWS, rows);
    int64_t most = smaller(B_LINES, C_ELEMENTS / plan.rows);
    plan.columns = piece_of(b_lines, most / columns * columns, columns);
    plan.a_lines = piece_of(plan.rows, A_LINES, rows);
    plan.depth = piece_of(depth, (int64_t)plan.vector->depth, LS_BF16_BLOCK);
    plan.c_pitch = (size_t)plan.columns;
    const size_t blocks = (size_t)plan.depth / LS_BF16_BLOCK;
    plan.a_panel = blocks * plan.vector->rows * plan.vector->block_bytes;
    plan.b_panel = blocks * plan.vector->columns * plan.vector->block_bytes;
    plan.a = READ_BYTES;
    plan.b = plan.a + (size_t)(plan.a_lines / rows) * plan.a_panel;
    plan.c = plan.b + (size_t)(plan.columns / columns) * plan.b_panel;
    plan.bytes = plan.c + (size_t)plan.rows * plan.c_pitch * sizeof(float);
    return plan;
}

size_t ls_bf16_product_scratch(int64_t a_lines, int64_t b_lines, int64_t depth)
{
    return make_plan(a_lines, b_lines, depth).bytes;
}

/* Lines [first, first + count) of an operand, where they lie or read into the scratch. */
static struct ls_bf16_lines look_at(const struct part *part, const struct ls_bf16_operand *operand,
                                    int64_t first, int64_t count)
{
    const int64_t begin = part->begin, end = part->end;
    struct ls_bf16_lines lines = {
        .by_term = operand->by_term, .lines = (size_t)count, .terms = (size_t)(end - begin)};
    if (operand->read == NULL) {
        const size_t row = (size_t)(operand->by_term ? begin : first);
        lines.data = operand->data + row * operand->pitch + (operand->by_term ? first : begin);
        lines.pitch = operand->pitch;
        return lines;
    }
    uint16_t *to = (uint16_t *)(void *)(part->scratch + part->plan->read);
    lines.data = to;
    lines.pitch = (size_t)rounded_up(operand->by_term ? count : end - begin, LS_BF16_BLOCK);
    operand->read(operand, first, count, begin, end, to, lines.pitch);
    return lines;
}

/* Rows [begin, begin + count) of the part: packs them and multiplies them with the columns. */
static void multiply_rows(const struct part *part, int64_t begin, int64_t count)
{
    const struct plan *plan = part->plan;
    const struct ls_vector_bf16_product *vector = plan->vector;
    const int64_t rows = (int64_t)vector->rows, columns = (int64_t)vector->columns;
    char *a = part->scratch + plan->a, *b = part->scratch + plan->b;
    float *c = (float *)(void *)(part->scratch + plan->c) + (size_t)begin * plan->c_pitch;
    for (int64_t i = 0; i < count; i += rows) {
        struct ls_bf16_lines lines =
            look_at(part, &part->product->a, part->i + begin + i, smaller(rows, count - i));
        vector->pack_a(&lines, a + (size_t)(i / rows) * plan->a_panel);
    }
    struct ls_bf16_tile tile = {.blocks = (size_t)(part->end - part->begin + LS_BF16_BLOCK - 1) /
                                          LS_BF16_BLOCK,
                                .pitch = plan->c_pitch,
                                .first = part->begin == 0,
                                .last = part->end == part->product->depth};
    for (int64_t j = 0; j < part->columns; j += columns)
        for (int64_t i = 0; i < count; i += rows) {
            tile.a = a + (size_t)(i / rows) * plan->a_panel;
            tile.b = b + (size_t)(j / columns) * plan->b_panel;
            tile.c = c + (size_t)i * plan->c_pitch + j;
            tile.rows = (size_t)smaller(rows, count - i);
            tile.columns = (size_t)smaller(columns, part->columns - j);
            vector->multiply(&tile);
        }
}

static void multiply_part(struct part *part)
{
    const struct ls_bf16_product *product = part->product;
    const struct plan *plan = part->plan;
    const int64_t columns = (int64_t)plan->vector->columns;
    float *c = (float *)(void *)(part->scratch + plan->c);
    if (product->depth == 0)
        memset(c, 0, (size_t)plan->rows * plan->c_pitch * sizeof *c);
    for (part->begin = 0; part->begin < product->depth; part->begin = part->end) {
        part->end = smaller(part->begin + plan->depth, product->depth);
        for (int64_t j = 0; j < part->columns; j += columns) {
            struct ls_bf16_lines lines =
                look_at(part, &product->b, part->j + j, smaller(columns, part->columns - j));
            plan->vector->pack_b(&lines,
                                 part->scratch + plan->b + (size_t)(j / columns) * plan->b_panel);
        }
        for (int64_t i = 0; i < part->rows; i += plan->a_lines)
            multiply_rows(part, i, smaller(plan->a_lines, part->rows - i));
    }
    product->write(product, part->i, part->rows, part->j, part->columns, c, plan->c_pitch);
}

void ls_bf16_multiply(const struct ls_bf16_product *product, void *scratch)
{
    const struct plan plan = make_plan(product->a.lines, product->b.lines, product->depth);
    struct part part = {.product = product, .plan = &plan, .scratch = scratch};
    if (plan.vector->begin != NULL)
        plan.vector->begin();
    for (part.i = 0; part.i < product->a.lines; part.i += plan.rows) {
        part.rows = smaller(plan.rows, product->a.lines - part.i);
        for (part.j = 0; part.j < product->b.lines; part.j += plan.columns) {
            part.columns = smaller(plan.columns, product->b.lines - part.j);
            multiply_part(&part);
        }
    }
    if (plan.vector->end != NULL)
        plan.vector->end();
}
