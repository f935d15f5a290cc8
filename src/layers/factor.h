/* What the layers Scale and Bias share: a factor and a bias that lie along some axes of bottom 0.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_LAYERS_FACTOR_H
#define LS_LAYERS_FACTOR_H

#include "layers/common.h"

/* y = x factor + bias. Each comes from a blob (its index, else -1) or is bottom 1. */
struct ls_factor {
    struct ls_scale_attr attr;
    int factor_blob, bias_blob;
    bool factor_bottom, bias_bottom;
};

/* With two bottoms nothing is filled and bottom 1 has its own axes: reports fields `filler` and
 * `num_axes` of `message` that were given; `what` is what bottom 1 is ("the factor"). */
int ls_factor_check_unused(const struct ls_layer *layer, struct ls_error *error,
                           const void *message, bool filler, bool num_axes, const char *what);
/* For a learned factor: reads the fields `axis` and `num_axes` (-1: all from `axis` on) of
 * `message`, sets attr and the shape of the blob. */
int ls_factor_learned(const struct ls_layer *layer, struct ls_error *error, const void *message,
                      int axis, int num_axes, struct ls_scale_attr *attr, struct ls_shape *shape);
/* For bottom 1 as the factor, from `axis` of bottom 0 on. */
int ls_factor_bottom(const struct ls_layer *layer, struct ls_error *error, const void *message,
                     int axis, struct ls_scale_attr *attr);

/* Emits top 0, and what the backward pass wants; what that costs. */
void ls_factor_emit(struct ls_layer *layer, const struct ls_factor *factor);
void ls_factor_emit_backward(struct ls_layer *layer, const struct ls_factor *factor);
void ls_factor_count(const struct ls_layer *layer, const struct ls_factor *factor,
                     struct ls_cost *cost);

/* The same as entries of layer types whose state is a struct ls_factor. */
int ls_factor_forward(struct ls_layer *layer, struct ls_error *error);
int ls_factor_backward(struct ls_layer *layer, struct ls_error *error);
void ls_factor_cost(const struct ls_layer *layer, struct ls_cost *cost);

#endif
