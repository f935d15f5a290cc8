/* See kernels/op_makers.h. SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/op_makers.h"

/* ---- Products and windows ---------------------------------------------------------------------
 */

/* A window over `axes` axes of lengths `in`; sets the lengths of what it makes. */
static struct ls_window draw_window(struct op_scene *scene, int axes, const int64_t *in,
                                    int64_t *out, bool dilated)
{
    struct ls_window window = {
        .axes = axes, .kernel = {1, 1, 1}, .stride = {1, 1, 1}, .dilation = {1, 1, 1}};
    for (int a = 0; a < axes; a++) {
        window.kernel[a] = scene_draw(scene, 1, in[a] < 3 ? in[a] : 3);
        window.stride[a] = scene_draw(scene, 1, 2);
        window.pad[a] = scene_draw(scene, 0, window.kernel[a] - 1);
        if (dilated && window.kernel[a] * 2 - 1 <= in[a])
            window.dilation[a] = scene_draw(scene, 1, 2);
        int64_t extent = window.dilation[a] * (window.kernel[a] - 1) + 1;
        out[a] = (in[a] + 2 * window.pad[a] - extent) / window.stride[a] + 1;
    }
    return window;
}

/* x, w and y of a convolution; of a deconvolution x and y are exchanged. */
static void make_convolution(struct op_scene *scene)
{
    const enum ls_op_kind kind = scene->op.kind;
    const bool exchanged = kind == LS_OP_DECONVOLUTION || kind == LS_OP_DECONVOLUTION_DATA ||
                           kind == LS_OP_DECONVOLUTION_WEIGHTS;
    const int64_t group = scene_draw(scene, 1, 2), axes = scene_draw(scene, 1, 3);
    struct ls_shape x = {(int)axes + 2, {scene_draw(scene, 1, 3), group * scene_draw(scene, 1, 9)}};
    struct ls_shape y = {x.rank, {x.dim[0], group * scene_draw(scene, 1, 9)}};
    struct ls_convolution_attr *attr = &scene->op.attr.convolution;
    for (int a = 0; a < axes; a++)
        x.dim[2 + a] = scene_draw(scene, 2, 7);
    attr->window = draw_window(scene, (int)axes, x.dim + 2, y.dim + 2, true);
    if (exchanged) /* its x is exactly what the windows of its y make */
        for (int a = 0; a < axes; a++)
            x.dim[2 + a] = attr->window.stride[a] * (y.dim[2 + a] - 1) +
                           attr->window.dilation[a] * (attr->window.kernel[a] - 1) + 1 -
                           2 * attr->window.pad[a];
    attr->group = group;
    attr->bias = scene_draw(scene, 0, 1);
    struct ls_shape w = {x.rank, {y.dim[1], x.dim[1] / group}};
    memcpy(w.dim + 2, attr->window.kernel, (size_t)axes * sizeof *w.dim);
    const struct ls_shape from = exchanged ? y : x, to = exchanged ? x : y;
    const struct ls_shape ends = {1, {to.dim[1]}};
    if (kind == LS_OP_CONVOLUTION || kind == LS_OP_DECONVOLUTION) {
        attr->relu = attr->bias && scene_draw(scene, 0, 1);
        attr->relu_slope = scene_draw(scene, 0, 1) ? 0.25F : 0;
        scene_in(scene, from, -1, 1);
        scene_in(scene, w, -1, 1);
        if (attr->bias)
            scene_in(scene, ends, -1, 1);
        scene_out(scene, to);
    } else if (kind == LS_OP_CONVOLUTION_DATA || kind == LS_OP_DECONVOLUTION_DATA) {
        scene_in(scene, to, -1, 1);
        scene_in(scene, w, -1, 1);
        scene_out(scene, from);
    } else {
        scene_in(scene, from, -1, 1);
        scene_in(scene, to, -1, 1);
        scene_out(scene, w);
        if (attr->bias)
            scene_out(scene, ends);
    }
}

static void make_inner_product(struct op_scene *scene)
{
    struct ls_inner_product_attr *attr = &scene->op.attr.inner_product;
    *attr = (struct ls_inner_product_attr){.m = scene_draw(scene, 1, 9),
                                           .k = scene_draw(scene, 1, 40),
                                           .n = scene_draw(scene, 1, 40),
                                           .bias = scene_draw(scene, 0, 1),
                                           .transpose = scene_draw(scene, 0, 1)};
    const bool large = scene_draw(scene, 0, 3) == 0; /* other kernels */
    if (large) {
        attr->k = scene_draw(scene, 200, 300);
        attr->n = scene_draw(scene, 170, 200);
        attr->large = true;
    }
    const struct ls_shape x = {2, {attr->m, attr->k}}, y = {2, {attr->m, attr->n}};
    const struct ls_shape bias = {1, {attr->n}};
    struct ls_shape w = {2, {attr->n, attr->k}};
    if (attr->transpose)
        w = (struct ls_shape){2, {attr->k, attr->n}};
    const enum ls_op_kind kind = scene->op.kind;
    scene_in(scene, kind == LS_OP_INNER_PRODUCT_DATA ? y : x, -1, 1);
    scene_in(scene, kind == LS_OP_INNER_PRODUCT_WEIGHTS ? y : w, -1, 1);
    attr->relu = kind == LS_OP_INNER_PRODUCT && scene_draw(scene, 0, 1);
    if (kind == LS_OP_INNER_PRODUCT && attr->bias)
        scene_in(scene, bias, -1, 1);
    scene_out(scene, kind == LS_OP_INNER_PRODUCT ? y : kind == LS_OP_INNER_PRODUCT_DATA ? x : w);
    if (kind == LS_OP_INNER_PRODUCT_WEIGHTS && attr->bias)
        scene_out(scene, bias);
}

/* The winners that a maximum over x has. */
static void put_winners(struct op_scene *scene, const struct ls_shape *x, const struct ls_shape *y)
{
    struct op_scene forward = {.round = scene->round};
    struct op_result result;
    forward.op.kind = LS_OP_POOLING;
    forward.op.attr = scene->op.attr;
    scene_in(&forward, *x, -1, 1);
    scene_out(&forward, *y);
    scene_out(&forward, *y)->type = LS_I32;
    scene_run(&forward, reference_device(), &ls_layout_plain, &result);
    float *index = scene_in(scene, *y, 0, 1);
    scene->in[scene->op.inputs - 1]->type = LS_I32;
    memcpy(index, result.out[1], (size_t)ls_shape_size(y) * sizeof *index);
    result_free(&result);
    scene_free(&forward);
}

static void make_pooling(struct op_scene *scene)
{
    const struct ls_shape x = scene_shape(scene, 3, 5);
    struct ls_shape y = x;
    struct ls_pooling_attr *attr = &scene->op.attr.pooling;
    attr->method = (enum ls_pooling)scene_draw(
        scene, 0, scene->op.kind == LS_OP_POOLING ? LS_POOL_EXPECTED : 1);
    attr->window = draw_window(scene, x.rank - 2, x.dim + 2, y.dim + 2, false);
    attr->key = 77 + scene->round;
    const bool maximum = attr->method == LS_POOL_MAX || attr->method == LS_POOL_STOCHASTIC;
    if (scene->op.kind == LS_OP_POOLING) {
        scene_in(scene, x, -1, 1);
        scene_out(scene, y);
        if (maximum && scene_draw(scene, 0, 1))
            scene_out(scene, y)->type = LS_I32;
        return;
    }
    scene_in(scene, y, -1, 1);
    if (maximum)
        put_winners(scene, &x, &y);
    scene_out(scene, x);
}

