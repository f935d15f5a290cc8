/* See attention_products.h. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/attention_products.h"

#include "base/align.h"

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t parts_of(size_t n, size_t part)
{
    return (n + part - 1) / part;
}

/* AMX's tiles, which blocks of so few terms do not fill, give these bits, too. */
struct ls_block_tiles ls_block_tiles(bool bf16)
{
    const bool own = !bf16 || ls_cpu_unit() == LS_UNIT_AMX;
    return (struct ls_block_tiles){own ? ls_vector_bf16_product() : ls_bf16_tiles(false), !bf16};
}

static size_t panel_bytes(const struct ls_block_tiles *tiles, size_t width, size_t terms)
{
    return width * parts_of(terms, LS_BF16_BLOCK) * tiles->vector->block_bytes;
}

size_t ls_block_bytes_a(const struct ls_block_tiles *tiles, size_t lines, size_t terms)
{
    const size_t width = tiles->vector->rows;
    return ls_align(parts_of(lines, width) * panel_bytes(tiles, width, terms));
}

size_t ls_block_bytes_b(const struct ls_block_tiles *tiles, size_t lines, size_t terms)
{
    const size_t width = tiles->vector->columns;
    return ls_align(parts_of(lines, width) * panel_bytes(tiles, width, terms));
}

size_t ls_block_pitch(const struct ls_block_tiles *tiles, size_t columns)
{
    return parts_of(columns, tiles->vector->columns) * tiles->vector->columns;
}

size_t ls_block_rows(const struct ls_block_tiles *tiles, size_t rows)
{
    return parts_of(rows, tiles->vector->rows) * tiles->vector->rows;
}

static void pack(const struct ls_block_tiles *tiles, const struct ls_block_operand *operand,
                 size_t width, void (*packer)(const struct ls_bf16_lines *from, void *panel),
                 char *to)
{
    const size_t block = width * tiles->vector->block_bytes;
    const float *floats = tiles->f32 ? operand->data : NULL;
    const uint16_t *data = tiles->f32 ? NULL : operand->data;
    for (size_t line = 0; line < operand->lines; line += width) {
        for (size_t term = 0; term < operand->terms; term += LS_BF16_READ_TERMS) {
            const size_t at =
                operand->by_term ? term * operand->pitch + line : line * operand->pitch + term;
            const struct ls_bf16_lines part = {
                .floats = tiles->f32 ? floats + at : NULL,
                .data = tiles->f32 ? NULL : data + at,
                .pitch = operand->pitch,
                .by_term = operand->by_term,
                .lines = smaller(width, operand->lines - line),
                .terms = smaller(LS_BF16_READ_TERMS, operand->terms - term)};
            packer(&part, to + term / LS_BF16_BLOCK * block);
        }
        to += panel_bytes(tiles, width, operand->terms);
    }
}

void ls_block_pack_a(const struct ls_block_tiles *tiles, const struct ls_block_operand *operand,
                     void *panels)
{
    pack(tiles, operand, tiles->vector->rows, tiles->vector->pack_a, panels);
}

void ls_block_pack_b(const struct ls_block_tiles *tiles, const struct ls_block_operand *operand,
                     void *panels)
{
    pack(tiles, operand, tiles->vector->columns, tiles->vector->pack_b, panels);
}

/* Rows [begin, end) of a product, of columns up to one, by some of the terms. */
struct part {
    size_t begin, end, columns, first_term, last_term;
};

static void multiply_part(const struct ls_block_tiles *tiles,
                          const struct ls_block_product *product, const struct part *part)
{
    const struct ls_vector_bf16_product *vector = tiles->vector;
    const size_t a_panel = panel_bytes(tiles, vector->rows, product->terms);
    const size_t b_panel = panel_bytes(tiles, vector->columns, product->terms);
    for (size_t j = 0; j < part->columns; j += vector->columns)
        for (size_t k = part->first_term, count; k < part->last_term; k += count) {
            const size_t begin = k / LS_BF16_BLOCK * vector->block_bytes;
            count = smaller(vector->depth, part->last_term - k);
            struct ls_bf16_tile tile = {.b = (const char *)product->b +
                                             j / vector->columns * b_panel +
                                             begin * vector->columns,
                                        .f32 = tiles->f32,
                                        .terms = count,
                                        .pitch = product->pitch,
                                        .columns = smaller(vector->columns, part->columns - j),
                                        .first = product->first && k == 0,
                                        .last = k + count == part->last_term};
            for (size_t i = part->begin; i < part->end; i += vector->rows) {
                tile.a =
                    (const char *)product->a + i / vector->rows * a_panel + begin * vector->rows;
                tile.c = product->c + i * product->pitch + j;
                tile.rows = smaller(vector->rows, part->end - i);
                vector->multiply(&tile);
            }
        }
}

void ls_block_multiply(const struct ls_block_tiles *tiles, const struct ls_block_product *product)
{
    struct part part = {0, product->rows, product->columns, 0, product->terms};
    if (product->less == LS_BLOCK_ALL) {
        multiply_part(tiles, product, &part);
        return;
    }
    struct part upper = part;
    upper.end = part.begin = smaller(product->rows, LS_BLOCK_HALF);
    if (product->less == LS_BLOCK_LESS_COLUMNS)
        upper.columns = smaller(product->columns, LS_BLOCK_HALF);
    else if (product->less == LS_BLOCK_LESS_TERMS)
        upper.last_term = smaller(product->terms, LS_BLOCK_HALF);
    else
        part.first_term = LS_BLOCK_HALF;
    multiply_part(tiles, product, &upper);
    multiply_part(tiles, product, &part);
}
