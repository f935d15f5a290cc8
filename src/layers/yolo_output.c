/* YoloDetectionOutput, Yolov3DetectionOutput: the boxes that YOLO's nets have found.
 *
 * Bottoms [N, A (5 + K), H, W], one for each resolution, are those of RegionLoss and of Yolov3,
 * which have the formulas of the boxes. y [N, 1, keep_top_k, 7] has keep_top_k rows a sample:
 * (ordinal of the sample, class from 1, score, xmin, ymin, xmax, ymax). The score of a class is
 * s(t_o) times its softmax (YoloDetectionOutput, where a box has its best class alone, from
 * confidence_threshold on), or times s of its number (Yolov3DetectionOutput, each class above
 * confidence_threshold). The highest score comes first; what overlaps a row in front by
 * nms_threshold or more is left out, whatever its class. Rows that are left over hold -1.
 *
 * These are the yolo_detection_output_param and yolov3_detection_output_param of MobileNet-YOLO's
 * fork of Caffe, where all samples of a batch have one list of as many rows as there are boxes, and
 * no ordinal; keep_top_k is Lockstep's.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "layers/boxes.h"

enum { ROW = 7, BOTTOMS_MAX = 8 };

/* Both messages have these fields. */
struct output_fields {
    const void *message;
    int64_t classes, anchors, keep; /* anchors of each bottom */
    float threshold, nms_threshold;
};

struct yolo_output {
    struct ls_yolo_output_attr attr;
    struct ls_shape top;
};

static int check_fields(const struct ls_layer *layer, const struct output_fields *fields,
                        struct ls_error *error)
{
    if (fields->classes < 1 || fields->classes > INT16_MAX)
        return ls_layer_fail(layer, error, fields->message, "num_classes", NULL,
                             "num_classes must be 1 to 32767");
    if (fields->anchors < 1 || fields->anchors > INT16_MAX)
        return ls_layer_fail(layer, error, fields->message, "num_box", NULL,
                             "num_box, the anchors, must be 1 to 32767");
    if (fields->keep < 1 || fields->keep > INT32_MAX)
        return ls_layer_fail(layer, error, fields->message, "keep_top_k", NULL,
                             "keep_top_k must be 1 to 2147483647");
    if (!isfinite(fields->threshold))
        return ls_layer_fail(layer, error, fields->message, "confidence_threshold", NULL,
                             "confidence_threshold must be a finite number");
    if (!(fields->nms_threshold > 0 && isfinite(fields->nms_threshold)))
        return ls_layer_fail(layer, error, fields->message, "nms_threshold", NULL,
                             "nms_threshold must be a number above 0");
    return 0;
}

/* Checks the bottoms, and makes the attributes and the shape of the top. */
static int take_fields(const struct ls_layer *layer, const struct output_fields *fields,
                       struct ls_error *error)
{
    struct yolo_output *state = layer->state;
    const struct ls_value *first = layer->bottom[0];
    double finds = 0;
    for (int i = 0; i < layer->bottoms; i++) {
        LS_TRY(ls_boxes_check_planes(layer, error, i, fields->anchors, fields->classes));
        LS_TRY(ls_layer_check_alike(layer, error, i));
        const struct ls_shape *x = &layer->bottom[i]->shape;
        finds += (double)fields->anchors * (double)x->dim[2] * (double)x->dim[3] *
                 (double)fields->classes;
    }
    if (first->rows != 1)
        return ls_layer_fail(layer, error, NULL, "bottom", NULL,
                             "its bottom '%s' has %lld rows a sample; it must have one",
                             first->name, (long long)first->rows);
    if (finds > INT32_MAX)
        return ls_layer_fail(layer, error, NULL, "bottom", NULL,
                             "its bottoms have %.0f scores a sample; the limit is %d", finds,
                             (int)INT32_MAX);
    state->attr.anchors = (int)fields->anchors;
    state->attr.classes = fields->classes;
    state->attr.keep = fields->keep < (int64_t)finds ? fields->keep : (int64_t)finds;
    state->attr.threshold = fields->threshold;
    state->attr.nms_threshold = fields->nms_threshold;
    state->top = (struct ls_shape){4, {first->shape.dim[0], 1, state->attr.keep, ROW}};
    return ls_layer_check_shape(layer, error, "the top", &state->top);
}

static int setup_v2(struct ls_layer *layer, struct ls_error *error)
{
    static const Lockstep__YoloDetectionOutputParameter defaults =
        LOCKSTEP__YOLO_DETECTION_OUTPUT_PARAMETER__INIT;
    struct yolo_output *state = layer->state;
    const Lockstep__YoloDetectionOutputParameter *p =
        layer->definition->yolo_detection_output_param;
    p = p != NULL ? p : &defaults;
    const struct output_fields fields = {.message = p,
                                         .classes = p->num_classes,
                                         .anchors = p->num_box,
                                         .keep = p->keep_top_k,
                                         .threshold = p->confidence_threshold,
                                         .nms_threshold = p->nms_threshold};
    LS_TRY(ls_layer_begin(layer, error, NULL));
    LS_TRY(check_fields(layer, &fields, error));
    if (p->coords != 4)
        return ls_layer_fail(layer, error, p, "coords", NULL,
                             "coords %u: a box has 4 numbers for its place", p->coords);
    LS_TRY(ls_boxes_check_anchors(layer, error, p, p->biases, p->n_biases, p->num_box));
    LS_TRY(take_fields(layer, &fields, error));
    ls_boxes_note_side(layer, 0, p->has_side, p->side);
    if (p->label_map_file != NULL)
        ls_graph_ignore(layer->graph, layer, "label_map_file");
    state->attr.biases = p->biases;
    state->attr.softmax = true;
    return 0;
}

