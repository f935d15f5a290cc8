/* Numbers that are only moved or set. See kernels.h. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cuda/kernels/cuda_c.h"

#include "ops/cuda/kernels/kernels.h"

__global__ void swap_bytes(unsigned char *a, unsigned char *b, size_t bytes)
{
    for (LS_EACH(i, bytes)) {
        const unsigned char byte = a[i];
        a[i] = b[i];
        b[i] = byte;
    }
}

__global__ void swap_words(uint64_t *a, uint64_t *b, size_t words)
{
    for (LS_EACH(i, words)) {
        const uint64_t word = a[i];
        a[i] = b[i];
        b[i] = word;
    }
}

int ls_cuda_swap(cudaStream_t stream, void *a, void *b, size_t bytes)
{
    if (((uintptr_t)a | (uintptr_t)b | bytes) % sizeof(uint64_t) == 0)
        return LS_LAUNCH(swap_words, ls_blocks(bytes / 8), LS_THREADS, stream, (uint64_t *)a,
                         (uint64_t *)b, bytes / 8);
    return LS_LAUNCH(swap_bytes, ls_blocks(bytes), LS_THREADS, stream, (unsigned char *)a,
                     (unsigned char *)b, bytes);
}

__global__ void fill_words(uint32_t *words, uint32_t value, size_t n)
{
    for (LS_EACH(i, n))
        words[i] = value;
}

int ls_cuda_fill_words(cudaStream_t stream, uint32_t *words, uint32_t value, size_t n)
{
    return LS_LAUNCH(fill_words, ls_blocks(n), LS_THREADS, stream, words, value, n);
}

__global__ void number_rows(const float *row, int32_t *number, size_t n)
{
    for (LS_EACH(i, n))
        number[i] = row[i] > 0 ? (int32_t)row[i] - 1 : 0;
}

int ls_cuda_number_rows(cudaStream_t stream, const float *row, int32_t *number, size_t n)
{
    return LS_LAUNCH(number_rows, ls_blocks(n), LS_THREADS, stream, row, number, n);
}
