/* The list of probes. See ops/cpu/fingerprint_probes.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ops/cpu/fingerprint_probes.h"

/* Shapes; 20 channels leave lanes of padding in blocks of 8 and of 16, which convolutions of planes
 * (ops/cpu/planes.c) may be for; 32 do not. */
static const struct ls_shape picture = {4, {2, 20, 7, 6}};
static const struct ls_shape tiled = {4, {2, 20, 21, 6}};
static const struct ls_shape pooled = {4, {2, 20, 3, 2}};
static const struct ls_shape image = {4, {2, 3, 7, 6}};
static const struct ls_shape features = {4, {2, 24, 7, 6}};
static const struct ls_shape filters = {4, {24, 20, 3, 3}};
static const struct ls_shape own_filters = {4, {24, 1, 3, 3}};
static const struct ls_shape image_filters = {4, {24, 3, 3, 3}};
static const struct ls_shape blocks = {4, {2, 32, 7, 6}};
static const struct ls_shape block_filters = {4, {24, 32, 3, 3}};
static const struct ls_shape volume = {5, {2, 20, 4, 5, 6}};
static const struct ls_shape volume_features = {5, {2, 24, 4, 5, 6}};
static const struct ls_shape volume_filters = {5, {24, 20, 3, 3, 3}};
static const struct ls_shape bias = {1, {24}};
static const struct ls_shape rows = {2, {4, 300}};
static const struct ls_shape matrix = {2, {33, 300}};
static const struct ls_shape products = {2, {4, 33}};
static const struct ls_shape offsets = {1, {33}};
static const struct ls_shape classes = {2, {4, 10}};
static const struct ls_shape label = {1, {4}};
static const struct ls_shape stats = {2, {2, 12}};

#define KEEPS_SIZE   .window = {2, {3, 3, 1}, {1, 1, 1}, {1, 1, 0}, {1, 1, 1}}
#define KEEPS_VOLUME .window = {3, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}}
#define HALVES       .window = {2, {3, 3, 1}, {2, 2, 1}, {0, 0, 0}, {1, 1, 1}}

/* Attributes. */
#define CONVOLVE(window_, group_, relu_)                                                           \
    .convolution = {window_, .group = group_, .bias = true, .relu = relu_}
#define MULTIPLY .inner_product = {.m = 4, .k = 300, .n = 33}
#define POOL     .pooling = {.method = LS_POOL_AVERAGE, HALVES}
#define APPLY(function_)                                                                           \
    .activation = {.function = function_,                                                          \
                   .slope = 0.5f,                                                                  \
                   .scale = 0.5f,                                                                  \
                   .shift = 0.75f,                                                                 \
                   .factor = 1.5f,                                                                 \
                   .power = 1.7f}
#define NORMALIZE_GROUPS .normalize = {.axis = 1, .groups = 3, .variance = true, .eps = 1e-3f}
#define RESPOND(within_) .lrn = {.within = within_, .size = 3, .alpha = 0.5f, .beta = 0.75f, .k = 1}
/* By saved averages, which need no sync point. */
#define BY_AVERAGES .batch_norm = {.moments = -1, .sums = -1, .eps = 1e-3f}
#define DROP        .dropout = {.ratio = 0.3f, .key = 12345}
#define REPEAT      .tile = {.axis = 2, .tiles = 3}
#define REDUCE(method_)                                                                            \
    .reduction = {.axis = 1, .method = method_, .coeff = 0.75f, .normalizer = -1}
#define ADD  .eltwise = {.method = LS_ELTWISE_SUM}
#define LOSE .loss = {.axis = 1, .loss_weight = 1}

/* An op with attributes. */
#define OP(kind_, ...) .op = {.kind = LS_OP_##kind_, .attr = {__VA_ARGS__}}

