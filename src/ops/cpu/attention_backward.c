/* Attention backward: the weights of a block are computed again from the scores and the logs of
 * their sums; see struct ls_attention_attr.
 *
 *     p = exp(s - log of the sum),  dv = drop(p)^T dy,  dp = drop(dy v^T)
 *     ds = p (dp - y dy),  dq = scale ds k,  dk = scale ds^T q
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/attention_blocks.h"
#include "ops/cpu/bf16/kernel.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/vector/elementwise.h"

enum { BLOCK = LS_ATTENTION_BLOCK };
enum { DY, Y, LOG_SUM };

/* Where gradients go: those of q, k and v; NULL: not asked for. */
struct backward {
    struct ls_attention_pass pass;
    void *const *in; /* all inputs of the op */
    void *to[LS_ATTENTION_LENGTHS];
    enum ls_dtype type[LS_ATTENTION_LENGTHS];
    size_t rows; /* of sums that a block of keys has */
};

static void pack_keys(const struct ls_attention_pass *pass, int64_t head)
{
    const struct ls_attention_plan *plan = &pass->plan;
    for (size_t b = 0; b < plan->blocks; b++) {
        const int64_t j = (int64_t)b * BLOCK, left = pass->attr->keys - j;
        const int64_t count = left < BLOCK ? left : BLOCK;
        const struct ls_block_operand k =
            ls_attention_operand(pass, LS_ATTENTION_K, head, j, count);
        const struct ls_block_operand by_term = ls_attention_by_term(k);
        ls_block_pack_b(&plan->tiles, &k, pass->scratch + plan->keys + b * plan->key_lines);
        ls_block_pack_b(&plan->tiles, &by_term,
                        pass->scratch + plan->keys_by_term + b * plan->key_terms);
        const struct ls_block_operand v =
            ls_attention_operand(pass, LS_ATTENTION_V, head, j, count);
        ls_block_pack_b(&plan->tiles, &v, pass->scratch + plan->values + b * plan->value_lines);
    }
}

/* Panels of q and dy of a block; by row, dy y. */
static void pack_queries(const struct backward *back, const struct ls_attention_block *block,
                         float dot[BLOCK])
{
    const struct ls_attention_pass *pass = &back->pass;
    const struct ls_attention_attr *attr = pass->attr;
    const struct ls_attention_plan *plan = &pass->plan;
    const int64_t depth = attr->value_depth, count = (int64_t)block->rows;
    const struct ls_block_operand q =
        ls_attention_operand(pass, LS_ATTENTION_Q, block->head, block->i, count);
    const struct ls_block_operand q_by_term = ls_attention_by_term(q);
    ls_block_pack_a(&plan->tiles, &q, pass->scratch + plan->queries);
    ls_block_pack_b(&plan->tiles, &q_by_term, pass->scratch + plan->queries_by_term);
    struct ls_attention_rows rows = {
        ((pass->n * attr->queries + block->i) * attr->heads + block->head) * depth,
        attr->heads * depth};
    const struct ls_block_operand dy =
        ls_attention_rows_read(pass, DY, rows, count, depth, plan->turned);
    const struct ls_block_operand dy_by_term = ls_attention_by_term(dy);
    ls_block_pack_a(&plan->tiles, &dy, pass->scratch + plan->slopes);
    ls_block_pack_b(&plan->tiles, &dy_by_term, pass->scratch + plan->slopes_by_term);
    for (int64_t r = 0; r < count; r++, rows.at += rows.pitch) {
        const struct ls_block_operand y =
            ls_attention_rows_read(pass, Y, rows, 1, depth, plan->row);
        dot[r] =
            ls_vector_attention()->dot(ls_bf16_element(dy.data, !attr->bf16, r * (int64_t)dy.pitch),
                                       y.data, attr->bf16, (size_t)depth);
    }
}

/* Adds what a tile, with a row for each query, gives for the keys of its block: tile^T times the
 * panels of q or dy. */
static void add_to_keys(const struct backward *back, const struct ls_attention_block *block,
                        const struct ls_block_operand *tile, size_t panels, size_t columns,
                        size_t sums, size_t pitch)
{
    const struct ls_attention_pass *pass = &back->pass;
    const struct ls_attention_plan *plan = &pass->plan;
    const struct ls_block_operand by_term = ls_attention_by_term(*tile);
    ls_block_pack_a(&plan->tiles, &by_term, pass->scratch + plan->weights);
    const struct ls_block_product product = {.a = pass->scratch + plan->weights,
                                             .b = pass->scratch + panels,
                                             .rows = block->columns,
                                             .columns = columns,
                                             .terms = block->rows,
                                             .less = ls_attention_less(block, LS_BLOCK_LATE_TERMS),
                                             .c = ls_attention_floats(pass, sums) +
                                                  (size_t)(block->j / BLOCK) * back->rows * pitch,
                                             .pitch = pitch};
    ls_block_multiply(&plan->tiles, &product);
}