/* ---- Element by element -----------------------------------------------------------------------
 */

static void make_activation(struct op_scene *scene)
{
    static const float exponents[] = {0, 1, 2, 3, 0.5F, -1, 1.7F};
    const bool backward = scene->op.kind == LS_OP_ACTIVATION_BACKWARD;
    const struct ls_shape shape = scene_shape(scene, 0, 5);
    struct ls_activation_attr *attr = &scene->op.attr.activation;
    *attr = (struct ls_activation_attr){
        .function = (enum ls_activation)scene_draw(scene, 0, backward ? LS_CLIP : LS_THRESHOLD),
        .slope = (float)scene_draw(scene, 0, 2) / 4,
        .scale = (float)scene_draw(scene, 1, 4) / 2,
        .shift = (float)scene_draw(scene, 1, 3),
        .factor = (float)scene_draw(scene, 1, 3),
        .power = exponents[scene_draw(scene, 0, 6)],
        .low = -0.5F,
        .high = 0.75F};
    const bool positive = attr->function == LS_LOG || attr->function == LS_POWER;
    if (backward)
        scene_in(scene, shape, -1, 1);
    scene_in(scene, shape, positive ? 0.1F : -1, 1);
    scene_out(scene, shape);
}

static void make_prelu(struct op_scene *scene)
{
    const struct ls_shape shape = scene_shape(scene, 2, 5), own = {1, {shape.dim[1]}};
    const struct ls_shape slope = scene_draw(scene, 0, 1) ? own : (struct ls_shape){.rank = 0};
    scene_in(scene, shape, -1, 1);
    if (scene->op.kind != LS_OP_PRELU)
        scene_in(scene, shape, -1, 1);
    if (scene->op.kind != LS_OP_PRELU_SLOPE)
        scene_in(scene, slope, -1, 1);
    scene_out(scene, scene->op.kind == LS_OP_PRELU_SLOPE ? slope : shape);
}

static void make_dropout(struct op_scene *scene)
{
    struct ls_shape shape = scene_shape(scene, 2, 5);
    const int64_t rows = scene_draw(scene, 1, 2);
    shape.dim[0] *= rows;
    scene->op.attr.dropout =
        (struct ls_dropout_attr){(float)scene_draw(scene, 0, 3) / 4, 99 + scene->round};
    scene_in(scene, shape, -1, 1);
    if (scene_draw(scene, 0, 2) == 0)
        scene_in(scene, shape, -1, 1);
    scene_out(scene, shape);
    for (int i = 0; i < scene->values; i++)
        scene->value[i].rows = rows;
}

static void make_eltwise(struct op_scene *scene)
{
    const struct ls_shape shape = scene_shape(scene, 1, 5);
    const bool backward = scene->op.kind == LS_OP_ELTWISE_BACKWARD;
    const int inputs = (int)scene_draw(scene, 2, 4);
    struct ls_eltwise_attr *attr = &scene->op.attr.eltwise;
    attr->method = (enum ls_eltwise)scene_draw(scene, 0, 2);
    attr->which = (int)scene_draw(scene, 0, inputs - 1);
    for (int i = 0; i < inputs; i++)
        scene->list[i] = (float)scene_draw(scene, -2, 2) / 2;
    if (attr->method == LS_ELTWISE_SUM && scene_draw(scene, 0, 1))
        attr->coefficients = scene->list;
    const int ending = backward ? 0 : (int)scene_draw(scene, 0, 2);
    attr->relu = ending == 1;
    attr->gated = ending == 2;
    attr->relu_slope = scene_draw(scene, 0, 1) ? 0.5F : 0;
    if (backward)
        scene_in(scene, shape, -1, 1);
    for (int i = 0; i < inputs && (!backward || attr->method != LS_ELTWISE_SUM); i++)
        if (scene_draw(scene, 0, 1))
            scene_in(scene, shape, -1, 1);
        else
            scene_labels(scene, shape, -1, 1); /* many are equal */
    if (attr->gated)
        scene_in(scene, shape, -1, 1);
    scene_out(scene, shape);
}

static void make_scale(struct op_scene *scene)
{
    const struct ls_shape shape = scene_shape(scene, 1, 4);
    struct ls_scale_attr *attr = &scene->op.attr.scale;
    attr->axis = (int)scene_draw(scene, 0, shape.rank - 1);
    attr->axes = (int)scene_draw(scene, 0, shape.rank - attr->axis);
    attr->axis = attr->axes > 0 ? attr->axis : 0; /* one number is for all axes */
    struct ls_shape factor = {.rank = attr->axes};
    memcpy(factor.dim, shape.dim + attr->axis, (size_t)attr->axes * sizeof *factor.dim);
    const int64_t which = scene_draw(scene, 0, 2);
    scene_in(scene, shape, -1, 1);
    if (scene->op.kind == LS_OP_SCALE_SUMS) {
        scene_in(scene, shape, -1, 1);
        scene_out(scene, factor);
        scene_out(scene, factor);
        return;
    }
    if (which != 1)
        scene_in(scene, factor, -1, 1);
    else
        scene_no_in(scene);
    if (which != 0)
        scene_in(scene, factor, -1, 1);
    else
        scene_no_in(scene);
    scene_out(scene, shape);
}

/* ---- Losses and counts ------------------------------------------------------------------------
 */

/* x with classes along an axis, and labels, some of which are ignored. */
static void make_classes(struct op_scene *scene)
{
    const enum ls_op_kind kind = scene->op.kind;
    const bool log = kind == LS_OP_LOG_LOSS || kind == LS_OP_LOG_LOSS_BACKWARD;
    const bool counts = kind == LS_OP_ACCURACY || kind == LS_OP_MEAN_IOU;
    struct ls_shape x =
        shape_of(log ? 2 : (int)scene_draw(scene, 2, 4), scene_draw(scene, 1, 5),
                 scene_draw(scene, 2, 7), scene_draw(scene, 1, 4), scene_draw(scene, 1, 20));
    struct ls_shape label = x;
    label.rank--;
    memmove(label.dim + 1, x.dim + 2, 2 * sizeof *x.dim);
    const int classes = (int)x.dim[1], ignored = (int)scene_draw(scene, 0, classes - 1);
    const bool has_ignore = scene_draw(scene, 0, 1), weighted = scene_draw(scene, 0, 1) && !counts;
    for (int c = 0; c < classes; c++)
        scene->list[c] = (float)scene_draw(scene, 1, 4) / 2;
    if (kind == LS_OP_ACCURACY) {
        scene->op.attr.accuracy =
            (struct ls_accuracy_attr){1,          (int)scene_draw(scene, 1, classes),
                                      has_ignore, ignored,
                                      classes,    0,
                                      2,          2 + 2 * classes};
    } else if (kind == LS_OP_MEAN_IOU) {
        scene->op.attr.mean_iou = (struct ls_mean_iou_attr){1, has_ignore, ignored, classes, 0};
    } else {
        scene->op.attr.loss = (struct ls_loss_attr){
            .axis = 1,
            .has_ignore = has_ignore,
            .ignore_label = ignored,
            .normalization = (enum ls_normalization)scene_draw(scene, 0, LS_NORM_WEIGHTS),
            .normalizer = (int)scene_draw(scene, -1, 0),
            .loss_weight = 0.5F,
            .smoothing = !log && scene_draw(scene, 0, 1) ? 0.125F : 0,
            .class_weight = weighted ? scene->list : NULL,
            .classes = classes};
        scene->op.attr.loss.clamped = scene->op.attr.loss.smoothing == 0 && scene_draw(scene, 0, 1);
    }
    if (kind == LS_OP_COUNT_LABELS) {
        scene->op.attr.loss.class_weight = scene->list;
        scene_labels(scene, label, 0, classes - 1);
        return;
    }
    const bool probabilities = log || kind == LS_OP_SOFTMAX_LOSS_BACKWARD;
    scene_in(scene, x, probabilities ? 0.01F : -3, probabilities ? 1 : 3);
    scene_labels(scene, label, 0, classes - 1);
    if (!counts && kind != LS_OP_LOG_LOSS)
        scene_out(scene, x);
}

