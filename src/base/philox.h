/* Philox 4x32-10, for host code and kernels alike; see base/random.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_BASE_PHILOX_H
#define LS_BASE_PHILOX_H

#include <stdint.h>

#include "base/host_device.h"

/* Ten rounds of two 32 x 32 -> 64 bit products and exclusive ors. */
LS_HOST_DEVICE void ls_philox_rounds(uint64_t key, uint64_t counter_high, uint64_t counter_low,
                                     uint32_t out[4])
{
    uint32_t c0 = (uint32_t)counter_low, c1 = (uint32_t)(counter_low >> 32);
    uint32_t c2 = (uint32_t)counter_high, c3 = (uint32_t)(counter_high >> 32);
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)UINT32_C(0xd2511f53) * c0;
        uint64_t p1 = (uint64_t)UINT32_C(0xcd9e8d57) * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += UINT32_C(0x9e3779b9); /* golden ratio */
        k1 += UINT32_C(0xbb67ae85); /* sqrt(3) - 1 */
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

/* ls_random_u32 */
LS_HOST_DEVICE uint32_t ls_philox_number(uint64_t key, uint64_t ordinal, uint64_t element)
{
    uint32_t block[4];
    ls_philox_rounds(key, ordinal, element / 4, block);
    return block[element % 4];
}

#endif
