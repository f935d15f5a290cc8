/* See attention_blocks.h. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/attention_blocks.h"

#include <math.h>

#include "base/align.h"
#include "base/memory.h"
#include "ops/cpu/bf16/kernel.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/vector/convert.h"
#include "ops/cpu/vector/elementwise.h"
#include "ops/cpu/vector/philox.h"

enum { BLOCK = LS_ATTENTION_BLOCK };

/* ---- Scratch memory -------------------------------------------------------------------------- */

static size_t place(size_t *end, size_t bytes)
{
    const size_t at = *end;
    *end += ls_align(bytes);
    return at;
}

/* What both directions need of inputs and keys. */
static void place_inputs(struct ls_attention_plan *plan, const struct ls_attention_attr *attr)
{
    const size_t keys = (size_t)attr->keys, depth = (size_t)attr->depth;
    const size_t value = (size_t)attr->value_depth;
    plan->shown = place(&plan->end, keys * sizeof(float));
    plan->angles = place(&plan->end, keys * (size_t)attr->rotary.dims * sizeof(float));
    plan->turned = place(&plan->end, BLOCK * (depth > value ? depth : value) * sizeof(float));
    plan->row = place(&plan->end, (depth > value ? depth : value) * sizeof(float));
    plan->rounded = place(&plan->end, BLOCK * BLOCK * sizeof(uint16_t));
    plan->keys = place(&plan->end, plan->blocks * plan->key_lines);
}

/* Tiles of scores. */
static void place_tiles(struct ls_attention_plan *plan, bool backward, bool drops)
{
    const size_t bytes = ls_block_rows(&plan->tiles, BLOCK) * plan->pitch * sizeof(float);
    plan->scores = place(&plan->end, bytes);
    plan->gradients = place(&plan->end, backward ? bytes : 0);
    plan->dropped = place(&plan->end, backward && drops ? bytes : 0);
    plan->weights = place(&plan->end, ls_block_bytes_a(&plan->tiles, BLOCK, BLOCK));
}

struct ls_attention_plan ls_attention_plan(const struct ls_attention_attr *attr, bool backward)
{
    struct ls_attention_plan plan = {.tiles = ls_block_tiles(attr->bf16)};
    const struct ls_block_tiles *tiles = &plan.tiles;
    const size_t depth = (size_t)attr->depth, value = (size_t)attr->value_depth;
    const size_t rows = ls_block_rows(tiles, BLOCK);
    plan.blocks = ((size_t)attr->keys + BLOCK - 1) / BLOCK;
    plan.key_lines = ls_block_bytes_b(tiles, BLOCK, depth);
    plan.key_terms = ls_block_bytes_b(tiles, depth, BLOCK);
    plan.value_lines = ls_block_bytes_b(tiles, BLOCK, value);
    plan.value_terms = ls_block_bytes_b(tiles, value, BLOCK);
    plan.pitch = ls_block_pitch(tiles, BLOCK);
    plan.depth_pitch = ls_block_pitch(tiles, depth);
    plan.value_pitch = ls_block_pitch(tiles, value);
    place_inputs(&plan, attr);
    plan.values = place(&plan.end, plan.blocks * (backward ? plan.value_lines : plan.value_terms));
    plan.queries = place(&plan.end, ls_block_bytes_a(tiles, BLOCK, depth));
    place_tiles(&plan, backward, attr->dropout.ratio > 0);
    plan.out =
        place(&plan.end, rows * (backward ? plan.depth_pitch : plan.value_pitch) * sizeof(float));
    if (!backward)
        return plan;
    plan.keys_by_term = place(&plan.end, plan.blocks * plan.key_terms);
    plan.slopes = place(&plan.end, ls_block_bytes_a(tiles, BLOCK, value));
    plan.queries_by_term = place(&plan.end, plan.key_terms);
    plan.slopes_by_term = place(&plan.end, plan.value_terms);
    plan.key_sums = place(&plan.end, plan.blocks * rows * plan.depth_pitch * sizeof(float));
    plan.value_sums = place(&plan.end, plan.blocks * rows * plan.value_pitch * sizeof(float));
    return plan;
}

