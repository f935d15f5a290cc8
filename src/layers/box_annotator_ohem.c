/* BoxAnnotatorOHEM: of each picture the regions with the largest losses alone are learned from.
 *
 * Bottoms: rois [N, 5, ...], of which the first number is that of a picture, what each of them adds
 * to the loss [N, 1, ...], their labels, as many, and the weights of their boxes [N, C, ...]. Tops:
 * the labels, ignore_label where a region is not one of the roi_per_img with the largest losses of
 * its picture, and the weights, 0 there. Of equal losses the first region counts as the larger, and
 * a NaN as larger than any number. A region whose number no picture can have is never chosen.
 *
 * Since regions of the whole batch are compared, it mixes its samples. No gradient goes back.
 * R-FCN's box_annotator_ohem_param. (Shrivastava et al.: Training Region-based Object Detectors
 * with Online Hard Example Mining; 2016.)
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/common.h"

enum { REGION_NUMBERS = 5, BOTTOMS = 4 };

static int64_t positions_of(const struct ls_shape *shape)
{
    return shape->rank > 2 ? ls_shape_count(shape, 2, shape->rank) : 1;
}

/* Losses and labels are one for each region, weights some. */
static int check_bottom(const struct ls_layer *layer, struct ls_error *error, int bottom)
{
    const struct ls_shape *rois = &layer->bottom[0]->shape, *x = &layer->bottom[bottom]->shape;
    const int64_t regions = rois->dim[0] * positions_of(rois);
    if (layer->bottom[bottom]->sample_axis > 0)
        return ls_layer_check_samples(layer, error, bottom);
    if (bottom == 0)
        return 0;
    if (bottom < 3 && (x->rank < 1 || x->dim[0] != rois->dim[0] || ls_shape_size(x) != regions))
        return ls_layer_fail_shape(layer, error, bottom, "have one number for each region");
    if (bottom == 3 &&
        (x->rank < 2 || x->dim[0] != rois->dim[0] || positions_of(x) != positions_of(rois)))
        return ls_layer_fail_shape(layer, error, bottom,
                                   "have equally many numbers for each region");
    return 0;
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    const Lockstep__BoxAnnotatorOHEMParameter *param = layer->definition->box_annotator_ohem_param;
    const struct ls_shape *rois = &layer->bottom[0]->shape;
    struct ls_hardest_attr *attr = layer->state;
    LS_TRY(ls_layer_begin(layer, error, NULL));
    if (param == NULL || param->roi_per_img < 1)
        return ls_layer_fail(layer, error, param, "roi_per_img", "R-FCN takes 128",
                             "roi_per_img, the regions of a picture that count, must be at least "
                             "1");
    attr->most = param->roi_per_img;
    attr->ignore_label = (float)param->ignore_label;
    if ((double)attr->ignore_label != (double)param->ignore_label)
        return ls_layer_fail(layer, error, param, "ignore_label", NULL,
                             "labels are floats, which do not hold ignore_label %d",
                             param->ignore_label);
    if (rois->rank < 2 || rois->dim[1] != REGION_NUMBERS)
        return ls_layer_fail_shape(layer, error, 0,
                                   "have 5 numbers for each region (number of the picture, left, "
                                   "top, right, bottom)");
    if (ls_shape_size(rois) / REGION_NUMBERS > INT32_MAX)
        return ls_layer_fail(layer, error, NULL, "bottom", NULL, "'%s' has more than %d regions",
                             layer->bottom[0]->name, INT32_MAX);
    for (int i = 0; i < BOTTOMS; i++)
        LS_TRY(check_bottom(layer, error, i));
    return 0;
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    const struct ls_hardest_attr *attr = layer->state;
    (void)error;
    struct ls_value *made[2];
    for (int i = 0; i < 2; i++)
        made[i] = ls_layer_make_top(layer, i, &layer->bottom[2 + i]->shape, layer->bottom[2 + i]);
    struct ls_op *op = ls_graph_op(layer->graph, LS_OP_HARDEST_REGIONS);
    for (int i = 0; i < BOTTOMS; i++)
        ls_op_in(layer->graph, op, layer->bottom[i]);
    for (int i = 0; i < 2; i++)
        ls_op_out(layer->graph, op, made[i]);
    if (op != NULL)
        op->attr.hardest = *attr;
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    cost->forward_flops = 20 * (double)ls_shape_size(&layer->bottom[2]->shape);
    for (int i = 0; i < BOTTOMS; i++)
        cost->forward_bytes += ls_layer_bytes(layer->bottom[i]);
    for (int i = 0; i < layer->tops; i++)
        cost->forward_bytes += ls_layer_bytes(layer->top[i]);
}

const struct ls_layer_type ls_layer_box_annotator_ohem = {
    .type = "BoxAnnotatorOHEM",
    .parameter = "box_annotator_ohem_param",
    .state_size = sizeof(struct ls_hardest_attr),
    .bottoms_min = BOTTOMS,
    .bottoms_max = BOTTOMS,
    .tops_min = 2,
    .tops_max = 2,
    .mixes_samples = true,
    .setup = setup,
    .forward = forward,
    .cost = cost,
};
