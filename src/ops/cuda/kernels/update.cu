/* Update rules and masks. See kernels.h. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cuda/kernels/cuda_c.h"

#include "ops/cuda/kernels/kernels.h"
#include "ops/cuda/kernels/update.h"

template <int W>
__global__ void update_elements(struct ls_update_rule rule, struct ls_update_slice slice,
                                uint32_t *seen)
{
    struct ls_update_seen mine = {0, 0};
    for (LS_EACH(i, slice.n / W)) {
        struct ls_update_pack<W> pack;
        struct ls_update_slice here;
        ls_read_slice(&slice, i, &pack, &here);
        for (int k = 0; k < W; k++)
            ls_update_element(&rule, &here, (size_t)k, &mine);
        ls_write_slice(&slice, i, &pack);
    }
    uint32_t gradient = ls_warp_largest(mine.gradient), weight = ls_warp_largest(mine.weight);
    if (threadIdx.x % warpSize == 0) {
        atomicMax(&seen[0], gradient);
        atomicMax(&seen[1], weight);
    }
}

int ls_cuda_update(cudaStream_t stream, const struct ls_update_rule *rule,
                   const struct ls_update_slice *slice, uint32_t *seen)
{
    if (slice->n == 0)
        return 0;
    const struct ls_update_rule by = *rule;
    const struct ls_update_slice of = *slice;
    if (ls_slice_has_packs(&of))
        return LS_LAUNCH(update_elements<4>, ls_blocks(of.n / 4), LS_THREADS, stream, by, of, seen);
    return LS_LAUNCH(update_elements<1>, ls_blocks(of.n), LS_THREADS, stream, by, of, seen);
}

__global__ void clear_masked(const uint32_t *mask, size_t first, float *numbers, size_t n)
{
    for (LS_EACH(i, n))
        if (mask[(first + i) / 32] >> (first + i) % 32 & 1)
            numbers[i] = 0;
}

int ls_cuda_clear_masked(cudaStream_t stream, const uint32_t *mask, size_t first, float *numbers,
                         size_t n)
{
    if (n == 0)
        return 0;
    return LS_LAUNCH(clear_masked, ls_blocks(n), LS_THREADS, stream, mask, first, numbers, n);
}
