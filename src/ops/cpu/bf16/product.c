/* The loops around the innermost part of a product of bf16 or fp32 numbers, which is chosen by
 * instruction set (ops/cpu/vector/bf16_product.h).
 *
 *     for each part of the result:                   c, in the second cache
 *         for each piece of the terms, in order:
 *             panels of a for all rows of the part   in the second cache
 *             for some columns of the part:
 *                 panels of b, one or a few          in the first cache
 *                 for each panel of b, for each panel of a: a tile of c
 *         write what is finished
 *
 * An operand that is not in memory is read into a small block first, which is packed from there.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/bf16/product.h"

#include <string.h>

#include "ops/cpu/bf16/units.h"

enum {
    C_ROWS = 512,              /* of a part of the result, at most */
    C_ELEMENTS = 1 << 17,      /* of a part, at most */
    C_ELEMENTS_ONCE = 1 << 15, /* where one piece has all terms, and each element is written once */
    B_BYTES = 36 << 10,        /* of panels of b that are packed together, if they are several */
    READ_BYTES = LS_BF16_READ_LINES * LS_BF16_READ_TERMS * sizeof(uint16_t)
};

/* How a product is cut, and where in its scratch what lies. */
struct plan {
    const struct ls_vector_bf16_product *vector;
    int64_t rows, columns;     /* of a part of the result */
    int64_t depth;             /* of a piece of the terms */
    size_t a_panel, b_panel;   /* bytes of a panel */
    int64_t b_panels;          /* that are packed together */
    size_t read, a, b, c, end; /* offsets in scratch */
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

static struct plan make_plan(const struct ls_vector_bf16_product *vector, int64_t a_lines,
                             int64_t b_lines, int64_t depth)
{
    struct plan plan = {.vector = vector};
    const int64_t rows = (int64_t)plan.vector->rows, columns = (int64_t)plan.vector->columns;
    const int64_t most_depth = (int64_t)plan.vector->depth;
    const int64_t elements = depth > most_depth ? C_ELEMENTS : C_ELEMENTS_ONCE;
    plan.rows = piece_of(a_lines, C_ROWS, rows);
    plan.columns = piece_of(b_lines, elements / plan.rows / columns * columns, columns);
    plan.depth = piece_of(depth, most_depth, LS_BF16_BLOCK);
    const size_t line = (size_t)plan.depth / LS_BF16_BLOCK * vector->block_bytes;
    /* Lines that are read into panels have room for whole pieces. */
    const int64_t room =
        vector->pad_a != NULL ? rounded_up(plan.depth, LS_BF16_READ_TERMS) : plan.depth;
    const size_t a_line = (size_t)room / LS_BF16_BLOCK * vector->block_bytes;
    plan.a_panel = vector->rows * a_line;
    plan.b_panel = vector->columns * line;
    plan.b_panels = smaller(B_BYTES / (int64_t)plan.b_panel, LS_BF16_READ_LINES / columns);
    plan.b_panels = plan.b_panels > 1 ? plan.b_panels : 1;
    plan.a = READ_BYTES;
    plan.b = plan.a + (size_t)plan.rows * a_line;
    plan.c = plan.b + (size_t)plan.b_panels * plan.b_panel;
    plan.end = plan.c + (size_t)(plan.rows * plan.columns) * sizeof(float);
    return plan;
}

/* What a piece of the terms of some lines of an operand is packed from: where it lies, or as it is
 * read into the scratch. */
static struct ls_bf16_lines look_at(const struct part *part, const struct ls_bf16_operand *operand,
                                    int64_t first, int64_t count, int64_t begin, int64_t end)
{
    struct ls_bf16_lines lines = {
        .by_term = operand->by_term, .lines = (size_t)count, .terms = (size_t)(end - begin)};
    const void *data = operand->data;
    size_t at = 0;
    const void *there = operand->look != NULL
                            ? operand->look(operand, first, count, begin, end, &lines.pitch)
                            : NULL;
    if (there != NULL) {
        data = there;
    } else if (operand->read == NULL) {
        const int64_t row = operand->by_term ? begin : first;
        lines.pitch = operand->pitch;
        at = (size_t)row * lines.pitch + (size_t)(operand->by_term ? first : begin);
    } else {
        void *to = part->scratch + part->plan->read;
        lines.pitch = (size_t)rounded_up(operand->by_term ? count : end - begin, LS_BF16_BLOCK);
        operand->read(operand, first, count, begin, end, to, lines.pitch);
        data = to;
    }
    if (part->product->f32)
        lines.floats = (const float *)data + at;
    else
        lines.data = (const uint16_t *)data + at;
    return lines;
}

static void next_lines(struct ls_bf16_lines *lines, int64_t count)
{
    const size_t further = (size_t)count * (lines->by_term ? 1 : lines->pitch);
    if (lines->floats != NULL)
        lines->floats += further;
    else
        lines->data += further;
}

/* Behind which term the next ones are read that are asked for from `begin` on: as many as fill the
 * memory for them. */
static int64_t read_end(const struct part *part, int64_t begin)
{
    return smaller(begin + LS_BF16_READ_TERMS / (part->product->f32 ? 2 : 1), part->end);
}

/* Packs lines [i, i + count) of the part, for as many panels as they fill, and terms [begin, end)
 * of its piece. */
static void pack_some_rows(const struct part *part, int64_t i, int64_t count, int64_t begin,
                           int64_t end)
{
    const struct plan *plan = part->plan;
    const struct ls_vector_bf16_product *vector = plan->vector;
    const struct ls_bf16_operand *operand = &part->product->a;
    const int64_t rows = (int64_t)vector->rows;
    const size_t blocks = (size_t)((begin - part->begin) / LS_BF16_BLOCK);
    char *a = part->scratch + plan->a + (size_t)(i / rows) * plan->a_panel +
              blocks * vector->rows * vector->block_bytes;
    if (vector->pad_a != NULL && operand->read != NULL && !operand->by_term) {
        operand->read(operand, part->i + i, count, begin, end, a, LS_BF16_READ_TERMS);
        vector->pad_a((size_t)count, (size_t)(end - begin), a);
        return;
    }
    struct ls_bf16_lines lines = look_at(part, operand, part->i + i, count, begin, end);
    for (int64_t left = count; left > 0; left -= rows, a += plan->a_panel) {
        lines.lines = (size_t)smaller(rows, left);
        vector->pack_a(&lines, a);
        next_lines(&lines, rows);
    }
}

/* All rows of the part, with a piece of the terms. */
static void pack_rows(const struct part *part)
{
    const struct ls_vector_bf16_product *vector = part->plan->vector;
    const int64_t rows = (int64_t)vector->rows;
    const int64_t most = vector->pad_a != NULL ? rows : LS_BF16_READ_LINES / rows * rows;
    for (int64_t i = 0; i < part->rows; i += most)
        for (int64_t begin = part->begin, end; begin < part->end; begin = end) {
            end = read_end(part, begin);
            pack_some_rows(part, i, smaller(most, part->rows - i), begin, end);
        }
}

/* Panels of columns [j, j + count) of the part, with a piece of the terms. */
static void pack_columns(const struct part *part, int64_t j, int64_t count)
{
    const struct plan *plan = part->plan;
    const struct ls_vector_bf16_product *vector = plan->vector;
    const int64_t columns = (int64_t)vector->columns;
    for (int64_t begin = part->begin, end; begin < part->end; begin = end) {
        end = read_end(part, begin);
        struct ls_bf16_lines lines =
            look_at(part, &part->product->b, part->j + j, count, begin, end);
        char *b =
            part->scratch + plan->b +
            (size_t)((begin - part->begin) / LS_BF16_BLOCK) * vector->columns * vector->block_bytes;
        for (int64_t left = count; left > 0; left -= columns, b += plan->b_panel) {
            lines.lines = (size_t)smaller(columns, left);
            vector->pack_b(&lines, b);
            next_lines(&lines, columns);
        }
    }
}

/* Columns [j, j + count) of the part, which are those of a panel, with all rows. */
static void multiply_columns(const struct part *part, int64_t j, int64_t count, const char *b)
{
    const struct plan *plan = part->plan;
    const int64_t rows = (int64_t)plan->vector->rows;
    struct ls_bf16_tile tile = {.a = part->scratch + plan->a,
                                .b = b,
                                .f32 = part->product->f32,
                                .terms = (size_t)(part->end - part->begin),
                                .c = (float *)(void *)(part->scratch + plan->c) + j,
                                .pitch = (size_t)plan->columns,
                                .columns = (size_t)count,
                                .first = part->begin == 0,
                                .last = part->end == part->product->depth};
    for (int64_t i = 0; i < part->rows; i += rows) {
        tile.rows = (size_t)smaller(rows, part->rows - i);
        plan->vector->multiply(&tile);
        tile.a = (const char *)tile.a + plan->a_panel;
        tile.c += (size_t)rows * tile.pitch;
    }
}

/* All columns of the part, some panels at a time, with a piece of the terms. */
static void multiply_panels(const struct part *part)
{
    const struct plan *plan = part->plan;
    const int64_t columns = (int64_t)plan->vector->columns, most = plan->b_panels * columns;
    for (int64_t j = 0; j < part->columns; j += most) {
        const int64_t count = smaller(most, part->columns - j);
        const char *b = part->scratch + plan->b;
        pack_columns(part, j, count);
        for (int64_t k = 0; k < count; k += columns, b += plan->b_panel)
            multiply_columns(part, j + k, smaller(columns, count - k), b);
    }
}

static void multiply_part(struct part *part)
{
    const struct ls_bf16_product *product = part->product;
    const struct plan *plan = part->plan;
    float *c = (float *)(void *)(part->scratch + plan->c);
    if (product->depth == 0)
        memset(c, 0, (size_t)(plan->rows * plan->columns) * sizeof *c);
    for (part->begin = 0; part->begin < product->depth; part->begin = part->end) {
        part->end = smaller(part->begin + plan->depth, product->depth);
        /* Panels with all terms are there since the columns before. */
        if (part->j == 0 || plan->depth < product->depth)
            pack_rows(part);
        multiply_panels(part);
    }
    product->write(product, part->i, part->rows, part->j, part->columns, c, (size_t)plan->columns);
}

/* ---- The interface --------------------------------------------------------------------------- */

const struct ls_vector_bf16_product *ls_bf16_tiles(bool f32)
{
    const enum ls_bf16_unit unit = f32 ? LS_UNIT_NONE : ls_cpu_unit();
    return unit != LS_UNIT_NONE ? ls_bf16_unit_tiles(unit) : ls_vector_bf16_product();
}

const char *ls_bf16_tiles_name(void)
{
    const enum ls_bf16_unit unit = ls_cpu_unit();
    return unit != LS_UNIT_NONE ? ls_cpu_unit_name(unit) : ls_cpu_isa_name(ls_cpu_isa());
}

size_t ls_bf16_scratch_with(const struct ls_vector_bf16_product *tiles, int64_t a_lines,
                            int64_t b_lines, int64_t depth)
{
    return make_plan(tiles, a_lines, b_lines, depth).end;
}

size_t ls_bf16_product_scratch(bool f32, int64_t a_lines, int64_t b_lines, int64_t depth)
{
    return ls_bf16_scratch_with(ls_bf16_tiles(f32), a_lines, b_lines, depth);
}

size_t ls_bf16_product_scratch_up_to(bool f32, int64_t a_lines, int64_t b_lines, int64_t depth)
{
    const struct ls_vector_bf16_product *tiles = ls_bf16_tiles(f32);
    const struct plan plan = make_plan(tiles, a_lines, b_lines, depth);
    const int64_t rows = rounded_up(smaller(a_lines, C_ROWS), (int64_t)tiles->rows);
    const int64_t all = rows * rounded_up(b_lines, (int64_t)tiles->columns);
    /* A part is not larger than this, or one panel of b wide. */
    int64_t most = depth > (int64_t)tiles->depth ? C_ELEMENTS : C_ELEMENTS_ONCE;
    most = most > rows * (int64_t)tiles->columns ? most : rows * (int64_t)tiles->columns;
    most = smaller(most, all);
    const size_t panels = (size_t)rows / tiles->rows * plan.a_panel;
    return plan.a + panels + (plan.c - plan.b) + (size_t)most * sizeof(float);
}

void ls_bf16_multiply_with(const struct ls_vector_bf16_product *tiles,
                           const struct ls_bf16_product *product, void *scratch)
{
    const struct plan plan = make_plan(tiles, product->a.lines, product->b.lines, product->depth);
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

void ls_bf16_multiply(const struct ls_bf16_product *product, void *scratch)
{
    ls_bf16_multiply_with(ls_bf16_tiles(product->f32), product, scratch);
}
