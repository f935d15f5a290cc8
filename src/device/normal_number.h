/* Normal random numbers for kernels of a GPU, with the bits of ls_random_normal (base/random.h).
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DEVICE_NORMAL_NUMBER_H
#define LS_DEVICE_NORMAL_NUMBER_H

#include "base/philox.h"
#include "device/elementary_double.h"
#include "device/trigonometry.h"

/* Elements 2 i and 2 i + 1 are made of the same two words. */
LS_HOST_DEVICE double ls_normal_number(uint64_t key, uint64_t ordinal, uint64_t element)
{
    uint32_t block[4];
    ls_philox_rounds(key, ordinal, element / 4, block);
    const uint32_t *pair = block + element % 4 / 2 * 2;
    const double radius = sqrt(-2.0 * ls_double_log(((double)pair[0] + 1.0) * 0x1p-32));
    return radius * ls_double_of_half_turns((double)pair[1] * 0x1p-31, element % 2 == 0);
}

#endif
