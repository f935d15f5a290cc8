/* Updates of 4 weights at a time, for kernels: 16 bytes of each array are read and written at once.
 * The formulas are those of device/update_rule.h, on copies in registers.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CUDA_UPDATE_H
#define LS_OPS_CUDA_UPDATE_H

#include "device/update_rule.h"
#include "ops/cuda/kernels/numbers.h"

/* Weights [WIDTH i, WIDTH (i + 1)) of a slice, with what belongs to them. */
template <int W> struct ls_update_pack {
    float gradient[W], weight[W], history[2][W], direction[W], average[W];
};

template <int W>
__device__ static inline void ls_read_array(const float *array, uint64_t i, float to[W])
{
    if (array != NULL)
        ls_read(ls_pack<float, W>(), array, i, to);
}

template <int W>
__device__ static inline void ls_write_array(float *array, uint64_t i, const float from[W])
{
    if (array != NULL)
        ls_write(ls_pack<float, W>(), array, i, from);
}

/* Reads them, and makes `here` the slice of the copies. */
template <int W>
__device__ static inline void ls_read_slice(const struct ls_update_slice *slice, uint64_t i,
                                            struct ls_update_pack<W> *pack,
                                            struct ls_update_slice *here)
{
    ls_read_array<W>(slice->gradient, i, pack->gradient);
    ls_read_array<W>(slice->weight, i, pack->weight);
    ls_read_array<W>(slice->average, i, pack->average);
    for (int h = 0; h < 2; h++)
        ls_read_array<W>(slice->history[h], i, pack->history[h]);
    here->n = W;
    here->gradient = pack->gradient;
    here->weight = pack->weight;
    here->average = slice->average != NULL ? pack->average : NULL;
    here->direction = slice->direction != NULL ? pack->direction : NULL;
    for (int h = 0; h < 2; h++)
        here->history[h] = slice->history[h] != NULL ? pack->history[h] : NULL;
}

template <int W>
__device__ static inline void ls_write_slice(const struct ls_update_slice *slice, uint64_t i,
                                             const struct ls_update_pack<W> *pack)
{
    ls_write_array<W>(slice->weight, i, pack->weight);
    ls_write_array<W>(slice->average, i, pack->average);
    ls_write_array<W>(slice->direction, i, pack->direction);
    for (int h = 0; h < 2; h++)
        ls_write_array<W>(slice->history[h], i, pack->history[h]);
}

/* Whether the arrays of a slice are whole numbers of 16 bytes. */
static inline bool ls_slice_has_packs(const struct ls_update_slice *slice)
{
    const uintptr_t addresses = (uintptr_t)slice->gradient | (uintptr_t)slice->weight |
                                (uintptr_t)slice->average | (uintptr_t)slice->direction |
                                (uintptr_t)slice->history[0] | (uintptr_t)slice->history[1];
    return slice->n % 4 == 0 && addresses % 16 == 0;
}

#endif
