/* The wire format of sums between ranks: 48 bits each, where they fit, else 64.
 *
 * The largest element of a gradient is about 2^40 units (engine/sums.h) and what one rank has of
 * the sum is seldom much more, so that 48 bits nearly always do. If they do not, the update is
 * repeated with 64: what is summed stays the same.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TRANSPORT_WIRE_H
#define LS_TRANSPORT_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of n sums (n even: a multiple of 4). */
static inline size_t ls_wire_bytes(size_t n, bool wide)
{
    return n * (wide ? 8 : 6);
}

/* Writes n sums to `out`; false: not all fit, and what was written means nothing. */
bool ls_wire_pack(void *out, const int64_t *sums, size_t n, bool wide);
/* Adds n sums that were packed so. */
void ls_wire_add(int64_t *sums, const void *in, size_t n, bool wide);

#endif
