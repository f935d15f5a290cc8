/* Philox 4x32-10 (base/random.c) for many blocks of four numbers at a time: lane i works on the
 * block with counter first + i, and the lanes are interleaved at the end.
 *
 * Intrinsics, because gcc finds no good code for the widening products: a lane has 64 bits, of
 * which the multiplication reads the lower 32, so that the upper ones may hold anything.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/vector/philox.h"

#include "base/random.h"
#include "ops/cpu/vector/lanes.h"

enum { ROUNDS = 10, NUMBERS = 4 * LS_LANES }; /* NUMBERS: made by one call of sixteen_blocks */

#if LS_ISA_IS(AVX512)
#define WIDE           __m512i
#define SPREAD(value)  _mm512_set1_epi64((long long)(value))
#define ADD(a, b)      _mm512_add_epi64(a, b)
#define MULTIPLY(a, b) _mm512_mul_epu32(a, b)
#define UPPER(a)       _mm512_srli_epi64(a, 32)
#define XOR3(a, b, c)  _mm512_ternarylogic_epi64(a, b, c, 0x96)
#define LOAD(from)     _mm512_loadu_si512(from)
#define STORE(to, a)   _mm512_storeu_si512(to, a)
#elif LS_ISA_IS(AVX2)
#define WIDE           __m256i
#define SPREAD(value)  _mm256_set1_epi64x((long long)(value))
#define ADD(a, b)      _mm256_add_epi64(a, b)
#define MULTIPLY(a, b) _mm256_mul_epu32(a, b)
#define UPPER(a)       _mm256_srli_epi64(a, 32)
#define XOR3(a, b, c)  _mm256_xor_si256(_mm256_xor_si256(a, b), c)
#define LOAD(from)     _mm256_loadu_si256((const __m256i *)(from))
#define STORE(to, a)   _mm256_storeu_si256((__m256i *)(to), a)
#endif

#if defined(WIDE)

/* word[0..NUMBERS) = the numbers of blocks first .. first + 15. */
static void sixteen_blocks(uint64_t key, uint64_t ordinal, uint64_t first, uint32_t *word)
{
    static const uint64_t count[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    enum { BLOCKS = sizeof(WIDE) / 8 }; /* in one register */
    const WIDE m0 = SPREAD(0xd2511f53U), m1 = SPREAD(0xcd9e8d57U), steps = LOAD(count);
    uint64_t number[4][LS_LANES]; /* the j-th number of block i, in its lower 32 bits */
    for (int i = 0; i < LS_LANES; i += BLOCKS) {
        WIDE c0 = ADD(SPREAD(first + (uint64_t)i), steps), c1 = UPPER(c0);
        WIDE c2 = SPREAD(ordinal), c3 = SPREAD(ordinal >> 32);
        uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
        for (int round = 0; round < ROUNDS; round++) {
            WIDE p0 = MULTIPLY(m0, c0), p1 = MULTIPLY(m1, c2);
            c0 = XOR3(UPPER(p1), c1, SPREAD(k0));
            c2 = XOR3(UPPER(p0), c3, SPREAD(k1));
            c1 = p1;
            c3 = p0;
            k0 += UINT32_C(0x9e3779b9);
            k1 += UINT32_C(0xbb67ae85);
        }
        STORE(number[0] + i, c0);
        STORE(number[1] + i, c1);
        STORE(number[2] + i, c2);
        STORE(number[3] + i, c3);
    }
    for (int i = 0; i < LS_LANES; i++)
        for (int j = 0; j < 4; j++)
            word[4 * i + j] = (uint32_t)number[j][i];
}

#else

static void sixteen_blocks(uint64_t key, uint64_t ordinal, uint64_t first, uint32_t *word)
{
    for (int i = 0; i < LS_LANES; i++)
        ls_philox(key, ordinal, first + (uint64_t)i, word + (size_t)i * 4);
}

#endif

static void words(uint64_t key, uint64_t ordinal, uint64_t first, uint32_t *word, size_t n)
{
    uint64_t block = first / 4;
    size_t skip = (size_t)(first % 4);
    while (n > 0) {
        if (skip == 0 && n >= NUMBERS) {
            sixteen_blocks(key, ordinal, block, word);
            word += NUMBERS;
            n -= NUMBERS;
        } else {
            uint32_t part[NUMBERS];
            sixteen_blocks(key, ordinal, block, part);
            size_t use = n < NUMBERS - skip ? n : NUMBERS - skip;
            memcpy(word, part + skip, use * sizeof *word);
            word += use;
            n -= use;
            skip = 0;
        }
        block += LS_LANES;
    }
}

const struct ls_vector_philox LS_ISA_NAME(ls_vector_philox) = {.words = words};
