#!/usr/bin/env python3
"""Reference values of test_random.c: Philox 4x32-10 and Box-Muller with 50 digits (needs mpmath).

Prints the first numbers of one key and ordinal; the test expects the bits that Lockstep computes,
which differ from these by at most 2 units in the last place.
SPDX-License-Identifier: BSD-2-Clause
"""
from mpmath import mp, mpf, log, sqrt, cospi, sinpi

mp.dps = 50
MASK = 0xFFFFFFFF


def philox(key, high, low):
    counter = [low & MASK, low >> 32, high & MASK, high >> 32]
    k = [key & MASK, key >> 32]
    for _ in range(10):
        p0, p1 = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [(p1 >> 32) ^ counter[1] ^ k[0], p1 & MASK,
                   (p0 >> 32) ^ counter[3] ^ k[1], p0 & MASK]
        k = [(k[0] + 0x9E3779B9) & MASK, (k[1] + 0xBB67AE85) & MASK]
    return counter


def normal(key, ordinal, element):
    block = philox(key, ordinal, element // 4)
    first = element % 4 // 2 * 2
    radius = sqrt(-2 * log((mpf(block[first]) + 1) / 2**32))
    angle = mpf(block[first + 1]) / 2**31
    return radius * (sinpi(angle) if element % 2 else cospi(angle))


for e in range(6):
    print(float(normal(0x299F31D0A4093822, 17, e)).hex())
