/* Windows of a convolution as rows of a matrix: how bf16 or fp32 numbers are copied there.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_VECTOR_BF16_WINDOWS_H
#define LS_OPS_CPU_VECTOR_BF16_WINDOWS_H

#include <stddef.h>
#include <stdint.h>

#include "ops/cpu/isa.h"

/* Elements [to, to + head + count + tail) of a row: `head` zeros, `count` numbers from `from`,
 * `step` apart, `tail` zeros. */
struct ls_bf16_run {
    int64_t from;
    int32_t to, head, count, tail;
};

struct ls_vector_bf16_windows {
    /* Fills `rows` rows, `pitch` apart, by `runs`, which follow each other; for each row `data` is
     * `plane` elements further. Behind the last run anything may be written up to `width`. */
    void (*copy)(const struct ls_bf16_run *run, size_t runs, const uint16_t *data, int64_t plane,
                 int64_t step, size_t rows, uint16_t *to, size_t pitch, size_t width);
    void (*copy_floats)(const struct ls_bf16_run *run, size_t runs, const float *data,
                        int64_t plane, int64_t step, size_t rows, float *to, size_t pitch);
};
LS_VECTOR_TABLES(ls_vector_bf16_windows)

#endif
