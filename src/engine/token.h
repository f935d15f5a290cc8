/* Which token comes next, by the logits of all of them (docs/numerics.md, "Choosing tokens").
 *
 * The result depends on logits, options, and the numbers of sample and position alone; it is the
 * same on every machine.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_TOKEN_CHOICE_H
#define LS_ENGINE_TOKEN_CHOICE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct ls_token_options {
    double temperature; /* logits are divided by it; 0: the largest one is taken */
    int64_t top_k;      /* of the so many largest; 0: of all */
    double top_p;       /* of the fewest largest whose probabilities add up to this; 1: of all */
    uint64_t seed;
};

/* A token that may be chosen. */
struct ls_token_candidate {
    float logit;
    uint32_t token;
};

/* Whether options make sense: a finite temperature of at least 0, a top_k of at least 0, and top_p
 * above 0 and at most 1. LOCKSTEP_USAGE. */
int ls_token_options_check(const struct ls_token_options *options, struct ls_error *error);

/* Chooses one of `count` tokens, 1 to UINT32_MAX; `room` is for as many candidates. The random
 * number is that of (seed, sample, position). Of equal logits that of the lower token counts as the
 * larger. LOCKSTEP_DIVERGED where a logit is a NaN or infinite, or all are -inf (which one alone
 * may be: it is never chosen). */
int ls_token_choose(const struct ls_token_options *options, const float *logits, size_t count,
                    uint64_t sample, uint64_t position, struct ls_token_candidate *room,
                    uint32_t *token, struct ls_error *error);

#endif
