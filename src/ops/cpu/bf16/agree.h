/* Whether a way to compute tiles of bf16 products gives the bits that AVX-512 gives.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_BF16_AGREE_H
#define LS_OPS_CPU_BF16_AGREE_H

#include "ops/cpu/vector/bf16_product.h"

/* Computes a product both ways: all exponents, values around the least normal number, zeros, more
 * than one piece of the terms, parts of tiles. Takes well under a millisecond. LOCKSTEP_RESOURCE
 * where memory runs out. Only on processors with AVX-512. */
int ls_bf16_agrees(const struct ls_vector_bf16_product *tiles, bool *agrees);

#endif