static void make_softmax(struct op_scene *scene)
{
    const struct ls_shape shape = scene_shape(scene, 1, 5);
    scene->op.attr.axis = (int)scene_draw(scene, 0, shape.rank - 1);
    scene_in(scene, shape, -3, 3);
    if (scene->op.kind == LS_OP_SOFTMAX_BACKWARD)
        scene_in(scene, shape, -1, 1);
    scene_out(scene, shape);
}

static void make_element_loss(struct op_scene *scene)
{
    const enum ls_op_kind kind = scene->op.kind;
    const struct ls_shape shape = scene_shape(scene, 1, 4);
    const bool sum = kind == LS_OP_SUM_LOSS || kind == LS_OP_SUM_LOSS_BACKWARD;
    const bool backward = kind == LS_OP_SIGMOID_LOSS_BACKWARD ||
                          kind == LS_OP_EUCLIDEAN_LOSS_BACKWARD || kind == LS_OP_SUM_LOSS_BACKWARD;
    scene->op.attr.loss = (struct ls_loss_attr){
        .normalization = (enum ls_normalization)scene_draw(scene, 0, LS_NORM_NONE),
        .normalizer = (int)scene_draw(scene, -1, 0),
        .has_ignore = scene_draw(scene, 0, 1),
        .ignore_label = 1,
        .loss_weight = 0.5F,
        .scale = scene_draw(scene, 0, 1) ? 1 : -1};
    if (kind != LS_OP_SUM_LOSS_BACKWARD)
        scene_in(scene, shape, -3, 3);
    if (!sum)
        scene_labels(scene, shape, 0, 1);
    if (backward)
        scene_out(scene, shape);
}

/* Hinge, contrastive and smooth L1 losses. */
static void make_pair_loss(struct op_scene *scene)
{
    const enum ls_op_kind kind = scene->op.kind;
    const bool hinge = kind == LS_OP_HINGE_LOSS || kind == LS_OP_HINGE_LOSS_BACKWARD;
    const bool contrastive =
        kind == LS_OP_CONTRASTIVE_LOSS || kind == LS_OP_CONTRASTIVE_LOSS_BACKWARD;
    const struct ls_shape x = shape_of(2, scene_draw(scene, 1, 6), scene_draw(scene, 2, 9), 0, 0);
    const struct ls_shape rows = {1, {x.dim[0]}};
    scene->op.attr.loss = (struct ls_loss_attr){.normalization = LS_NORM_BATCH_SIZE,
                                                .normalizer = (int)scene_draw(scene, -1, 0),
                                                .loss_weight = 0.5F,
                                                .scale = scene_draw(scene, 0, 1) ? 1 : -1,
                                                .squared = scene_draw(scene, 0, 1),
                                                .margin = (float)scene_draw(scene, 1, 6) / 2,
                                                .legacy = scene_draw(scene, 0, 1),
                                                .sigma2 = (float)scene_draw(scene, 1, 9) / 3};
    scene_in(scene, x, -2, 2);
    if (!hinge)
        scene_in(scene, x, -1, 1);
    if (hinge)
        scene_labels(scene, rows, 0, (int)x.dim[1] - 1);
    if (contrastive)
        scene_labels(scene, rows, 0, 1);
    for (int64_t more = hinge || contrastive ? 0 : scene_draw(scene, 0, 2); more > 0; more--)
        scene_in(scene, x, 0, 2);
    if (kind == LS_OP_HINGE_LOSS_BACKWARD || kind == LS_OP_CONTRASTIVE_LOSS_BACKWARD ||
        kind == LS_OP_SMOOTH_L1_LOSS_BACKWARD)
        scene_out(scene, x);
}

/* Some rows are empty. */
static void make_region(struct op_scene *scene)
{
    static const float sizes[] = {1, 1.5F, 2.5F, 0.75F};
    struct ls_region_attr *attr = &scene->op.attr.region;
    *attr = (struct ls_region_attr){.loss = {.normalization = LS_NORM_BATCH_SIZE,
                                             .normalizer = (int)scene_draw(scene, -1, 0),
                                             .loss_weight = 0.5F},
                                    .anchors = (int)scene_draw(scene, 1, 2),
                                    .classes = scene_draw(scene, 1, 3),
                                    .objects = scene_draw(scene, 1, 4),
                                    .anchor_sizes = sizes,
                                    .by_anchor = scene_draw(scene, 0, 1),
                                    .object = 5,
                                    .no_object = 0.5F,
                                    .kind = 1,
                                    .place = 2,
                                    .threshold = 0.5F};
    const struct ls_shape x =
        shape_of(4, scene_draw(scene, 1, 3), attr->anchors * (5 + attr->classes),
                 scene_draw(scene, 1, 4), scene_draw(scene, 1, 4));
    scene_in(scene, x, -2, 2);
    if (scene->op.kind == LS_OP_REGION_LOSS) {
        const struct ls_shape boxes = shape_of(3, x.dim[0], attr->objects, 8, 0);
        float *rows = scene_in(scene, boxes, 0, 0.5F);
        for (int64_t i = 0; i < x.dim[0] * attr->objects; i++) {
            rows[i * 8] = (float)scene_draw(scene, -1, 2);
            rows[i * 8 + 1] = (float)scene_draw(scene, 1, attr->classes);
            rows[i * 8 + 5] += 0.5F;
            rows[i * 8 + 6] += 0.5F;
        }
    }
    scene_out(scene, x);
}

static void make_infogain(struct op_scene *scene)
{
    const bool backward = scene->op.kind == LS_OP_INFOGAIN_LOSS_BACKWARD;
    const struct ls_shape x =
        shape_of(3, scene_draw(scene, 1, 4), scene_draw(scene, 2, 7), scene_draw(scene, 1, 9), 0);
    const int classes = (int)x.dim[1];
    const struct ls_shape matrix = {2, {classes, classes}};
    const bool given = scene_draw(scene, 0, 1);
    for (int i = 0; i < classes * classes; i++)
        scene->list[i] = (float)scene_draw(scene, -1, 4) / 2;
    scene->op.attr.loss = (struct ls_loss_attr){
        .axis = 1,
        .has_ignore = scene_draw(scene, 0, 1),
        .ignore_label = (int)scene_draw(scene, 0, classes - 1),
        .normalization = (enum ls_normalization)scene_draw(scene, 0, LS_NORM_NONE),
        .normalizer = (int)scene_draw(scene, -1, 0),
        .loss_weight = 0.5F,
        .matrix = given ? NULL : scene->list};
    scene_in(scene, x, backward ? 0.01F : -3, backward ? 1 : 3);
    scene_labels(scene, shape_of(2, x.dim[0], x.dim[2], 0, 0), 0, classes - 1);
    if (given)
        scene_in(scene, matrix, -1, 2);
    scene_out(scene, x);
}

