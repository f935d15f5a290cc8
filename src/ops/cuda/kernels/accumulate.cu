/* Exact sums of gradients. See kernels.h. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cuda/kernels/cuda_c.h"

#include "device/accumulator.h"
#include "device/exact.h"
#include "ops/cuda/kernels/kernels.h"
#include "ops/cuda/kernels/update.h"

__device__ static size_t row_of(const struct ls_cuda_sum *sum, uint64_t element)
{
    return sum->row != NULL ? (size_t)sum->row[element] : sum->rows > 1 ? (size_t)element : 0;
}

/* Whole units of 2^-exponent; 0 where they are too many, which `largest` tells. */
__device__ static int64_t to_units(float x, int32_t exponent)
{
    const double units = ldexp((double)x, exponent);
    return fabs(units) < 0x1p62 ? (int64_t)rint(units) : 0;
}

__device__ static void add_element(const struct ls_cuda_sum *sum, bool measure,
                                   const int64_t *micro_batch, uint64_t element, float x)
{
    const size_t row = row_of(sum, element);
    const uint32_t bits = ls_magnitude(x);
    if (bits > sum->largest[row])
        atomicMax(&sum->largest[row], bits);
    if (bits >= LS_NOT_FINITE)
        atomicMin(sum->first_not_finite, (int32_t)*micro_batch);
    if (!measure)
        atomicAdd((unsigned long long *)&sum->total[element],
                  (unsigned long long)to_units(x, sum->exponent[row]));
}

__global__ void accumulate(struct ls_cuda_sum sum, const int64_t *micro_batch,
                           const float *gradient)
{
    const bool measure = *sum.measure != 0;
    for (LS_EACH(i, sum.elements))
        add_element(&sum, measure, micro_batch, i, gradient[i]);
}

/* A parameter of one row: a warp raises the largest once. Threads add numbers that follow each
 * other: additions in memory are what takes time, and they are merged where they are neighbours. */
__global__ void accumulate_row(struct ls_cuda_sum sum, const int64_t *micro_batch,
                               const float *gradient)
{
    const bool measure = *sum.measure != 0;
    uint32_t largest = 0;
    for (LS_EACH(i, sum.elements)) {
        largest = ls_larger(largest, ls_magnitude(gradient[i]));
        if (!measure)
            atomicAdd((unsigned long long *)&sum.total[i],
                      (unsigned long long)to_units(gradient[i], sum.exponent[0]));
    }
    largest = ls_warp_largest(largest);
    if (threadIdx.x % warpSize != 0)
        return;
    atomicMax(&sum.largest[0], largest);
    if (largest >= LS_NOT_FINITE)
        atomicMin(sum.first_not_finite, (int32_t)*micro_batch);
}

int ls_cuda_accumulate(cudaStream_t stream, const struct ls_cuda_sum *sum,
                       const int64_t *micro_batch, const float *gradient)
{
    const struct ls_cuda_sum to = *sum;
    if (to.elements == 0)
        return 0;
    if (to.rows == 1)
        return LS_LAUNCH(accumulate_row, ls_blocks(to.elements), LS_THREADS, stream, to,
                         micro_batch, gradient);
    return LS_LAUNCH(accumulate, ls_blocks(to.elements), LS_THREADS, stream, to, micro_batch,
                     gradient);
}

__global__ void accumulate_rows(struct ls_cuda_sum sum, const int64_t *micro_batch,
                                const float *rows, const int32_t *number, size_t count,
                                size_t columns)
{
    const bool measure = *sum.measure != 0;
    __shared__ unsigned long long named;
    if (threadIdx.x == 0)
        named = count;
    __syncthreads();
    for (size_t i = threadIdx.x; i < count; i += blockDim.x)
        if (number[i] < 0)
            atomicMin(&named, (unsigned long long)i);
    __syncthreads();
    const size_t elements = named * columns;
    for (LS_EACH(i, elements))
        add_element(&sum, measure, micro_batch,
                    (uint64_t)number[i / columns] * columns + i % columns, rows[i]);
}

int ls_cuda_accumulate_rows(cudaStream_t stream, const struct ls_cuda_sum *sum,
                            const int64_t *micro_batch, const float *rows, const int32_t *number,
                            size_t count, size_t columns)
{
    const struct ls_cuda_sum to = *sum;
    if (count == 0 || columns == 0)
        return 0;
    return LS_LAUNCH(accumulate_rows, ls_blocks(count * columns), LS_THREADS, stream, to,
                     micro_batch, rows, number, count, columns);
}

__device__ static float read_sum(const struct ls_cuda_sum *sum, uint64_t element)
{
    return (float)ldexp((double)sum->total[element], -sum->total_exponent[row_of(sum, element)]);
}

