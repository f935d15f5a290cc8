/* A stable sort of numbers by keys, for kernels' host code: items of equal keys keep their order.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CUDA_SORT_H
#define LS_OPS_CUDA_SORT_H

#include <stddef.h>

#include "ops/cuda/kernels/cuda_c.h"

struct ls_cuda_sort {
    uint64_t n;    /* items, fewer than 2^32 */
    uint64_t keys; /* keys are at most this, which is below 2^32 */
};

/* Arrays of n in the scratch of a sort: where keys and items are before and after it. */
struct ls_cuda_sorted {
    uint32_t *key, *item;
};

size_t ls_cuda_sort_scratch(const struct ls_cuda_sort *of);
struct ls_cuda_sorted ls_cuda_sorted_in(const struct ls_cuda_sort *of, void *scratch);
int ls_cuda_sort_items(cudaStream_t stream, const struct ls_cuda_sort *of, void *scratch);

/* Where a key, or what is larger, begins in sorted keys. */
__device__ static inline uint64_t ls_first_of_key(const uint32_t *key, uint64_t n, uint32_t wanted)
{
    uint64_t begin = 0, end = n;
    while (begin < end) {
        const uint64_t middle = begin + (end - begin) / 2;
        if (key[middle] < wanted)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

#endif