/* ---- Boxes ------------------------------------------------------------------------------------
 */

/* Boxes within an image. */
static void put_boxes(struct op_scene *scene, float *numbers, int64_t count, int64_t step)
{
    for (int64_t i = 0; i < count; i++, numbers += step)
        for (int k = 0; k < 2; k++) {
            numbers[k] = (float)scene_draw(scene, 0, 60) / 100;
            numbers[2 + k] = numbers[k] + (float)scene_draw(scene, 10, 40) / 100;
        }
}

static void put_priors(struct op_scene *scene, int64_t priors)
{
    const struct ls_shape shape = {3, {1, 2, priors * 4}};
    put_boxes(scene, scene_in(scene, shape, 0.1F, 0.2F), priors, 4);
    scene->in[scene->op.inputs - 1]->sample_axis = -1;
}

/* Rows of which some are empty. */
static void put_objects(struct op_scene *scene, int64_t samples, int64_t objects, int classes)
{
    float *rows = scene_labels(scene, (struct ls_shape){3, {samples, objects, 8}}, 0, 1);
    put_boxes(scene, rows + 3, samples * objects, 8);
    for (int64_t i = 0; i < samples * objects; i++) {
        rows[8 * i] = (float)(i / objects);
        rows[8 * i + 1] = (float)scene_draw(scene, -1, classes - 1);
        rows[8 * i + 1] += rows[8 * i + 1] == 0; /* the background */
    }
}

static void make_multibox(struct op_scene *scene)
{
    const int64_t samples = scene_draw(scene, 1, 3);
    struct ls_multibox_attr *attr = &scene->op.attr.multibox;
    *attr = (struct ls_multibox_attr){
        .priors = scene_draw(scene, 1, 12),
        .classes = scene_draw(scene, 2, 4),
        .objects = scene_draw(scene, 1, 4),
        .code = (enum ls_box_code)scene_draw(scene, 0, LS_BOX_CORNER_SIZE),
        .variance_in_target = scene_draw(scene, 0, 1),
        .bipartite = scene_draw(scene, 0, 2) == 0,
        .difficult = scene_draw(scene, 0, 1),
        .mining = scene_draw(scene, 0, 1),
        .euclidean = scene_draw(scene, 0, 1),
        .logistic = scene_draw(scene, 0, 1),
        .overlap = 0.4F,
        .neg_overlap = 0.4F,
        .neg_pos_ratio = (float)scene_draw(scene, 1, 3),
        .loc_weight = (float)scene_draw(scene, 1, 3) / 2,
        .normalization = (enum ls_normalization)scene_draw(scene, 0, LS_NORM_NONE),
        .normalizer = (int)scene_draw(scene, -1, 0),
        .loss_weight = 0.5F};
    const struct ls_shape loc = {2, {samples, attr->priors * 4}};
    const struct ls_shape conf = {2, {samples, attr->priors * attr->classes}};
    if (scene->op.kind == LS_OP_MULTIBOX_LOSS_BACKWARD) {
        scene_in(scene, loc, -1, 1);
        scene_out(scene, loc);
        return;
    }
    if (scene->op.kind == LS_OP_MULTIBOX_LOSS) {
        scene_in(scene, loc, -3, 3);
        scene_in(scene, conf, -3, 3);
        scene_out(scene, loc);
        scene_out(scene, conf);
    }
    put_priors(scene, attr->priors);
    put_objects(scene, samples, attr->objects, (int)attr->classes);
}

static void make_detection(struct op_scene *scene)
{
    const int64_t samples = scene_draw(scene, 1, 3);
    struct ls_detection_attr *attr = &scene->op.attr.detection;
    *attr = (struct ls_detection_attr){
        .priors = scene_draw(scene, 1, 20),
        .classes = scene_draw(scene, 1, 4),
        .keep = scene_draw(scene, 1, 9),
        .code = (enum ls_box_code)scene_draw(scene, 0, LS_BOX_CORNER_SIZE),
        .variance_in_target = scene_draw(scene, 0, 1),
        .has_threshold = scene_draw(scene, 0, 1),
        .background = (int)scene_draw(scene, -1, 0),
        .top_k = scene_draw(scene, -1, 5),
        .threshold = 0.3F,
        .nms_threshold = (float)scene_draw(scene, 3, 8) / 10,
        .eta = scene_draw(scene, 0, 1) ? 1 : 0.8F};
    attr->keep_top_k = attr->keep;
    scene_in(scene, (struct ls_shape){2, {samples, attr->priors * 4}}, -1, 1);
    scene_in(scene, (struct ls_shape){2, {samples, attr->priors * attr->classes}}, 0, 1);
    put_priors(scene, attr->priors);
    scene_out(scene, (struct ls_shape){3, {samples, attr->keep, 7}});
}

static void make_reduction(struct op_scene *scene)
{
    const enum ls_op_kind kind = scene->op.kind;
    const bool loss = kind == LS_OP_REDUCE_LOSS || kind == LS_OP_REDUCE_LOSS_BACKWARD;
    const struct ls_shape x = scene_shape(scene, 1, 4);
    struct ls_shape y = x;
    struct ls_reduction_attr *attr = &scene->op.attr.reduction;
    attr->method = (enum ls_reduction)scene_draw(scene, 0, LS_REDUCE_MEAN);
    attr->axis = y.rank = loss ? 0 : (int)scene_draw(scene, 0, x.rank);
    attr->coeff = 1.5F;
    attr->loss_weight = 0.5F;
    attr->normalizer = (int)scene_draw(scene, -1, 0);
    const bool wants_x = attr->method == LS_REDUCE_ASUM || attr->method == LS_REDUCE_SUMSQ;
    if (kind == LS_OP_REDUCE_BACKWARD)
        scene_in(scene, y, -1, 1);
    if (kind == LS_OP_REDUCE || kind == LS_OP_REDUCE_LOSS || wants_x)
        scene_in(scene, x, -1, 1);
    if (kind == LS_OP_REDUCE)
        scene_out(scene, y);
    else if (kind != LS_OP_REDUCE_LOSS)
        scene_out(scene, x);
}

/* ---- Shapes -----------------------------------------------------------------------------------
 */

/* Half of the orders exchange two axes, so that they are their own backward. */
static void make_permute(struct op_scene *scene)
{
    const struct ls_shape x = scene_shape(scene, 0, 5);
    int *order = scene->op.attr.order;
    struct ls_shape y = x;
    for (int i = 0; i < x.rank; i++)
        order[i] = i;
    for (int64_t swaps = x.rank > 0 ? scene_draw(scene, 1, 2) : 0; swaps > 0; swaps--) {
        const int64_t a = scene_draw(scene, 0, x.rank - 1), b = scene_draw(scene, 0, x.rank - 1);
        const int kept = order[a];
        order[a] = order[b];
        order[b] = kept;
    }
    for (int i = 0; i < x.rank; i++)
        y.dim[i] = x.dim[order[i]];
    scene_in(scene, x, -1, 1);
    scene_out(scene, y);
}

static void make_columns(struct op_scene *scene)
{
    const struct ls_shape x = scene_shape(scene, 3, 5);
    struct ls_shape y = x;
    scene->op.attr.window = draw_window(scene, x.rank - 2, x.dim + 2, y.dim + 2, true);
    for (int a = 0; a < x.rank - 2; a++)
        y.dim[1] *= scene->op.attr.window.kernel[a];
    scene_in(scene, scene->op.kind == LS_OP_IM2COL ? x : y, -1, 1);
    scene_out(scene, scene->op.kind == LS_OP_IM2COL ? y : x);
}

