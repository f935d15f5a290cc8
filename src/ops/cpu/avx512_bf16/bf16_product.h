/* Tiles of products of bf16 numbers by VDPBF16PS (ops/cpu/vector/bf16_product.h).
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_AVX512_BF16_BF16_PRODUCT_H
#define LS_OPS_CPU_AVX512_BF16_BF16_PRODUCT_H

#include "ops/cpu/vector/bf16_product.h"

/* Where the build has it (LS_AVX512_BF16 is defined); see ops/cpu/bf16/units.h. */
extern const struct ls_vector_bf16_product ls_bf16_avx512_bf16;

#endif
