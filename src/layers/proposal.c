/* Proposal: the regions of pictures that a region proposal network finds.
 *
 * Bottoms: scores [N, 2 A, H, W], of which the second half says that something is there,
 * differences [N, 4 A, H, W], and im_info [N, 3 or more]: height, width and the factors that a
 * picture was scaled by, down and across (one where there are 3 numbers). Anchors of a position are
 * boxes of base_size pixels, of each of `ratio` (height / width) and, within it, `scale`; the
 * difference (x, y, w, h) moves an anchor's centre by (x, y) of its sides, which become exp(w) and
 * exp(h) times as long. Boxes are cut to the picture, those with a side below min_size times the
 * factor are left out, and of the pre_nms_topn others with the highest scores each that overlaps a
 * better one by more than nms_thresh.
 *
 * rois [N R, 5] are the number of the picture in the batch, left, top, right and bottom; scores
 * [N R, 1], if it is wanted, their scores; the highest score comes first. R is post_nms_topn; rows
 * that are left over hold the pixel 0, 0 with score 0. (In forks there are as many rows as regions,
 * of one picture.) Since rows name pictures of the batch, it mixes its samples. No gradient goes
 * back. The proposal_param of the Caffe of PVANET, and what py-faster-rcnn's ProposalLayer
 * computes. (Ren et al.: Faster R-CNN; 2015.)
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "layers/common.h"

enum { CORNERS = 4, REGION = 5, INFO = 3, NUMBERS_MAX = 1000, PIXELS_MAX = 1 << 20 };

static const Lockstep__ProposalParameter *param_of(const struct ls_layer *layer)
{
    static const Lockstep__ProposalParameter defaults = LOCKSTEP__PROPOSAL_PARAMETER__INIT;
    const Lockstep__ProposalParameter *param = layer->definition->proposal_param;
    return param != NULL ? param : &defaults;
}

static int check_list(const struct ls_layer *layer, struct ls_error *error, const char *field,
                      const float *numbers, size_t count)
{
    if (count > NUMBERS_MAX)
        return ls_layer_fail(layer, error, param_of(layer), field, NULL,
                             "%zu numbers of %s; the limit is %d", count, field, (int)NUMBERS_MAX);
    for (size_t i = 0; i < count; i++)
        if (!(numbers[i] > 0 && isfinite(numbers[i])))
            return ls_layer_fail(layer, error, param_of(layer), field, NULL,
                                 "%s %g must be a number above 0", field, (double)numbers[i]);
    return 0;
}

static int check_numbers(const struct ls_layer *layer, struct ls_error *error)
{
    const Lockstep__ProposalParameter *p = param_of(layer);
    const struct {
        const char *name;
        uint32_t value, most;
    } numbers[] = {{"feat_stride", p->feat_stride, PIXELS_MAX},
                   {"base_size", p->base_size, PIXELS_MAX},
                   {"pre_nms_topn", p->pre_nms_topn, INT32_MAX},
                   {"post_nms_topn", p->post_nms_topn, INT32_MAX}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i].value < 1 || numbers[i].value > numbers[i].most)
            return ls_layer_fail(layer, error, p, numbers[i].name, NULL, "%s must be 1 to %u",
                                 numbers[i].name, numbers[i].most);
    if (!(p->nms_thresh > 0 && isfinite(p->nms_thresh)))
        return ls_layer_fail(layer, error, p, "nms_thresh", NULL,
                             "nms_thresh must be a number above 0");
    LS_TRY(check_list(layer, error, "ratio", p->ratio, p->n_ratio));
    return check_list(layer, error, "scale", p->scale, p->n_scale);
}

static int check_planes(const struct ls_layer *layer, struct ls_error *error, int bottom,
                        int64_t each, int64_t anchors)
{
    const struct ls_value *x = layer->bottom[bottom], *first = layer->bottom[0];
    const struct ls_shape *shape = &x->shape;
    char text[160];
    LS_TRY(ls_layer_check_samples(layer, error, bottom));
    LS_TRY(ls_layer_check_alike(layer, error, bottom));
    if (shape->rank != 4 || shape->dim[1] != each * anchors)
        return ls_layer_fail(
            layer, error, NULL, "bottom", NULL,
            "its bottom '%s' must have 4 axes with %lld channels, %lld for each of "
            "%lld anchors, but is %s",
            x->name, (long long)(each * anchors), (long long)each, (long long)anchors,
            ls_shape_text(shape, text, sizeof text));
    if (shape->dim[2] != first->shape.dim[2] || shape->dim[3] != first->shape.dim[3])
        return ls_layer_fail(layer, error, NULL, "bottom", NULL,
                             "its bottoms '%s' and '%s' must have equally many positions",
                             first->name, x->name);
    if ((double)anchors * (double)shape->dim[2] * (double)shape->dim[3] > INT32_MAX)
        return ls_layer_fail(layer, error, NULL, "bottom", NULL,
                             "'%s' has more than %d anchors a picture", x->name, (int)INT32_MAX);
    return 0;
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    static const float ratios[] = {0.5F, 1, 2}, scales[] = {8, 16, 32};
    const Lockstep__ProposalParameter *p = param_of(layer);
    struct ls_proposal_attr *attr = layer->state;
    const struct ls_value *info = layer->bottom[2];
    LS_TRY(ls_layer_begin(layer, error, NULL));
    LS_TRY(check_numbers(layer, error));
    attr->ratio = p->n_ratio > 0 ? p->ratio : ratios;
    attr->scale = p->n_scale > 0 ? p->scale : scales;
    attr->ratios = p->n_ratio > 0 ? (int64_t)p->n_ratio : 3;
    attr->scales = p->n_scale > 0 ? (int64_t)p->n_scale : 3;
    const int64_t anchors = attr->ratios * attr->scales;
    LS_TRY(check_planes(layer, error, 0, 2, anchors));
    LS_TRY(check_planes(layer, error, 1, CORNERS, anchors));
    LS_TRY(ls_layer_check_samples(layer, error, 2));
    LS_TRY(ls_layer_check_alike(layer, error, 2));
    attr->info = ls_shape_count(&info->shape, 1, info->shape.rank);
    if (attr->info < INFO || info->shape.dim[0] != layer->bottom[0]->shape.dim[0])
        return ls_layer_fail_shape(layer, error, 2,
                                   "have at least 3 numbers for each picture: height, width and "
                                   "the factor that it was scaled by");
    const struct ls_shape *x = &layer->bottom[0]->shape;
    const int64_t boxes = anchors * x->dim[2] * x->dim[3];
    attr->regions = p->post_nms_topn < boxes ? p->post_nms_topn : boxes;
    attr->before = p->pre_nms_topn;
    attr->base = p->base_size;
    attr->stride = p->feat_stride;
    attr->least = p->min_size;
    attr->overlap = p->nms_thresh;
    return 0;
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    const struct ls_proposal_attr *attr = layer->state;
    const int64_t rows = layer->bottom[0]->shape.dim[0] * attr->regions;
    const struct ls_shape tops[] = {{2, {rows, REGION}}, {2, {rows, 1}}};
    struct ls_value *made[2] = {NULL, NULL};
    for (int i = 0; i < layer->tops; i++) {
        LS_TRY(ls_layer_check_shape(layer, error, "the top", &tops[i]));
        made[i] = ls_layer_make_top(layer, i, &tops[i], layer->bottom[0]);
    }
    struct ls_op *op = ls_graph_op(layer->graph, LS_OP_PROPOSAL);
    for (int i = 0; i < 3; i++)
        ls_op_in(layer->graph, op, layer->bottom[i]);
    for (int i = 0; i < layer->tops; i++)
        ls_op_out(layer->graph, op, made[i]);
    if (op != NULL)
        op->attr.proposal = *attr;
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    const double scores = (double)ls_shape_size(&layer->bottom[0]->shape);
    cost->forward_flops = 20 * scores;
    cost->forward_bytes = 3 * ls_layer_bytes(layer->bottom[0]) + ls_layer_bytes(layer->top[0]);
}

const struct ls_layer_type ls_layer_proposal = {
    .type = "Proposal",
    .parameter = "proposal_param",
    .state_size = sizeof(struct ls_proposal_attr),
    .bottoms_min = 3,
    .bottoms_max = 3,
    .tops_min = 1,
    .tops_max = 2,
    .mixes_samples = true,
    .setup = setup,
    .forward = forward,
    .cost = cost,
};