static void make_constant(struct op_scene *scene)
{
    const struct ls_shape shape = {2, {scene_draw(scene, 1, 8), scene_draw(scene, 1, 8)}};
    for (int i = 0; i < 64; i++)
        scene->list[i] = (float)scene_draw(scene, -9, 9) / 4;
    scene->op.attr.constant.numbers = scene->list;
    scene_out(scene, shape);
}

static void make_embed(struct op_scene *scene)
{
    const struct ls_shape table = {2, {scene_draw(scene, 1, 9), scene_draw(scene, 1, 20)}};
    const struct ls_shape index = {2, {scene_draw(scene, 1, 4), scene_draw(scene, 1, 4)}};
    const struct ls_shape y = {3, {index.dim[0], index.dim[1], table.dim[1]}};
    const struct ls_shape bias = {1, {table.dim[1]}};
    const bool biased = scene_draw(scene, 0, 1);
    scene_in(scene, scene->op.kind == LS_OP_EMBED ? table : y, -1, 1);
    scene_labels(scene, index, 0, (int)table.dim[0] - 1);
    if (scene->op.kind == LS_OP_EMBED && biased)
        scene_in(scene, bias, -1, 1);
    scene_out(scene, scene->op.kind == LS_OP_EMBED ? y : table);
    if (scene->op.kind == LS_OP_EMBED_WEIGHTS && biased)
        scene_out(scene, bias);
}

static void make_copy(struct op_scene *scene)
{
    const struct ls_shape shape = scene_shape(scene, 0, 5);
    scene_in(scene, shape, -1, 1);
    scene_out(scene, shape);
}

static void make_join(struct op_scene *scene)
{
    struct ls_shape whole = scene_shape(scene, 1, 4), part = whole;
    const int axis = scene->op.attr.axis = (int)scene_draw(scene, 0, whole.rank - 1);
    const int parts = (int)scene_draw(scene, 1, 4);
    int64_t length[4], all = 0;
    for (int k = 0; k < parts; k++)
        all += length[k] = axis == 1 ? scene_draw(scene, 1, 2) * 8 : scene_draw(scene, 1, 4);
    whole.dim[axis] = all;
    if (scene->op.kind == LS_OP_SLICE)
        scene_in(scene, whole, -1, 1);
    for (int k = 0; k < parts; k++) {
        part.dim[axis] = length[k];
        if (scene->op.kind == LS_OP_SLICE)
            scene_out(scene, part);
        else
            scene_in(scene, part, -1, 1);
    }
    if (scene->op.kind == LS_OP_CONCAT)
        scene_out(scene, whole);
}

static void make_tile(struct op_scene *scene)
{
    const struct ls_shape once = scene_shape(scene, 1, 4);
    struct ls_shape tiled = once;
    const struct ls_tile_attr attr = {(int)scene_draw(scene, 0, once.rank - 1),
                                      scene_draw(scene, 1, 4)};
    scene->op.attr.tile = attr;
    tiled.dim[attr.axis] *= attr.tiles;
    scene_in(scene, scene->op.kind == LS_OP_TILE ? once : tiled, -1, 1);
    scene_out(scene, scene->op.kind == LS_OP_TILE ? tiled : once);
    scene->op.backward = scene->op.kind == LS_OP_TILE_BACKWARD;
}

static void make_crop(struct op_scene *scene)
{
    const struct ls_shape whole = scene_shape(scene, 2, 5);
    struct ls_shape part = whole;
    for (int a = 1; a < whole.rank; a++) {
        part.dim[a] = scene_draw(scene, 1, whole.dim[a]);
        scene->op.attr.crop.offset[a] = scene_draw(scene, 0, whole.dim[a] - part.dim[a]);
    }
    scene_in(scene, scene->op.kind == LS_OP_CROP ? whole : part, -1, 1);
    scene_out(scene, scene->op.kind == LS_OP_CROP ? part : whole);
}

/* A plugin: y = 2 x, with memory of its own. */
static int double_numbers(const struct ls_op *op, void *const *in, void *const *out, void *scratch,
                          int64_t first_ordinal, struct ls_error *error)
{
    (void)first_ordinal, (void)error;
    float *room = scratch;
    for (int64_t i = 0; i < ls_shape_size(&op->output[0]->shape); i++) {
        room[0] = ((const float *)in[0])[i];
        ((float *)out[0])[i] = 2 * room[0];
    }
    return 0;
}

static void make_plugin(struct op_scene *scene)
{
    const struct ls_shape x = scene_shape(scene, 1, 4);
    scene->op.attr.plugin = (struct ls_plugin_attr){.run = double_numbers, .scratch_bytes = 4};
    scene_in(scene, x, -1, 1);
    scene_out(scene, x);
}

static void make_resize(struct op_scene *scene)
{
    const struct ls_shape x = scene_shape(scene, 4, 4);
    const int room = (int)(x.dim[2] < x.dim[3] ? x.dim[2] : x.dim[3]) - 1;
    struct ls_resize_attr *attr = &scene->op.attr.resize;
    struct ls_shape y = x;
    attr->begin = (int)scene_draw(scene, 0, room);
    attr->end = (int)scene_draw(scene, 0, room - attr->begin);
    y.dim[2] = scene_draw(scene, 1, 9);
    y.dim[3] = scene_draw(scene, 1, 9);
    scene_in(scene, scene->op.kind == LS_OP_RESIZE ? x : y, -1, 1);
    scene_out(scene, scene->op.kind == LS_OP_RESIZE ? y : x);
}

static void make_upsample(struct op_scene *scene)
{
    const struct ls_shape x = scene_shape(scene, 4, 4);
    struct ls_shape y = x;
    for (int a = 0; a < 2; a++) {
        scene->op.attr.upsample.factor[a] = scene_draw(scene, 1, 3);
        y.dim[2 + a] *= scene->op.attr.upsample.factor[a];
    }
    scene_in(scene, scene->op.kind == LS_OP_UPSAMPLE ? x : y, -1, 1);
    scene_out(scene, scene->op.kind == LS_OP_UPSAMPLE ? y : x);
}

/* Places as those of the maxima of windows of 2 x 2 that do not overlap; some have none. */
static void make_unpool(struct op_scene *scene)
{
    const struct ls_shape x = scene_shape(scene, 4, 4);
    struct ls_shape y = x;
    y.dim[2] = 2 * x.dim[2] - scene_draw(scene, 0, 1);
    y.dim[3] = 2 * x.dim[3] - scene_draw(scene, 0, 1);
    scene_in(scene, scene->op.kind == LS_OP_UNPOOL ? x : y, -1, 1);
    float *index = scene_in(scene, x, 0, 1);
    scene->in[scene->op.inputs - 1]->type = LS_I32;
    for (int64_t i = 0; i < ls_shape_size(&x); i++) {
        const int64_t row = 2 * (i / x.dim[3] % x.dim[2]), column = 2 * (i % x.dim[3]);
        const int64_t down = row + 1 < y.dim[2] ? scene_draw(scene, 0, 1) : 0;
        const int64_t along = column + 1 < y.dim[3] ? scene_draw(scene, 0, 1) : 0;
        const bool none = scene_draw(scene, 0, 9) == 0;
        const int32_t at = none ? -1 : (int32_t)((row + down) * y.dim[3] + column + along);
        memcpy(&index[i], &at, sizeof at);
    }
    scene_out(scene, scene->op.kind == LS_OP_UNPOOL ? y : x);
}