const struct ls_fingerprint_probe ls_fingerprint_probes[] = {
    {OP(CONVOLUTION, CONVOLVE(KEEPS_SIZE, 1, false)),
     {&image, &image_filters, &bias},
     {&features},
     {0}},
    {OP(CONVOLUTION, CONVOLVE(KEEPS_SIZE, 1, true)), {&picture, &filters, &bias}, {&features}, {0}},
    {OP(CONVOLUTION_DATA, CONVOLVE(KEEPS_SIZE, 1, false)), {&features, &filters}, {&picture}, {0}},
    {OP(CONVOLUTION_DATA, CONVOLVE(KEEPS_SIZE, 24, false)),
     {&features, &own_filters},
     {&features},
     {0}},
    {OP(CONVOLUTION_WEIGHTS, CONVOLVE(KEEPS_SIZE, 1, false)),
     {&image, &features},
     {&image_filters, &bias},
     {0}},
    {OP(CONVOLUTION_WEIGHTS, CONVOLVE(KEEPS_SIZE, 1, false)),
     {&picture, &features},
     {&filters, &bias},
     {0}},
    {OP(CONVOLUTION, CONVOLVE(KEEPS_SIZE, 1, true)),
     {&blocks, &block_filters, &bias},
     {&features},
     {0}},
    {OP(CONVOLUTION_DATA, CONVOLVE(KEEPS_SIZE, 1, false)),
     {&features, &block_filters},
     {&blocks},
     {0}},
    {OP(CONVOLUTION_WEIGHTS, CONVOLVE(KEEPS_SIZE, 1, false)),
     {&blocks, &features},
     {&block_filters, &bias},
     {0}},
    {OP(CONVOLUTION, CONVOLVE(KEEPS_VOLUME, 1, true)),
     {&volume, &volume_filters, &bias},
     {&volume_features},
     {0}},
    {OP(CONVOLUTION_DATA, CONVOLVE(KEEPS_VOLUME, 1, false)),
     {&volume_features, &volume_filters},
     {&volume},
     {0}},
    {OP(CONVOLUTION_WEIGHTS, CONVOLVE(KEEPS_VOLUME, 1, false)),
     {&volume, &volume_features},
     {&volume_filters, &bias},
     {0}},
    {OP(INNER_PRODUCT, MULTIPLY), {&rows, &matrix, &offsets}, {&products}, {0}},
    {OP(INNER_PRODUCT_DATA, MULTIPLY), {&products, &matrix}, {&rows}, {0}},
    {OP(INNER_PRODUCT_WEIGHTS, MULTIPLY), {&rows, &products}, {&matrix, &offsets}, {0}},
    {OP(POOLING, POOL), {&picture}, {&pooled}, {0}},
    {OP(POOLING_BACKWARD, POOL), {&pooled}, {&picture}, {0}},
    {OP(ACTIVATION, APPLY(LS_SIGMOID)), {&picture}, {&picture}, {0}},
    {OP(ACTIVATION, APPLY(LS_TANH)), {&picture}, {&picture}, {0}},
    {OP(ACTIVATION_BACKWARD, APPLY(LS_SIGMOID)), {&picture, &picture}, {&picture}, {0}},
    {OP(ACTIVATION_BACKWARD, APPLY(LS_TANH)), {&picture, &picture}, {&picture}, {0}},
    {OP(ACTIVATION, APPLY(LS_ELU)), {&picture}, {&picture}, {0}},
    {OP(ACTIVATION, APPLY(LS_SWISH)), {&picture}, {&picture}, {0}},
    {OP(ACTIVATION, APPLY(LS_EXP)), {&picture}, {&picture}, {0}},
    {OP(ACTIVATION, APPLY(LS_LOG)), {&picture}, {&picture}, {0}},
    {OP(ACTIVATION, APPLY(LS_POWER)), {&picture}, {&picture}, {0}},
    {OP(ACTIVATION, APPLY(LS_BNLL)), {&picture}, {&picture}, {0}},
    {OP(ACTIVATION_BACKWARD, APPLY(LS_SWISH)), {&picture, &picture}, {&picture}, {0}},
    {OP(ACTIVATION_BACKWARD, APPLY(LS_POWER)), {&picture, &picture}, {&picture}, {0}},
    {OP(ACTIVATION_BACKWARD, APPLY(LS_BNLL)), {&picture, &picture}, {&picture}, {0}},
    {.op = {.kind = LS_OP_PRELU}, {&features, &bias}, {&features}, {0}},
    {.op = {.kind = LS_OP_PRELU_SLOPE}, {&features, &features}, {&bias}, {0}},
    {OP(NORMALIZE, NORMALIZE_GROUPS), {&features, &bias, &bias}, {&features, &stats}, {0}},
    {OP(NORMALIZE_DATA, NORMALIZE_GROUPS), {&features, &features, &stats, &bias}, {&features}, {0}},
    {OP(NORMALIZE_SUMS, NORMALIZE_GROUPS), {&features, &features, &stats}, {&bias, &bias}, {0}},
    {OP(LRN, RESPOND(false)), {&picture}, {&picture, &picture}, {0}},
    {OP(LRN, RESPOND(true)), {&picture}, {&picture}, {0}},
    {OP(LRN_BACKWARD, RESPOND(false)),
     {&picture, &picture, &picture, &picture},
     {&picture},
     {LS_PROBE_SIGNED, LS_PROBE_SIGNED, LS_PROBE_SIGNED, LS_PROBE_POSITIVE}},
    {OP(LRN_BACKWARD, RESPOND(true)), {&picture, &picture, &picture}, {&picture}, {0}},
    {OP(BATCH_NORM, BY_AVERAGES),
     {&features, &bias, &bias},
     {&features},
     {LS_PROBE_SIGNED, LS_PROBE_SIGNED, LS_PROBE_POSITIVE}},
    {OP(DROPOUT, DROP), {&picture}, {&picture}, {0}},
    {OP(SOFTMAX, .axis = 1), {&classes}, {&classes}, {0}},
    {OP(SOFTMAX_BACKWARD, .axis = 1), {&classes, &classes}, {&classes}, {0}},
    {OP(SOFTMAX_LOSS, LOSE), {&classes, &label}, {&classes}, {LS_PROBE_SIGNED, LS_PROBE_LABELS}},
    {OP(SOFTMAX_LOSS_BACKWARD, LOSE),
     {&classes, &label},
     {&classes},
     {LS_PROBE_POSITIVE, LS_PROBE_LABELS}},
    {OP(LOG_LOSS, LOSE), {&classes, &label}, {NULL}, {LS_PROBE_POSITIVE, LS_PROBE_LABELS}},
    {OP(LOG_LOSS_BACKWARD, LOSE),
     {&classes, &label},
     {&classes},
     {LS_PROBE_POSITIVE, LS_PROBE_LABELS}},
    {OP(SIGMOID_LOSS, LOSE), {&classes, &classes}, {NULL}, {LS_PROBE_SIGNED, LS_PROBE_POSITIVE}},
    {OP(SIGMOID_LOSS_BACKWARD, LOSE),
     {&classes, &classes},
     {&classes},
     {LS_PROBE_SIGNED, LS_PROBE_POSITIVE}},
    {OP(EUCLIDEAN_LOSS, LOSE), {&classes, &classes}, {NULL}, {0}},
    {OP(TILE_BACKWARD, REPEAT), {&tiled}, {&picture}, {0}},
    {OP(REDUCE, REDUCE(LS_REDUCE_SUM)), {&rows}, {&label}, {0}},
    {OP(REDUCE, REDUCE(LS_REDUCE_SUMSQ)), {&rows}, {&label}, {0}},
    {OP(REDUCE_LOSS, REDUCE(LS_REDUCE_ASUM)), {&rows}, {NULL}, {0}},
    {OP(ELTWISE, ADD), {&picture, &picture, &picture}, {&picture}, {0}},
};
const size_t ls_fingerprint_probe_count =
    sizeof ls_fingerprint_probes / sizeof *ls_fingerprint_probes;