/* ---- A pass ---------------------------------------------------------------------------------- */

int ls_attention_prepare(struct ls_prepared *prepared, bool backward, struct ls_error *error)
{
    const struct ls_attention_attr *attr = &prepared->op->attr.attention;
    const struct ls_rotary_attr *rotary = &attr->rotary;
    prepared->scratch_bytes = ls_attention_plan(attr, backward).end;
    if (rotary->dims > 0) {
        float *table = ls_alloc((size_t)(attr->keys * rotary->dims), sizeof *table);
        if (table == NULL)
            return ls_fail_memory(error, "the angles of an attention layer");
        for (int64_t t = 0; t < attr->keys; t++)
            ls_attention_angles(rotary, (double)t, table + t * rotary->dims);
        prepared->state = table;
    }
    return ls_own_prepare(prepared, error);
}

void ls_attention_begin(struct ls_attention_pass *pass, const struct ls_prepared *prepared,
                        void *const *in, int offset, bool backward, void *scratch,
                        const struct ls_context *context)
{
    const struct ls_op *op = prepared->op;
    const struct ls_value *q = op->input[offset];
    *pass = (struct ls_attention_pass){.attr = &op->attr.attention,
                                       .plan = ls_attention_plan(&op->attr.attention, backward),
                                       .op = op,
                                       .in = in,
                                       .offset = offset,
                                       .scratch = scratch,
                                       .table = prepared->state,
                                       .batch = q->shape.dim[0],
                                       .rows = q->sample_axis == 0 ? q->rows : q->shape.dim[0],
                                       .first_ordinal = (uint64_t)context->first_ordinal};
    if (pass->attr->cache > 0) {
        pass->now = ls_attention_append(op, in, context->position);
        pass->attr = &pass->now;
    }
}

/* The angles of positions that an input says. */
static void find_angles(struct ls_attention_pass *pass)
{
    const struct ls_attention_attr *attr = pass->attr;
    const float *positions = ls_attention_input(pass, LS_ATTENTION_POSITIONS);
    const int64_t dims = attr->rotary.dims;
    float *angles = ls_attention_floats(pass, pass->plan.angles);
    pass->angles = pass->table;
    if (dims == 0 || positions == NULL)
        return;
    for (int64_t t = 0; t < attr->keys; t++) {
        const float position = positions[pass->n * attr->keys + t];
        if (position >= 0 && position < (float)attr->keys && position == floorf(position))
            memcpy(angles + t * dims, pass->table + (int64_t)position * dims,
                   (size_t)dims * sizeof *angles);
        else
            ls_attention_angles(&attr->rotary, (double)position, angles + t * dims);
    }
    pass->angles = angles;
}

void ls_attention_enter(struct ls_attention_pass *pass, int64_t n)
{
    const struct ls_attention_attr *attr = pass->attr;
    const float *lengths = ls_attention_input(pass, LS_ATTENTION_LENGTHS),
                *mask = ls_attention_input(pass, LS_ATTENTION_KEY_MASK);
    float *shown = ls_attention_floats(pass, pass->plan.shown);
    pass->n = n;
    pass->hides = lengths != NULL || mask != NULL;
    for (int64_t j = 0; pass->hides && j < attr->keys; j++) {
        const bool there = lengths == NULL || (float)j < lengths[n];
        shown[j] = there && (mask == NULL || mask[n * attr->keys + j] != 0) ? 1 : 0;
    }
    find_angles(pass);
}

/* ---- Operands -------------------------------------------------------------------------------- */

/* Rounds rows of fp32 numbers; they lie behind each other then. */
static void round_rows(const float *from, int64_t pitch, int64_t count, int64_t terms, uint16_t *to)
{
    for (int64_t i = 0; i < count; i++)
        ls_vector_convert()->f32_to_bf16((const uint32_t *)(const void *)(from + i * pitch),
                                         to + i * terms, (size_t)terms);
}

