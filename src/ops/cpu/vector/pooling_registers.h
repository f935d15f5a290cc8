/* A template: vectors of LANES numbers, as many as a register holds but at most BLOCK. Included
 * once for each block size, with NAME(x) giving the names, for example load16.
 *
 * They are the compilers' vector types: loops over short arrays, which say the same, are not always
 * kept in registers by gcc 12.
 *
 * SPDX-License-Identifier: BSD-2-Clause */

#if LS_WIDTH >= BLOCK
#define LANES BLOCK
#elif LS_WIDTH > 4
#define LANES LS_WIDTH
#else
#define LANES 4
#endif

typedef float NAME(reg) __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int32_t NAME(ireg) __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

static ALWAYS_INLINE NAME(reg) NAME(load)(const float *from)
{
    return *(const NAME(reg) *)from;
}

static ALWAYS_INLINE void NAME(store)(float *to, NAME(reg) value)
{
    *(NAME(reg) *)to = value;
}

static ALWAYS_INLINE NAME(reg) NAME(spread)(float value)
{
    /* A scalar operand is spread; subtracting 0 changes no number, not even -0. */
    return value - (NAME(reg)){0};
}

static ALWAYS_INLINE NAME(ireg) NAME(spread_int)(int32_t value)
{
    return value - (NAME(ireg)){0};
}

/* Where value > *best, *best becomes value and, if `indexed`, *at becomes `where`. Comparison and
 * choice stand in one function, in which gcc 12 knows them; for sets without masks it needs to be
 * told the instructions, and chooses bytes: of a choice of floats it makes the maximum's
 * instruction, which makes zeros of denormal numbers. */
static ALWAYS_INLINE void NAME(challenge)(NAME(reg) value, NAME(ireg) where, NAME(reg) * best,
                                          NAME(ireg) * at, bool indexed)
{
    NAME(ireg) greater = value > *best;
#if LS_ISA_IS(AVX2)
    *best = (NAME(reg))_mm256_blendv_epi8((__m256i)*best, (__m256i)value, (__m256i)greater);
    if (indexed)
        *at = (NAME(ireg))_mm256_blendv_epi8((__m256i)*at, (__m256i)where, (__m256i)greater);
#else
    *best = (NAME(reg))((greater & (NAME(ireg))value) | (~greater & (NAME(ireg)) * best));
    if (indexed)
        *at = (greater & where) | (~greater & *at);
#endif
}
