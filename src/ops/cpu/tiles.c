/* SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/tiles.h"

#include "ops/cpu/vector/convert.h"

static bool is_fp32(const struct ls_value *value)
{
    return value != NULL && value->type == LS_F32;
}

bool ls_all_bf16(const struct ls_op *op)
{
    for (int i = 0; i < op->inputs; i++)
        if (is_fp32(op->input[i]))
            return false;
    for (int i = 0; i < op->outputs; i++)
        if (is_fp32(op->output[i]))
            return false;
    return true;
}

const float *ls_tile_read(const struct ls_value *value, const void *array, size_t from,
                          size_t count, float *tile)
{
    if (value->type != LS_BF16)
        return (const float *)array + from;
    ls_vector_convert()->bf16_to_f32((const uint16_t *)array + from, (uint32_t *)(void *)tile,
                                     count);
    return tile;
}

float *ls_tile_begin(const struct ls_value *value, void *array, size_t from, float *tile)
{
    return value->type == LS_BF16 ? tile : (float *)array + from;
}

void ls_tile_end(const struct ls_value *value, void *array, size_t from, size_t count,
                 const float *tile)
{
    if (value->type == LS_BF16)
        ls_vector_convert()->f32_to_bf16((const uint32_t *)(const void *)tile,
                                         (uint16_t *)array + from, count);
}
