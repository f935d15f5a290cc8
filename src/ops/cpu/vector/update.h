/* The loops of updates; formulas in ops/cpu/update.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_VECTOR_UPDATE_H
#define LS_OPS_CPU_VECTOR_UPDATE_H

#include "ops/cpu/isa.h"
#include "ops/cpu/update.h"

struct ls_vector_update {
    /* All that happens to an element, in one pass: from t to g, then histories and weights; h, k
     * are the first and second history, as far as the rule has them. Raises `seen`. LAMB has none:
     * its passes are below. */
    void (*step[LS_UPDATE_KINDS])(const struct ls_update_rule *rule, const float *restrict t,
                                  float *restrict weight, float *restrict h, float *restrict k,
                                  size_t n, struct ls_update_seen *seen);
    void (*lamb_look)(const struct ls_update_rule *rule, const float *restrict t,
                      const float *restrict weight, float *restrict h, float *restrict k,
                      float *restrict direction, size_t n, struct ls_update_seen *seen);
    void (*lamb_move)(const struct ls_update_rule *rule, float *restrict weight,
                      const float *restrict h, const float *restrict k, size_t n,
                      struct ls_update_seen *seen);
    void (*average)(float decay, float *restrict average, const float *restrict weight, size_t n);
    /* Numbers become +0 where a bit is set: 32 numbers for each of so many words. */
    void (*clear)(const uint32_t *mask, float *restrict numbers, size_t words);
};
LS_VECTOR_TABLES(ls_vector_update)

#endif
