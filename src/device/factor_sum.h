/* An element of a gradient from factors: the sum over rows of x[in] dy[out], or of dy[out], for
 * host code and kernels alike.
 *
 * Portable (docs/numerics.md, section 17): chains of LS_FACTOR_CHAIN rows of fused multiply-adds,
 * which are added in fp32, one after the other. Otherwise the sum is in double, rounded once.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DEVICE_FACTOR_SUM_H
#define LS_DEVICE_FACTOR_SUM_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/host_device.h"

#define LS_FACTOR_CHAIN 128

/* x: the first number of its column, `inputs` apart from the next row's; NULL: ones. dy likewise.
 */
LS_HOST_DEVICE float ls_factor_chains(const float *x, size_t inputs, const float *dy,
                                      size_t outputs, size_t rows)
{
    float sum = 0, chain = 0;
    for (size_t r = 0; r < rows; r++) {
        chain = fmaf(x != NULL ? x[r * inputs] : 1, dy[r * outputs], chain);
        if ((r + 1) % LS_FACTOR_CHAIN != 0 && r + 1 < rows)
            continue;
        sum = r < LS_FACTOR_CHAIN ? chain : sum + chain;
        chain = 0;
    }
    return sum;
}

LS_HOST_DEVICE float ls_factor_sum(const float *x, size_t inputs, const float *dy, size_t outputs,
                                   size_t rows, bool portable)
{
    double sum = 0;
    if (portable)
        return ls_factor_chains(x, inputs, dy, outputs, rows);
    for (size_t r = 0; r < rows; r++)
        sum += (x != NULL ? (double)x[r * inputs] : 1) * (double)dy[r * outputs];
    return (float)sum;
}

#endif
