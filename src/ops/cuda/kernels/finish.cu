/* See finish.h. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cuda/kernels/finish.h"

#include "ops/cuda/kernels/numbers.h"

namespace
{

/* A pack lies in one row, since columns are a whole number of packs where they are packs at all. */
template <typename P, typename F>
__global__ void end_sums(struct ls_cuda_ending of, const float *sum, typename P::number *y,
                         uint64_t packs)
{
    for (LS_EACH(i, packs)) {
        float number[P::WIDTH];
        ls_read(F(), sum, i, number);
        const int64_t column = (int64_t)(i * P::WIDTH) % of.columns;
        for (int k = 0; k < P::WIDTH; k++) {
            if (of.bias != NULL)
                number[k] = number[k] + of.bias[column + k];
            if (of.relu && number[k] < 0)
                number[k] = of.slope == 0 ? 0 : of.slope * number[k];
        }
        ls_write(P(), y, i, number);
    }
}

template <typename T, int W>
int give(cudaStream_t stream, const struct ls_cuda_ending *ending, const float *sum, void *y,
         int64_t n)
{
    const struct ls_cuda_ending of = *ending;
    return LS_LAUNCH((end_sums<ls_pack<T, W>, ls_pack<float, W>>), ls_blocks((uint64_t)n / W),
                     LS_THREADS, stream, of, sum, (T *)y, (uint64_t)n / W);
}

/* A block sums LANES columns. Its PARTS warps compute a block of TERMS terms each, of PARTS blocks
 * at a time, which the first warp adds up in their order. */
constexpr int TERMS = 32, LANES = 32, PARTS = 16;

template <typename T>
__global__ void __launch_bounds__(LANES *PARTS)
    sum_columns(const T *numbers, int64_t rows, int64_t columns, float *sums)
{
    __shared__ float part[PARTS][LANES];
    const int lane = (int)threadIdx.x % LANES, mine = (int)threadIdx.x / LANES;
    for (int64_t from = (int64_t)blockIdx.x * LANES; from < columns;
         from += (int64_t)gridDim.x * LANES) {
        const int64_t column = from + lane;
        float sum = 0;
        for (int64_t first = 0; first < rows; first += PARTS * TERMS) {
            const int64_t begin = first + mine * TERMS;
            float chain[2] = {0, 0};
            for (int64_t r = begin; column < columns && r < rows && r < begin + TERMS; r++)
                chain[(r - begin) % 2] =
                    chain[(r - begin) % 2] + ls_number(numbers[r * columns + column]);
            part[mine][lane] = chain[0] + chain[1];
            __syncthreads();
            for (int k = 0; mine == 0 && k < PARTS && first + k * TERMS < rows; k++)
                sum = sum + part[k][lane];
            __syncthreads();
        }
        if (mine == 0 && column < columns)
            sums[column] = sum + 0.0F;
    }
}

template <typename T>
int give_columns(cudaStream_t stream, const void *numbers, int64_t rows, int64_t columns,
                 float *sums)
{
    const int64_t blocks = (columns + LANES - 1) / LANES;
    return LS_LAUNCH(sum_columns<T>, (unsigned)(blocks < LS_BLOCKS_MAX ? blocks : LS_BLOCKS_MAX),
                     (unsigned)(LANES * PARTS), stream, (const T *)numbers, rows, columns, sums);
}

} // namespace

int ls_cuda_end_sums(cudaStream_t stream, const struct ls_cuda_ending *of, const float *sum,
                     bool bf16, void *y, int64_t n)
{
    const bool packs = ((uintptr_t)sum | (uintptr_t)y) % 16 == 0 && of->columns % 4 == 0;
    if (n <= 0)
        return 0;
    if (bf16)
        return packs ? give<ls_bf16, 4>(stream, of, sum, y, n)
                     : give<ls_bf16, 1>(stream, of, sum, y, n);
    return packs ? give<float, 4>(stream, of, sum, y, n) : give<float, 1>(stream, of, sum, y, n);
}

int ls_cuda_sum_columns(cudaStream_t stream, const void *numbers, bool bf16, int64_t rows,
                        int64_t columns, float *sums)
{
    if (columns <= 0)
        return 0;
    return bf16 ? give_columns<ls_bf16>(stream, numbers, rows, columns, sums)
                : give_columns<float>(stream, numbers, rows, columns, sums);
}