__global__ void read_sums(struct ls_cuda_sum sum, size_t begin, size_t count, float *out)
{
    for (LS_EACH(i, count))
        out[i] = read_sum(&sum, begin + i);
}

int ls_cuda_read_sums(cudaStream_t stream, const struct ls_cuda_sum *sum, size_t begin,
                      size_t count, float *out)
{
    const struct ls_cuda_sum of = *sum;
    if (count == 0)
        return 0;
    return LS_LAUNCH(read_sums, ls_blocks(count), LS_THREADS, stream, of, begin, count, out);
}

/* As `sum_chunks` in sums.cu. */
__global__ void square_sums(struct ls_cuda_sum sum, size_t first, size_t count,
                            const uint32_t *mask, double *chunk)
{
    const uint64_t thread = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    const uint64_t mine = thread / LS_EXACT_LANES, lane = thread % LS_EXACT_LANES;
    const uint64_t begin = mine * LS_EXACT_CHUNK;
    const uint64_t end = begin + LS_EXACT_CHUNK < count ? begin + LS_EXACT_CHUNK : count;
    double total = 0;
    for (uint64_t i = begin + lane; i < end; i += LS_EXACT_LANES) {
        const uint64_t element = first + i;
        const bool masked = mask != NULL && (mask[element / 32] >> element % 32 & 1);
        const double value = masked ? 0 : (double)read_sum(&sum, element);
        total += value * value;
    }
    for (int apart = LS_EXACT_LANES / 2; apart > 0; apart /= 2)
        total += __shfl_down_sync(0xffffffffu, total, (unsigned)apart);
    if (lane == 0 && begin < count)
        chunk[mine] = total;
}

int ls_cuda_square_sums(cudaStream_t stream, const struct ls_cuda_sum *sum, size_t begin,
                        size_t count, const uint32_t *mask, double *chunk)
{
    const struct ls_cuda_sum of = *sum;
    const uint64_t chunks = (count + LS_EXACT_CHUNK - 1) / LS_EXACT_CHUNK;
    const uint64_t blocks = (chunks * LS_EXACT_LANES + LS_THREADS - 1) / LS_THREADS;
    if (count == 0)
        return 0;
    return LS_LAUNCH(square_sums, (unsigned)blocks, LS_THREADS, stream, of, begin, count, mask,
                     chunk);
}

/* ---- Updates --------------------------------------------------------------------------------- */

__device__ static void clear_element(const struct ls_update_slice *slice, uint64_t i)
{
    slice->weight[i] = 0;
    for (int h = 0; h < 2; h++)
        if (slice->history[h] != NULL)
            slice->history[h][i] = 0;
    if (slice->average != NULL)
        slice->average[i] = 0;
}

template <int W>
__global__ void update_from_sums(struct ls_sum_update update, struct ls_cuda_sum sum)
{
    const struct ls_update_rule rule = *update.rule;
    struct ls_update_seen seen = {0, 0};
    for (LS_EACH(i, update.slice.n / W)) {
        const uint64_t first = update.begin + i * W;
        struct ls_update_pack<W> pack;
        struct ls_update_slice here;
        ls_read_slice(&update.slice, i, &pack, &here);
        for (uint64_t k = 0; k < W; k++) {
            const uint64_t element = first + k;
            ls_update_element_by(&rule, &here, k, read_sum(&sum, element), &seen);
            if (update.mask != NULL && update.mask[element / 32] >> element % 32 & 1)
                clear_element(&here, k);
        }
        ls_write_slice(&update.slice, i, &pack);
    }
    const uint32_t gradient = ls_warp_largest(seen.gradient), weight = ls_warp_largest(seen.weight);
    if (threadIdx.x % warpSize == 0) {
        atomicMax(update.gradient, gradient);
        atomicMax(update.weight, weight);
    }
}

int ls_cuda_update_from_sums(cudaStream_t stream, const struct ls_sum_update *update,
                             const struct ls_cuda_sum *sum)
{
    struct ls_sum_update by = *update;
    const struct ls_cuda_sum from = *sum;
    if (by.slice.n == 0)
        return 0;
    by.slice.gradient = NULL; /* it is not read */
    by.sums = NULL;           /* the host's */
    if (ls_slice_has_packs(&by.slice))
        return LS_LAUNCH(update_from_sums<4>, ls_blocks(by.slice.n / 4), LS_THREADS, stream, by,
                         from);
    return LS_LAUNCH(update_from_sums<1>, ls_blocks(by.slice.n), LS_THREADS, stream, by, from);
}