/* dp, with room for the pitch of scores. */
static struct ls_attention_tile find_slopes(const struct ls_attention_pass *pass,
                                            const struct ls_attention_block *block)
{
    const struct ls_attention_plan *plan = &pass->plan;
    const struct ls_attention_tile tile = {ls_attention_floats(pass, plan->gradients), plan->pitch,
                                           block->rows, block->columns};
    const struct ls_block_product product = {
        .a = pass->scratch + plan->slopes,
        .b = pass->scratch + plan->values + (size_t)(block->j / BLOCK) * plan->value_lines,
        .rows = block->rows,
        .columns = block->columns,
        .terms = (size_t)pass->attr->value_depth,
        .less = ls_attention_less(block, LS_BLOCK_LESS_COLUMNS),
        .c = tile.x,
        .pitch = tile.pitch,
        .first = true};
    ls_block_multiply(&plan->tiles, &product);
    return tile;
}

/* What the queries and keys of a block give to each other. */
static void add_block(const struct backward *back, const struct ls_attention_block *block,
                      const float *log_sum, const float *dot, bool first)
{
    const struct ls_attention_pass *pass = &back->pass;
    const struct ls_attention_plan *plan = &pass->plan;
    const size_t depth = (size_t)pass->attr->depth, value = (size_t)pass->attr->value_depth;
    const struct ls_attention_tile p = ls_attention_scores(pass, block);
    struct ls_attention_tile dropped = p;
    ls_vector_attention()->recompute(&p, log_sum);
    const struct ls_attention_tile ds = find_slopes(pass, block);
    if (pass->attr->dropout.ratio > 0) {
        dropped.x = ls_attention_floats(pass, plan->dropped);
        ls_attention_drop(pass, block, p.x, dropped.x);
        ls_attention_drop(pass, block, ds.x, ds.x);
    }
    if (back->to[LS_ATTENTION_V] != NULL) {
        const struct ls_block_operand weights = ls_attention_tile_operand(pass, &dropped);
        add_to_keys(back, block, &weights, plan->slopes_by_term, value, plan->value_sums,
                    plan->value_pitch);
    }
    ls_vector_attention()->slopes(&ds, p.x, dot);
    const struct ls_block_operand slopes = ls_attention_tile_operand(pass, &ds);
    if (back->to[LS_ATTENTION_K] != NULL)
        add_to_keys(back, block, &slopes, plan->queries_by_term, depth, plan->key_sums,
                    plan->depth_pitch);
    if (back->to[LS_ATTENTION_Q] == NULL)
        return;
    ls_block_pack_a(&plan->tiles, &slopes, pass->scratch + plan->weights);
    const struct ls_block_product product = {.a = pass->scratch + plan->weights,
                                             .b = pass->scratch + plan->keys_by_term +
                                                  (size_t)(block->j / BLOCK) * plan->key_terms,
                                             .rows = block->rows,
                                             .columns = depth,
                                             .terms = block->columns,
                                             .less = ls_attention_less(block, LS_BLOCK_LESS_TERMS),
                                             .c = ls_attention_floats(pass, plan->out),
                                             .pitch = plan->depth_pitch,
                                             .first = first};
    ls_block_multiply(&plan->tiles, &product);
}

/* Rows [first, first + count) of the gradient of q, k or v, from sums. */
static void store(const struct backward *back, int which, int64_t head, int64_t first, size_t count,
                  float *sums, size_t pitch)
{
    const struct ls_attention_pass *pass = &back->pass;
    const struct ls_attention_attr *attr = pass->attr;
    const struct ls_attention_rows rows = ls_attention_rows_of(attr, which, pass->n, head);
    const int64_t shift = which == LS_ATTENTION_Q ? attr->keys - attr->queries : 0;
    const int64_t depth = which == LS_ATTENTION_V ? attr->value_depth : attr->depth;
    for (size_t r = 0; r < count; r++, sums += pitch) {
        const int64_t row = first + (int64_t)r;
        if (which != LS_ATTENTION_V)
            ls_vector_elementwise()->multiply_by(sums, attr->scale, sums, (size_t)depth);
        if (which != LS_ATTENTION_V && attr->rotary.dims > 0)
            ls_attention_turn(&attr->rotary, pass->angles + (row + shift) * attr->rotary.dims, true,
                              sums, sums, depth);
        ls_attention_store(sums, back->type[which], back->to[which], rows.at + row * rows.pitch,
                           (size_t)depth);
    }
}

