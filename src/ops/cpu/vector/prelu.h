/* Loops of PReLU: y = x > 0 ? x : slope x.
 *
 * x is seen as [outer][channels / lanes][points][lanes]: a slope for each channel, lanes 1 (plain),
 * or the channels that lie beside each other (blocked, or plain without points).
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_VECTOR_PRELU_H
#define LS_OPS_CPU_VECTOR_PRELU_H

#include <stdbool.h>
#include <stdint.h>

#include "ops/cpu/isa.h"

struct ls_prelu {
    int64_t outer, channels, points, lanes; /* channels: a multiple of lanes */
    bool bf16;                              /* x, y, dy and dx are bf16 */
};

/* `slope` has `channels` elements. Outputs may be the arrays that inputs are. */
struct ls_vector_prelu {
    void (*forward)(const struct ls_prelu *prelu, const void *x, const float *slope, void *y);
    /* dx = x > 0 ? dy : slope dy */
    void (*data)(const struct ls_prelu *prelu, const void *dy, const void *x, const float *slope,
                 void *dx);
    /* sum[c] = the sum of dy x over all x <= 0 of a channel: over the points in 16 lanes (or, where
     * channels lie beside each other, in order), then over `outer` in order. */
    void (*slope)(const struct ls_prelu *prelu, const void *dy, const void *x, double *sum);
};
LS_VECTOR_TABLES(ls_vector_prelu)

#endif
