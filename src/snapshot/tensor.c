/* Elements of an archive's tensors, and their conversion to fp32.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "snapshot/archive.h"

void ls_tensor_copy(const struct ls_tensor *tensor, void *out)
{
    if (tensor->size > 0)
        memcpy(out, tensor->data, tensor->size);
}

/* The fp32 bits of an IEEE half-precision number: 1 sign, 5 exponent (bias 15), 10 fraction. In
 * integers, so that the thread's treatment of denormals does not matter. */
static uint32_t from_half(uint16_t half)
{
    uint32_t sign = (uint32_t)(half >> 15) << 31;
    uint32_t exponent = half >> 10 & 0x1f;
    uint32_t fraction = half & 0x3ff;
    if (exponent == 0x1f) /* infinite, or not a number */
        return sign | 0x7f800000u | fraction << 13;
    if (exponent != 0)
        return sign | (exponent + 127 - 15) << 23 | fraction << 13;
    if (fraction == 0)
        return sign;
    /* Denormal: fraction * 2^-24 is a normal fp32 number. */
    uint32_t shift = (uint32_t)__builtin_clz(fraction) - 21;
    return sign | (127 - 14 - shift) << 23 | (fraction << shift & 0x3ff) << 13;
}

void ls_tensor_floats(const struct ls_tensor *tensor, float *out)
{
    size_t count = tensor->size / ls_dtype_size(tensor->type);
    const unsigned char *from = tensor->data;
    if (tensor->type == LS_F32) {
        ls_tensor_copy(tensor, out);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (tensor->type == LS_F64) {
            double wide;
            memcpy(&wide, from + 8 * i, 8);
            out[i] = (float)wide;
        } else {
            uint16_t narrow;
            memcpy(&narrow, from + 2 * i, 2);
            uint32_t bits = tensor->type == LS_F16 ? from_half(narrow) : (uint32_t)narrow << 16;
            memcpy(&out[i], &bits, 4);
        }
    }
}
