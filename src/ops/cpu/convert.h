/* Conversion of elements between types on the CPU. SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_CONVERT_H
#define LS_OPS_CPU_CONVERT_H

#include "ir/convert.h"
#include "ir/layout.h"

/* As ls_dtype_convert, the same bits; the arrays are aligned to their elements. */
void ls_cpu_convert(enum ls_dtype from, const void *in, enum ls_dtype to, void *out, size_t n);
/* Copies elements of `size` bytes from one layout to another, both plain or blocked; lanes of
 * padding become zero. */
void ls_cpu_lay_out(const struct ls_shape *shape, size_t size, const struct ls_layout *from,
                    const void *in, const struct ls_layout *to, void *out);

/* Rounds n x channels x points numbers to bf16, as n x points x channels. */
void ls_cpu_round_channels_last(const float *in, int64_t n, int64_t channels, int64_t points,
                                uint16_t *out);

#endif
