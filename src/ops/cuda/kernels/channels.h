/* Channels of elements that are taken one after the other, for kernels.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CUDA_CHANNELS_H
#define LS_OPS_CUDA_CHANNELS_H

#include "ops/cuda/kernels/cuda_c.h"

/* The channel of an element, each of which has `inner` elements that follow each other. */
struct ls_channel_place {
    uint64_t channel, dim, place, inner;
};

__device__ static inline struct ls_channel_place ls_channel_at(uint64_t i, uint64_t dim,
                                                               uint64_t inner)
{
    struct ls_channel_place at;
    at.channel = i / inner % dim;
    at.dim = dim;
    at.place = i % inner;
    at.inner = inner;
    return at;
}

/* That of the element behind. */
__device__ static inline void ls_next_channel(struct ls_channel_place *at)
{
    if (++at->place < at->inner)
        return;
    at->place = 0;
    at->channel = at->channel + 1 < at->dim ? at->channel + 1 : 0;
}

#endif
