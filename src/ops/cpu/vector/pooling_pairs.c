/* Maximum over windows of 2 x 2 side by side, in plain layouts. See pooling_pairs.h.
 *
 * Such windows are the usual ones behind a convolution. Two rows of x are read, each as the numbers
 * at even and at odd columns, which are challenged in the order of the window; the gradient writes
 * each number of dx once. A row that does not fill its registers is read and written in part.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/vector/pooling_pairs.h"

#include <float.h>

#include "ops/cpu/vector/registers.h"

#if WIDTH >= 8

#if LS_ISA_IS(AVX512)

#define PLACES_REGISTER __m512i

#define PLACES(first)              _mm512_add_epi32(_mm512_set1_epi32(first), two_apart())
#define NO_PLACES()                _mm512_set1_epi32(-1)
#define LOAD_PLACES(from, n)       _mm512_maskz_loadu_epi32(MASK(n), from)
#define STORE_PLACES(to, n, value) _mm512_mask_storeu_epi32(to, MASK(n), value)
#define NEXT(at)                   _mm512_add_epi32(at, _mm512_set1_epi32(1))

static inline PLACES_REGISTER two_apart(void)
{
    return _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
}

static inline REGISTER evens(REGISTER a, REGISTER b)
{
    return _mm512_permutex2var_ps(a, two_apart(), b);
}

static inline REGISTER odds(REGISTER a, REGISTER b)
{
    return _mm512_permutex2var_ps(a, NEXT(two_apart()), b);
}

/* The lower and the upper half of a[0] b[0] a[1] b[1] ... */
static inline REGISTER mixed_low(REGISTER a, REGISTER b)
{
    const PLACES_REGISTER lanes =
        _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    return _mm512_permutex2var_ps(a, lanes, b);
}

static inline REGISTER mixed_high(REGISTER a, REGISTER b)
{
    const PLACES_REGISTER lanes =
        _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    return _mm512_permutex2var_ps(a, lanes, b);
}

static inline void challenge(REGISTER value, PLACES_REGISTER place, REGISTER *best,
                             PLACES_REGISTER *at)
{
    const __mmask16 wins = _mm512_cmp_ps_mask(value, *best, _CMP_GT_OQ);
    *best = _mm512_mask_mov_ps(*best, wins, value);
    *at = _mm512_mask_mov_epi32(*at, wins, place);
}

static inline REGISTER where(PLACES_REGISTER at, PLACES_REGISTER place, REGISTER value)
{
    return _mm512_maskz_mov_ps(_mm512_cmpeq_epi32_mask(at, place), value);
}

#else

#define PLACES_REGISTER __m256i

#define PLACES(first)                                                                              \
    _mm256_add_epi32(_mm256_set1_epi32(first), _mm256_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14))
#define NO_PLACES()                _mm256_set1_epi32(-1)
#define LOAD_PLACES(from, n)       _mm256_maskload_epi32(from, mask(n))
#define STORE_PLACES(to, n, value) _mm256_maskstore_epi32(to, mask(n), value)
#define NEXT(at)                   _mm256_add_epi32(at, _mm256_set1_epi32(1))

static inline REGISTER in_order(REGISTER value)
{
    return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(value), 0xd8));
}

static inline REGISTER evens(REGISTER a, REGISTER b)
{
    return in_order(_mm256_shuffle_ps(a, b, 0x88));
}

static inline REGISTER odds(REGISTER a, REGISTER b)
{
    return in_order(_mm256_shuffle_ps(a, b, 0xdd));
}

/* The lower and the upper half of a[0] b[0] a[1] b[1] ... */
static inline REGISTER mixed_low(REGISTER a, REGISTER b)
{
    return _mm256_permute2f128_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b), 0x20);
}

static inline REGISTER mixed_high(REGISTER a, REGISTER b)
{
    return _mm256_permute2f128_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b), 0x31);
}

static inline void challenge(REGISTER value, PLACES_REGISTER place, REGISTER *best,
                             PLACES_REGISTER *at)
{
    /* Bytes are chosen: of floats a compiler makes VMAXPS, which loses denormal numbers. */
    const __m256i wins = _mm256_castps_si256(_mm256_cmp_ps(value, *best, _CMP_GT_OQ));
    *best = _mm256_castsi256_ps(
        _mm256_blendv_epi8(_mm256_castps_si256(*best), _mm256_castps_si256(value), wins));
    *at = _mm256_blendv_epi8(*at, place, wins);
}

