/* Figures of numbers: magnitudes and norms. See kernels.h. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cuda/kernels/cuda_c.h"

#include "device/exact.h"
#include "ops/cuda/kernels/kernels.h"

__global__ void find_largest(const float *x, size_t n, uint32_t *bits)
{
    uint32_t mine = 0;
    for (LS_EACH(i, n))
        mine = ls_larger(mine, ls_magnitude(x[i]));
    mine = ls_warp_largest(mine);
    if (threadIdx.x % warpSize == 0)
        atomicMax(bits, mine);
}

int ls_cuda_largest(cudaStream_t stream, const float *x, size_t n, uint32_t *bits)
{
    if (n == 0)
        return 0;
    return LS_LAUNCH(find_largest, ls_blocks(n), LS_THREADS, stream, x, n, bits);
}

/* A chunk is a half-warp's: lane i adds elements i, i + 16, ... and lanes are folded by halves. */
__global__ void sum_chunks(const float *x, size_t n, bool squared, double *chunk)
{
    const uint64_t thread = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    const uint64_t mine = thread / LS_EXACT_LANES, lane = thread % LS_EXACT_LANES;
    const uint64_t begin = mine * LS_EXACT_CHUNK;
    const uint64_t end = begin + LS_EXACT_CHUNK < n ? begin + LS_EXACT_CHUNK : n;
    double sum = 0;
    for (uint64_t i = begin + lane; i < end; i += LS_EXACT_LANES) {
        const double value = (double)x[i];
        sum += squared ? value * value : fabs(value);
    }
    for (int apart = LS_EXACT_LANES / 2; apart > 0; apart /= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, (unsigned)apart);
    if (lane == 0 && begin < n)
        chunk[mine] = sum;
}

int ls_cuda_norms(cudaStream_t stream, const float *x, size_t n, bool squared, double *chunk)
{
    const uint64_t chunks = (n + LS_EXACT_CHUNK - 1) / LS_EXACT_CHUNK;
    const uint64_t blocks = (chunks * LS_EXACT_LANES + LS_THREADS - 1) / LS_THREADS;
    if (n == 0)
        return 0;
    return LS_LAUNCH(sum_chunks, (unsigned)blocks, LS_THREADS, stream, x, n, squared, chunk);
}