static void make_argmax(struct op_scene *scene)
{
    const struct ls_shape x = scene_shape(scene, 2, 4);
    struct ls_argmax_attr *attr = &scene->op.attr.argmax;
    attr->axis = (int)scene_draw(scene, -1, x.rank - 1);
    attr->values = scene_draw(scene, 0, 1);
    attr->top_k =
        scene_draw(scene, 1, attr->axis < 0 ? ls_shape_count(&x, 1, x.rank) : x.dim[attr->axis]);
    struct ls_shape y = {3, {x.dim[0], attr->values ? 2 : 1, attr->top_k}};
    if (attr->axis >= 0) {
        y = x;
        y.dim[attr->axis] = attr->top_k;
    }
    scene_labels(scene, x, -3, 3); /* many are equal */
    scene_out(scene, y);
}

static void make_fill(struct op_scene *scene)
{
    static const char *const types[] = {"constant", "uniform", "gaussian", "xavier", "msra"};
    lockstep__filler_parameter__init(&scene->filler);
    scene->filler.type = (char *)(uintptr_t)types[scene_draw(scene, 0, 4)];
    scene->op.attr.fill = (struct ls_fill_attr){&scene->filler, 0, 5 + scene->round};
    scene_out(scene, scene_shape(scene, 1, 4));
}

/* ---- Normalisation ----------------------------------------------------------------------------
 */

/* Two parts of a group each, and what was merged for them. */
static void make_statistics(struct op_scene *scene, const struct ls_shape *x)
{
    const int64_t padded = ls_sync_round(x->dim[1]);
    for (int s = 0; s < 2; s++) {
        scene->sync[s] = (struct ls_sync){
            .kind = s == 0 ? LS_SYNC_MOMENTS : LS_SYNC_SUMS, .channels = x->dim[1], .eps = 1e-5F};
        const int64_t arrays = s == 0 ? 4 : 2;
        scene->merged[s] = ls_alloc((size_t)(SCENE_PARTS * arrays * padded), sizeof(float));
        assert_non_null(scene->merged[s]);
        for (int64_t i = 0; i < SCENE_PARTS * arrays * padded; i++)
            if (i % padded < x->dim[1] && (s == 1 || i / padded % 4 != 1))
                scene->merged[s][i] = 0.5F + ls_random_uniform(81, scene->round, (uint64_t)i);
    }
    const int64_t first = scene_draw(scene, 1, x->dim[0] - 1);
    scene->part[0] = (struct ls_part){0, first, 0, 0};
    scene->part[1] = (struct ls_part){first, x->dim[0] - first, 1, 1};
    scene->parts = (struct ls_parts){scene->part, SCENE_PARTS};
    scene->graph.syncs = scene->sync;
    scene->graph.sync_count = 2;
    scene->layer.graph = &scene->graph;
    scene->op.layer = &scene->layer;
}

static void make_batch_norm(struct op_scene *scene)
{
    const enum ls_op_kind kind = scene->op.kind;
    struct ls_shape x = scene_shape(scene, 2, 5);
    const struct ls_shape channels = {1, {x.dim[1]}}, one = {1, {1}};
    const bool backward = kind == LS_OP_BATCH_NORM_SUMS || kind == LS_OP_BATCH_NORM_BACKWARD;
    const bool saved = kind != LS_OP_MOMENTS && scene_draw(scene, 0, 2) == 0;
    const bool many = x.rank == 2 && scene->round % 3 == 0; /* more than are measured at a time */
    x.dim[0] = many ? scene_draw(scene, 4200, 5200) : scene_draw(scene, 2, 6);
    make_statistics(scene, &x);
    struct ls_batch_norm_attr *attr = &scene->op.attr.batch_norm;
    *attr = (struct ls_batch_norm_attr){.moments = saved ? -1 : 0,
                                        .sums = backward && !saved ? 1 : -1,
                                        .eps = 1e-3F,
                                        .relu = kind != LS_OP_MOMENTS && scene_draw(scene, 0, 1),
                                        .relu_slope = scene_draw(scene, 0, 1) ? 0.25F : 0};
    if (backward)
        scene_in(scene, x, -1, 1);
    scene_in(scene, x, 0, 2);
    if (backward && attr->relu && (saved || scene_draw(scene, 0, 1)))
        scene_in(scene, x, -1, 1);
    else if (backward)
        scene_no_in(scene);
    for (int i = 0; i < 3 && kind != LS_OP_MOMENTS; i++)
        if (saved)
            scene_in(scene, i < 2 ? channels : one, 0.5F, 1.5F);
        else
            scene_no_in(scene);
    for (int i = 0; i < 2 && kind != LS_OP_MOMENTS; i++)
        if (scene_draw(scene, 0, 1))
            scene_in(scene, channels, -1, 1);
        else
            scene_no_in(scene);
    if (kind == LS_OP_BATCH_NORM_SUMS) {
        scene_out(scene, channels);
        scene_out(scene, channels);
    } else if (kind != LS_OP_MOMENTS) {
        scene_out(scene, x);
    }
}

static void make_normalize(struct op_scene *scene)
{
    const enum ls_op_kind kind = scene->op.kind;
    struct ls_shape x = scene_shape(scene, 2, 4);
    struct ls_normalize_attr *attr = &scene->op.attr.normalize;
    attr->axis = (int)scene_draw(scene, 0, x.rank - 1);
    attr->groups = scene_draw(scene, 1, 2);
    x.dim[attr->axis] *= attr->groups;
    attr->variance = scene_draw(scene, 0, 2) > 0;
    attr->behind = scene_draw(scene, 0, 1);
    attr->eps = 1e-2F;
    attr->elements = attr->groups == 1 && scene_draw(scene, 0, 1);
    struct ls_shape factor = {.rank = attr->elements ? x.rank - attr->axis : 1};
    memcpy(factor.dim, x.dim + attr->axis, (size_t)factor.rank * sizeof *factor.dim);
    const struct ls_shape stats = {2, {ls_shape_count(&x, 0, attr->axis), 4 * attr->groups}};
    scene_in(scene, x, -1, 1);
    if (kind != LS_OP_NORMALIZE) {
        scene_in(scene, x, -1, 1);
        scene_in(scene, stats, 0.5F, 1.5F);
    }
    const bool factors = scene_draw(scene, 0, 1);
    for (int i = 0; factors && i < (kind == LS_OP_NORMALIZE ? 2 : 1); i++)
        if (kind != LS_OP_NORMALIZE_SUMS)
            scene_in(scene, factor, -1, 1);
    scene_out(scene, kind == LS_OP_NORMALIZE_SUMS ? factor : x);
    if (kind != LS_OP_NORMALIZE_DATA)
        scene_out(scene, kind == LS_OP_NORMALIZE ? stats : factor);
}

static void make_lrn(struct op_scene *scene)
{
    static const float betas[] = {0.75F, 0.5F, 1, 0.6F};
    const struct ls_shape x = scene_shape(scene, 4, 4);
    struct ls_lrn_attr *attr = &scene->op.attr.lrn;
    *attr = (struct ls_lrn_attr){.within = scene_draw(scene, 0, 1),
                                 .size = 2 * scene_draw(scene, 0, 2) + 1,
                                 .alpha = (float)scene_draw(scene, 1, 4),
                                 .beta = betas[scene_draw(scene, 0, 3)],
                                 .k = 1.5F};
    for (int i = 0; i < (scene->op.kind == LS_OP_LRN ? 1 : 3); i++)
        scene_in(scene, x, -1, 1);
    if (scene->op.kind == LS_OP_LRN_BACKWARD && !attr->within)
        scene_in(scene, x, 1, 2);
    scene_out(scene, x);
    if (scene->op.kind == LS_OP_LRN && !attr->within)
        scene_out(scene, x);
}

