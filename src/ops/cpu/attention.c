/* Attention forward: keys block by block, with the largest score and the sum of what was seen so
 * far, so that no matrix of all weights exists; see struct ls_attention_attr. (Milakov and
 * Gimelshein: Online normalizer calculation for softmax; 2018. Dao and others: FlashAttention;
 * NeurIPS 2022.)
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "ops/cpu/attention_blocks.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/vector/elementwise.h"
#include "ops/cpu/vector/math.h"

enum { BLOCK = LS_ATTENTION_BLOCK };

/* Panels of all keys and values of a head that some query may see. */
static void pack_keys(const struct ls_attention_pass *pass, int64_t head)
{
    const struct ls_attention_plan *plan = &pass->plan;
    const struct ls_attention_range blocks =
        ls_attention_blocks_of(pass->attr, 0, pass->attr->queries);
    for (size_t b = (size_t)blocks.begin; b < (size_t)blocks.end; b++) {
        const int64_t j = (int64_t)b * BLOCK, left = pass->attr->keys - j;
        const int64_t count = left < BLOCK ? left : BLOCK;
        const struct ls_block_operand k =
            ls_attention_operand(pass, LS_ATTENTION_K, head, j, count);
        ls_block_pack_b(&plan->tiles, &k, pass->scratch + plan->keys + b * plan->key_lines);
        const struct ls_block_operand v =
            ls_attention_by_term(ls_attention_operand(pass, LS_ATTENTION_V, head, j, count));
        ls_block_pack_b(&plan->tiles, &v, pass->scratch + plan->values + b * plan->value_terms);
    }
}

/* Adds a block of keys to what the queries of `block` have seen; first: they have seen none. */
static void add_keys(const struct ls_attention_pass *pass, const struct ls_attention_block *block,
                     struct ls_attention_state *state, bool first)
{
    const struct ls_attention_plan *plan = &pass->plan;
    const size_t depth = (size_t)pass->attr->value_depth;
    const struct ls_attention_tile tile = ls_attention_scores(pass, block);
    float *out = ls_attention_floats(pass, plan->out);
    if (ls_vector_attention()->weights(&tile, state) && !first)
        ls_vector_attention()->rescale(out, plan->value_pitch, block->rows, depth, state->factor);
    if (pass->attr->dropout.ratio > 0)
        ls_attention_drop(pass, block, tile.x, tile.x);
    const struct ls_block_operand weights = ls_attention_tile_operand(pass, &tile);
    ls_block_pack_a(&plan->tiles, &weights, pass->scratch + plan->weights);
    const struct ls_block_product product = {.a = pass->scratch + plan->weights,
                                             .b = pass->scratch + plan->values +
                                                  (size_t)(block->j / BLOCK) * plan->value_terms,
                                             .rows = block->rows,
                                             .columns = depth,
                                             .terms = block->columns,
                                             .less = ls_attention_less(block, LS_BLOCK_LESS_TERMS),
                                             .c = out,
                                             .pitch = plan->value_pitch,
                                             .first = first};
    ls_block_multiply(&plan->tiles, &product);
}

/* y and the logs of the sums. */
static void finish(const struct ls_attention_pass *pass, const struct ls_attention_block *block,
                   const struct ls_attention_state *state, enum ls_dtype type, void *y,
                   float *log_sum)
{
    const struct ls_attention_attr *attr = pass->attr;
    const size_t depth = (size_t)attr->value_depth;
    float *out = ls_attention_floats(pass, pass->plan.out), logs[BLOCK];
    ls_vector_math()->log(state->sum, logs, block->rows);
    for (size_t r = 0; r < block->rows; r++, out += pass->plan.value_pitch) {
        const int64_t row = pass->n * attr->queries + block->i + (int64_t)r;
        const bool none = state->sum[r] == 0;
        if (none)
            memset(out, 0, depth * sizeof *out);
        else
            ls_vector_elementwise()->multiply_by(out, 1 / state->sum[r], out, depth);
        ls_attention_store(out, type, y, (row * attr->heads + block->head) * attr->value_depth,
                           depth);
        if (log_sum != NULL)
            log_sum[(pass->n * attr->heads + block->head) * attr->queries + block->i + (int64_t)r] =
                none ? 0 : state->largest[r] + logs[r];
    }
}

