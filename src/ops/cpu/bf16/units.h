/* The tables of units that multiply numbers of bf16 (ops/cpu/isa.h).
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_BF16_UNITS_H
#define LS_OPS_CPU_BF16_UNITS_H

#include "ops/cpu/avx512_bf16/bf16_combine.h"
#include "ops/cpu/avx512_bf16/bf16_pairs.h"
#include "ops/cpu/vector/bf16_product.h"

/* NULL where this build has none; to be used only if the unit is there. */
const struct ls_vector_bf16_product *ls_bf16_unit_tiles(enum ls_bf16_unit unit);
/* Those of the unit in use; NULL where it is not AVX512_BF16. */
const struct ls_bf16_pairs *ls_bf16_unit_pairs(void);
ls_bf16_combine *ls_bf16_unit_combine(void);

#endif
