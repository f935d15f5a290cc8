/* Masks. See ir/mask.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ir/mask.h"

#include <string.h>

#include "base/hash.h"
#include "base/memory.h"

struct ls_mask *ls_mask_new(int64_t size)
{
    struct ls_mask *mask =
        ls_alloc(1, sizeof *mask + ls_mask_words((size_t)size) * sizeof *mask->bits);
    if (mask != NULL)
        mask->size = size;
    return mask;
}

void ls_mask_count(struct ls_mask *mask)
{
    mask->masked = 0;
    for (size_t i = 0; i < ls_mask_words((size_t)mask->size); i++)
        mask->masked += __builtin_popcount(mask->bits[i]);
}

bool ls_mask_equal(const struct ls_mask *a, const struct ls_mask *b)
{
    return a->size == b->size &&
           memcmp(a->bits, b->bits, ls_mask_words((size_t)a->size) * sizeof *a->bits) == 0;
}

uint64_t ls_mask_hash(const struct ls_mask *mask, uint64_t seed)
{
    uint64_t hash = ls_mix(seed + (uint64_t)mask->size);
    for (size_t i = 0; i < ls_mask_words((size_t)mask->size); i++)
        hash = ls_mix(hash ^ mask->bits[i]);
    return hash;
}
