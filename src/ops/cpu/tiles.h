/* Values in fp32 or bf16 as fp32 numbers, a tile at a time: what is bf16 is widened on its way from
 * memory and rounded on its way back, so that one loop over floats serves both. Tiles stay in the
 * nearest cache.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_TILES_H
#define LS_OPS_CPU_TILES_H

#include "ir/op.h"

enum { LS_TILE = 1024 };

/* `takes_bf16` of kernels that work so: all values with floating-point numbers are bf16. */
bool ls_all_bf16(const struct ls_op *op);

/* How many of the `left` numbers of a value the next tile has; all of fp32. */
static inline size_t ls_tile_count(const struct ls_value *value, size_t left)
{
    return value->type == LS_BF16 && left > LS_TILE ? LS_TILE : left;
}

/* Numbers [from, from + count) of an array of the value: where they lie, or as copies in `tile`. */
const float *ls_tile_read(const struct ls_value *value, const void *array, size_t from,
                          size_t count, float *tile);
/* Where a loop is to write numbers from `from` on: into the array, or into `tile`. */
float *ls_tile_begin(const struct ls_value *value, void *array, size_t from, float *tile);
/* Call it when they are written, with what ls_tile_begin returned: rounds them into the array. */
void ls_tile_end(const struct ls_value *value, void *array, size_t from, size_t count,
                 const float *tile);

#endif