/* Queries [i, i + rows) of a head. */
static void run_queries(const struct ls_attention_pass *pass, struct ls_attention_block block,
                        enum ls_dtype type, void *y, float *log_sum)
{
    const struct ls_attention_attr *attr = pass->attr;
    const struct ls_attention_range blocks =
        ls_attention_blocks_of(attr, block.i, (int64_t)block.rows);
    const struct ls_block_operand q =
        ls_attention_operand(pass, LS_ATTENTION_Q, block.head, block.i, (int64_t)block.rows);
    struct ls_attention_state state = {.sum = {0}};
    for (int r = 0; r < BLOCK; r++)
        state.largest[r] = -INFINITY;
    ls_block_pack_a(&pass->plan.tiles, &q, pass->scratch + pass->plan.queries);
    for (int64_t b = blocks.begin; b < blocks.end; b++) {
        ls_attention_look_at(attr, b, &block);
        add_keys(pass, &block, &state, b == blocks.begin);
    }
    finish(pass, &block, &state, type, y, log_sum);
}

static int forward_run(const struct ls_prepared *prepared, void *local, void *const *in,
                       void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local;
    struct ls_attention_pass pass;
    ls_attention_begin(&pass, prepared, in, 0, false, scratch, context);
    const struct ls_attention_attr *attr = pass.attr;
    const struct ls_vector_bf16_product *vector = pass.plan.tiles.vector;
    const int64_t group = attr->heads / attr->kv_heads;
    if (vector->begin != NULL)
        vector->begin();
    for (int64_t n = 0; n < pass.batch; n++) {
        ls_attention_enter(&pass, n);
        for (int64_t head = 0; head < attr->heads; head++) {
            if (head % group == 0)
                pack_keys(&pass, head / group);
            for (int64_t i = 0; i < attr->queries; i += BLOCK) {
                const int64_t left = attr->queries - i;
                const struct ls_attention_block block = {
                    .head = head, .i = i, .rows = (size_t)(left < BLOCK ? left : BLOCK)};
                run_queries(&pass, block, prepared->op->output[0]->type, out[0], out[1]);
            }
        }
    }
    if (vector->end != NULL)
        vector->end();
    return 0;
}

static int forward_prepare(struct ls_prepared *prepared, struct ls_error *error)
{
    return ls_attention_prepare(prepared, false, error);
}

bool ls_attention_takes_bf16(const struct ls_op *op)
{
    return op->attr.attention.bf16;
}

static int forward_layouts(const struct ls_op *op, struct ls_op_layouts *layouts,
                           struct ls_error *error)
{
    (void)error;
    return ls_attention_layouts(op, 0, layouts);
}

int ls_attention_layouts(const struct ls_op *op, int offset, struct ls_op_layouts *layouts)
{
    for (int i = 0; i < op->inputs; i++) {
        /* q, k and v, dy and y, which may be bf16, but not the log of the sum */
        const bool operand =
            (i >= offset && i < offset + LS_ATTENTION_LENGTHS) || (offset > 0 && i < 2);
        layouts->in[i] = &ls_layout_plain;
        if (!operand || !op->attr.attention.bf16)
            layouts->in_type[i] = LS_F32;
    }
    for (int i = 0; i < op->outputs; i++)
        layouts->out[i] = &ls_layout_plain;
    return 0;
}

const struct ls_kernel ls_kernel_attention = {
    .kind = LS_OP_ATTENTION,
    .bits = LS_BITS_DEFINED,
    .name = "attention",
    .takes_bf16 = ls_attention_takes_bf16,
    .layouts = forward_layouts,
    .prepare = forward_prepare,
    .release = ls_own_release,
    .run = forward_run,
    .in_place = -1,
};
