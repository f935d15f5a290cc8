/* For volume.c: the transformations of Winograd's algorithm on registers, and how many registers
 * its sums take.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_VECTOR_VOLUME_REGISTERS_H
#define LS_OPS_CPU_VECTOR_VOLUME_REGISTERS_H

#include "ops/cpu/vector/registers.h"

/* Channels in a block; points of a row whose sums are registers at a time; channels of x whose
 * gradients, by three taps each, are. */
#if LS_ISA_IS(AVX512)
enum { BLOCK = 16, POINTS = 16, INPUTS = 8 };
#define WHERE_NEGATIVE(z, other)                                                                   \
    _mm512_mask_blend_ps(_mm512_cmp_ps_mask(z, ZERO(), _CMP_LT_OQ), z, other)
#elif LS_ISA_IS(AVX2)
enum { BLOCK = 8, POINTS = 8, INPUTS = 4 };
#define WHERE_NEGATIVE(z, other) _mm256_blendv_ps(z, other, _mm256_cmp_ps(z, ZERO(), _CMP_LT_OQ))
#else
enum { BLOCK = 8, POINTS = 4, INPUTS = 4 };
#define WHERE_NEGATIVE(z, other) ((z) < 0 ? (other) : (z))
#endif

/* As UNROLL, for all points of a row that are registers and two more. */
#if defined(__clang__)
#define UNROLL_POINTS
#else
#define UNROLL_POINTS _Pragma("GCC unroll 32")
#endif

/* Four rows of x (a `step` apart) as four parts. */
INLINE void spread_in(REGISTER *x, int step)
{
    REGISTER a = x[0], b = x[step], c = x[2 * step], d = x[3 * step];
    x[0] = a - c;
    x[step] = b + c;
    x[2 * step] = c - b;
    x[3 * step] = b - d;
}

/* Four parts as two results. */
INLINE void gather_out(REGISTER *m, int step)
{
    REGISTER a = m[0], b = m[step], c = m[2 * step], d = m[3 * step];
    m[0] = (a + b) + c;
    m[step] = (b - c) - d;
}

/* Gradients of two results as those of four parts. */
INLINE void spread_out(REGISTER *dy, int step)
{
    REGISTER a = dy[0], b = dy[step];
    dy[step] = a + b;
    dy[2 * step] = a - b;
    dy[3 * step] = ZERO() - b;
}

/* Three weights as those of four parts. */
INLINE void spread_weights(REGISTER *w, int step)
{
    const REGISTER half = SPREAD(0.5F);
    REGISTER a = w[0], b = w[step], c = w[2 * step], ends = a + c;
    w[step] = half * (ends + b);
    w[2 * step] = half * (ends - b);
    w[3 * step] = c;
}

/* Gradients of the weights of four parts as those of three weights. */
INLINE void gather_weights(REGISTER *u, int step)
{
    const REGISTER half = SPREAD(0.5F);
    REGISTER a = u[0], b = u[step], c = u[2 * step], d = u[3 * step];
    REGISTER ends = half * (b + c);
    u[0] = a + ends;
    u[step] = half * (b - c);
    u[2 * step] = ends + d;
}

#endif
