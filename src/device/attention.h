/* What devices share of attention (struct ls_attention_attr, docs/numerics.md, section 25): the
 * angles of rotary positions, and how inputs lie.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DEVICE_ATTENTION_H
#define LS_DEVICE_ATTENTION_H

#include <stddef.h>

#include "device/attention_range.h"
#include "ir/op.h"

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
