/* The inputs of attention's ops, by place (ir/ops.def).
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_IR_ATTENTION_H
#define LS_IR_ATTENTION_H

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

#endif
