/* Loops over elements. Outputs may be the arrays that inputs are, element by element.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_VECTOR_ELEMENTWISE_H
#define LS_OPS_CPU_VECTOR_ELEMENTWISE_H

#include <stddef.h>
#include <stdint.h>

#include "ops/cpu/isa.h"

struct ls_vector_elementwise {
    /* y = x < 0 ? slope * x : x; a NaN stays one, so that it is found. */
    void (*relu)(const float *x, float *y, float slope, size_t n);
    /* dx = y > 0 ? dy : slope * dy */
    void (*relu_backward)(const float *dy, const float *y, float *dx, float slope, size_t n);
    void (*sigmoid)(const float *x, float *y, size_t n); /* y = 1 / (1 + exp(-x)) */
    /* dx = dy * (y * (1 - y)) */
    void (*sigmoid_backward)(const float *dy, const float *y, float *dx, size_t n);
    /* dx = dy * (1 - y * y) */
    void (*tanh_backward)(const float *dy, const float *y, float *dx, size_t n);
    /* y = word >= threshold ? x * scale : 0 */
    void (*drop)(const float *x, const uint32_t *word, float *y, uint32_t threshold, float scale,
                 size_t n);
    /* dx = z > 0 ? dy * scale : 0 */
    void (*drop_gated)(const float *dy, const float *z, float *dx, float scale, size_t n);
    void (*multiply)(const float *a, const float *b, float *y, size_t n);
    void (*add)(const float *a, const float *b, float *y, size_t n);
    /* y = a + b of bf16, through relu (`slope`, else NULL) or relu_backward (`gate`, too). */
    void (*add_bf16)(const uint16_t *a, const uint16_t *b, const uint16_t *gate, const float *slope,
                     uint16_t *y, size_t n);
    void (*multiply_by)(const float *x, float factor, float *y, size_t n);
    /* y = a + factor * x */
    void (*add_scaled)(const float *a, const float *x, float factor, float *y, size_t n);
    void (*larger)(const float *a, const float *b, float *y, size_t n); /* y = a > b ? a : b */
    /* Where x > top: top = x, winner = which. */
    void (*challenge)(const float *x, float *top, int32_t *winner, int32_t which, size_t n);
    /* dx = winner == which ? dy : 0 */
    void (*pick)(const float *dy, const int32_t *winner, int32_t which, float *dx, size_t n);
};
LS_VECTOR_TABLES(ls_vector_elementwise)

#endif
