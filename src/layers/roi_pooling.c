/* ROIPooling: the maxima over bins of regions of pictures.
 *
 * x [B, C, H, W], regions [R, 5], each the number of a picture and its left, top, right and bottom;
 * y [R, C, pooled_h, pooled_w]. Coordinates times spatial_scale are rounded to positions of x, both
 * edges belong to a region, and an empty bin gives 0 (device/regions.h). Its rows are regions, not
 * samples: it mixes those of the batch. Fast R-CNN's roi_pooling_param.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/regions.h"

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    static const Lockstep__ROIPoolingParameter defaults = LOCKSTEP__ROIPOOLING_PARAMETER__INIT;
    struct ls_region_pooling *state = layer->state;
    const Lockstep__ROIPoolingParameter *message = layer->definition->roi_pooling_param;
    const Lockstep__ROIPoolingParameter *p = message != NULL ? message : &defaults;
    LS_TRY(ls_layer_begin(layer, error, NULL));
    int status = ls_region_pooling_check(layer, error, message, p->spatial_scale);
    if (p->pooled_h < 1)
        status =
            ls_layer_fail(layer, error, message, "pooled_h", NULL, "pooled_h must be at least 1");
    if (p->pooled_w < 1)
        status =
            ls_layer_fail(layer, error, message, "pooled_w", NULL, "pooled_w must be at least 1");
    state->maximum = true;
    state->planes = layer->bottom[0]->shape.dim[1];
    state->attr = (struct ls_regions_attr){{p->pooled_h, p->pooled_w}, p->spatial_scale};
    return status;
}

const struct ls_layer_type ls_layer_roi_pooling = {
    .type = "ROIPooling",
    .parameter = "roi_pooling_param",
    .state_size = sizeof(struct ls_region_pooling),
    .bottoms_min = 2,
    .bottoms_max = 2,
    .tops_min = 1,
    .tops_max = 1,
    .mixes_samples = true,
    .setup = setup,
    .forward = ls_region_pooling_forward,
    .backward = ls_region_pooling_backward,
    .cost = ls_region_pooling_cost,
};
