/* A 64-bit hash: eight bytes at a time are folded into the state, which is mixed by a bijection
 * after each fold, so that two inputs of one length that differ in one word never collide.
 *
 * The bijection is the finalizer of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom
 * number generators; OOPSLA 2014) with Stafford's constants "Mix13". Words are read as little
 * endian on every machine, so that keys and fingerprints can be written to files.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/hash.h"

#include <string.h>

uint64_t ls_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* Up to eight bytes as a little-endian number; compilers make one load of the full ones. */
static uint64_t word(const unsigned char *bytes, size_t count)
{
    uint64_t value = 0;
    for (size_t i = 0; i < count; i++)
        value |= (uint64_t)bytes[i] << (8 * i);
    return value;
}

uint64_t ls_hash(const void *bytes, size_t length, uint64_t seed)
{
    /* An odd constant (2^64 / golden ratio) keeps zeros moving: ls_mix(0) is 0. The length goes in
     * first, so that trailing zero bytes count. */
    const uint64_t odd = UINT64_C(0x9e3779b97f4a7c15);
    const unsigned char *p = bytes;
    uint64_t state = ls_mix(seed + odd) ^ (uint64_t)length;
    for (; length >= 8; p += 8, length -= 8)
        state = ls_mix((state ^ word(p, 8)) + odd);
    if (length > 0)
        state = ls_mix((state ^ word(p, length)) + odd);
    return ls_mix(state + odd);
}

/* Two words become one: the halves of their 128-bit product, one upon the other. */
static uint64_t fold(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Lanes that a processor works on side by side, each over every LANES-th pair of words: one word
 * meets a constant of the lane, the other what the lane holds, and their folded product is added to
 * the lane, turned. (The multiplication is that of wyhash, Wang Yi.) */
uint64_t ls_hash_wide(const void *bytes, size_t length, uint64_t seed)
{
    enum { LANES = 4, STRIDE = 16 * LANES };
    const uint64_t odd = UINT64_C(0x9e3779b97f4a7c15);
    const unsigned char *p = bytes;
    uint64_t lane[LANES], constant[LANES], left = length;
    for (int i = 0; i < LANES; i++) {
        lane[i] = ls_mix(seed + odd * (uint64_t)(i + 1));
        constant[i] = ls_mix(odd * (uint64_t)(i + 1 + LANES));
    }
    for (; left >= STRIDE; p += STRIDE, left -= STRIDE)
        for (int i = 0; i < LANES; i++) {
            uint64_t x = fold(word(p + 16 * i, 8) ^ constant[i], word(p + 16 * i + 8, 8) ^ lane[i]);
            lane[i] = (lane[i] << 29 | lane[i] >> 35) + x;
        }
    return ls_hash(p, (size_t)left, ls_hash(lane, sizeof lane, seed ^ length));
}

uint64_t ls_hash_string(const char *text, uint64_t seed)
{
    return ls_hash(text, strlen(text), seed);
}
