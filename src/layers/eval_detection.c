/* EvalDetection: how many of the boxes that YOLOv2 predicts are right, over a whole test.
 *
 * x [N, A (5 + K), H, W] and true boxes as of RegionLoss, whose formulas give the boxes; each has
 * the class with the highest score. Its own score is that something is there, s(t_o) (score_type:
 * OBJ), the probability of the class (PROB) or their product (MULTIPLY). With `nms` of at least 0 a
 * box that overlaps a better one by that much, of whichever class, does not count, nor does one
 * with a score below 0.005. A box is right as with DetectionEvaluate, where it overlaps a true one
 * by `threshold`, and so are the tops; all true boxes count. The classes of truths begin at 1,
 * those of the second top at 0. The eval_detection_param of Intel's fork of Caffe. (There the top
 * are rows that the solver reads, and without `nms` it has none.)
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "layers/evaluation.h"

static const Lockstep__EvalDetectionParameter *param_of(const struct ls_layer *layer)
{
    static const Lockstep__EvalDetectionParameter defaults =
        LOCKSTEP__EVAL_DETECTION_PARAMETER__INIT;
    const Lockstep__EvalDetectionParameter *param = layer->definition->eval_detection_param;
    return param != NULL ? param : &defaults;
}

static int check_numbers(const struct ls_layer *layer, struct ls_error *error)
{
    const Lockstep__EvalDetectionParameter *p = param_of(layer);
    const bool anchors = p->num_object >= 1 && p->num_object <= INT16_MAX;
    if (!anchors || p->num_class < 1 || p->num_class > INT16_MAX)
        return ls_layer_fail(layer, error, p, anchors ? "num_class" : "num_object", NULL,
                             "%s must be 1 to 32767", anchors ? "num_class" : "num_object");
    if (!(p->threshold > 0 && p->threshold <= 1))
        return ls_layer_fail(layer, error, p, "threshold", NULL,
                             "threshold must be above 0 and at most 1");
    if (!isfinite(p->nms))
        return ls_layer_fail(layer, error, p, "nms", NULL, "nms must be a finite number");
    return ls_boxes_check_anchors(layer, error, p, p->biases, p->n_biases, p->num_object);
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct ls_evaluate_attr *attr = layer->state;
    const Lockstep__EvalDetectionParameter *p = param_of(layer);
    const struct ls_shape *x = &layer->bottom[0]->shape;
    LS_TRY(ls_layer_begin(layer, error, NULL));
    LS_TRY(check_numbers(layer, error));
    LS_TRY(ls_evaluation_check(layer, error, attr));
    LS_TRY(ls_boxes_check_planes(layer, error, 0, p->num_object, p->num_class));
    ls_boxes_note_side(layer, 0, p->has_side, p->side);
    attr->finds = x->dim[2] * x->dim[3] * p->num_object;
    attr->classes = (int)p->num_class;
    attr->background = -1;
    attr->difficult = true;
    attr->overlap = p->threshold;
    attr->anchors = (int)p->num_object;
    attr->anchor_sizes = p->biases;
    attr->score =
        p->score_type == LOCKSTEP__EVAL_DETECTION_PARAMETER__SCORE_TYPE__OBJ    ? LS_SCORE_OBJECT
        : p->score_type == LOCKSTEP__EVAL_DETECTION_PARAMETER__SCORE_TYPE__PROB ? LS_SCORE_CLASS
                                                                                : LS_SCORE_BOTH;
    attr->nms = p->nms;
    return 0;
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    return ls_evaluation_forward(layer, error, LS_OP_REGION_EVALUATE, layer->state);
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    const struct ls_evaluate_attr *attr = layer->state;
    const double numbers = ls_layer_bytes(layer->bottom[0]) / 4;
    cost->forward_flops = numbers * 10 + (double)(attr->finds * attr->finds) * 10;
    cost->forward_bytes = numbers * 4 + ls_layer_bytes(layer->bottom[1]);
}

const struct ls_layer_type ls_layer_eval_detection = {
    .type = "EvalDetection",
    .parameter = "eval_detection_param",
    .state_size = sizeof(struct ls_evaluate_attr),
    .bottoms_min = 2,
    .bottoms_max = 3, /* forks have no limit: a third one is not read (graph/odd_layers.c) */
    .tops_min = 1,
    .tops_max = 2,
    .better = LS_BETTER_LARGER,
    .setup = setup,
    .forward = forward,
    .cost = cost,
};