/* Which anchors each bottom has. */
static int check_mask(const struct ls_layer *layer,
                      const Lockstep__Yolov3DetectionOutputParameter *p, struct ls_error *error)
{
    const size_t all = p->n_biases / 2, bottoms = (size_t)layer->bottoms;
    if (p->mask_group_num != bottoms)
        return ls_layer_fail(layer, error, p, "mask_group_num", NULL,
                             "mask_group_num is %u, but there are %zu bottoms", p->mask_group_num,
                             bottoms);
    if (p->n_mask != bottoms * p->num_box)
        return ls_layer_fail(layer, error, p, p->n_mask > 0 ? "mask" : NULL,
                             "give num_box numbers of anchors, from 0, for each bottom",
                             "mask names %zu anchors; there must be %u for each of %zu bottoms",
                             p->n_mask, p->num_box, bottoms);
    for (size_t i = 0; i < p->n_mask; i++)
        if (p->mask[i] >= all)
            return ls_layer_fail(layer, error, p, "mask", NULL,
                                 "mask names anchor %u, but there are %zu, from 0", p->mask[i],
                                 all);
    if (p->n_anchors_scale != bottoms)
        return ls_layer_fail(layer, error, p, p->n_anchors_scale > 0 ? "anchors_scale" : NULL,
                             "give the pixels from one position to the next, for each bottom",
                             "%zu numbers of anchors_scale for %zu bottoms", p->n_anchors_scale,
                             bottoms);
    for (size_t i = 0; i < bottoms; i++)
        if (p->anchors_scale[i] < 1 || p->anchors_scale[i] > INT16_MAX)
            return ls_layer_fail(layer, error, p, "anchors_scale", NULL,
                                 "anchors_scale must be 1 to 32767 pixels");
    return 0;
}

static int setup_v3(struct ls_layer *layer, struct ls_error *error)
{
    static const Lockstep__Yolov3DetectionOutputParameter defaults =
        LOCKSTEP__YOLOV3_DETECTION_OUTPUT_PARAMETER__INIT;
    struct yolo_output *state = layer->state;
    const Lockstep__Yolov3DetectionOutputParameter *p =
        layer->definition->yolov3_detection_output_param;
    p = p != NULL ? p : &defaults;
    const struct output_fields fields = {.message = p,
                                         .classes = p->num_classes,
                                         .anchors = p->num_box,
                                         .keep = p->keep_top_k,
                                         .threshold = p->confidence_threshold,
                                         .nms_threshold = p->nms_threshold};
    LS_TRY(ls_layer_begin(layer, error, NULL));
    LS_TRY(check_fields(layer, &fields, error));
    if (p->gaussian_box)
        return ls_layer_fail(layer, error, p, "gaussian_box", "leave it out",
                             "gaussian_box: true is not supported");
    LS_TRY(ls_boxes_check_anchors(layer, error, p, p->biases, p->n_biases,
                                  (int64_t)(p->n_biases + 1) / 2));
    LS_TRY(check_mask(layer, p, error));
    LS_TRY(take_fields(layer, &fields, error));
    state->attr.mask = p->mask;
    state->attr.biases = p->biases;
    state->attr.steps = p->anchors_scale;
    return 0;
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    const struct yolo_output *state = layer->state;
    struct ls_value *y = ls_layer_make_top(layer, 0, &state->top, layer->bottom[0]);
    struct ls_op *op = ls_graph_op(layer->graph, LS_OP_YOLO_OUTPUT);
    for (int i = 0; i < layer->bottoms; i++)
        ls_op_in(layer->graph, op, layer->bottom[i]);
    ls_op_out(layer->graph, op, y);
    if (op != NULL)
        op->attr.yolo_output = state->attr;
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    for (int i = 0; i < layer->bottoms; i++) {
        cost->forward_flops += 10 * (double)ls_shape_size(&layer->bottom[i]->shape);
        cost->forward_bytes += ls_layer_bytes(layer->bottom[i]);
    }
    cost->forward_bytes += ls_layer_bytes(layer->top[0]);
}

const struct ls_layer_type ls_layer_yolo_output = {
    .type = "YoloDetectionOutput",
    .parameter = "yolo_detection_output_param",
    .state_size = sizeof(struct yolo_output),
    .bottoms_min = 1,
    .bottoms_max = BOTTOMS_MAX,
    .tops_min = 1,
    .tops_max = 1,
    .setup = setup_v2,
    .forward = forward,
    .cost = cost,
};

const struct ls_layer_type ls_layer_yolov3_output = {
    .type = "Yolov3DetectionOutput",
    .parameter = "yolov3_detection_output_param",
    .state_size = sizeof(struct yolo_output),
    .bottoms_min = 1,
    .bottoms_max = BOTTOMS_MAX,
    .tops_min = 1,
    .tops_max = 1,
    .setup = setup_v3,
    .forward = forward,
    .cost = cost,
};