/* ---- Recurrent cells --------------------------------------------------------------------------
 */

static void some_in(struct op_scene *scene, bool there, struct ls_shape shape, float low)
{
    if (there)
        scene_in(scene, shape, low, 1);
    else
        scene_no_in(scene);
}

static void some_out(struct op_scene *scene, bool there, struct ls_shape shape)
{
    if (there)
        scene_out(scene, shape);
    else
        scene->out[scene->op.outputs++] = NULL;
}

/* Mostly 1, where a sequence goes on. */
static void put_cont(struct op_scene *scene, int64_t steps, int64_t rows)
{
    float *cont = scene_in(scene, shape_of(2, steps, rows, 0, 0), 0, 1);
    for (int64_t i = 0; i < steps * rows; i++)
        cont[i] = cont[i] < 0.3F ? 0 : 1;
}

static void make_recurrent(struct op_scene *scene)
{
    struct ls_recurrent_attr *attr = &scene->op.attr.recurrent;
    const bool wide = scene_draw(scene, 0, 7) == 0;
    *attr = (struct ls_recurrent_attr){.cell = (enum ls_cell)scene_draw(scene, 0, 2),
                                       .steps = scene_draw(scene, 1, wide ? 2 : 5),
                                       .rows = scene_draw(scene, 1, wide ? 18 : 5),
                                       .hidden = scene_draw(scene, 1, wide ? 70 : 12),
                                       .bf16 = scene_draw(scene, 0, 3) == 0};
    const int64_t t = attr->steps, n = attr->rows, h = attr->hidden;
    const int64_t width = ls_cell_parts(attr->cell) * h;
    const bool lstm = attr->cell == LS_CELL_LSTM, gru = attr->cell == LS_CELL_GRU;
    const struct ls_shape hidden = shape_of(3, t, n, h, 0), last = shape_of(3, 1, n, h, 0);
    const struct ls_shape z = shape_of(3, t, n, width, 0), gates = shape_of(3, t, n, 4 * h, 0);
    const struct ls_shape w = shape_of(2, width, h, 0, 0), still = shape_of(2, n, width, 0, 0);
    const bool product = gru || scene_draw(scene, 0, 5) > 0;
    if (scene->op.kind == LS_OP_RECURRENT) {
        const bool training = scene_draw(scene, 0, 2) > 0, starts = scene_draw(scene, 0, 3) > 0;
        scene_in(scene, z, -2, 2);
        put_cont(scene, t, n);
        some_in(scene, scene_draw(scene, 0, 1), still, -1);
        some_in(scene, product, w, -0.5F);
        some_in(scene, gru, shape_of(1, width, 0, 0, 0), -1);
        some_in(scene, starts, last, -1);
        some_in(scene, lstm && starts, last, -1);
        scene_out(scene, hidden);
        some_out(scene, training && attr->cell != LS_CELL_RNN, gates);
        some_out(scene, training, hidden);
        some_out(scene, training && lstm, hidden);
        some_out(scene, scene_draw(scene, 0, 1), last);
        some_out(scene, lstm && scene_draw(scene, 0, 1), last);
        return;
    }
    some_in(scene, scene_draw(scene, 0, 3) > 0, hidden, -1);
    some_in(scene, scene_draw(scene, 0, 1), last, -1);
    some_in(scene, lstm && scene_draw(scene, 0, 1), last, -1);
    some_in(scene, attr->cell != LS_CELL_RNN, gates, 0);
    some_in(scene, attr->cell == LS_CELL_RNN, hidden, -1);
    some_in(scene, gru, hidden, -1);
    some_in(scene, lstm, hidden, -1);
    some_in(scene, lstm && scene_draw(scene, 0, 1), last, -1);
    put_cont(scene, t, n);
    some_in(scene, product, w, -0.5F);
    scene_out(scene, z);
    some_out(scene, gru && scene_draw(scene, 0, 2) > 0, z);
    some_out(scene, scene_draw(scene, 0, 1), still);
    some_out(scene, scene_draw(scene, 0, 1), last);
    some_out(scene, lstm && scene_draw(scene, 0, 1), last);
}

/* ---- Rows and regions by number ---------------------------------------------------------------
 */

static void make_pick(struct op_scene *scene)
{
    const struct ls_shape x = scene_shape(scene, 1, 4);
    struct ls_shape y = x;
    y.dim[0] = scene_draw(scene, 1, 9);
    const struct ls_shape index = {1, {y.dim[0]}};
    scene_in(scene, scene->op.kind == LS_OP_PICK ? x : y, -1, 1);
    scene_labels(scene, index, 0, (int)x.dim[0] - 1);
    scene_out(scene, scene->op.kind == LS_OP_PICK ? y : x);
}

/* Some lie outside of their picture, some begin behind their end. */
static void put_regions(struct op_scene *scene, int64_t regions, const struct ls_shape *x)
{
    const struct ls_shape shape = {2, {regions, 5}};
    const float length = (float)(x->dim[2] > x->dim[3] ? x->dim[2] : x->dim[3]);
    float *number = scene_in(scene, shape, 0, 1);
    for (int64_t r = 0; r < regions; r++, number += 5) {
        number[0] = floorf(number[0] * (float)x->dim[0]);
        for (int k = 1; k < 5; k++)
            number[k] = (number[k] * 1.5F - 0.25F) * length / scene->op.attr.regions.scale;
    }
}

/* What the maximum over regions x leaves for its gradient. */
static void put_region_winners(struct op_scene *scene, const struct ls_shape *x,
                               const struct ls_shape *y)
{
    struct op_scene forward = {.round = scene->round};
    struct op_result result;
    forward.op.kind = LS_OP_REGION_MAX;
    forward.op.attr = scene->op.attr;
    scene_in(&forward, *x, -1, 1);
    put_regions(&forward, y->dim[0], x);
    scene_out(&forward, *y);
    scene_out(&forward, *y)->type = LS_I32;
    scene_run(&forward, reference_device(), &ls_layout_plain, &result);
    float *index = scene_in(scene, *y, 0, 1);
    scene->in[scene->op.inputs - 1]->type = LS_I32;
    memcpy(index, result.out[1], (size_t)ls_shape_size(y) * sizeof *index);
    /* Its regions are those of the winners. */
    const struct ls_shape shape = {2, {y->dim[0], 5}};
    float *numbers = scene_in(scene, shape, 0, 1);
    memcpy(numbers, forward.plain[1], (size_t)ls_shape_size(&shape) * sizeof *numbers);
    result_free(&result);
    scene_free(&forward);
}

