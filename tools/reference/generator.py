"""The numbers that weights and data are made of; tests/support/case_data.c has the same ones.

Element i of the array called `name` is

    h(s(name) * 2^32 + i)

with s the FNV-1a hash of the name (64 bits, its upper half exclusive-or its lower half) and h the
output function of SplitMix64 (Steele, Lea, Flood 2014), all modulo 2^64:

    z = (x + 1) * 0x9e3779b97f4a7c15
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9
    z = (z ^ z >> 27) * 0x94d049bb133111eb
    h = z ^ z >> 31

A byte is h >> 56; a weight (h >> 40) / 2^23 - 1, times a power of two: exact in fp32.

SPDX-License-Identifier: BSD-2-Clause
"""

import numpy as np

MASK = (1 << 64) - 1


def stream(name):
    hash_ = 0xCBF29CE484222325
    for byte in name.encode():
        hash_ = ((hash_ ^ byte) * 0x100000001B3) & MASK
    return (hash_ >> 32) ^ (hash_ & 0xFFFFFFFF)


def words(name, count):
    """`count` numbers of 64 bits."""
    with np.errstate(over="ignore"):
        x = np.uint64(stream(name) << 32) + np.arange(count, dtype=np.uint64)
        z = (x + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
        return z ^ z >> np.uint64(31)


def data_bytes(name, count, below=256):
    """Bytes; below 256: remainders of them."""
    return ((words(name, count) >> np.uint64(56)) % np.uint64(below)).astype(np.uint8)


def weights(name, count, scale):
    return ((words(name, count) >> np.uint64(40)).astype(np.float64) / 2.0**23 - 1) * scale


def signs(number, count):
    """+1 or -1 for each element: what array number `number` of the four is projected on."""
    return 1.0 - 2.0 * ((words("signs", count) >> np.uint64(number)) & np.uint64(1)).astype(
        np.float64
    )


def places(size, count):
    """Indices of `count` elements, spread evenly."""
    count = min(size, count)
    return [(2 * k + 1) * size // (2 * count) for k in range(count)]