struct ls_block_operand ls_attention_rows_read(const struct ls_attention_pass *pass, int input,
                                               struct ls_attention_rows rows, int64_t count,
                                               int64_t terms, size_t scratch)
{
    const enum ls_dtype type = pass->op->input[input]->type;
    const void *from = ls_bf16_element(pass->in[input], type != LS_BF16, rows.at);
    struct ls_block_operand operand = {
        .data = from, .pitch = (size_t)rows.pitch, .lines = (size_t)count, .terms = (size_t)terms};
    if (!pass->attr->bf16 || type == LS_BF16)
        return operand;
    uint16_t *rounded = (uint16_t *)(void *)(pass->scratch + scratch);
    round_rows(from, rows.pitch, count, terms, rounded);
    operand.data = rounded;
    operand.pitch = (size_t)terms;
    return operand;
}

/* Turns rows of q or k by the angles from `angles` on, in scratch memory. */
static void turn(const struct ls_attention_pass *pass, const float *angles,
                 struct ls_block_operand *operand)
{
    const struct ls_attention_attr *attr = pass->attr;
    const size_t depth = operand->terms;
    float *to = ls_attention_floats(pass, pass->plan.turned);
    float *row = ls_attention_floats(pass, pass->plan.row);
    for (size_t i = 0; i < operand->lines; i++, angles += attr->rotary.dims) {
        const void *from =
            ls_bf16_element(operand->data, !attr->bf16, (int64_t)(i * operand->pitch));
        if (!attr->bf16) {
            ls_attention_turn(&attr->rotary, angles, false, from, to + i * depth, attr->depth);
            continue;
        }
        ls_vector_convert()->bf16_to_f32(from, (uint32_t *)(void *)row, depth);
        ls_attention_turn(&attr->rotary, angles, false, row, row, attr->depth);
        round_rows(row, 0, 1, attr->depth, (uint16_t *)(void *)to + i * depth);
    }
    operand->data = to;
    operand->pitch = depth;
}

struct ls_block_operand ls_attention_operand(const struct ls_attention_pass *pass, int which,
                                             int64_t head, int64_t first, int64_t count)
{
    const struct ls_attention_attr *attr = pass->attr;
    struct ls_attention_rows rows = ls_attention_rows_of(attr, which, pass->n, head);
    const int64_t depth = which == LS_ATTENTION_V ? attr->value_depth : attr->depth;
    rows.at += first * rows.pitch;
    struct ls_block_operand operand =
        ls_attention_rows_read(pass, pass->offset + ls_attention_input_of(attr, which), rows, count,
                               depth, pass->plan.turned);
    if (attr->rotary.dims == 0 || which == LS_ATTENTION_V)
        return operand;
    const int64_t position = which == LS_ATTENTION_Q ? first + attr->keys - attr->queries : first;
    turn(pass, pass->angles + position * attr->rotary.dims, &operand);
    return operand;
}

struct ls_block_operand ls_attention_tile_operand(const struct ls_attention_pass *pass,
                                                  const struct ls_attention_tile *tile)
{
    struct ls_block_operand operand = {
        .data = tile->x, .pitch = tile->pitch, .lines = tile->rows, .terms = tile->columns};
    if (!pass->attr->bf16)
        return operand;
    uint16_t *rounded = (uint16_t *)(void *)(pass->scratch + pass->plan.rounded);
    for (size_t i = 0; i < tile->rows; i++)
        ls_vector_convert()->f32_to_bf16(
            (const uint32_t *)(const void *)(tile->x + i * tile->pitch), rounded + i * BLOCK,
            tile->columns);
    operand.data = rounded;
    operand.pitch = BLOCK;
    return operand;
}

/* ---- Scores ---------------------------------------------------------------------------------- */

void ls_attention_look_at(const struct ls_attention_attr *attr, int64_t b,
                          struct ls_attention_block *block)
{
    block->j = b * BLOCK;
    block->columns = (size_t)(attr->keys - block->j < BLOCK ? attr->keys - block->j : BLOCK);
    block->half_hidden = ls_attention_half_hidden(attr, block->i, block->j);
}

