/* What MVN, GroupNorm, LayerNorm, RMSNorm and InstanceNorm share: normalisation by statistics of
 * each sample by itself (batch norm and its kin: layers/normalize.h).
 *
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
    bool no_bias; /* affine: a scale alone */
};

/* For `setup`, behind the checks of the bottom: takes over eps and asks for scale and bias, whose
 * shape is that of the axes [attr.axis, attr.axis + axes). Returns 0 or the status of what it
 * reported. */
int ls_sample_norm_fields(struct ls_layer *layer, struct ls_error *error,
                          const struct ls_sample_norm_fields *fields, int axes);

/* The other entries of the layer types. */
int ls_sample_norm_forward(struct ls_layer *layer, struct ls_error *error);
int ls_sample_norm_backward(struct ls_layer *layer, struct ls_error *error);
void ls_sample_norm_cost(const struct ls_layer *layer, struct ls_cost *cost);

#endif
