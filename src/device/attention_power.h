/* The numbers that loops of attention and its definition share (docs/numerics.md, section 25):
 * blocks and the exponential. SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DEVICE_ATTENTION_POWER_H
#define LS_DEVICE_ATTENTION_POWER_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/host_device.h"

/* Queries and keys of a block; both are part of the definition. */
enum { LS_ATTENTION_BLOCK = 64 };

/* ---- The exponential -------------------------------------------------------------------------
 *
 * t = fma(x, log2 e, 1.5 2^23), n = t - 1.5 2^23, r = fma(n, -b, fma(n, -a, x)) with a + b = log 2;
 * the polynomial by Horner's rule, each step an fma; times 2^n. Below -87 it is 0, and above 88
 * what it is at 88. At most 0.9 ulp off. */

#define LS_ATTENTION_LOG2E 0x1.715476p+0F
#define LS_ATTENTION_MAGIC 0x1.8p23F
#define LS_ATTENTION_LN2_A 0x1.62e4p-1F
#define LS_ATTENTION_LN2_B 0x1.7f7d1cp-20F
#define LS_ATTENTION_LEAST (-87.0F)
#define LS_ATTENTION_MOST  88.0F
/* From the highest power on. */
#define LS_ATTENTION_POLYNOMIAL                                                                    \
    {                                                                                              \
        0x1.6a2258p-10F, 0x1.123b02p-7F, 0x1.5558f8p-5F, 0x1.55549p-3F, 0x1.fffffcp-2F, 1, 1       \
    }
enum { LS_ATTENTION_TERMS = 7 };

LS_HOST_DEVICE float ls_attention_exp(float x)
{
    static const float c[LS_ATTENTION_TERMS] = LS_ATTENTION_POLYNOMIAL;
    if (x < LS_ATTENTION_LEAST)
        return 0;
    if (x > LS_ATTENTION_MOST)
        x = LS_ATTENTION_MOST;
    const float t = fmaf(x, LS_ATTENTION_LOG2E, LS_ATTENTION_MAGIC), n = t - LS_ATTENTION_MAGIC;
    const float r = fmaf(n, -LS_ATTENTION_LN2_B, fmaf(n, -LS_ATTENTION_LN2_A, x));
    float p = c[0], power;
    for (int k = 1; k < LS_ATTENTION_TERMS; k++)
        p = fmaf(p, r, c[k]);
    uint32_t bits;
    memcpy(&bits, &t, sizeof bits);
    bits = (bits + 127) << 23;
    memcpy(&power, &bits, sizeof power);
    return p * power;
}

#endif