static void run_queries(const struct backward *back, struct ls_attention_block block)
{
    const struct ls_attention_pass *pass = &back->pass;
    const struct ls_attention_attr *attr = pass->attr;
    const struct ls_attention_range blocks =
        ls_attention_blocks_of(attr, block.i, (int64_t)block.rows);
    const float *log_sum = (const float *)back->in[LOG_SUM] +
                           (pass->n * attr->heads + block.head) * attr->queries + block.i;
    float *dq = ls_attention_floats(pass, pass->plan.out);
    float dot[BLOCK];
    if (blocks.begin == blocks.end)
        memset(dq, 0, block.rows * pass->plan.depth_pitch * sizeof *dq);
    pack_queries(back, &block, dot);
    for (int64_t b = blocks.begin; b < blocks.end; b++) {
        ls_attention_look_at(attr, b, &block);
        add_block(back, &block, log_sum, dot, b == blocks.begin);
    }
    if (back->to[LS_ATTENTION_Q] != NULL)
        store(back, LS_ATTENTION_Q, block.head, block.i, block.rows, dq, pass->plan.depth_pitch);
}

/* The gradients of the keys and values of a head. */
static void store_keys(const struct backward *back, int64_t head)
{
    const struct ls_attention_plan *plan = &back->pass.plan;
    for (size_t b = 0; b < plan->blocks; b++) {
        const int64_t j = (int64_t)b * BLOCK, left = back->pass.attr->keys - j;
        const size_t count = (size_t)(left < BLOCK ? left : BLOCK);
        float *dk = ls_attention_floats(&back->pass, plan->key_sums);
        float *dv = ls_attention_floats(&back->pass, plan->value_sums);
        if (back->to[LS_ATTENTION_K] != NULL)
            store(back, LS_ATTENTION_K, head, j, count, dk + b * back->rows * plan->depth_pitch,
                  plan->depth_pitch);
        if (back->to[LS_ATTENTION_V] != NULL)
            store(back, LS_ATTENTION_V, head, j, count, dv + b * back->rows * plan->value_pitch,
                  plan->value_pitch);
    }
}

/* A head of keys and values, with all heads of queries that look at it. */
static void run_head(const struct backward *back, int64_t head)
{
    const struct ls_attention_pass *pass = &back->pass;
    const struct ls_attention_attr *attr = pass->attr;
    const struct ls_attention_plan *plan = &pass->plan;
    const int64_t group = attr->heads / attr->kv_heads;
    const size_t rows = plan->blocks * back->rows * sizeof(float);
    pack_keys(pass, head);
    memset(pass->scratch + plan->key_sums, 0, rows * plan->depth_pitch);
    memset(pass->scratch + plan->value_sums, 0, rows * plan->value_pitch);
    for (int64_t h = head * group; h < (head + 1) * group; h++)
        for (int64_t i = 0; i < attr->queries; i += BLOCK) {
            const int64_t left = attr->queries - i;
            run_queries(back,
                        (struct ls_attention_block){
                            .head = h, .i = i, .rows = (size_t)(left < BLOCK ? left : BLOCK)});
        }
    store_keys(back, head);
}

static int backward_run(const struct ls_prepared *prepared, void *local, void *const *in,
                        void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local;
    const struct ls_op *op = prepared->op;
    struct backward back = {.in = in};
    ls_attention_begin(&back.pass, prepared, in, LS_ATTENTION_IN_FRONT, true, scratch, context);
    const struct ls_vector_bf16_product *vector = back.pass.plan.tiles.vector;
    back.rows = ls_block_rows(&back.pass.plan.tiles, BLOCK);
    for (int k = 0; k < LS_ATTENTION_LENGTHS; k++) {
        const int from = back.pass.attr->fused ? 0 : k;
        back.to[k] = out[from];
        back.type[k] = op->output[from] != NULL ? op->output[from]->type : LS_F32;
    }
    if (vector->begin != NULL)
        vector->begin();
    for (int64_t n = 0; n < back.pass.batch; n++) {
        ls_attention_enter(&back.pass, n);
        for (int64_t head = 0; head < back.pass.attr->kv_heads; head++)
            run_head(&back, head);
    }
    if (vector->end != NULL)
        vector->end();
    return 0;
}

static int backward_prepare(struct ls_prepared *prepared, struct ls_error *error)
{
    return ls_attention_prepare(prepared, true, error);
}

static int backward_layouts(const struct ls_op *op, struct ls_op_layouts *layouts,
                            struct ls_error *error)
{
    (void)error;
    return ls_attention_layouts(op, LS_ATTENTION_IN_FRONT, layouts);
}

const struct ls_kernel ls_kernel_attention_backward = {
    .kind = LS_OP_ATTENTION_BACKWARD,
    .bits = LS_BITS_DEFINED,
    .name = "attention backward",
    .takes_bf16 = ls_attention_takes_bf16,
    .layouts = backward_layouts,
    .prepare = backward_prepare,
    .release = ls_own_release,
    .run = backward_run,
    .in_place = -1,
};
