/* The bias of each channel of a tensor [samples, channels, points], with a ReLU behind it, and its
 * gradient.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_VECTOR_CHANNEL_BIAS_H
#define LS_OPS_CPU_VECTOR_CHANNEL_BIAS_H

#include <stdint.h>

#include "ops/cpu/isa.h"

struct ls_channel_shape {
    int64_t samples, channels, points, block; /* block 1: plain */
};

struct ls_vector_channel_bias {
    /* y[n, c, p] += b[c]; the lanes of padding stay as they are */
    void (*add)(const struct ls_channel_shape *shape, const float *b, float *y);
    /* z = y[n, c, p] + b[c]; y[n, c, p] = z < 0 ? slope z : z, and 0 for slope z where slope is 0,
     * as elementwise.h has it: the same bits as both one after the other */
    void (*add_relu)(const struct ls_channel_shape *shape, const float *b, float slope, float *y);
    /* db[c] = sum of dy[n, c, p], in double */
    void (*sum)(const struct ls_channel_shape *shape, const float *dy, float *db);
};
LS_VECTOR_TABLES(ls_vector_channel_bias)

#endif
