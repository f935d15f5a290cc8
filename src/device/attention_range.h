/* Which keys a query of attention sees by its place, in blocks, for host code and kernels alike
 * (docs/numerics.md, section 25).
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DEVICE_ATTENTION_RANGE_H
#define LS_DEVICE_ATTENTION_RANGE_H

#include "device/attention_power.h"
#include "ir/attention.h"

struct ls_attention_range {
    int64_t begin, end; /* equal: none */
};

/* The keys that query i sees, as far as its place decides it. */
LS_HOST_DEVICE struct ls_attention_range ls_attention_keys_of(const struct ls_attention_attr *attr,
                                                              int64_t i)
{
    const int64_t place = i + attr->keys - attr->queries, window = attr->window;
    struct ls_attention_range range;
    range.begin = 0;
    range.end = attr->keys;
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
LS_HOST_DEVICE struct ls_attention_range
ls_attention_blocks_of(const struct ls_attention_attr *attr, int64_t i, int64_t count)
{
    struct ls_attention_range blocks;
    blocks.begin = attr->keys;
    blocks.end = 0;
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
LS_HOST_DEVICE bool ls_attention_half_hidden(const struct ls_attention_attr *attr, int64_t i,
                                             int64_t j)
{
    const int64_t half = i + LS_ATTENTION_HALF - 1; /* the last of them, which sees most */
    const int64_t last = half < attr->queries ? half : attr->queries - 1;
    const int64_t hidden = j + LS_ATTENTION_HALF;
    return attr->keys > hidden && ls_attention_keys_of(attr, last).end <= hidden;
}

#endif
