/* For batch_norm.c: registers of 16, 8, 4 floats, or one float, by instruction set, and what they
 * become as doubles: a lower and an upper half (of one float, the lower half is all). Conversion on
 * the way from memory costs less than that of a register.
 *
 * The product of two floats is exact in double, so that multiplying and adding in one step, where
 * there is an instruction for it, gives the same bits as in two.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_VECTOR_BATCH_NORM_REGISTERS_H
#define LS_OPS_CPU_VECTOR_BATCH_NORM_REGISTERS_H

#include "ops/cpu/vector/lanes.h"

#define ALWAYS_INLINE inline __attribute__((always_inline))

/* Where a gradient goes back through a ReLU: everywhere (there is none), by y, or by what x gives.
 */
enum gate { GATE_OPEN, GATE_Y, GATE_X };

#if LS_WIDTH >= 16
typedef __m512 reg16;
typedef __m512d dreg16;

static ALWAYS_INLINE reg16 load16(const float *from)
{
    return _mm512_loadu_ps(from);
}

static ALWAYS_INLINE void store16(float *to, reg16 value)
{
    _mm512_storeu_ps(to, value);
}

static ALWAYS_INLINE dreg16 lower16(reg16 x)
{
    return _mm512_cvtps_pd(_mm512_castps512_ps256(x));
}

static ALWAYS_INLINE dreg16 upper16(reg16 x)
{
    return _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1));
}

static ALWAYS_INLINE dreg16 load_lower16(const float *from)
{
    return _mm512_cvtps_pd(_mm256_loadu_ps(from));
}

static ALWAYS_INLINE dreg16 load_upper16(const float *from)
{
    return _mm512_cvtps_pd(_mm256_loadu_ps(from + 8));
}

static ALWAYS_INLINE dreg16 multiply_add16(dreg16 a, dreg16 b, dreg16 sum)
{
    return _mm512_fmadd_pd(a, b, sum);
}

static ALWAYS_INLINE void store_doubles16(double *to, dreg16 low, dreg16 high)
{
    _mm512_storeu_pd(to, low);
    _mm512_storeu_pd(to + 8, high);
}

static ALWAYS_INLINE reg16 positive16(reg16 y, reg16 yes, reg16 no)
{
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(y, _mm512_setzero_ps(), _CMP_GT_OQ), no, yes);
}
#endif

#if LS_WIDTH >= 8
typedef __m256 reg8;
typedef __m256d dreg8;

static ALWAYS_INLINE reg8 load8(const float *from)
{
    return _mm256_loadu_ps(from);
}

static ALWAYS_INLINE void store8(float *to, reg8 value)
{
    _mm256_storeu_ps(to, value);
}

static ALWAYS_INLINE dreg8 lower8(reg8 x)
{
    return _mm256_cvtps_pd(_mm256_castps256_ps128(x));
}

static ALWAYS_INLINE dreg8 upper8(reg8 x)
{
    return _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1));
}

static ALWAYS_INLINE dreg8 load_lower8(const float *from)
{
    return _mm256_cvtps_pd(_mm_loadu_ps(from));
}

static ALWAYS_INLINE dreg8 load_upper8(const float *from)
{
    return _mm256_cvtps_pd(_mm_loadu_ps(from + 4));
}

static ALWAYS_INLINE dreg8 multiply_add8(dreg8 a, dreg8 b, dreg8 sum)
{
    return sum + a * b;
}

static ALWAYS_INLINE void store_doubles8(double *to, dreg8 low, dreg8 high)
{
    _mm256_storeu_pd(to, low);
    _mm256_storeu_pd(to + 4, high);
}

/* y > 0 ? yes : no */
static ALWAYS_INLINE reg8 positive8(reg8 y, reg8 yes, reg8 no)
{
    return _mm256_blendv_ps(no, yes, _mm256_cmp_ps(y, _mm256_setzero_ps(), _CMP_GT_OQ));
}
#else
typedef float reg4 __attribute__((vector_size(16), aligned(4), may_alias));
typedef int32_t ireg4 __attribute__((vector_size(16), aligned(4), may_alias));
typedef double dreg4 __attribute__((vector_size(16), aligned(8), may_alias));

static ALWAYS_INLINE reg4 load4(const float *from)
{
    return *(const reg4 *)from;
}

static ALWAYS_INLINE void store4(float *to, reg4 value)
{
    *(reg4 *)to = value;
}

static ALWAYS_INLINE dreg4 lower4(reg4 x)
{
    return (dreg4){(double)x[0], (double)x[1]};
}

static ALWAYS_INLINE dreg4 upper4(reg4 x)
{
    return (dreg4){(double)x[2], (double)x[3]};
}

static ALWAYS_INLINE dreg4 load_lower4(const float *from)
{
    return (dreg4){(double)from[0], (double)from[1]};
}

static ALWAYS_INLINE dreg4 load_upper4(const float *from)
{
    return (dreg4){(double)from[2], (double)from[3]};
}

static ALWAYS_INLINE dreg4 multiply_add4(dreg4 a, dreg4 b, dreg4 sum)
{
    return sum + a * b;
}

static ALWAYS_INLINE void store_doubles4(double *to, dreg4 low, dreg4 high)
{
    *(dreg4 *)to = low;
    *(dreg4 *)(to + 2) = high;
}

static ALWAYS_INLINE reg4 positive4(reg4 y, reg4 yes, reg4 no)
{
    ireg4 mask = y > (reg4){0};
    return (reg4)((mask & (ireg4)yes) | (~mask & (ireg4)no));
}
#endif

typedef float reg1;
typedef double dreg1;

static ALWAYS_INLINE reg1 load1(const float *from)
{
    return *from;
}

static ALWAYS_INLINE void store1(float *to, reg1 value)
{
    *to = value;
}

static ALWAYS_INLINE dreg1 lower1(reg1 x)
{
    return (double)x;
}

static ALWAYS_INLINE dreg1 upper1(reg1 x)
{
    (void)x;
    return 0;
}

static ALWAYS_INLINE dreg1 load_lower1(const float *from)
{
    return (double)*from;
}

static ALWAYS_INLINE dreg1 load_upper1(const float *from)
{
    (void)from;
    return 0;
}

static ALWAYS_INLINE dreg1 multiply_add1(dreg1 a, dreg1 b, dreg1 sum)
{
    return sum + a * b;
}

static ALWAYS_INLINE void store_doubles1(double *to, dreg1 low, dreg1 high)
{
    (void)high;
    *to = low;
}

static ALWAYS_INLINE reg1 positive1(reg1 y, reg1 yes, reg1 no)
{
    return y > 0 ? yes : no;
}

#endif
