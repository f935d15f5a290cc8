/* MeanIoU: the mean over the classes of intersection / union of predicted and true positions.
 *
 *   IoU[c] = h / (t + l - h), with h the positions of class c that are taken for it, t all that are
 *   taken for it, l all that are of it
 *
 * Scores x [N, ..., C, ...] with the C classes along `axis` (default 1); the label has a number
 * 0 .. C-1 for each position of the other axes. A position is taken for the class with the highest
 * score, the first of several. Positions with ignore_label count nowhere. Tops, figures over every
 * sample of the test or the update (not means over batches):
 *
 *   mean IoU        over the classes that occur, in labels or predictions; 0 where none does
 *   per class [C]   IoU of each; 0 for one that does not occur
 *
 * Everingham et al., The PASCAL Visual Object Classes Challenge: a Retrospective (2015), section 4.
 * No gradient: it cannot be a loss. SPDX-License-Identifier: BSD-2-Clause */
#include "ir/filter.h"
#include "layers/common.h"

enum { CLASSES_MAX = 1 << 20 }; /* the record of a micro-batch holds three numbers for each */

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    static const Lockstep__MeanIoUParameter defaults = LOCKSTEP__MEAN_IO_UPARAMETER__INIT;
    struct ls_mean_iou_attr *attr = layer->state;
    const Lockstep__MeanIoUParameter *message = layer->definition->mean_iou_param;
    const Lockstep__MeanIoUParameter *p = message != NULL ? message : &defaults;
    const struct ls_value *x = layer->bottom[0];
    LS_TRY(ls_layer_begin(layer, error, NULL));
    int axis = ls_layer_axis(layer, error, message, "axis", p->axis, x, false);
    LS_TRY(axis < 0 ? LOCKSTEP_DEFINITION : 0);
    int status = ls_layer_check_positions(layer, error, axis);
    for (int i = 0; i < layer->tops; i++)
        if (layer->loss_weight[i] != 0)
            status = ls_layer_fail(layer, error, NULL, "loss_weight", "set it to 0",
                                   "a MeanIoU layer has no gradient and cannot be a loss");
    if (x->shape.dim[axis] > CLASSES_MAX)
        status = ls_layer_fail(layer, error, message, "axis", NULL,
                               "axis %d of '%s' has %lld classes; the limit is %d", axis, x->name,
                               (long long)x->shape.dim[axis], (int)CLASSES_MAX);
    *attr = (struct ls_mean_iou_attr){.axis = axis,
                                      .has_ignore = p->has_ignore_label,
                                      .ignore_label = p->ignore_label,
                                      .classes = x->shape.dim[axis]};
    return status;
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    struct ls_mean_iou_attr *attr = layer->state;
    struct ls_graph *graph = layer->graph;
    int classes = (int)attr->classes;
    attr->metric_offset = ls_graph_record(graph, 3 * classes);
    for (int top = 0; top < layer->tops; top++) {
        ls_layer_make_metric(layer, top, top == 0 ? 0 : classes);
        ls_graph_metric(graph, layer, top,
                        (struct ls_metric){.entries = top == 0 ? 1 : classes,
                                           .offset = attr->metric_offset,
                                           .count_offset = -1,
                                           .overlaps = classes,
                                           .mean = top == 0});
    }
    struct ls_value *label =
        ls_filter_fill_labels(graph, layer->bottom[1], &attr->has_ignore, &attr->ignore_label);
    struct ls_op *op = ls_graph_op(graph, LS_OP_MEAN_IOU);
    ls_op_in(graph, op, layer->bottom[0]);
    ls_op_in(graph, op, label);
    if (op != NULL)
        op->attr.mean_iou = *attr;
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    cost->forward_flops = (double)ls_shape_size(&layer->bottom[0]->shape);
    cost->forward_bytes = ls_layer_bytes(layer->bottom[0]) + ls_layer_bytes(layer->bottom[1]);
}

const struct ls_layer_type ls_layer_mean_iou = {
    .type = "MeanIoU",
    .parameter = "mean_iou_param",
    .state_size = sizeof(struct ls_mean_iou_attr),
    .bottoms_min = 2,
    .bottoms_max = 2,
    .tops_min = 1,
    .tops_max = 2,
    .filtered = LS_FILTERED_COUNTED,
    .better = LS_BETTER_LARGER,
    .setup = setup,
    .forward = forward,
    .cost = cost,
};
