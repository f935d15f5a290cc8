/* What attention forward and backward share: where scratch memory holds what, operands, panels, and
 * scores of a block (docs/numerics.md, section 25).
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_ATTENTION_BLOCKS_H
#define LS_OPS_CPU_ATTENTION_BLOCKS_H

#include "device/attention.h"
#include "ir/kernel.h"
#include "ops/cpu/attention_products.h"
#include "ops/cpu/vector/attention.h"

/* Bytes of panels of a block, numbers of rows, and places in scratch memory. */
struct ls_attention_plan {
    struct ls_block_tiles tiles;
    size_t blocks;                              /* of keys */
    size_t key_lines, key_terms;                /* panels of a block of k: over D, over the keys */
    size_t value_lines, value_terms;            /* of v */
    size_t pitch, depth_pitch, value_pitch;     /* of tiles: scores, rows of D, rows of Dv */
    size_t shown, angles, turned, row, rounded; /* what follows from inputs */
    size_t keys, keys_by_term, values;          /* panels of a head */
    size_t queries, slopes;                     /* panels of a block: q, dy */
    size_t queries_by_term, slopes_by_term;     /* the same */
    size_t weights;                             /* panels of a tile of weights, or slopes */
    size_t scores, gradients, dropped;          /* tiles of scores */
    size_t out;                                 /* y or dq of a block */
    size_t key_sums, value_sums;                /* dk, dv of a head */
    size_t end;
};

struct ls_attention_plan ls_attention_plan(const struct ls_attention_attr *attr, bool backward);

/* A pass over a micro-batch. */
struct ls_attention_pass {
    const struct ls_attention_attr *attr;
    struct ls_attention_attr now; /* which that is, where there is a cache */
    struct ls_attention_plan plan;
    const struct ls_op *op;
    void *const *in; /* all inputs of the op; that of q is number `offset` */
    int offset;
    char *scratch;
    const float *table;  /* angles of positions 0 .. keys - 1; NULL: none */
    int64_t batch, rows; /* rows of the batch; rows of a sample */
    uint64_t first_ordinal;
    /* Of the row n of the batch that is computed: */
    int64_t n;
    const float *angles;
    bool hides; /* some keys are none */
};

/* Keeps the table of angles, which goes on behind the call, in prepared->state. */
int ls_attention_prepare(struct ls_prepared *prepared, bool backward, struct ls_error *error);
/* Writes to the cache, if there is one. `pass` stays where it is. */
void ls_attention_begin(struct ls_attention_pass *pass, const struct ls_prepared *prepared,
                        void *const *in, int offset, bool backward, void *scratch,
                        const struct ls_context *context);
/* Goes on to row n of the batch. */
void ls_attention_enter(struct ls_attention_pass *pass, int64_t n);

/* Rows [first, first + count) of a head of q, k or v: where they lie, or turned, in scratch memory
 * until the next call. */
struct ls_block_operand ls_attention_operand(const struct ls_attention_pass *pass, int which,
                                             int64_t head, int64_t first, int64_t count);
/* `count` rows of `terms` numbers of any input of the op: where they lie, or, where BF16 rounds
 * them first, at a place of scratch memory. */
struct ls_block_operand ls_attention_rows_read(const struct ls_attention_pass *pass, int input,
                                               struct ls_attention_rows rows, int64_t count,
                                               int64_t terms, size_t scratch);
/* The other direction: terms are rows. */
static inline struct ls_block_operand ls_attention_by_term(struct ls_block_operand operand)
{
    return (struct ls_block_operand){operand.data, operand.pitch, operand.terms, operand.lines,
                                     true};
}

/* A tile: queries [i, i + rows) of head h by keys [j, j + columns). */
struct ls_attention_block {
    int64_t head, i, j;
    size_t rows, columns;
    bool half_hidden; /* as ls_attention_half_hidden says */
};

/* What is left out of a product of the block then. */
static inline enum ls_block_less ls_attention_less(const struct ls_attention_block *block,
                                                   enum ls_block_less less)
{
    return block->half_hidden ? less : LS_BLOCK_ALL;
}

/* Goes on to block b of the keys. */
void ls_attention_look_at(const struct ls_attention_attr *attr, int64_t b,
                          struct ls_attention_block *block);

/* The scores of a block, from the panels of its queries and keys. */
struct ls_attention_tile ls_attention_scores(const struct ls_attention_pass *pass,
                                             const struct ls_attention_block *block);
/* to = what dropout makes of from, row by row; they have the pitch of scores and may be the same.
 */
void ls_attention_drop(const struct ls_attention_pass *pass, const struct ls_attention_block *block,
                       const float *from, float *to);
/* A tile as operand of a product: as it is, or rounded, in scratch memory until the next call. */
struct ls_block_operand ls_attention_tile_operand(const struct ls_attention_pass *pass,
                                                  const struct ls_attention_tile *tile);

/* An input of ATTENTION that is fp32, or NULL. */
static inline const float *ls_attention_input(const struct ls_attention_pass *pass, int which)
{
    return pass->in[pass->offset + which];
}

static inline float *ls_attention_floats(const struct ls_attention_pass *pass, size_t place)
{
    return (float *)(void *)(pass->scratch + place);
}

/* `takes_bf16` and `layouts` of both kernels; q is input `offset`. */
bool ls_attention_takes_bf16(const struct ls_op *op);
int ls_attention_layouts(const struct ls_op *op, int offset, struct ls_op_layouts *layouts);

/* Writes n numbers behind each other to element `at` of an output of this type. */
void ls_attention_store(const float *from, enum ls_dtype type, void *to, int64_t at, size_t n);

#endif
