/* The inputs of attention's ops, by place (ir/ops.def), and their attributes.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_IR_ATTENTION_H
#define LS_IR_ATTENTION_H

#include <stdbool.h>
#include <stdint.h>

/* Inputs of ATTENTION; ATTENTION_BACKWARD has dy, y and the log of the sum in front of them. */
enum {
    LS_ATTENTION_Q,
    LS_ATTENTION_K,
    LS_ATTENTION_V,
    LS_ATTENTION_LENGTHS,
    LS_ATTENTION_KEY_MASK,
    LS_ATTENTION_MASK,
    LS_ATTENTION_SEGMENTS,
    LS_ATTENTION_POSITIONS,
    LS_ATTENTION_INPUTS,
    /* Where the op has a cache: keys and values of all places of a text, which it writes to. */
    LS_ATTENTION_CACHED_KEYS = LS_ATTENTION_INPUTS,
    LS_ATTENTION_CACHED_VALUES,
    LS_ATTENTION_IN_FRONT = 3
};

struct ls_dropout_attr {
    float ratio;
    uint64_t key;
};

/* Rotary positions: pair i of the first `dims` numbers of a row of q or k is turned by the angle
 * position base^(-2 i / dims). Its two numbers are i and i + dims / 2; neighbours: 2 i and 2 i + 1.
 */
struct ls_rotary_attr {
    int64_t dims; /* even; 0: nothing is turned */
    float base;
    bool neighbours;
};

/* Attention of H = `heads` heads to G = `kv_heads` heads of keys and values (G divides H), head h
 * to h / (H / G). Of query i of Q = `queries` and key j of K = `keys`, each of D = `depth` numbers:
 *
 *   s[i, j] = scale q[i] k[j] + added[i, j],  p = softmax of s[i, .] over the keys that i sees,
 *   y[i] = sum over j of drop(p[i, j]) v[j]
 *
 * with values of `value_depth` numbers. Query i stands beside key i' = i + K - Q. It sees key j
 * where j <= i' (causal), |i' - j| < window (if that is not 0), key j counts, the mask of the pair
 * is not 0, and segments of i and j are equal. A query that sees no key gives 0, and so do its
 * gradients.
 *
 * cache: the inputs are the places of a text from ls_context.position on. Their keys and values go
 * to the cache, which has those of all places in front, and K is position + Q; the attribute `keys`
 * is the most that it can be. */
struct ls_attention_attr {
    int64_t heads, kv_heads, queries, keys, depth, value_depth;
    bool fused;    /* input 0 holds q, k and v side by side */
    int64_t cache; /* places that a cache has; 0: there is none. Forward alone */
    bool causal;
    int64_t window; /* 0: all */
    float scale;
    bool added; /* the mask is added, instead of saying which pairs count */
    struct ls_rotary_attr rotary;
    struct ls_dropout_attr dropout; /* by element (h Q + i) K + j of the row's weights */
    bool bf16;                      /* operands of products are rounded to bf16 */
};

#endif
