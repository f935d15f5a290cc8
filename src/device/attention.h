/* What devices share of attention (struct ls_attention_attr, docs/numerics.md, section 25): blocks,
 * which keys a query sees, the angles of rotary positions, and how inputs lie.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DEVICE_ATTENTION_H
#define LS_DEVICE_ATTENTION_H

#include <stddef.h>

#include "device/attention_power.h"
#include "ir/attention.h"
#include "ir/op.h"

struct ls_attention_range {
    int64_t begin, end; /* equal: none */
};

/* The keys that query i sees, as far as its place decides it. */
static inline struct ls_attention_range ls_attention_keys_of(const struct ls_attention_attr *attr,
                                                             int64_t i)
{
    const int64_t place = i + attr->keys - attr->queries, window = attr->window;
    struct ls_attention_range range = {0, attr->keys};
    if (window > 0 && place - window + 1 > 0)
        range.begin = place - window + 1;
    if (window > 0 && place + window < range.end)
        range.end = place + window;
    if (attr->causal && place + 1 < range.end)
        range.end = place + 1;
    if (range.begin > attr->keys)
        range.begin = attr->keys;
    if (range.end < range.begin)
        range.end = range.begin;
    return range;
}

/* The blocks of keys that are computed for the queries [i, i + count): all that one of them may
 * see, by their places. */
static inline struct ls_attention_range ls_attention_blocks_of(const struct ls_attention_attr *attr,
                                                               int64_t i, int64_t count)
{
    struct ls_attention_range blocks = {attr->keys, 0};
    for (int64_t q = i; q < i + count; q++) {
        const struct ls_attention_range keys = ls_attention_keys_of(attr, q);
        if (keys.begin == keys.end)
            continue;
        if (keys.begin / LS_ATTENTION_BLOCK < blocks.begin)
            blocks.begin = keys.begin / LS_ATTENTION_BLOCK;
        if ((keys.end - 1) / LS_ATTENTION_BLOCK + 1 > blocks.end)
            blocks.end = (keys.end - 1) / LS_ATTENTION_BLOCK + 1;
    }
    if (blocks.end < blocks.begin)
        blocks.begin = blocks.end;
    return blocks;
}

enum { LS_ATTENTION_HALF = LS_ATTENTION_BLOCK / 2 };

/* Whether the places of a block hide all keys of its second half from all queries of its first
 * half: sums leave these pairs out. */
static inline bool ls_attention_half_hidden(const struct ls_attention_attr *attr, int64_t i,
                                            int64_t j)
{
    const int64_t half = i + LS_ATTENTION_HALF - 1; /* the last of them, which sees most */
    const int64_t last = half < attr->queries ? half : attr->queries - 1;
    const int64_t hidden = j + LS_ATTENTION_HALF;
    return attr->keys > hidden && ls_attention_keys_of(attr, last).end <= hidden;
}

/* ---- Rotary positions ------------------------------------------------------------------------ */

/* The angles of a position: dims / 2 cosines, then as many sines, each computed in double and
 * rounded once. */
void ls_attention_angles(const struct ls_rotary_attr *attr, double position, float *angles);

/* Turns a row of `depth` numbers, each operation rounded: (a, b) becomes (a cos - b sin, b cos + a
 * sin); back: the other way. y may be x. */
void ls_attention_turn(const struct ls_rotary_attr *attr, const float *angles, bool back,
                       const float *x, float *y, int64_t depth);

/* ---- Inputs ---------------------------------------------------------------------------------- */

/* How the rows of q, k and v, or of their gradients, lie in memory: element 0 of a row of a head,
 * and elements from a row to the next. */
struct ls_attention_rows {
    int64_t at, pitch;
};

/* Head `head` of operand `which` (LS_ATTENTION_Q, _K or _V; head of k and v: of kv_heads), in row n
 * of the batch. */
static inline struct ls_attention_rows ls_attention_rows_of(const struct ls_attention_attr *attr,
                                                            int which, int64_t n, int64_t head)
{
    const int64_t q = attr->heads * attr->depth, k = attr->kv_heads * attr->depth;
    const int64_t v = attr->kv_heads * attr->value_depth;
    const int64_t depth = which == LS_ATTENTION_V ? attr->value_depth : attr->depth;
    const int64_t rows = which == LS_ATTENTION_Q ? attr->queries : attr->keys;
    int64_t pitch = which == LS_ATTENTION_Q ? q : which == LS_ATTENTION_K ? k : v, first = 0;
    if (attr->cache > 0 && which != LS_ATTENTION_Q)
        return (struct ls_attention_rows){n * attr->cache * pitch + head * depth, pitch};
    if (attr->fused) {
        first = which == LS_ATTENTION_Q ? 0 : which == LS_ATTENTION_K ? q : q + k;
        pitch = q + k + v;
    }
    return (struct ls_attention_rows){n * rows * pitch + first + head * depth, pitch};
}

/* Which input of the op operand `which` is in, counted from that of q. */
static inline int ls_attention_input_of(const struct ls_attention_attr *attr, int which)
{
    if (attr->cache > 0 && which != LS_ATTENTION_Q)
        return LS_ATTENTION_CACHED_KEYS + which - LS_ATTENTION_K;
    return attr->fused ? LS_ATTENTION_Q : which;
}

/* ---- Caches ---------------------------------------------------------------------------------- */

/* Writes the keys and values of an op's inputs to its cache, from place `position` on. Returns what
 * the op's attributes are then: K is position + Q. */
struct ls_attention_attr ls_attention_append(const struct ls_op *op, void *const *in,
                                             int64_t position);

/* ---- Masks ----------------------------------------------------------------------------------- */

/* Where query 0 of a head begins in the mask, of one sample or of all, with or without an axis of
 * heads. */
static inline int64_t ls_attention_mask_at(const struct ls_attention_attr *attr,
                                           const struct ls_shape *mask, int64_t n, int64_t head)
{
    const int64_t heads = mask->rank == 4 ? mask->dim[1] : 1;
    const int64_t sample = mask->dim[0] > 1 ? n : 0;
    return (sample * heads + (heads > 1 ? head : 0)) * attr->queries * attr->keys;
}

#endif
