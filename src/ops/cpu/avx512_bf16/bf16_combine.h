/* vector/product.h's `combine` where all numbers of p and q are bf16 numbers, as the factors of
 * layers in BF16 are: two terms of a sum with one instruction, to the same bits.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_AVX512_BF16_BF16_COMBINE_H
#define LS_OPS_CPU_AVX512_BF16_BF16_COMBINE_H

#include <stdbool.h>

#include "ops/cpu/vector/product.h"

/* Returns false where a number has more digits than bf16 has; what is in `out` then means nothing.
 * The thread takes denormal numbers for zero, as all that compute do. */
typedef bool ls_bf16_combine(const struct ls_product *product);

extern ls_bf16_combine ls_bf16_combine_avx512_bf16;

#endif
