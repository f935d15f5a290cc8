/* The terms of a convolution in pairs (ops/cpu/avx512_bf16/bf16_pairs.h): two of one chain of a
 * block that meet different channels at the same place of the window become one step.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_BF16_STEPS_H
#define LS_OPS_CPU_BF16_STEPS_H

#include <stdint.h>

#include "base/error.h"
#include "ops/cpu/avx512_bf16/bf16_pairs.h"

/* The terms that meet in a step, by their numbers; `lower` is -1 where there is one alone. */
struct ls_bf16_step {
    int64_t upper, lower;
    int64_t plane; /* the pair of channels that they meet */
};

struct ls_bf16_steps {
    struct ls_bf16_step *step; /* in the order of ls_bf16_pair_positions */
    int64_t count;
    struct ls_bf16_chains *block;
    int64_t blocks;
    struct ls_bf16_pair_planes *plane; /* pairs of channels, each of them once */
    int64_t planes;
    bool fours; /* four terms are two steps everywhere: ls_bf16_pairs.pair_terms makes them */
};

/* Of terms (place of the window, channel). */
int ls_bf16_steps_new(int64_t taps, int64_t channels, struct ls_bf16_steps **steps,
                      struct ls_error *error);
void ls_bf16_steps_free(struct ls_bf16_steps *steps); /* NULL: nothing */

#endif
