/* Box and Muller's transform as base/random.c has it: of two uniform numbers u, v come
 * sqrt(-2 ln u) cos(2 pi v) and sqrt(-2 ln u) sin(2 pi v), in double.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/vector/normal.h"

#include <math.h>

#include "ops/cpu/vector/lanes.h"

/* logarithm: u -> ln u; circle: v -> cosine (and v replaced by the sine) of pi v. */
#if LS_ISA_IS(AVX512)
static inline void circle(double *v, double *cosine)
{
    for (int i = 0; i < LS_LANES; i += 8) {
        Sleef___m512d_2 both = Sleef_cinz_sincospid8_u05avx512fnofma(_mm512_loadu_pd(v + i));
        _mm512_storeu_pd(v + i, both.x);
        _mm512_storeu_pd(cosine + i, both.y);
    }
}
static inline void logarithm(double *u)
{
    for (int i = 0; i < LS_LANES; i += 8)
        _mm512_storeu_pd(u + i, Sleef_cinz_logd8_u10avx512fnofma(_mm512_loadu_pd(u + i)));
}
#elif LS_ISA_IS(AVX2)
static inline void circle(double *v, double *cosine)
{
    for (int i = 0; i < LS_LANES; i += 4) {
        Sleef___m256d_2 both = Sleef_cinz_sincospid4_u05avx(_mm256_loadu_pd(v + i));
        _mm256_storeu_pd(v + i, both.x);
        _mm256_storeu_pd(cosine + i, both.y);
    }
}
static inline void logarithm(double *u)
{
    for (int i = 0; i < LS_LANES; i += 4)
        _mm256_storeu_pd(u + i, Sleef_cinz_logd4_u10avx(_mm256_loadu_pd(u + i)));
}
#else
static inline void circle(double *v, double *cosine)
{
    for (int i = 0; i < LS_LANES; i++) {
        Sleef_double_2 both = Sleef_cinz_sincospid1_u05purec(v[i]);
        v[i] = both.x;
        cosine[i] = both.y;
    }
}
static inline void logarithm(double *u)
{
    for (int i = 0; i < LS_LANES; i++)
        u[i] = Sleef_cinz_logd1_u10purec(u[i]);
}
#endif

/* Sixteen pairs; the last ones may be any numbers. */
static inline void sixteen_pairs(const uint32_t *word, double *normal)
{
    double u[LS_LANES], v[LS_LANES], cosine[LS_LANES];
    for (int i = 0; i < LS_LANES; i++) {
        u[i] = ((double)word[2 * i] + 1.0) * 0x1p-32; /* in (0, 1]: the logarithm is finite */
        v[i] = (double)word[2 * i + 1] * 0x1p-31;
    }
    logarithm(u);
    circle(v, cosine);
    for (int i = 0; i < LS_LANES; i++) {
        double radius = sqrt(-2.0 * u[i]);
        normal[2 * i] = radius * cosine[i];
        normal[2 * i + 1] = radius * v[i];
    }
}

static void normals(const uint32_t *word, double *normal, size_t n)
{
    enum { NUMBERS = 2 * LS_LANES };
    size_t i = 0;
    for (; i + NUMBERS <= n; i += NUMBERS)
        sixteen_pairs(word + i, normal + i);
    if (i < n) {
        uint32_t rest[NUMBERS] = {0};
        double made[NUMBERS];
        memcpy(rest, word + i, (n - i) * sizeof *word);
        sixteen_pairs(rest, made);
        memcpy(normal + i, made, (n - i) * sizeof *normal);
    }
}

const struct ls_vector_normal LS_ISA_NAME(ls_vector_normal) = {.normals = normals};
