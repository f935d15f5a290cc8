/* See units.h. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/bf16/units.h"

#include "ops/cpu/amx/bf16_product.h"
#include "ops/cpu/avx512_bf16/bf16_product.h"

const struct ls_vector_bf16_product *ls_bf16_unit_tiles(enum ls_bf16_unit unit)
{
    switch (unit) {
#if defined(LS_AVX512_BF16)
    case LS_UNIT_AVX512_BF16:
        return &ls_bf16_avx512_bf16;
#endif
#if defined(LS_AMX)
    case LS_UNIT_AMX:
        return &ls_bf16_amx;
#endif
    default:
        return NULL;
    }
}

const struct ls_bf16_pairs *ls_bf16_unit_pairs(void)
{
#if defined(LS_AVX512_BF16)
    if (ls_cpu_unit() == LS_UNIT_AVX512_BF16)
        return &ls_bf16_pairs_avx512_bf16;
#endif
    return NULL;
}

ls_bf16_combine *ls_bf16_unit_combine(void)
{
#if defined(LS_AVX512_BF16)
    if (ls_cpu_unit() == LS_UNIT_AVX512_BF16)
        return ls_bf16_combine_avx512_bf16;
#endif
    return NULL;
}
