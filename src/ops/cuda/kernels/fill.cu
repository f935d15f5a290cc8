/* Numbers of fillers. See sequences.h. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cuda/kernels/sequences.h"

#include "base/philox.h"
#include "device/normal_number.h"
#include "ops/cuda/kernels/cuda_c.h"

__device__ static double number_of(const struct ls_cuda_fill *of, uint64_t ordinal, uint64_t i)
{
    const struct ls_filler *filler = &of->filler;
    if (filler->kind == LS_FILLER_NORMAL) {
        if (filler->keep >> 32 == 0 && ls_philox_number(of->mask_key, ordinal, i) >= filler->keep)
            return 0;
        return filler->first + ls_normal_number(of->key, ordinal, i) * filler->second;
    }
    const uint32_t word = filler->kind == LS_FILLER_CONSTANT || filler->kind == LS_FILLER_BILINEAR
                              ? 0
                              : ls_philox_number(of->key, ordinal, i);
    return ls_filler_number(filler, i, (double)(word >> 8) * 0x1p-24);
}

__global__ void fill(struct ls_cuda_fill of, const struct ls_batch_numbers *numbers, float *y)
{
    for (LS_EACH(i, of.n)) {
        const uint64_t sample = i / (uint64_t)of.each;
        const uint64_t ordinal = of.samples ? (uint64_t)numbers->first_ordinal + sample : 0;
        y[i] = (float)number_of(&of, ordinal, i % (uint64_t)of.each);
    }
}

/* A thread a row: its numbers are added up one after the other. */
__global__ void divide_rows(int64_t rows, int64_t row, float *y)
{
    for (LS_EACH(r, rows)) {
        float *const numbers = y + r * (uint64_t)row;
        double sum = 0;
        for (int64_t i = 0; i < row; i++)
            sum += (double)numbers[i];
        for (int64_t i = 0; i < row; i++)
            numbers[i] = (float)(sum > 0 ? (double)numbers[i] / sum : 1 / (double)row);
    }
}

int ls_cuda_fill_numbers(cudaStream_t stream, const struct ls_cuda_fill *of,
                         const struct ls_batch_numbers *numbers, float *y)
{
    const struct ls_cuda_fill by = *of;
    const int code = LS_LAUNCH(fill, ls_blocks((uint64_t)by.n), LS_THREADS, stream, by, numbers, y);
    if (code != 0 || by.filler.kind != LS_FILLER_UNITBALL)
        return code;
    const int64_t row = by.filler.row, rows = by.n / row;
    return LS_LAUNCH(divide_rows, ls_blocks((uint64_t)rows), LS_THREADS, stream, rows, row, y);
}
