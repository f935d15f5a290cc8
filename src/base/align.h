/* Bytes of blocks that lie one behind the other.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_BASE_ALIGN_H
#define LS_BASE_ALIGN_H

#include <stddef.h>

/* Bytes rounded up to 64, so that what follows is aligned as ls_alloc_aligned aligns. */
static inline size_t ls_align(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

#endif
