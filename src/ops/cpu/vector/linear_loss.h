/* Softmax of scores that lie class by class: z[v * pitch + r] is that of class v in row r. Rows are
 * lanes, so that each sum runs over the classes in their order.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_VECTOR_LINEAR_LOSS_H
#define LS_OPS_CPU_VECTOR_LINEAR_LOSS_H

#include <stddef.h>
#include <stdint.h>

#include "ops/cpu/isa.h"

struct ls_vector_linear_loss {
    /* most[r] = the largest of most[r] and z[v][r]; a NaN is passed over. */
    void (*largest)(const float *z, size_t classes, size_t rows, size_t pitch, float *most);
    /* count[r] += how many z[v][r] are least[r] or more */
    void (*reach)(const float *z, size_t classes, size_t rows, size_t pitch, const float *least,
                  int32_t *count);
    /* z[v][r] = exp(z[v][r] - most[r]); sum[r] += it */
    void (*powers)(float *z, size_t classes, size_t rows, size_t pitch, const float *most,
                   double *sum);
    /* e[v][r] = factor[r] == 0 ? 0 : e[v][r] factor[r] */
    void (*scale)(float *e, size_t classes, size_t rows, size_t pitch, const float *factor);
    /* sum[v] = the sum of d[v][r] over the rows, in their order. */
    void (*sum_rows)(const float *d, size_t classes, size_t rows, size_t pitch, double *sum);
};
LS_VECTOR_TABLES(ls_vector_linear_loss)

#endif
