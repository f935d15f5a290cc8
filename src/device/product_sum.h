/* Sums of products of bf16 or fp32 numbers, as docs/numerics.md defines them for every device
 * (sections 16 and 17): term by term, in plain C. The calling thread flushes denormal numbers.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DEVICE_PRODUCT_SUM_H
#define LS_DEVICE_PRODUCT_SUM_H

#include <math.h>
#include <stdint.h>

enum { LS_PRODUCT_BLOCK = 32 }; /* terms, in two chains */

/* A sum that terms are added to, one after the other; zeros at first. */
struct ls_product_sum {
    float chain[2], sum;
    int64_t terms;
};

static inline void ls_product_sum_end_block(struct ls_product_sum *sum)
{
    const float both = sum->chain[0] + sum->chain[1];
    sum->sum = sum->sum + both;
    sum->chain[0] = sum->chain[1] = 0;
}

/* The next term, in blocks. */
static inline void ls_product_sum_add(struct ls_product_sum *sum, float a, float b)
{
    if (sum->terms > 0 && sum->terms % LS_PRODUCT_BLOCK == 0)
        ls_product_sum_end_block(sum);
    float *chain = &sum->chain[sum->terms++ % 2];
    *chain = fmaf(a, b, *chain);
}

/* The next term of a sum without blocks: groups of single channels. */
static inline void ls_product_sum_chain(struct ls_product_sum *sum, float a, float b)
{
    sum->sum = fmaf(a, b, sum->sum);
}

/* What the sum is; never -0. */
static inline float ls_product_sum_end(struct ls_product_sum *sum)
{
    if (sum->terms > 0)
        ls_product_sum_end_block(sum);
    return sum->sum + 0.0F;
}

#endif
