/* PSROIPooling: averages over bins of regions, where each bin has planes of its own.
 *
 * x [B, output_dim g g, H, W] with g = group_size, regions [R, 5] as ROIPooling has them; y [R,
 * output_dim, g, g]: bin (i, j) of channel c is the average over that bin of plane (c g + i) g + j.
 * Coordinates are rounded and then scaled; a bin is widened to whole positions, and an empty one
 * gives 0 (device/regions.h). It mixes the samples of the batch. R-FCN's psroi_pooling_param.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/regions.h"

static int check_fields(const struct ls_layer *layer, struct ls_error *error,
                        const Lockstep__PSROIPoolingParameter *p)
{
    int status = 0;
    if (p == NULL || !p->has_spatial_scale)
        status = ls_layer_fail(layer, error, p, NULL, NULL, "spatial_scale is missing");
    if (p == NULL || p->output_dim < 1)
        status =
            ls_layer_fail(layer, error, p, "output_dim", NULL, "output_dim must be at least 1");
    if (p == NULL || p->group_size < 1)
        status =
            ls_layer_fail(layer, error, p, "group_size", NULL, "group_size must be at least 1");
    return status;
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct ls_region_pooling *state = layer->state;
    const Lockstep__PSROIPoolingParameter *p = layer->definition->psroi_pooling_param;
    const struct ls_value *x = layer->bottom[0];
    LS_TRY(ls_layer_begin(layer, error, NULL));
    LS_TRY(check_fields(layer, error, p));
    LS_TRY(ls_region_pooling_check(layer, error, p, p->spatial_scale));
    int64_t planes;
    bool fits = !__builtin_mul_overflow((int64_t)p->group_size * p->group_size,
                                        (int64_t)p->output_dim, &planes);
    if (!fits || planes != x->shape.dim[1])
        return ls_layer_fail(layer, error, p, "output_dim", NULL,
                             "'%s' has %lld channels, but output_dim %d times group_size %d times "
                             "%d are wanted",
                             x->name, (long long)x->shape.dim[1], p->output_dim, p->group_size,
                             p->group_size);
    state->planes = p->output_dim;
    state->attr = (struct ls_regions_attr){{p->group_size, p->group_size}, p->spatial_scale};
    return 0;
}

const struct ls_layer_type ls_layer_ps_roi_pooling = {
    .type = "PSROIPooling",
    .parameter = "psroi_pooling_param",
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
