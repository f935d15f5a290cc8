/* Normal random numbers from random words, many at once.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_VECTOR_NORMAL_H
#define LS_OPS_CPU_VECTOR_NORMAL_H

#include <stddef.h>
#include <stdint.h>

#include "ops/cpu/isa.h"

struct ls_vector_normal {
    /* normal[i] = ls_random_normal(key, ordinal, first + i) for i < n, where word[i] is
     * ls_random_u32(key, ordinal, first + i); `first` and n are even. */
    void (*normals)(const uint32_t *word, double *normal, size_t n);
};
LS_VECTOR_TABLES(ls_vector_normal)

#endif
