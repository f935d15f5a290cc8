/* What ROIPooling and PSROIPooling share: values over bins of regions of pictures.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_LAYERS_REGIONS_H
#define LS_LAYERS_REGIONS_H

#include "layers/common.h"

struct ls_region_pooling {
    struct ls_regions_attr attr;
    bool maximum;   /* else averages, each bin from planes of its own */
    int64_t planes; /* of the top */
    struct ls_value *index;
};

/* Checks both bottoms, pictures [B,C,H,W] and regions [R,5], and the scale, the field
 * `spatial_scale` of `message`. */
int ls_region_pooling_check(const struct ls_layer *layer, struct ls_error *error,
                            const void *message, float scale);
/* The layer's functions, whose state is a struct ls_region_pooling that setup has filled. */
int ls_region_pooling_forward(struct ls_layer *layer, struct ls_error *error);
int ls_region_pooling_backward(struct ls_layer *layer, struct ls_error *error);
void ls_region_pooling_cost(const struct ls_layer *layer, struct ls_cost *cost);

#endif
