/* Yolov3: YOLOv3's loss of boxes at one of several resolutions.
 *
 * x [N, A (5 + K), H, W]: each position predicts a box for each of A anchors, by 5 + K numbers
 * t_x, t_y, t_w, t_h, t_o and K scores. `biases` has the sizes of the anchors of all resolutions,
 * in pairs, in pixels; `mask` says which are those of this one. With an anchor of p_w x p_h pixels
 * and `anchors_scale` pixels from one position to the next the box at column i, row j is
 *
 *   ((i + s(t_x)) / W, (j + s(t_y)) / H,
 *    p_w exp(t_w) / (W anchors_scale), p_h exp(t_h) / (H anchors_scale)),
 *
 * centre and size in sizes of the image, s the logistic function. The second bottom has true boxes,
 * rows of 8 numbers (docs/caffe.md, "Boxes"), a fixed number a sample; classes begin at 1. A true
 * box belongs to the position of its centre and to that anchor of all whose size overlaps its own
 * most, if it is one of this resolution; and to every other one of this resolution that overlaps it
 * by more than iou_thresh (1: to none). The slopes of a sample are
 *
 *   where a box belongs   t_x: -c (W x - i - s(t_x)), t_y alike
 *                         t_w: -c (log(w / anchor's w) - t_w), t_h alike
 *                         t_o: -(1 - s(t_o))
 *                         score k: -class_scale ([k true] (1 - e) + e / 2 - s(score))
 *   elsewhere             t_o: s(t_o), unless the predicted box overlaps a true one by more
 *                         than `thresh`
 *
 * with c = coord_scale (2 - w h) and e = label_smooth_eps. Where two boxes belong to one cell the
 * later one counts, but both classes are true. The loss that is shown is the sum of the squares of
 * the slopes, and the gradient the slopes themselves; both are divided by N. With
 * use_logic_gradient that of a box's t_o is multiplied by object_scale, and the gradient of all but
 * t_w and t_h by s (1 - s). This is the yolov3_param of MobileNet-YOLO's fork of Caffe, in its last
 * version; the first had no iou_thresh and no label_smooth_eps, which is `iou_thresh: 1
 * label_smooth_eps: 0`. Its losses of overlaps (iou_loss) and use_focal_loss are refused. (Redmon,
 * Farhadi: YOLOv3, an incremental improvement; 2018.)
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "layers/boxes.h"
#include "layers/loss.h"

struct yolov3 {
    struct ls_loss loss;
    struct ls_yolo_attr attr;
    struct ls_value *slope;
};

static const Lockstep__Yolov3Parameter *param_of(const struct ls_layer *layer)
{
    static const Lockstep__Yolov3Parameter defaults = LOCKSTEP__YOLOV3_PARAMETER__INIT;
    const Lockstep__Yolov3Parameter *param = layer->definition->yolov3_param;
    return param != NULL ? param : &defaults;
}

static int check_numbers(const struct ls_layer *layer, struct ls_error *error)
{
    const Lockstep__Yolov3Parameter *p = param_of(layer);
    const struct {
        const char *name;
        float value;
    } numbers[] = {{"object_scale", p->object_scale},
                   {"class_scale", p->class_scale},
                   {"coord_scale", p->coord_scale},
                   {"thresh", p->thresh},
                   {"iou_thresh", p->iou_thresh}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!isfinite(numbers[i].value))
            return ls_layer_fail(layer, error, p, numbers[i].name, NULL,
                                 "%s must be a finite number", numbers[i].name);
    if (!(p->label_smooth_eps >= 0 && p->label_smooth_eps < 1))
        return ls_layer_fail(layer, error, p, "label_smooth_eps", NULL,
                             "label_smooth_eps must be at least 0 and less than 1");
    if (p->iou_loss != LOCKSTEP__YOLOV3_PARAMETER__IOU__LOSS__MSE)
        return ls_layer_fail(layer, error, p, "iou_loss", "iou_loss: MSE",
                             "losses of overlaps are not supported");
    if (p->use_focal_loss)
        return ls_layer_fail(layer, error, p, "use_focal_loss", "leave it out",
                             "use_focal_loss: true is not supported");
    return 0;
}

static int check_anchors(const struct ls_layer *layer, struct ls_error *error)
{
    const Lockstep__Yolov3Parameter *p = param_of(layer);
    if (p->num_class < 1 || p->num_class > INT32_MAX)
        return ls_layer_fail(layer, error, p, "num_class", NULL,
                             "num_class must be 1 to 2147483647");
    if (p->anchors_scale < 1 || p->anchors_scale > INT16_MAX)
        return ls_layer_fail(layer, error, p, "anchors_scale", NULL,
                             "anchors_scale must be 1 to 32767 pixels");
    if (p->n_biases < 2 || p->n_biases > INT16_MAX)
        return ls_layer_fail(layer, error, p, p->n_biases > 0 ? "biases" : NULL,
                             "give the widths and heights of all anchors",
                             "%zu biases; there must be 2 to 32767", p->n_biases);
    LS_TRY(ls_boxes_check_anchors(layer, error, p, p->biases, p->n_biases,
                                  (int64_t)(p->n_biases + 1) / 2));
    if (p->n_mask < 1 || p->n_mask != p->num)
        return ls_layer_fail(layer, error, p, p->n_mask > 0 ? "mask" : NULL,
                             "give the numbers, from 0, of the anchors of this bottom",
                             "mask names %zu anchors, but num is %u", p->n_mask, p->num);
    for (size_t i = 0; i < p->n_mask; i++) {
        if (p->mask[i] >= p->n_biases / 2)
            return ls_layer_fail(layer, error, p, "mask", NULL,
                                 "mask names anchor %u, but there are %zu, from 0", p->mask[i],
                                 p->n_biases / 2);
        for (size_t k = 0; k < i; k++)
            if (p->mask[k] == p->mask[i])
                return ls_layer_fail(layer, error, p, "mask", NULL, "mask names anchor %u twice",
                                     p->mask[i]);
    }
    return 0;
}

/* Warns of fields that no rule reads. */
static void note_unread(const struct ls_layer *layer)
{
    const Lockstep__Yolov3Parameter *p = param_of(layer);
    ls_boxes_note_side(layer, 0, p->has_side, p->side);
    if (p->noobject_scale != 1)
        ls_graph_ignore(layer->graph, layer, "noobject_scale");
    if (p->object_scale != 1 && !p->use_logic_gradient)
        ls_graph_ignore(layer->graph, layer, "object_scale");
    if (p->has_iou_normalizer || p->has_max_delta || p->has_accumulate)
        ls_graph_ignore(layer->graph, layer, "a field that goes with iou_loss");
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct yolov3 *state = layer->state;
    int64_t objects;
    const Lockstep__Yolov3Parameter *p = param_of(layer);
    LS_TRY(ls_layer_begin(layer, error, NULL));
    int numbers = check_numbers(layer, error);
    LS_TRY(check_anchors(layer, error));
    LS_TRY(numbers);
    LS_TRY(ls_boxes_check_planes(layer, error, 0, p->num, p->num_class));
    LS_TRY(ls_boxes_check_truths(layer, error, 1, &objects));
    note_unread(layer);
    state->attr = (struct ls_yolo_attr){.anchors = (int)p->num,
                                        .all = (int)(p->n_biases / 2),
                                        .mask = p->mask,
                                        .biases = p->biases,
                                        .step = p->anchors_scale,
                                        .classes = p->num_class,
                                        .objects = objects / layer->bottom[1]->rows,
                                        .object = p->use_logic_gradient ? p->object_scale : 1,
                                        .kind = p->class_scale,
                                        .place = p->coord_scale,
                                        .threshold = p->thresh,
                                        .also = p->iou_thresh,
                                        .smoothing = p->label_smooth_eps,
                                        .logistic = p->use_logic_gradient};
    state->loss.attr.normalization = LS_NORM_BATCH_SIZE;
    ls_loss_set_positions(&state->loss, layer->bottom[0]->rows, 1);
    return 0;
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    struct yolov3 *state = layer->state;
    ls_loss_begin(layer, &state->loss);
    state->attr.loss = state->loss.attr;
    state->slope = ls_layer_make_side(layer, "slope", layer->bottom[0]);
    struct ls_op *op = ls_graph_op(layer->graph, LS_OP_YOLO_LOSS);
    for (int i = 0; i < 2; i++)
        ls_op_in(layer->graph, op, layer->bottom[i]);
    ls_op_out(layer->graph, op, state->slope);
    if (op != NULL)
        op->attr.yolo = state->attr;
    return 0;
}

static int backward(struct ls_layer *layer, struct ls_error *error)
{
    struct yolov3 *state = layer->state;
    LS_TRY(ls_loss_check_labels(layer, error));
    if (!layer->propagate[0])
        return 0;
    struct ls_op *op = ls_layer_emit_gradient(layer, 0, LS_OP_YOLO_LOSS_BACKWARD, &state->slope, 1);
    if (op != NULL)
        op->attr.loss = state->loss.attr;
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    const struct yolov3 *state = layer->state;
    const double numbers = (double)ls_shape_size(&layer->bottom[0]->shape);
    const double cells = numbers / (double)(5 + state->attr.classes);
    cost->forward_flops = 12 * cells * (double)(1 + state->attr.objects);
    cost->forward_bytes = 2 * ls_layer_bytes(layer->bottom[0]) + ls_layer_bytes(layer->bottom[1]);
    if (!ls_layer_has_gradient(layer, 0))
        return;
    cost->backward_data_flops = numbers;
    cost->backward_bytes = 2 * ls_layer_bytes(layer->bottom[0]);
}

const struct ls_layer_type ls_layer_yolov3 = {
    .type = "Yolov3",
    .parameter = "yolov3_param",
    .state_size = sizeof(struct yolov3),
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
