/* Philox 4x32-10: ten rounds of two 32 x 32 -> 64 bit products and exclusive ors, a bijection of
 * the 128-bit counter for every 64-bit key (Salmon et al., SC 2011). Integer arithmetic only, so
 * the bits are the same everywhere; the normal numbers use a logarithm, a sine and a cosine whose
 * bits SLEEF promises on every processor (its deterministic scalar functions without FMA).
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/random.h"

#include <math.h>
#include <sleef.h>

#include "base/hash.h"
#include "base/philox.h"

uint64_t ls_random_key(uint64_t seed, enum ls_purpose purpose, const char *name)
{
    /* The purpose is mixed into the seed before the name is hashed: seeds s and s + 1 share no
     * key with other purposes. */
    uint64_t state = ls_mix(ls_mix(seed) + (uint64_t)purpose);
    return ls_hash_string(name != NULL ? name : "", state);
}

void ls_philox(uint64_t key, uint64_t counter_high, uint64_t counter_low, uint32_t out[4])
{
    ls_philox_rounds(key, counter_high, counter_low, out);
}

uint32_t ls_random_u32(uint64_t key, uint64_t ordinal, uint64_t element)
{
    uint32_t block[4];
    ls_philox(key, ordinal, element / 4, block);
    return block[element % 4];
}

float ls_random_uniform(uint64_t key, uint64_t ordinal, uint64_t element)
{
    return (float)(ls_random_u32(key, ordinal, element) >> 8) * 0x1p-24F;
}

uint32_t ls_random_below(uint64_t key, uint64_t ordinal, uint64_t element, uint32_t n)
{
    return (uint32_t)(((uint64_t)ls_random_u32(key, ordinal, element) * n) >> 32);
}

double ls_random_normal(uint64_t key, uint64_t ordinal, uint64_t element)
{
    /* A block of four numbers makes four normals: elements 4i, 4i+1 from its first two numbers,
     * 4i+2, 4i+3 from its last two; the even one takes the cosine, the odd one the sine. */
    uint32_t block[4];
    ls_philox(key, ordinal, element / 4, block);
    const uint32_t *pair = block + (element % 4 / 2) * 2;
    double radius_uniform = ((double)pair[0] + 1.0) * 0x1p-32; /* in (0, 1]: log is finite */
    double half_turns = (double)pair[1] * 0x1p-31;             /* in [0, 2) */
    double radius = sqrt(-2.0 * Sleef_cinz_logd1_u10purec(radius_uniform));
    Sleef_double_2 sine_cosine = Sleef_cinz_sincospid1_u05purec(half_turns);
    return radius * (element % 2 == 0 ? sine_cosine.y : sine_cosine.x);
}
