/* RegionLoss: YOLOv2's loss of boxes, whether something is in them, and of which class.
 *
 * x [N, A (5 + K), H, W]: each position predicts a box for each of A anchors, by 5 + K numbers
 * t_x, t_y, t_w, t_h, t_o and K scores. With anchors of p_w x p_h positions (`biases`, in pairs)
 * the box at column i, row j is
 *
 *   ((i + s(t_x)) / W, (j + s(t_y)) / H, p_w exp(t_w) / W, p_h exp(t_h) / H),  o = s(t_o)
 *
 * centre and size in sizes of the image, s the logistic function. The second bottom has true boxes,
 * rows of 8 numbers (docs/caffe.md, "Boxes"), a fixed number a sample; classes begin at 1. A true
 * box belongs to the position of its centre and to the anchor whose size overlaps its own most
 * (`bias_match: 0`: whose predicted size does); where two belong to one cell the later one counts.
 *
 * The gradient of a sample is, with d limited to [-1, 1] and r the softmax of the scores:
 *
 *   where a box belongs   t_x: -coord_scale d(W x - i - s(t_x)) s(t_x) (1 - s(t_x)), t_y alike;
 *                         t_w: -coord_scale d(log(W w / p_w) - t_w), t_h alike;
 *                         t_o: -2 object_scale (1 - o)^4 o;  score k: class_scale (r_k - [k true])
 *   elsewhere             t_o: noobject_scale o^2 (1 - o), unless the predicted box overlaps a true
 *                         one by more than `thresh`
 *
 * and the loss that is shown is the sum of the squares of these numbers; both are divided by N.
 * These are the rules of Intel's fork of Caffe (whose gradients are not the slopes of its loss,
 * either; there the loss that is shown is not divided), which reads no `rescore`. Where it is given
 * the rules are Darknet's, as MobileNet-YOLO's fork has them: d is the difference itself, and
 *
 *   where a box belongs   t_o: -object_scale (wanted - o) o (1 - o)
 *
 * with `wanted` the overlap of the predicted box and the true one; with rescore: 0 it is 1, and
 * coord_scale is multiplied by 2 - w h. (In that fork boxes learn the sizes of their anchors for
 * the first 12,800 samples, too; not here.) softmax_tree and class_map are refused. (Redmon,
 * Farhadi: YOLO9000, better, faster, stronger; 2016.)
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "base/memory.h"
#include "layers/boxes.h"
#include "layers/loss.h"

enum { PLACE = 4 };

struct region_loss {
    struct ls_loss loss;
    struct ls_region_attr attr;
    struct ls_value *slope;
};

static const Lockstep__RegionLossParameter *param_of(const struct ls_layer *layer)
{
    static const Lockstep__RegionLossParameter defaults = LOCKSTEP__REGION_LOSS_PARAMETER__INIT;
    const Lockstep__RegionLossParameter *param = layer->definition->region_loss_param;
    return param != NULL ? param : &defaults;
}

static int check_numbers(const struct ls_layer *layer, struct ls_error *error)
{
    const Lockstep__RegionLossParameter *p = param_of(layer);
    const struct {
        const char *name;
        float value;
    } numbers[] = {{"object_scale", p->object_scale},
                   {"noobject_scale", p->noobject_scale},
                   {"class_scale", p->class_scale},
                   {"coord_scale", p->coord_scale},
                   {"thresh", p->thresh}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!isfinite(numbers[i].value))
            return ls_layer_fail(layer, error, p, numbers[i].name, NULL,
                                 "%s must be a finite number", numbers[i].name);
    if (p->coords != PLACE)
        return ls_layer_fail(layer, error, p, "coords", NULL,
                             "coords %u: a box has 4 numbers for its place", p->coords);
    if (p->softmax == 0)
        return ls_layer_fail(layer, error, p, "softmax", "leave it out, or see layer type Yolov3",
                             "softmax: 0: classes always go through a softmax");
    if (p->softmax_tree != NULL && p->softmax_tree[0] != '\0')
        return ls_layer_fail(layer, error, p, "softmax_tree", "leave it out: classes have no order",
                             "trees of classes are not supported");
    if (p->class_map != NULL && p->class_map[0] != '\0')
        return ls_layer_fail(layer, error, p, "class_map", "write the classes into the data",
                             "a map of classes is not supported");
    return 0;
}

static int check_anchors(const struct ls_layer *layer, struct ls_error *error)
{
    const Lockstep__RegionLossParameter *p = param_of(layer);
    const bool anchors = p->num >= 1 && p->num <= INT16_MAX;
    if (!anchors || p->num_class < 1 || p->num_class > INT32_MAX)
        return ls_layer_fail(layer, error, p, anchors ? "num_class" : "num", NULL,
                             anchors ? "num_class must be 1 to 2147483647"
                                     : "num, the anchors, must be 1 to 32767");
    return ls_boxes_check_anchors(layer, error, p, p->biases, p->n_biases, p->num);
}

static int check_planes(const struct ls_layer *layer, struct ls_error *error)
{
    const Lockstep__RegionLossParameter *p = param_of(layer);
    LS_TRY(ls_boxes_check_planes(layer, error, 0, p->num, p->num_class));
    ls_boxes_note_side(layer, 0, p->has_side, p->side);
    return 0;
}

static enum ls_region_score score_of(const Lockstep__RegionLossParameter *p)
{
    if (!p->has_rescore)
        return LS_REGION_SCORE_FOCUSED;
    return p->rescore != 0 ? LS_REGION_SCORE_OVERLAP : LS_REGION_SCORE_ONE;
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct region_loss *state = layer->state;
    int64_t objects;
    const Lockstep__RegionLossParameter *p = param_of(layer);
    LS_TRY(ls_layer_begin(layer, error, NULL));
    int numbers = check_numbers(layer, error);
    LS_TRY(check_anchors(layer, error));
    LS_TRY(numbers);
    LS_TRY(check_planes(layer, error));
    LS_TRY(ls_boxes_check_truths(layer, error, 1, &objects));
    state->attr = (struct ls_region_attr){.score = score_of(p),
                                          .anchors = (int)p->num,
                                          .classes = p->num_class,
                                          .objects = objects / layer->bottom[1]->rows,
                                          .anchor_sizes = p->biases,
                                          .by_anchor = p->bias_match != 0,
                                          .object = p->object_scale,
                                          .no_object = p->noobject_scale,
                                          .kind = p->class_scale,
                                          .place = p->coord_scale,
                                          .threshold = p->thresh};
    state->loss.attr.normalization = LS_NORM_BATCH_SIZE;
    ls_loss_set_positions(&state->loss, layer->bottom[0]->rows, 1);
    return 0;
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    struct region_loss *state = layer->state;
    ls_loss_begin(layer, &state->loss);
    state->attr.loss = state->loss.attr;
    state->slope = ls_layer_make_side(layer, "slope", layer->bottom[0]);
    struct ls_op *op = ls_graph_op(layer->graph, LS_OP_REGION_LOSS);
    for (int i = 0; i < 2; i++)
        ls_op_in(layer->graph, op, layer->bottom[i]);
    ls_op_out(layer->graph, op, state->slope);
    if (op != NULL)
        op->attr.region = state->attr;
    return 0;
}

static int backward(struct ls_layer *layer, struct ls_error *error)
{
    struct region_loss *state = layer->state;
    LS_TRY(ls_loss_check_labels(layer, error));
    if (!layer->propagate[0])
        return 0;
    struct ls_op *op =
        ls_layer_emit_gradient(layer, 0, LS_OP_REGION_LOSS_BACKWARD, &state->slope, 1);
    if (op != NULL)
        op->attr.loss = state->loss.attr;
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    const struct region_loss *state = layer->state;
    const double cells =
        (double)ls_shape_size(&layer->bottom[0]->shape) / (double)(PLACE + 1 + state->attr.classes);
    cost->forward_flops = 12 * cells * (double)(1 + state->attr.objects);
    cost->forward_bytes = 2 * ls_layer_bytes(layer->bottom[0]) + ls_layer_bytes(layer->bottom[1]);
    if (!ls_layer_has_gradient(layer, 0))
        return;
    cost->backward_data_flops = (double)ls_shape_size(&layer->bottom[0]->shape);
    cost->backward_bytes = 2 * ls_layer_bytes(layer->bottom[0]);
}

const struct ls_layer_type ls_layer_region_loss = {
    .type = "RegionLoss",
    .parameter = "region_loss_param",
    .state_size = sizeof(struct region_loss),
    .bottoms_min = 2,
    .bottoms_max = 2,
    .tops_min = 1,
    .tops_max = 1,
    .auto_tops = 1,
    .is_loss = true,
    .setup = setup,
    .forward = forward,
    .backward = backward,
    .cost = cost,
};
