/* What MVN, GroupNorm, LayerNorm and InstanceNorm share: normalisation by statistics of each sample
 * by itself (batch norm and its kin: layers/normalize.h).
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_LAYERS_SAMPLE_NORM_H
#define LS_LAYERS_SAMPLE_NORM_H

#include "layers/common.h"

/* The state of these layers: `attr` is set by `setup`. */
struct ls_sample_norm {
    struct ls_normalize_attr attr;
    struct ls_value *stats; /* for the backward pass */
};

/* The fields that all of ours have; `message` holds them, NULL where none is given. */
struct ls_sample_norm_fields {
    const void *message;
    float eps;
    bool affine;
    const Lockstep__FillerParameter *scale_filler, *bias_filler;
};

/* Checks that samples lie along axis 0 and that there are channels behind them. */
int ls_sample_norm_check_channels(const struct ls_layer *layer, struct ls_error *error);
/* eps must be a number that can be divided by. */
int ls_sample_norm_check_eps(const struct ls_layer *layer, struct ls_error *error,
                             const void *message, float eps);
/* For `setup`, behind those: takes over eps and asks for scale and bias, whose shape is that of
 * the axes [attr.axis, attr.axis + axes). */
int ls_sample_norm_fields(struct ls_layer *layer, struct ls_error *error,
                          const struct ls_sample_norm_fields *fields, int axes);

int ls_sample_norm_forward(struct ls_layer *layer, struct ls_error *error);
int ls_sample_norm_backward(struct ls_layer *layer, struct ls_error *error);
void ls_sample_norm_cost(const struct ls_layer *layer, struct ls_cost *cost);

#endif
