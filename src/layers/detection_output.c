/* DetectionOutput: the boxes that a net has found.
 *
 * Bottoms: places [N, P 4], with share_location: false [N, P classes 4], scores [N, P classes]
 * (probabilities) and priors, as of MultiBoxLoss.
 * y [N, 1, K, 7] has K rows a sample: (ordinal of the sample, class, score, xmin, ymin, xmax,
 * ymax). Of each class but the background boxes with a score above confidence_threshold count, the
 * top_k with the highest scores (nms_param), less those that overlap a better one of the class by
 * more than nms_threshold (which `eta` lowers from one box to the next while it is above 0.5); of
 * all classes the keep_top_k with the highest scores. Rows come class by class, the highest score
 * first; those that are left over hold -1. K is keep_top_k, or what can be at most. In SSD's fork
 * all samples have one list of as many rows as there are boxes. SSD's detection_output_param.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "layers/boxes.h"

enum { ROW = 7 };

struct detection_output {
    struct ls_detection_attr attr;
    struct ls_shape top;
};

static const Lockstep__DetectionOutputParameter *param_of(const struct ls_layer *layer)
{
    static const Lockstep__DetectionOutputParameter defaults =
        LOCKSTEP__DETECTION_OUTPUT_PARAMETER__INIT;
    const Lockstep__DetectionOutputParameter *param = layer->definition->detection_output_param;
    return param != NULL ? param : &defaults;
}

static const Lockstep__NonMaximumSuppressionParameter *suppression_of(const struct ls_layer *layer)
{
    static const Lockstep__NonMaximumSuppressionParameter defaults =
        LOCKSTEP__NON_MAXIMUM_SUPPRESSION_PARAMETER__INIT;
    const Lockstep__NonMaximumSuppressionParameter *param = param_of(layer)->nms_param;
    return param != NULL ? param : &defaults;
}

static int check_numbers(const struct ls_layer *layer, struct ls_error *error)
{
    const Lockstep__DetectionOutputParameter *p = param_of(layer);
    const Lockstep__NonMaximumSuppressionParameter *nms = suppression_of(layer);
    if (p->background_label_id < -1 || p->background_label_id >= (int64_t)p->num_classes)
        return ls_layer_fail(layer, error, p, "background_label_id", NULL,
                             "background_label_id %d is none of the %u classes, nor -1",
                             p->background_label_id, p->num_classes);
    if (!(nms->nms_threshold > 0 && isfinite(nms->nms_threshold)))
        return ls_layer_fail(layer, error, nms, "nms_threshold", NULL,
                             "nms_threshold must be a number above 0");
    if (!(nms->eta > 0 && nms->eta <= 1))
        return ls_layer_fail(layer, error, nms, "eta", NULL, "eta must be above 0 and at most 1");
    if (p->keep_top_k == 0 || p->keep_top_k < -1)
        return ls_layer_fail(layer, error, p, "keep_top_k", NULL,
                             "keep_top_k %d must be at least 1, or -1 for all", p->keep_top_k);
    if (p->has_confidence_threshold && !isfinite(p->confidence_threshold))
        return ls_layer_fail(layer, error, p, "confidence_threshold", NULL,
                             "confidence_threshold must be a finite number");
    return 0;
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct detection_output *state = layer->state;
    struct ls_detection_attr *attr = &state->attr;
    const Lockstep__DetectionOutputParameter *p = param_of(layer);
    const Lockstep__NonMaximumSuppressionParameter *nms = suppression_of(layer);
    LS_TRY(ls_layer_begin(layer, error, NULL));
    LS_TRY(ls_boxes_check_classes(layer, error, layer->definition->detection_output_param,
                                  p->has_num_classes, p->num_classes));
    LS_TRY(check_numbers(layer, error));
    LS_TRY(ls_boxes_check(layer, error, p->num_classes, !p->share_location, &attr->priors));
    attr->classes = p->num_classes;
    attr->by_class = !p->share_location;
    attr->code = ls_boxes_code(p->code_type);
    attr->variance_in_target = p->variance_encoded_in_target;
    attr->has_threshold = p->has_confidence_threshold;
    attr->threshold = p->confidence_threshold;
    attr->background = p->background_label_id;
    attr->top_k = nms->has_top_k && nms->top_k >= 0 ? nms->top_k : -1;
    attr->keep_top_k = p->keep_top_k;
    attr->nms_threshold = nms->nms_threshold;
    attr->eta = nms->eta;
    const int64_t each =
        attr->top_k >= 0 && attr->top_k < attr->priors ? attr->top_k : attr->priors;
    const int64_t most = each * (attr->classes - (attr->background >= 0));
    attr->keep = p->keep_top_k >= 0 && p->keep_top_k < most ? p->keep_top_k : most;
    attr->keep = attr->keep > 0 ? attr->keep : 1;
    state->top = (struct ls_shape){
        4, {layer->bottom[0]->shape.dim[0] / layer->bottom[0]->rows, 1, attr->keep, ROW}};
    return ls_layer_check_shape(layer, error, "the top", &state->top);
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    const struct detection_output *state = layer->state;
    struct ls_value *y = ls_layer_make_top(layer, 0, &state->top, layer->bottom[0]);
    if (y != NULL)
        y->rows = 1;
    struct ls_op *op = ls_graph_op(layer->graph, LS_OP_DETECTION_OUTPUT);
    for (int i = 0; i < 3; i++)
        ls_op_in(layer->graph, op, layer->bottom[i]);
    ls_op_out(layer->graph, op, y);
    if (op != NULL)
        op->attr.detection = state->attr;
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    const struct detection_output *state = layer->state;
    const double scores = ls_layer_bytes(layer->bottom[1]);
    cost->forward_flops = scores / 4 * 20 + (double)state->attr.keep * (double)state->attr.keep;
    cost->forward_bytes = scores + ls_layer_bytes(layer->bottom[0]) + ls_layer_bytes(layer->top[0]);
}

const struct ls_layer_type ls_layer_detection_output = {
    .type = "DetectionOutput",
    .parameter = "detection_output_param",
    .state_size = sizeof(struct detection_output),
    .bottoms_min = 3,
    .bottoms_max = 4, /* the last: pictures for SSD's windows, which are not shown here */
    .tops_min = 1,
    .tops_max = 1,
    .setup = setup,
    .forward = forward,
    .cost = cost,
};
