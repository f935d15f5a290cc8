/* For files in vector/: arrays in fp32 or bf16 as fp32 numbers, a chunk at a time, so that one loop
 * over floats serves both; as ops/cpu/tiles.h is for kernels. An array in fp32 is one chunk, and
 * read and written where it lies. Indices and lengths count numbers.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_VECTOR_CHUNKS_H
#define LS_OPS_CPU_VECTOR_CHUNKS_H

#include <stdbool.h>

#include "ops/cpu/vector/lanes.h"

enum { LS_CHUNK = 1024 }; /* a multiple of LS_LANES */

/* How many of the `left` numbers the next chunk has. */
static inline int64_t ls_chunk_count(bool bf16, int64_t left)
{
    return bf16 && left > LS_CHUNK ? LS_CHUNK : left;
}

/* Number `from` of an array; NULL of none. */
static inline const void *ls_chunk_at(bool bf16, const void *array, int64_t from)
{
    const size_t size = bf16 ? sizeof(uint16_t) : sizeof(float);
    return array == NULL ? NULL : (const char *)array + (size_t)from * size;
}

/* For arithmetic: a signalling NaN becomes quiet there, or when it is rounded. */
static inline void ls_widen_chunk(const uint16_t *x, float *wide, int64_t count)
{
    int64_t i = 0;
    for (; i + LS_WIDTH <= count; i += LS_WIDTH)
        LS_STORE(wide + i, ls_load_bf16(x + i));
    for (; i < count; i++)
        wide[i] = ls_widen_bf16(x[i]);
}

static inline void ls_round_chunk(const float *wide, uint16_t *y, int64_t count)
{
    int64_t i = 0;
    for (; i + LS_WIDTH <= count; i += LS_WIDTH)
        ls_store_bf16(y + i, LS_LOAD(wide + i));
    for (; i < count; i++)
        y[i] = ls_round_bf16(wide[i]);
}

/* Numbers [from, from + count): where they lie, or as copies in `wide`. */
static inline const float *ls_chunk_read(bool bf16, const void *array, int64_t from, int64_t count,
                                         float wide[LS_CHUNK])
{
    if (!bf16)
        return (const float *)array + from;
    ls_widen_chunk((const uint16_t *)array + from, wide, count);
    return wide;
}

/* Where numbers from `from` on are to be written: into the array, or into `wide`, which has room
 * for as many as will be. */
static inline float *ls_chunk_begin(bool bf16, void *array, int64_t from, float *wide)
{
    return bf16 ? wide : (float *)array + from;
}

/* Call it when they are written, with what ls_chunk_begin returned: rounds them into the array. */
static inline void ls_chunk_end(bool bf16, void *array, int64_t from, int64_t count,
                                const float *numbers)
{
    if (bf16)
        ls_round_chunk(numbers, (uint16_t *)array + from, count);
}

#endif
