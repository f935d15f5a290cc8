/* Sums in an order that depends on the count alone. See device/exact.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "device/exact.h"

double ls_sum_doubles(const double *x, size_t n)
{
    if (n <= 2)
        return n == 0 ? 0 : n == 1 ? x[0] : x[0] + x[1];
    size_t half = n - n / 2;
    return ls_sum_doubles(x, half) + ls_sum_doubles(x + half, n - half);
}
