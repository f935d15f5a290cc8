/* See kernels/op_makers.h. SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/op_makers_inner.h"

/* ---- Products and windows ---------------------------------------------------------------------
 */

struct ls_window draw_window(struct op_scene *scene, int axes, const int64_t *in, int64_t *out,
                             bool dilated)
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
    attr->relu_slope = scene_draw(scene, 0, 1) ? 0.25F : 0;
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
        .function = (enum ls_activation)scene_draw(scene, 0, LS_ACTIVATIONS - 1),
        .slope = (float)scene_draw(scene, -2, 2) / 4,
        .scale = (float)scene_draw(scene, 1, 4) / 2,
        .shift = (float)scene_draw(scene, 1, 3),
        .factor = (float)scene_draw(scene, 1, 3),
        .power = exponents[scene_draw(scene, 0, 6)],
        .low = -0.5F,
        .high = 0.75F};
    if (backward && attr->function == LS_THRESHOLD) /* which has no gradient */
        attr->function = LS_GELU;
    const bool gelu = attr->function == LS_GELU || attr->function == LS_GELU_TANH;
    if (attr->function == LS_POWER && scene_draw(scene, 0, 3) == 0) /* a constant */
        attr->scale = 0;
    const bool positive = attr->function == LS_LOG || attr->function == LS_POWER;
    if (backward)
        scene_in(scene, shape, -1, 1);
    scene_in(scene, shape, gelu ? -9 : positive ? 0.1F : -1, gelu ? 9 : 1);
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
    const int axis = (int)scene_draw(scene, -1, 1); /* of the samples */
    for (int i = 0; i < scene->values; i++) {
        scene->value[i].rows = axis == 0 ? rows : 1;
        scene->value[i].sample_axis = axis;
    }
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
        if (which != 1)
            scene_in(scene, shape, -1, 1);
        else
            scene_no_in(scene);
        if (which != 1)
            scene_out(scene, factor);
        else
            scene_no_out(scene);
        if (which != 0)
            scene_out(scene, factor);
        else
            scene_no_out(scene);
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
    [LS_OP_MATMUL] = make_matmul,
    [LS_OP_POOLING] = make_pooling,
    [LS_OP_POOLING_BACKWARD] = make_pooling,
    [LS_OP_ACTIVATION] = make_activation,
    [LS_OP_ACTIVATION_BACKWARD] = make_activation,
    [LS_OP_GLU] = make_glu,
    [LS_OP_GLU_BACKWARD] = make_glu,
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
    [LS_OP_LINEAR_LOSS] = make_linear_loss,
    [LS_OP_LINEAR_LOSS_GRADIENT] = make_linear_loss,
    [LS_OP_SUM_LOSS] = make_element_loss,
    [LS_OP_SUM_LOSS_BACKWARD] = make_element_loss,
    [LS_OP_ACCURACY] = make_classes,
    [LS_OP_MEAN_IOU] = make_classes,
    [LS_OP_COUNT_LABELS] = make_classes,
    [LS_OP_REGION_LOSS] = make_region,
    [LS_OP_REGION_LOSS_BACKWARD] = make_region,
    [LS_OP_DETECTION_EVALUATE] = make_evaluation,
    [LS_OP_REGION_EVALUATE] = make_evaluation,
    [LS_OP_YOLO_LOSS] = make_yolo,
    [LS_OP_YOLO_LOSS_BACKWARD] = make_region,
    [LS_OP_PROPOSAL] = make_proposal,
    [LS_OP_SOFTMAX_EACH] = make_classes,
    [LS_OP_SMOOTH_L1_EACH] = make_pair_loss,
    [LS_OP_HARDEST_REGIONS] = make_hardest,
    [LS_OP_YOLO_OUTPUT] = make_yolo_output,
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
    [LS_OP_EMBED_ROWS] = make_embed_rows,
    [LS_OP_GATHER] = make_gather,
    [LS_OP_GATHER_BACKWARD] = make_gather,
    [LS_OP_PAD] = make_pad,
    [LS_OP_PAD_BACKWARD] = make_pad,
    [LS_OP_POSITIONS] = make_positions,
    [LS_OP_EMBED_BAG] = make_bag,
    [LS_OP_EMBED_BAG_ROWS] = make_bag,
    [LS_OP_EMBED_BAG_FACTORS] = make_bag,
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
    [LS_OP_SELECT] = make_filter,
    [LS_OP_FILTER] = make_filter,
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
    [LS_OP_ATTENTION] = make_attention,
    [LS_OP_ATTENTION_BACKWARD] = make_attention,
};
