/* Ops that measure and their gradients, and boxes: see kernels/op_makers.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/op_makers_inner.h"

/* ---- Losses and counts ------------------------------------------------------------------------
 */

/* Labels of classes; in some rounds one is none. */
static void put_labels(struct op_scene *scene, struct ls_shape shape, int64_t classes)
{
    static const float none[] = {0.5F, -1, 1e9F};
    float *label = scene_labels(scene, shape, 0, (int)classes - 1);
    if (scene->round % 6 == 5 && !scene->usual)
        label[scene_draw(scene, 0, ls_shape_size(&shape) - 1)] = none[scene_draw(scene, 0, 2)];
}

/* x with classes along an axis, and labels, some of which are ignored. */
void make_classes(struct op_scene *scene)
{
    const enum ls_op_kind kind = scene->op.kind;
    const bool log = kind == LS_OP_LOG_LOSS || kind == LS_OP_LOG_LOSS_BACKWARD;
    const bool counts = kind == LS_OP_ACCURACY || kind == LS_OP_MEAN_IOU;
    struct ls_shape x =
        shape_of(log ? 2 : (int)scene_draw(scene, 2, 4), scene_draw(scene, 1, 5),
                 scene_draw(scene, 2, 7), scene_draw(scene, 1, 4), scene_draw(scene, 1, 20));
    if (x.rank == 4 && scene->round % 4 == 3) /* more positions than losses add up in a part */
        x.dim[3] = scene_draw(scene, 250, 600);
    const bool fixed = log || counts || x.dim[x.rank - 1] > 20;
    const int axis = fixed ? 1 : (int)scene_draw(scene, 1, x.rank - 1);
    struct ls_shape label = x;
    label.rank--;
    for (int a = axis; a < label.rank; a++)
        label.dim[a] = x.dim[a + 1];
    const int classes = (int)x.dim[axis], ignored = (int)scene_draw(scene, 0, classes - 1);
    const bool has_ignore = scene_draw(scene, 0, 1), weighted = scene_draw(scene, 0, 1) && !counts;
    for (int c = 0; c < classes; c++)
        scene->list[c] = (float)scene_draw(scene, 1, 4) / 2;
    if (kind == LS_OP_ACCURACY) {
        scene->op.attr.accuracy =
            (struct ls_accuracy_attr){1,          (int)scene_draw(scene, 1, classes),
                                      has_ignore, ignored,
                                      classes,    0,
                                      2,          2 + 2 * classes};
        if (scene_draw(scene, 0, 2) == 0)
            scene->op.attr.accuracy.class_offset = -1;
        if (scene_draw(scene, 0, 2) == 0)
            scene->op.attr.accuracy.confusion_offset = -1;
    } else if (kind == LS_OP_MEAN_IOU) {
        scene->op.attr.mean_iou = (struct ls_mean_iou_attr){1, has_ignore, ignored, classes, 0};
    } else {
        scene->op.attr.loss = (struct ls_loss_attr){
            .axis = axis,
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
        put_labels(scene, label, classes);
        if (scene_draw(scene, 0, 1))
            scene_in(scene, label, 0, 9);
        return;
    }
    const bool probabilities =
        log || kind == LS_OP_SOFTMAX_LOSS_BACKWARD || kind == LS_OP_SOFTMAX_EACH;
    scene_in(scene, x, probabilities ? 0.01F : -3, probabilities ? 1 : 3);
    put_labels(scene, label, classes);
    if (!counts && kind != LS_OP_LOG_LOSS)
        scene_out(scene, kind == LS_OP_SOFTMAX_EACH ? label : x);
}

/* Rows of inputs with labels, and weights. */
void make_linear_loss(struct op_scene *scene)
{
    const int64_t inputs = scene_draw(scene, 1, 40);
    const struct ls_shape label = {2, {scene_draw(scene, 1, 5), scene_draw(scene, 1, 9)}};
    const struct ls_shape x = {3, {label.dim[0], label.dim[1], inputs}};
    const struct ls_shape w = {2, {scene_draw(scene, 2, 63), inputs}}, b = {1, {w.dim[0]}};
    const bool weighted = scene_draw(scene, 0, 2) == 0, bias = scene_draw(scene, 0, 1);
    const bool bytes = scene_draw(scene, 0, 1);
    for (int64_t c = 0; c < w.dim[0]; c++)
        scene->list[c] = (float)scene_draw(scene, 1, 4) / 2;
    const int mode = (int)scene_draw(scene, 0, weighted ? LS_NORM_WEIGHTS : LS_NORM_NONE);
    scene->op.attr.linear_loss = (struct ls_linear_loss_attr){
        .loss = {.axis = 2,
                 .has_ignore = scene_draw(scene, 0, 1),
                 .ignore_label = (int)scene_draw(scene, 0, w.dim[0] - 1),
                 .normalization = (enum ls_normalization)mode,
                 .normalizer = (int)scene_draw(scene, -1, 0),
                 .loss_weight = 0.5F,
                 .smoothing = scene_draw(scene, 0, 2) == 0 ? 0.125F : 0,
                 .class_weight = weighted ? scene->list : NULL,
                 .classes = w.dim[0]},
        .rows = label.dim[0] * label.dim[1],
        .inputs = inputs,
        .classes = w.dim[0],
        .bias = bias,
        .bytes = bytes,
        .hits = scene_draw(scene, 0, 1),
        .figures = scene_draw(scene, 0, 1) ? 2 : -1};
    scene->op.bf16 = scene_draw(scene, 0, 3) == 0;
    scene_in(scene, x, -1, 1);
    if (scene_draw(scene, 0, 9) == 0) /* all labels are ignored */
        scene_labels(scene, label, scene->op.attr.linear_loss.loss.ignore_label,
                     scene->op.attr.linear_loss.loss.ignore_label);
    else
        scene_labels(scene, label, 0, (int)w.dim[0] - 1);
    scene_in(scene, w, -1, 1);
    if (bias)
        scene_in(scene, b, -1, 1);
    else
        scene_no_in(scene);
    if (bytes)
        scene_labels(scene, label, 1, 9);
    else
        scene_no_in(scene);
    if (scene->op.kind == LS_OP_LINEAR_LOSS)
        return;
    scene_out(scene, x);
    scene_out(scene, w);
    if (bias)
        scene_out(scene, b);
}

/* Of some axes the mask has one place. */
static void put_mask(struct op_scene *scene, struct ls_shape shape)
{
    for (int axis = 0; axis < shape.rank; axis++)
        shape.dim[axis] = scene_draw(scene, 0, 2) == 0 ? 1 : shape.dim[axis];
    scene_labels(scene, shape, 0, 1);
}

void make_softmax(struct op_scene *scene)
{
    const struct ls_shape shape = scene_shape(scene, 1, 5);
    scene->op.attr.axis = (int)scene_draw(scene, 0, shape.rank - 1);
    scene_in(scene, shape, -3, 3);
    if (scene->op.kind == LS_OP_SOFTMAX_BACKWARD)
        scene_in(scene, shape, -1, 1);
    else if (scene_draw(scene, 0, 1))
        put_mask(scene, shape);
    scene_out(scene, shape);
}

void make_element_loss(struct op_scene *scene)
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
void make_pair_loss(struct op_scene *scene)
{
    const enum ls_op_kind kind = scene->op.kind;
    const bool hinge = kind == LS_OP_HINGE_LOSS || kind == LS_OP_HINGE_LOSS_BACKWARD;
    const bool contrastive =
        kind == LS_OP_CONTRASTIVE_LOSS || kind == LS_OP_CONTRASTIVE_LOSS_BACKWARD;
    const struct ls_shape x =
        shape_of(hinge ? 2 : (int)scene_draw(scene, 1, 4), scene_draw(scene, 1, 6),
                 scene_draw(scene, 2, 9), scene_draw(scene, 1, 3), scene_draw(scene, 1, 20));
    const struct ls_shape rows = {1, {x.dim[0]}};
    const int mode = (int)scene_draw(scene, 0, LS_NORM_NONE);
    scene->op.attr.loss = (struct ls_loss_attr){.normalization = (enum ls_normalization)mode,
                                                .has_ignore = hinge && scene_draw(scene, 0, 1),
                                                .ignore_label = 1,
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
        put_labels(scene, rows, x.dim[1]);
    if (contrastive)
        scene_labels(scene, rows, 0, 1);
    for (int64_t more = hinge || contrastive ? 0 : scene_draw(scene, 0, 2); more > 0; more--)
        if (more == 2 && scene_draw(scene, 0, 1))
            scene_no_in(scene); /* outside alone */
        else
            scene_in(scene, x, 0, 2);
    if (kind == LS_OP_HINGE_LOSS_BACKWARD || kind == LS_OP_CONTRASTIVE_LOSS_BACKWARD ||
        kind == LS_OP_SMOOTH_L1_LOSS_BACKWARD)
        scene_out(scene, x);
    if (kind == LS_OP_SMOOTH_L1_EACH)
        scene_out(scene, shape_of(x.rank, x.dim[0], 1, x.dim[2], x.dim[3]));
}

/* Every fourth scene of boxes is as large as threads of a card share the work of. */
static bool has_many_boxes(const struct op_scene *scene)
{
    return scene->round % 4 == 3;
}

static int64_t draw_extent(struct op_scene *scene, int64_t most)
{
    const int64_t some = scene_draw(scene, 1, most);
    return has_many_boxes(scene) ? 3 * most + some : some;
}

/* Rows of true boxes, some of them empty. */
static void put_truths(struct op_scene *scene, int64_t samples, int64_t objects, int64_t classes)
{
    float *rows = scene_in(scene, shape_of(3, samples, objects, 8, 0), 0, 0.5F);
    for (int64_t i = 0; i < samples * objects; i++) {
        rows[i * 8] = (float)scene_draw(scene, -1, 2);
        rows[i * 8 + 1] = (float)scene_draw(scene, 1, classes);
        rows[i * 8 + 5] += 0.5F;
        rows[i * 8 + 6] += 0.5F;
    }
}

void make_region(struct op_scene *scene)
{
    static const float sizes[] = {1, 1.5F, 2.5F, 0.75F};
    struct ls_region_attr *attr = &scene->op.attr.region;
    *attr = (struct ls_region_attr){
        .loss = {.normalization = LS_NORM_BATCH_SIZE,
                 .normalizer = (int)scene_draw(scene, -1, 0),
                 .loss_weight = 0.5F},
        .score = (enum ls_region_score)scene_draw(scene, 0, LS_REGION_SCORE_OVERLAP),
        .anchors = (int)scene_draw(scene, 1, 2),
        .classes = scene_draw(scene, 1, 3),
        .objects = draw_extent(scene, 4),
        .anchor_sizes = sizes,
        .by_anchor = scene_draw(scene, 0, 1),
        .object = 5,
        .no_object = 0.5F,
        .kind = 1,
        .place = 2,
        .threshold = 0.5F};
    const struct ls_shape x =
        shape_of(4, scene_draw(scene, 1, 3), attr->anchors * (5 + attr->classes),
                 draw_extent(scene, 4), draw_extent(scene, 4));
    scene_in(scene, x, -2, 2);
    if (scene->op.kind == LS_OP_REGION_LOSS)
        put_truths(scene, x.dim[0], attr->objects, attr->classes);
    scene_out(scene, x);
}

void make_yolo(struct op_scene *scene)
{
    static const float sizes[] = {20, 30, 50, 15, 90, 60, 10, 12};
    static const uint32_t mask[] = {2, 0, 1};
    struct ls_yolo_attr *attr = &scene->op.attr.yolo;
    *attr = (struct ls_yolo_attr){.loss = {.normalization = LS_NORM_BATCH_SIZE,
                                           .normalizer = (int)scene_draw(scene, -1, 0),
                                           .loss_weight = 0.5F},
                                  .anchors = (int)scene_draw(scene, 1, 3),
                                  .all = (int)scene_draw(scene, 3, 4),
                                  .mask = mask,
                                  .biases = sizes,
                                  .step = (double)scene_draw(scene, 10, 32),
                                  .classes = scene_draw(scene, 1, 3),
                                  .objects = draw_extent(scene, 4),
                                  .object = 5,
                                  .kind = 1,
                                  .place = 2,
                                  .threshold = 0.5F,
                                  .also = (float)scene_draw(scene, 1, 10) / 10,
                                  .smoothing = (float)scene_draw(scene, 0, 2) / 10,
                                  .logistic = scene_draw(scene, 0, 1)};
    const struct ls_shape x =
        shape_of(4, scene_draw(scene, 1, 3), attr->anchors * (5 + attr->classes),
                 draw_extent(scene, 4), draw_extent(scene, 4));
    scene_in(scene, x, -2, 2);
    put_truths(scene, x.dim[0], attr->objects, attr->classes);
    scene_out(scene, x);
}

void make_yolo_output(struct op_scene *scene)
{
    static const float sizes[] = {20, 30, 50, 15, 90, 60, 10, 12};
    static const uint32_t mask[] = {2, 0, 1, 3}, steps[] = {32, 16};
    const bool masked = scene_draw(scene, 0, 1);
    const int inputs = (int)scene_draw(scene, 1, 2);
    const int64_t samples = scene_draw(scene, 1, 3);
    struct ls_yolo_output_attr *attr = &scene->op.attr.yolo_output;
    *attr = (struct ls_yolo_output_attr){.anchors = (int)scene_draw(scene, 1, 2),
                                         .mask = masked ? mask : NULL,
                                         .biases = sizes,
                                         .steps = masked ? steps : NULL,
                                         .classes = scene_draw(scene, 1, 4),
                                         .keep = draw_extent(scene, 9),
                                         .softmax = !masked,
                                         .threshold = (float)scene_draw(scene, 0, 3) / 10,
                                         .nms_threshold = (float)scene_draw(scene, 1, 11) / 10};
    for (int i = 0; i < inputs; i++)
        scene_in(scene,
                 shape_of(4, samples, attr->anchors * (5 + attr->classes), draw_extent(scene, 4),
                          draw_extent(scene, 4)),
                 -2, 2);
    scene_out(scene, shape_of(3, samples, attr->keep, 7, 0));
}

void make_proposal(struct op_scene *scene)
{
    static const float ratios[] = {0.5F, 1, 2}, scales[] = {1, 2, 0.5F};
    const int64_t samples = scene_draw(scene, 1, 3);
    const int64_t rows = draw_extent(scene, 5), columns = draw_extent(scene, 5);
    struct ls_proposal_attr *attr = &scene->op.attr.proposal;
    *attr = (struct ls_proposal_attr){.ratio = ratios,
                                      .scale = scales,
                                      .ratios = scene_draw(scene, 1, 3),
                                      .scales = scene_draw(scene, 1, 3),
                                      .info = scene_draw(scene, 3, 6),
                                      .before = draw_extent(scene, 40),
                                      .regions = draw_extent(scene, 9),
                                      .base = (double)scene_draw(scene, 4, 16),
                                      .stride = (double)scene_draw(scene, 1, 16),
                                      .least = (uint32_t)scene_draw(scene, 0, 9),
                                      .overlap = (float)scene_draw(scene, 1, 9) / 10};
    const int64_t anchors = attr->ratios * attr->scales;
    scene_in(scene, shape_of(4, samples, 2 * anchors, rows, columns), 0, 1);
    scene_in(scene, shape_of(4, samples, 4 * anchors, rows, columns), -1, 1);
    float *info = scene_in(scene, (struct ls_shape){2, {samples, attr->info}}, 0.5F, 1);
    for (int64_t n = 0; n < samples; n++)
        for (int k = 0; k < 2; k++)
            info[n * attr->info + k] = (float)scene_draw(scene, 1, 64);
    scene_out(scene, (struct ls_shape){2, {samples * attr->regions, 5}});
    if (scene_draw(scene, 0, 1) == 1)
        scene_out(scene, (struct ls_shape){2, {samples * attr->regions, 1}});
}

void make_hardest(struct op_scene *scene)
{
    const int64_t rows = draw_extent(scene, 12), inner = scene_draw(scene, 1, 3);
    const struct ls_shape rois = shape_of(3, rows, 5, inner, 0),
                          each = shape_of(3, rows, 1, inner, 0);
    const struct ls_shape weights = shape_of(3, rows, scene_draw(scene, 1, 8), inner, 0);
    scene->op.attr.hardest =
        (struct ls_hardest_attr){.most = scene_draw(scene, 1, 5), .ignore_label = -1};
    float *numbers = scene_in(scene, rois, 0, 9);
    for (int64_t i = 0; i < rows * inner; i++)
        numbers[i / inner * 5 * inner + i % inner] = (float)scene_draw(scene, -1, 2);
    scene_labels(scene, each, 0, 4); /* losses of which some are equal */
    scene_labels(scene, each, 0, 4);
    scene_in(scene, weights, 0, 2);
    scene_out(scene, each);
    scene_out(scene, weights);
}

void make_infogain(struct op_scene *scene)
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
    put_labels(scene, shape_of(2, x.dim[0], x.dim[2], 0, 0), classes);
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

void make_multibox(struct op_scene *scene)
{
    const enum ls_op_kind kind = scene->op.kind;
    const int64_t samples = scene_draw(scene, 1, 3);
    const bool many = has_many_boxes(scene);
    struct ls_multibox_attr *attr = &scene->op.attr.multibox;
    *attr = (struct ls_multibox_attr){
        .priors = many ? scene_draw(scene, 600, 1200) : scene_draw(scene, 1, 12),
        .classes = scene_draw(scene, 2, 4),
        .objects = draw_extent(scene, 4),
        .code = (enum ls_box_code)scene_draw(scene, 0, LS_BOX_CORNER_SIZE),
        .variance_in_target = scene_draw(scene, 0, 1),
        .bipartite = scene_draw(scene, 0, 2) == 0,
        .difficult = scene_draw(scene, 0, 1),
        .agnostic = scene_draw(scene, 0, 3) == 0,
        .by_class = kind != LS_OP_COUNT_MATCHES && scene_draw(scene, 0, 3) == 0,
        .by_place = kind != LS_OP_COUNT_MATCHES && scene_draw(scene, 0, 2) == 0,
        .within = scene_draw(scene, 0, 2) == 0,
        .inside = scene_draw(scene, 0, 2) == 0,
        .sample_size = many ? 200 : scene_draw(scene, 1, 6),
        .top_k = scene_draw(scene, 0, 1) ? -1
                 : many                  ? 300
                                         : 4,
        .nms_threshold = scene_draw(scene, 0, 1) ? 0 : 0.5F,
        .suppresses_priors = scene_draw(scene, 0, 1),
        .count_offset = scene->round % 2 == 1 ? 5 : -1,
        .euclidean = scene_draw(scene, 0, 1),
        .logistic = scene_draw(scene, 0, 1),
        .overlap = 0.4F,
        .neg_overlap = 0.4F,
        .neg_pos_ratio = (float)scene_draw(scene, 1, 3),
        .loc_weight = (float)scene_draw(scene, 1, 3) / 2,
        .normalization = (enum ls_normalization)scene_draw(scene, 0, LS_NORM_NONE),
        .normalizer = (int)scene_draw(scene, -1, 0),
        .loss_weight = 0.5F};
    if (attr->agnostic)
        attr->classes = 2;
    if (!attr->by_class)
        attr->mining = (enum ls_mining)scene_draw(scene, 0, LS_MINING_EXAMPLES);
    const int64_t places = attr->by_class ? attr->classes : 1;
    const struct ls_shape loc = {2, {samples, attr->priors * places * 4}};
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

void make_detection(struct op_scene *scene)
{
    const int64_t samples = scene_draw(scene, 1, 3);
    const bool many = has_many_boxes(scene);
    struct ls_detection_attr *attr = &scene->op.attr.detection;
    *attr = (struct ls_detection_attr){
        .priors = many ? scene_draw(scene, 600, 1200) : scene_draw(scene, 1, 20),
        .classes = scene_draw(scene, 1, 4),
        .keep = draw_extent(scene, 9),
        .code = (enum ls_box_code)scene_draw(scene, 0, LS_BOX_CORNER_SIZE),
        .variance_in_target = scene_draw(scene, 0, 1),
        .has_threshold = scene_draw(scene, 0, 1),
        .by_class = scene_draw(scene, 0, 2) == 0,
        .background = (int)scene_draw(scene, -1, 0),
        .top_k = scene_draw(scene, -1, 5) * (many ? 60 : 1),
        .threshold = 0.3F,
        .nms_threshold = (float)scene_draw(scene, 3, 8) / 10,
        .eta = scene_draw(scene, 0, 1) ? 1 : 0.8F};
    attr->keep_top_k = attr->keep;
    const int64_t places = attr->by_class ? attr->classes : 1;
    scene_in(scene, (struct ls_shape){2, {samples, attr->priors * places * 4}}, -1, 1);
    scene_in(scene, (struct ls_shape){2, {samples, attr->priors * attr->classes}}, 0, 1);
    put_priors(scene, attr->priors);
    scene_out(scene, (struct ls_shape){3, {samples, attr->keep, 7}});
}

/* Found boxes, or the planes of regions, some of whose classes are none. */
void make_evaluation(struct op_scene *scene)
{
    static const float anchors[] = {1.5F, 0.75F, 2, 3};
    static const int32_t sizes[] = {480, 640, 333, 500};
    const bool regions = scene->op.kind == LS_OP_REGION_EVALUATE;
    const int64_t samples = scene_draw(scene, 1, 3);
    const bool many = has_many_boxes(scene);
    const int64_t rows = many ? 12 : scene_draw(scene, 1, 2);
    const int64_t columns = many ? scene_draw(scene, 22, 25) : scene_draw(scene, 1, 3);
    struct ls_evaluate_attr *attr = &scene->op.attr.evaluate;
    *attr = (struct ls_evaluate_attr){.finds = regions ? rows * columns * 2
                                               : many  ? 600
                                                       : scene_draw(scene, 1, 12),
                                      .objects = draw_extent(scene, 4),
                                      .classes = (int)scene_draw(scene, 2, 4),
                                      .background = regions ? -1 : (int)scene_draw(scene, -1, 0),
                                      .difficult = scene_draw(scene, 0, 1),
                                      .overlap = 0.3F,
                                      .anchors = regions ? 2 : 0,
                                      .anchor_sizes = anchors,
                                      .nms = (float)scene_draw(scene, -1, 1) / 2};
    attr->score = scene_draw(scene, 0, 2);
    if (!regions && scene_draw(scene, 0, 1)) {
        attr->pictures =
            (struct ls_picture_sizes){.sizes = sizes, .count = 2, .height = 300, .width = 400};
        attr->pictures.fit = scene_draw(scene, 0, 2);
    }
    if (regions) {
        scene_in(scene, shape_of(4, samples, 2 * (5 + attr->classes), rows, columns), -2, 2);
    } else {
        float *found = scene_labels(scene, (struct ls_shape){3, {samples, attr->finds, 7}}, 0, 3);
        put_boxes(scene, found + 3, samples * attr->finds, 7);
    }
    put_objects(scene, samples, attr->objects, attr->classes);
}

void make_reduction(struct op_scene *scene)
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
