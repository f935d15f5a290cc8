/* The end of a block of 32 terms (docs/numerics.md, section 16), for files that keep the sums of
 * some lines in registers: VECTORS of them side by side, which they define in front of this. `rows`
 * and `vectors` are constants. SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_VECTOR_BF16_BLOCK_H
#define LS_OPS_CPU_VECTOR_BF16_BLOCK_H

#include "ops/cpu/vector/registers.h"

/* Begins both chains. */
INLINE void clear(int rows, int vectors, REGISTER even[][VECTORS], REGISTER odd[][VECTORS])
{
    UNROLL
    for (int i = 0; i < rows; i++)
        UNROLL
    for (int v = 0; v < vectors; v++)
        even[i][v] = odd[i][v] = ZERO();
}

/* Adds them to the sums, which they are if it is the `first` block; `last`: they are finished. */
INLINE void put_block(float *sums, size_t pitch, bool first, bool last, int rows, int vectors,
                      REGISTER even[][VECTORS], REGISTER odd[][VECTORS])
{
    UNROLL
    for (int i = 0; i < rows; i++, sums += pitch)
        UNROLL
    for (int v = 0; v < vectors; v++) {
        REGISTER sum = ADD(even[i][v], odd[i][v]);
        if (!first)
            sum = ADD(LOAD(sums + v * WIDTH), sum);
        if (last)
            sum = ADD(sum, ZERO());
        STORE(sums + v * WIDTH, sum);
    }
}

#endif