static void make_regions(struct op_scene *scene)
{
    static const float scales[] = {1, 0.5F, 0.0625F, 0.3F};
    const enum ls_op_kind kind = scene->op.kind;
    const bool maximum = kind == LS_OP_REGION_MAX || kind == LS_OP_REGION_MAX_BACKWARD;
    struct ls_regions_attr *attr = &scene->op.attr.regions;
    *attr = (struct ls_regions_attr){{scene_draw(scene, 1, 3), scene_draw(scene, 1, 3)},
                                     scales[scene_draw(scene, 0, 3)]};
    const int64_t planes = scene_draw(scene, 1, 5), bins = attr->bins[0] * attr->bins[1];
    const struct ls_shape x = {4,
                               {scene_draw(scene, 1, 3), maximum ? planes : planes * bins,
                                scene_draw(scene, 1, 7), scene_draw(scene, 1, 7)}};
    const struct ls_shape y = {4, {scene_draw(scene, 1, 6), planes, attr->bins[0], attr->bins[1]}};
    const bool forward = kind == LS_OP_REGION_MAX || kind == LS_OP_REGION_AVERAGE;
    scene_in(scene, forward ? x : y, -1, 1);
    if (kind == LS_OP_REGION_MAX_BACKWARD)
        put_region_winners(scene, &x, &y);
    else
        put_regions(scene, y.dim[0], &x);
    scene_out(scene, forward ? y : x);
    if (kind == LS_OP_REGION_MAX && scene_draw(scene, 0, 2) > 0)
        scene_out(scene, y)->type = LS_I32;
}

/* ---- The table --------------------------------------------------------------------------------
 */

void (*const op_makers[LS_OP_KINDS])(struct op_scene *scene) = {
    [LS_OP_REORDER] = make_copy,
    [LS_OP_VIEW] = make_copy,
    [LS_OP_CONVOLUTION] = make_convolution,
    [LS_OP_CONVOLUTION_DATA] = make_convolution,
    [LS_OP_CONVOLUTION_WEIGHTS] = make_convolution,
    [LS_OP_DECONVOLUTION] = make_convolution,
    [LS_OP_DECONVOLUTION_DATA] = make_convolution,
    [LS_OP_DECONVOLUTION_WEIGHTS] = make_convolution,
    [LS_OP_INNER_PRODUCT] = make_inner_product,
    [LS_OP_INNER_PRODUCT_DATA] = make_inner_product,
    [LS_OP_INNER_PRODUCT_WEIGHTS] = make_inner_product,
    [LS_OP_POOLING] = make_pooling,
    [LS_OP_POOLING_BACKWARD] = make_pooling,
    [LS_OP_ACTIVATION] = make_activation,
    [LS_OP_ACTIVATION_BACKWARD] = make_activation,
    [LS_OP_PRELU] = make_prelu,
    [LS_OP_PRELU_DATA] = make_prelu,
    [LS_OP_PRELU_SLOPE] = make_prelu,
    [LS_OP_LRN] = make_lrn,
    [LS_OP_LRN_BACKWARD] = make_lrn,
    [LS_OP_DROPOUT] = make_dropout,
    [LS_OP_SOFTMAX] = make_softmax,
    [LS_OP_SOFTMAX_BACKWARD] = make_softmax,
    [LS_OP_SOFTMAX_LOSS] = make_classes,
    [LS_OP_SOFTMAX_LOSS_BACKWARD] = make_classes,
    [LS_OP_LOG_LOSS] = make_classes,
    [LS_OP_LOG_LOSS_BACKWARD] = make_classes,
    [LS_OP_SIGMOID_LOSS] = make_element_loss,
    [LS_OP_SIGMOID_LOSS_BACKWARD] = make_element_loss,
    [LS_OP_EUCLIDEAN_LOSS] = make_element_loss,
    [LS_OP_EUCLIDEAN_LOSS_BACKWARD] = make_element_loss,
    [LS_OP_SUM_LOSS] = make_element_loss,
    [LS_OP_SUM_LOSS_BACKWARD] = make_element_loss,
    [LS_OP_ACCURACY] = make_classes,
    [LS_OP_MEAN_IOU] = make_classes,
    [LS_OP_COUNT_LABELS] = make_classes,
    [LS_OP_REGION_LOSS] = make_region,
    [LS_OP_REGION_LOSS_BACKWARD] = make_region,
    [LS_OP_HINGE_LOSS] = make_pair_loss,
    [LS_OP_HINGE_LOSS_BACKWARD] = make_pair_loss,
    [LS_OP_CONTRASTIVE_LOSS] = make_pair_loss,
    [LS_OP_CONTRASTIVE_LOSS_BACKWARD] = make_pair_loss,
    [LS_OP_INFOGAIN_LOSS] = make_infogain,
    [LS_OP_INFOGAIN_LOSS_BACKWARD] = make_infogain,
    [LS_OP_SMOOTH_L1_LOSS] = make_pair_loss,
    [LS_OP_SMOOTH_L1_LOSS_BACKWARD] = make_pair_loss,
    [LS_OP_MULTIBOX_LOSS] = make_multibox,
    [LS_OP_MULTIBOX_LOSS_BACKWARD] = make_multibox,
    [LS_OP_COUNT_MATCHES] = make_multibox,
    [LS_OP_DETECTION_OUTPUT] = make_detection,
    [LS_OP_PERMUTE] = make_permute,
    [LS_OP_IM2COL] = make_columns,
    [LS_OP_COL2IM] = make_columns,
    [LS_OP_CONSTANT] = make_constant,
    [LS_OP_EMBED] = make_embed,
    [LS_OP_EMBED_WEIGHTS] = make_embed,
    [LS_OP_CONCAT] = make_join,
    [LS_OP_SLICE] = make_join,
    [LS_OP_TILE] = make_tile,
    [LS_OP_TILE_BACKWARD] = make_tile,
    [LS_OP_REDUCE] = make_reduction,
    [LS_OP_REDUCE_BACKWARD] = make_reduction,
    [LS_OP_REDUCE_LOSS] = make_reduction,
    [LS_OP_REDUCE_LOSS_BACKWARD] = make_reduction,
    [LS_OP_ARGMAX] = make_argmax,
    [LS_OP_RESIZE] = make_resize,
    [LS_OP_RESIZE_BACKWARD] = make_resize,
    [LS_OP_UPSAMPLE] = make_upsample,
    [LS_OP_UPSAMPLE_BACKWARD] = make_upsample,
    [LS_OP_UNPOOL] = make_unpool,
    [LS_OP_UNPOOL_BACKWARD] = make_unpool,
    [LS_OP_CROP] = make_crop,
    [LS_OP_CROP_BACKWARD] = make_crop,
    [LS_OP_PLUGIN] = make_plugin,
    [LS_OP_PLUGIN_BACKWARD] = make_plugin,
    [LS_OP_PICK] = make_pick,
    [LS_OP_PICK_BACKWARD] = make_pick,
    [LS_OP_REGION_MAX] = make_regions,
    [LS_OP_REGION_MAX_BACKWARD] = make_regions,
    [LS_OP_REGION_AVERAGE] = make_regions,
    [LS_OP_REGION_AVERAGE_BACKWARD] = make_regions,
    [LS_OP_ELTWISE] = make_eltwise,
    [LS_OP_ELTWISE_BACKWARD] = make_eltwise,
    [LS_OP_FILL] = make_fill,
    [LS_OP_MOMENTS] = make_batch_norm,
    [LS_OP_BATCH_NORM] = make_batch_norm,
    [LS_OP_BATCH_NORM_SUMS] = make_batch_norm,
    [LS_OP_BATCH_NORM_BACKWARD] = make_batch_norm,
    [LS_OP_SCALE] = make_scale,
    [LS_OP_SCALE_SUMS] = make_scale,
    [LS_OP_NORMALIZE] = make_normalize,
    [LS_OP_NORMALIZE_DATA] = make_normalize,
    [LS_OP_NORMALIZE_SUMS] = make_normalize,
    [LS_OP_RECURRENT] = make_recurrent,
    [LS_OP_RECURRENT_BACKWARD] = make_recurrent,
};
