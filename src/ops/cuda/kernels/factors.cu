/* Gradients from factors. See kernels.h. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cuda/kernels/cuda_c.h"

#include "device/factor_sum.h"
#include "ops/cuda/kernels/kernels.h"

__global__ void factor_gradient(struct ls_cuda_factors of, bool bias, size_t begin, size_t rows,
                                size_t columns, size_t row, float *gradient)
{
    const size_t width = of.transpose ? of.outputs : of.inputs;
    for (LS_EACH(i, rows * columns)) {
        const size_t at = begin + i / columns * row + i % columns;
        const size_t in = of.transpose ? at / width : at % width;
        const size_t out = bias ? at : of.transpose ? at % width : at / width;
        gradient[i] = ls_factor_sum(bias ? NULL : of.input + in, of.inputs, of.output + out,
                                    of.outputs, of.rows, of.portable);
    }
}

int ls_cuda_factor_gradient(cudaStream_t stream, const struct ls_cuda_factors *factors, bool bias,
                            size_t begin, size_t rows, size_t columns, size_t row, float *gradient)
{
    const struct ls_cuda_factors of = *factors;
    if (rows * columns == 0)
        return 0;
    return LS_LAUNCH(factor_gradient, ls_blocks(rows * columns), LS_THREADS, stream, of, bias,
                     begin, rows, columns, row, gradient);
}
