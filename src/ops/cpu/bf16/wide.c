/* See wide.h. SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/bf16/wide.h"

#include "ops/cpu/vector/convert.h"

enum {
    AHEAD = 4,       /* rows that are on their way to the cache */
    LINE_FLOATS = 16 /* of a cache line */
};

/* Rows lie far apart, and no processor foresees where the next one begins. */
static void fetch(const float *row, int64_t columns)
{
    for (int64_t j = 0; j < columns; j += LINE_FLOATS)
        __builtin_prefetch(row + j, 0, 3);
}

void ls_bf16_read_wide(const struct ls_bf16_operand *operand, int64_t first, int64_t count,
                       int64_t begin, int64_t end, void *to, size_t pitch)
{
    const struct ls_bf16_wide *wide = operand->user;
    const struct ls_vector_convert *vector = ls_vector_convert();
    const int64_t row = operand->by_term ? begin : first, column = operand->by_term ? first : begin;
    const int64_t rows = operand->by_term ? end - begin : count;
    const int64_t columns = operand->by_term ? count : end - begin;
    const float *from = wide->data + row * wide->columns + column;
    uint16_t *line = to;
    for (int64_t r = 0; r < rows; r++, from += wide->columns, line += pitch) {
        if (r + AHEAD < rows)
            fetch(from + AHEAD * wide->columns, columns);
        vector->f32_to_bf16((const uint32_t *)(const void *)from, line, (size_t)columns);
    }
}
