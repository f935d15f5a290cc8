/* Loops that multiply by a factor and add a bias along some axes of a tensor, and their gradients.
 *
 * Sums are of doubles, in an order that depends on the layout and the shape alone.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_VECTOR_SCALE_H
#define LS_OPS_CPU_VECTOR_SCALE_H

#include <stdbool.h>
#include <stdint.h>

#include "ops/cpu/isa.h"

struct ls_scale {
    int64_t block;             /* channels a block: 1 (plain), 8, 16 */
    int64_t outer, dim, inner; /* plain: x [outer, dim, inner], factor [dim] */
    /* Blocked: x [samples, blocks, points, block]; the factor has an axis of samples, of channels,
     * both or none. */
    int64_t samples, channels, points;
    bool by_sample, by_channel;
    bool bf16; /* x, y and dy are bf16, and plain */
};

struct ls_vector_scale {
    /* y = x factor + bias; factor or bias may be NULL. */
    void (*forward)(const struct ls_scale *scale, const void *x, const float *factor,
                    const float *bias, void *y);
    int64_t (*scratch)(const struct ls_scale *scale); /* doubles that `sums` needs */
    /* dfactor = sums of dy x (NULL: not wanted), dbias = sums of dy (NULL: not wanted) */
    void (*sums)(const struct ls_scale *scale, const void *dy, const void *x, double *scratch,
                 float *dfactor, float *dbias);
};
LS_VECTOR_TABLES(ls_vector_scale)

#endif
