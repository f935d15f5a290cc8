/* Loops that convert elements; what they give is said in ir/convert.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_VECTOR_CONVERT_H
#define LS_OPS_CPU_VECTOR_CONVERT_H

#include <stddef.h>
#include <stdint.h>

#include "ops/cpu/isa.h"

/* Elements as their bits. */
struct ls_vector_convert {
    void (*f32_to_bf16)(const uint32_t *restrict x, uint16_t *restrict y, size_t n);
    void (*f32_to_f16)(const uint32_t *restrict x, uint16_t *restrict y, size_t n);
    void (*bf16_to_f32)(const uint16_t *restrict x, uint32_t *restrict y, size_t n);
    void (*f16_to_f32)(const uint16_t *restrict x, uint32_t *restrict y, size_t n);
};
LS_VECTOR_TABLES(ls_vector_convert)

#endif
