/* The wire format of sums. See transport/wire.h. The low 32 bits of all come first, then the high
 * 16: both loops are simple enough for a compiler to use vectors.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "transport/wire.h"

#include <string.h>

bool ls_wire_pack(void *out, const int64_t *sums, size_t n, bool wide)
{
    if (wide) {
        memcpy(out, sums, n * sizeof *sums);
        return true;
    }
    uint32_t *low = out;
    uint16_t *high = (uint16_t *)(low + n);
    uint64_t beyond = 0; /* bits above 48 once the sum is made non-negative */
    for (size_t i = 0; i < n; i++) {
        low[i] = (uint32_t)sums[i];
        high[i] = (uint16_t)((uint64_t)sums[i] >> 32);
        beyond |= (uint64_t)sums[i] + (UINT64_C(1) << 47);
    }
    return beyond >> 48 == 0;
}

void ls_wire_add(int64_t *sums, const void *in, size_t n, bool wide)
{
    if (wide) {
        const int64_t *from = in;
        for (size_t i = 0; i < n;
             i++) /* wraps where exponents do not fit: the update is repeated */
            sums[i] = (int64_t)((uint64_t)sums[i] + (uint64_t)from[i]);
        return;
    }
    const uint32_t *low = in;
    const int16_t *high = (const int16_t *)(low + n);
    for (size_t i = 0; i < n; i++) {
        uint64_t sum = (uint64_t)(int64_t)high[i] << 32 | low[i];
        sums[i] = (int64_t)((uint64_t)sums[i] + sum);
    }
}
