/* Many random numbers of one key and ordinal at once (base/random.h).
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_VECTOR_PHILOX_H
#define LS_OPS_CPU_VECTOR_PHILOX_H

#include <stddef.h>
#include <stdint.h>

#include "ops/cpu/isa.h"

struct ls_vector_philox {
    /* word[i] = ls_random_u32(key, ordinal, first + i) for i < n; any `first`, any `n`. */
    void (*words)(uint64_t key, uint64_t ordinal, uint64_t first, uint32_t *word, size_t n);
};
LS_VECTOR_TABLES(ls_vector_philox)

#endif
