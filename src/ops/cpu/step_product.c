/* See step_product.h. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/step_product.h"

#include "base/align.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/vector/convert.h"

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t parts_of(size_t n, size_t part)
{
    return (n + part - 1) / part;
}

/* AMX's tiles, which products of so few rows do not fill, give these bits, too. */
static const struct ls_vector_bf16_product *tiles_for(bool f32)
{
    return f32 || ls_cpu_unit() == LS_UNIT_AMX ? ls_vector_bf16_product() : ls_bf16_tiles(f32);
}

struct ls_step_product ls_step_product_plan(const struct ls_recurrent_attr *attr, int64_t lines,
                                            int64_t terms)
{
    const struct ls_vector_bf16_product *vector = tiles_for(!attr->bf16);
    struct ls_step_product plan = {.vector = vector,
                                   .f32 = !attr->bf16,
                                   .rows = (size_t)attr->rows,
                                   .lines = (size_t)lines,
                                   .terms = (size_t)terms};
    const size_t blocks = parts_of(plan.terms, LS_BF16_BLOCK) * vector->block_bytes;
    const size_t tiles = parts_of(plan.rows, vector->rows);
    const size_t panels = parts_of(plan.lines, vector->columns);
    const size_t most = plan.rows > plan.lines ? plan.rows : plan.lines;
    plan.a_panel = vector->rows * blocks;
    plan.b_panel = vector->columns * blocks;
    plan.pitch = panels * vector->columns;
    plan.b = ls_align(tiles * plan.a_panel);
    plan.result = plan.b + ls_align(panels * plan.b_panel);
    plan.rounded = plan.result + ls_align(tiles * vector->rows * plan.pitch * sizeof(float));
    plan.end = plan.rounded + (plan.f32 ? 0 : ls_align(most * plan.terms * sizeof(uint16_t)));
    return plan;
}

float *ls_step_product_result(const struct ls_step_product *plan, char *scratch)
{
    return (float *)(void *)(scratch + plan->result);
}

/* Packs lines, `width` at a time, into panels from `to` on, which lie in `scratch`. Lines of fp32
 * numbers are rounded where the product is one of bf16. */
static void pack(const struct ls_step_product *plan, const struct ls_bf16_lines *from, size_t width,
                 void (*packer)(const struct ls_bf16_lines *from, void *panel), char *scratch,
                 char *to)
{
    const size_t block = width * plan->vector->block_bytes;
    uint16_t *rounded = (uint16_t *)(void *)(scratch + plan->rounded);
    if (!plan->f32 && from->floats != NULL)
        ls_vector_convert()->f32_to_bf16((const uint32_t *)(const void *)from->floats, rounded,
                                         from->lines * plan->terms);
    const uint16_t *data = from->floats != NULL ? rounded : from->data;
    for (size_t line = 0; line < from->lines; line += width) {
        for (size_t term = 0; term < plan->terms; term += LS_BF16_READ_TERMS) {
            struct ls_bf16_lines part = *from;
            const size_t at = from->by_term ? term * from->pitch + line : line * from->pitch + term;
            part.floats = plan->f32 ? from->floats + at : NULL;
            part.data = plan->f32 ? NULL : data + at;
            part.lines = smaller(width, from->lines - line);
            part.terms = smaller(LS_BF16_READ_TERMS, plan->terms - term);
            packer(&part, to + term / LS_BF16_BLOCK * block);
        }
        to += parts_of(plan->terms, LS_BF16_BLOCK) * block;
    }
}

void ls_step_product_weights(const struct ls_step_product *plan, const float *w, bool backward,
                             char *scratch)
{
    const struct ls_bf16_lines lines = {.floats = w,
                                        .pitch = backward ? plan->lines : plan->terms,
                                        .by_term = backward,
                                        .lines = plan->lines};
    pack(plan, &lines, plan->vector->columns, plan->vector->pack_b, scratch, scratch + plan->b);
}

void ls_step_product_multiply(const struct ls_step_product *plan, const void *rows, bool bf16,
                              char *scratch)
{
    const struct ls_vector_bf16_product *vector = plan->vector;
    const struct ls_bf16_lines lines = {.floats = bf16 ? NULL : rows,
                                        .data = bf16 ? rows : NULL,
                                        .pitch = plan->terms,
                                        .lines = plan->rows};
    pack(plan, &lines, vector->rows, vector->pack_a, scratch, scratch);
    for (size_t j = 0; j < plan->lines; j += vector->columns)
        for (size_t k = 0, count; k < plan->terms; k += count) {
            const size_t begin = k / LS_BF16_BLOCK * vector->block_bytes;
            count = smaller(vector->depth, plan->terms - k);
            struct ls_bf16_tile tile = {.b = scratch + plan->b +
                                             j / vector->columns * plan->b_panel +
                                             begin * vector->columns,
                                        .f32 = plan->f32,
                                        .terms = count,
                                        .pitch = plan->pitch,
                                        .columns = smaller(vector->columns, plan->lines - j),
                                        .first = k == 0,
                                        .last = k + count == plan->terms};
            for (size_t i = 0; i < plan->rows; i += vector->rows) {
                tile.a = scratch + i / vector->rows * plan->a_panel + begin * vector->rows;
                tile.c = ls_step_product_result(plan, scratch) + i * plan->pitch + j;
                tile.rows = smaller(vector->rows, plan->rows - i);
                vector->multiply(&tile);
            }
        }
}
