/* Masks: which weights of a parameter stay exactly zero.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_IR_MASK_H
#define LS_IR_MASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LS_MASK_WORD = 32 }; /* bits */

/* Bit i of `bits` (i % 32 of word i / 32) is set where element i, in Caffe's order, stays zero. One
 * allocation: ls_free. */
struct ls_mask {
    int64_t size;   /* elements */
    int64_t masked; /* bits that are set; see ls_mask_count */
    uint32_t bits[];
};

static inline size_t ls_mask_words(size_t elements)
{
    return (elements + LS_MASK_WORD - 1) / LS_MASK_WORD;
}
static inline void ls_mask_set(uint32_t *bits, int64_t element)
{
    bits[element / LS_MASK_WORD] |= (uint32_t)1 << element % LS_MASK_WORD;
}
static inline bool ls_mask_get(const uint32_t *bits, int64_t element)
{
    return bits[element / LS_MASK_WORD] >> element % LS_MASK_WORD & 1;
}

/* No weight is masked; NULL: no memory. */
struct ls_mask *ls_mask_new(int64_t size);
/* Brings `masked` up to date with the bits. */
void ls_mask_count(struct ls_mask *mask);
bool ls_mask_equal(const struct ls_mask *a, const struct ls_mask *b);
/* Of the size and the bits. */
uint64_t ls_mask_hash(const struct ls_mask *mask, uint64_t seed);

#endif