/* What the places of a block's queries and keys hide. */
static void cut_rows(const struct ls_attention_pass *pass, const struct ls_attention_block *block,
                     struct ls_attention_hidden *hidden)
{
    const int64_t columns = (int64_t)block->columns;
    for (size_t r = 0; r < block->rows; r++) {
        const struct ls_attention_range keys =
            ls_attention_keys_of(pass->attr, block->i + (int64_t)r);
        int64_t begin = keys.begin - block->j, end = keys.end - block->j;
        begin = begin < 0 ? 0 : begin;
        end = end > columns ? columns : end;
        end = end < 0 ? 0 : end;
        begin = begin > end ? end : begin;
        hidden->begin[r] = (int16_t)begin;
        hidden->end[r] = (int16_t)end;
        hidden->cut |= begin > 0 || end < columns;
    }
}

struct ls_attention_tile ls_attention_scores(const struct ls_attention_pass *pass,
                                             const struct ls_attention_block *block)
{
    const struct ls_attention_attr *attr = pass->attr;
    const struct ls_attention_plan *plan = &pass->plan;
    const struct ls_attention_tile tile = {ls_attention_floats(pass, plan->scores), plan->pitch,
                                           block->rows, block->columns};
    const struct ls_block_product product = {
        .a = pass->scratch + plan->queries,
        .b = pass->scratch + plan->keys + (size_t)(block->j / BLOCK) * plan->key_lines,
        .rows = block->rows,
        .columns = block->columns,
        .terms = (size_t)attr->depth,
        .less = ls_attention_less(block, LS_BLOCK_LESS_COLUMNS),
        .c = tile.x,
        .pitch = tile.pitch,
        .first = true};
    ls_block_multiply(&plan->tiles, &product);
    struct ls_attention_hidden hidden = {.mask_pitch = (size_t)attr->keys};
    cut_rows(pass, block, &hidden);
    if (pass->hides)
        hidden.shown = ls_attention_floats(pass, plan->shown) + block->j;
    const struct ls_value *mask_value = pass->op->input[pass->offset + LS_ATTENTION_MASK];
    if (mask_value != NULL) {
        const float *mask = ls_attention_input(pass, LS_ATTENTION_MASK) +
                            ls_attention_mask_at(attr, &mask_value->shape, pass->n, block->head) +
                            block->i * attr->keys + block->j;
        hidden.mask = attr->added ? NULL : mask;
        hidden.added = attr->added ? mask : NULL;
    }
    const float *segments = ls_attention_input(pass, LS_ATTENTION_SEGMENTS);
    if (segments != NULL) {
        hidden.segment = segments + pass->n * attr->keys + block->j;
        hidden.other = segments + pass->n * attr->keys + block->i;
    }
    ls_vector_attention()->scores(&tile, attr->scale, &hidden);
    return tile;
}

void ls_attention_drop(const struct ls_attention_pass *pass, const struct ls_attention_block *block,
                       const float *from, float *to)
{
    const struct ls_attention_attr *attr = pass->attr;
    const double ratio = attr->dropout.ratio;
    const uint32_t threshold = (uint32_t)ceil(ratio * 0x1p32); /* as in Dropout */
    const float scale = (float)(1 / (1 - ratio));
    const uint64_t ordinal = pass->first_ordinal + (uint64_t)(pass->n / pass->rows);
    const int64_t row = pass->n % pass->rows * attr->heads + block->head;
    uint32_t word[BLOCK];
    for (size_t r = 0; r < block->rows; r++) {
        const int64_t first = (row * attr->queries + block->i + (int64_t)r) * attr->keys + block->j;
        const size_t at = r * pass->plan.pitch;
        ls_vector_philox()->words(attr->dropout.key, ordinal, (uint64_t)first, word,
                                  block->columns);
        ls_vector_elementwise()->drop(from + at, word, to + at, threshold, scale, block->columns);
    }
}

void ls_attention_store(const float *from, enum ls_dtype type, void *to, int64_t at, size_t n)
{
    if (type == LS_BF16)
        ls_vector_convert()->f32_to_bf16((const uint32_t *)(const void *)from, (uint16_t *)to + at,
                                         n);
    else
        memcpy((float *)to + at, from, n * sizeof *from);
}
