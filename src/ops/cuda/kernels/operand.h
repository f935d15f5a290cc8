/* Arrays of fp32 or bf16 whose type is known when a kernel runs: all of its threads take the same
 * way. See numbers.h for types that are known before.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CUDA_OPERAND_H
#define LS_OPS_CUDA_OPERAND_H

#include "ops/cuda/kernels/numbers.h"

struct ls_operand {
    const void *data;
    bool bf16;
    __device__ float operator[](int64_t i) const
    {
        return bf16 ? ls_number(((const ls_bf16 *)data)[i]) : ((const float *)data)[i];
    }
};

struct ls_result {
    void *data;
    bool bf16;
    __device__ void put(int64_t i, float number) const
    {
        if (bf16)
            ls_put(&((ls_bf16 *)data)[i], number);
        else
            ((float *)data)[i] = number;
    }
};

#endif