static inline REGISTER where(PLACES_REGISTER at, PLACES_REGISTER place, REGISTER value)
{
    return _mm256_and_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(at, place)), value);
}

#endif

/* The windows whose first number is x[first], `some` of them, at most a register's. */
INLINE void find_some(const struct ls_pairs *pairs, const float *x, int64_t first, size_t some,
                      float *y, int32_t *index)
{
    REGISTER best = SPREAD(-FLT_MAX);
    PLACES_REGISTER at = NO_PLACES();
    UNROLL
    for (int row = 0; row < 2; row++) {
        const int64_t place = first + row * pairs->width;
        const float *from = x + place;
        const REGISTER a = LOAD_UP_TO(from, 2 * some);
        const REGISTER b = 2 * some > WIDTH ? LOAD_UP_TO(from + WIDTH, 2 * some - WIDTH) : ZERO();
        challenge(evens(a, b), PLACES((int32_t)place), &best, &at);
        challenge(odds(a, b), PLACES((int32_t)place + 1), &best, &at);
    }
    STORE_SOME(y, some, best);
    if (index != NULL)
        STORE_PLACES(index, some, at);
}

FUSED static void maximum(const struct ls_pairs *pairs, const float *x, float *y, int32_t *index)
{
    const int64_t out = pairs->width / 2, plane = pairs->height * pairs->width;
    for (int64_t p = 0; p < pairs->planes; p++, x += plane)
        for (int64_t row = 0; row < pairs->height; row += 2) {
            for (int64_t o = 0; o < out; o += WIDTH)
                find_some(pairs, x, row * pairs->width + 2 * o,
                          out - o < WIDTH ? (size_t)(out - o) : WIDTH, y + o,
                          index != NULL ? index + o : NULL);
            y += out;
            index = index != NULL ? index + out : NULL;
        }
}

/* The first `n` (at most two registers) of even[0] odd[0] even[1] ... */
INLINE void store_mixed(float *to, size_t n, REGISTER even, REGISTER odd)
{
    const REGISTER low = mixed_low(even, odd), high = mixed_high(even, odd);
    STORE_SOME(to, n < WIDTH ? n : WIDTH, low);
    if (n > WIDTH)
        STORE_SOME(to + WIDTH, n - WIDTH, high);
}

INLINE void spread_some(const struct ls_pairs *pairs, const float *dy, const int32_t *index,
                        int64_t first, size_t some, float *dx)
{
    const REGISTER gradient = ADD(ZERO(), LOAD_UP_TO(dy, some)); /* not -0, as in a sum */
    const PLACES_REGISTER at = LOAD_PLACES(index, some);
    UNROLL
    for (int row = 0; row < 2; row++) {
        const int64_t place = first + row * pairs->width;
        const REGISTER even = where(at, PLACES((int32_t)place), gradient);
        const REGISTER odd = where(at, PLACES((int32_t)place + 1), gradient);
        store_mixed(dx + place, 2 * some, even, odd);
    }
}

FUSED static void maximum_backward(const struct ls_pairs *pairs, const float *dy,
                                   const int32_t *index, float *dx)
{
    const int64_t out = pairs->width / 2, plane = pairs->height * pairs->width;
    for (int64_t p = 0; p < pairs->planes; p++, dx += plane)
        for (int64_t row = 0; row < pairs->height; row += 2, dy += out, index += out)
            for (int64_t o = 0; o < out; o += WIDTH)
                spread_some(pairs, dy + o, index + o, row * pairs->width + 2 * o,
                            out - o < WIDTH ? (size_t)(out - o) : WIDTH, dx);
}

const struct ls_vector_pooling_pairs LS_ISA_NAME(ls_vector_pooling_pairs) = {
    .maximum = maximum,
    .maximum_backward = maximum_backward,
};

#else

const struct ls_vector_pooling_pairs LS_ISA_NAME(ls_vector_pooling_pairs) = {0};

#endif
