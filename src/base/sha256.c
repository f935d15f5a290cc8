/* SHA-256, as FIPS 180-4 describes it in sections 4.1.2, 4.2.2 and 6.2. See base/sha256.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/sha256.h"

#include <stdio.h>
#include <string.h>

enum { BLOCK = 64, ROUNDS = 64, LENGTH_AT = 56 };

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t constants[ROUNDS] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate(uint32_t x, int bits)
{
    return x >> bits | x << (32 - bits);
}

static uint32_t big_endian(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static void take_block(uint32_t state[8], const unsigned char *block)
{
    uint32_t w[ROUNDS], s[8];
    for (int t = 0; t < 16; t++)
        w[t] = big_endian(block + 4 * t);
    for (int t = 16; t < ROUNDS; t++) {
        uint32_t before = w[t - 15], two = w[t - 2];
        w[t] = w[t - 16] + (rotate(before, 7) ^ rotate(before, 18) ^ before >> 3) + w[t - 7] +
               (rotate(two, 17) ^ rotate(two, 19) ^ two >> 10);
    }
    memcpy(s, state, sizeof s);
    for (int t = 0; t < ROUNDS; t++) {
        uint32_t a = s[0], e = s[4];
        uint32_t choice = (e & s[5]) ^ (~e & s[6]);
        uint32_t majority = (a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]);
        uint32_t one =
            s[7] + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + choice + constants[t] + w[t];
        uint32_t two = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + majority;
        memmove(s + 1, s, 7 * sizeof *s);
        s[4] += one;
        s[0] = one + two;
    }
    for (int i = 0; i < 8; i++)
        state[i] += s[i];
}

void ls_sha256_begin(struct ls_sha256 *hash)
{
    /* Of the square roots of the first 8 primes. */
    *hash = (struct ls_sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                                         0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void ls_sha256_add(struct ls_sha256 *hash, const void *bytes, size_t length)
{
    const unsigned char *from = bytes;
    while (length > 0) {
        size_t at = hash->bytes % BLOCK, part = BLOCK - at < length ? BLOCK - at : length;
        if (part == BLOCK) {
            take_block(hash->state, from);
        } else {
            memcpy(hash->block + at, from, part);
            if (at + part == BLOCK)
                take_block(hash->state, hash->block);
        }
        hash->bytes += part;
        from += part;
        length -= part;
    }
}

void ls_sha256_end(struct ls_sha256 *hash, char text[LS_SHA256_TEXT])
{
    uint64_t bits = hash->bytes * 8;
    unsigned char length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)(bits >> (56 - 8 * i));
    ls_sha256_add(hash, "\x80", 1);
    while (hash->bytes % BLOCK != LENGTH_AT)
        ls_sha256_add(hash, "", 1);
    ls_sha256_add(hash, length, sizeof length);
    for (int i = 0; i < 8; i++)
        snprintf(text + 8 * i, 9, "%08x", hash->state[i]);
}
