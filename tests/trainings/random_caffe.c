/* Layers of Caffe and its forks: see random_caffe.h. SPDX-License-Identifier: BSD-2-Clause */
#include "trainings/random_caffe.h"

#include "trainings/random_branches.h"
#include "lockstep.pb-c.h"
#include "trainings/random_losses.h"

enum { PLANE_MAX = 150 }; /* positions of a plane, so that nets do not grow without end */

/* ---- Layers that keep the shape -------------------------------------------------------------- */

static struct blob emit_function(struct random_net *net, const struct blob *bottom)
{
    static const char *const types[] = {"ReLU6", "SELU", "Exp"};
    const char *type = types[draw(net, 0, 2)];
    struct blob top = begin_either(net, type, bottom);
    if (strcmp(type, "Exp") == 0)
        EMIT("exp_param { base: 2 scale: 0.1 } ");
    EMIT("}\n");
    return top;
}

static struct blob emit_length(struct random_net *net, const struct blob *bottom)
{
    struct blob top = begin_layer(net, "Normalize", bottom);
    EMIT("norm_param { across_spatial: %s channel_shared: %s scale_filler { type: 'constant' "
         "value: 4 } eps: 0.01 } }\n",
         toss(net) ? "true" : "false", toss(net) ? "true" : "false");
    return top;
}

static struct blob emit_shuffled(struct random_net *net, const struct blob *bottom)
{
    int groups = bottom->channels % 3 == 0 ? 3 : bottom->channels % 2 == 0 ? 2 : 1;
    struct blob top = begin_layer(net, "ShuffleChannel", bottom);
    EMIT("shuffle_channel_param { group: %d } }\n", groups);
    return top;
}

/* x and y with a factor for each channel of x. */
static struct blob emit_axpy(struct random_net *net, const struct blob *bottom)
{
    struct blob pooled = begin_layer(net, "Pooling", bottom);
    EMIT("pooling_param { pool: AVE global_pooling: true } }\n");
    pooled.height = pooled.width = 1;
    struct blob factor = emit_same(net, &pooled, bottom->channels, 1, NULL);
    struct blob x = emit_same(net, bottom, bottom->channels, 3, NULL), top = *bottom;
    snprintf(top.name, sizeof top.name, "axpy%d", ++net->layers);
    EMIT("layer { name: '%s' type: 'Axpy' bottom: '%s' bottom: '%s' bottom: '%s' top: '%s' }\n",
         top.name, factor.name, x.name, bottom->name, top.name);
    return top;
}

/* Adds a parameter, which belongs to no sample, or a row of one for each label. */
static struct blob emit_added(struct random_net *net, const struct blob *bottom)
{
    const bool embed = toss(net);
    const int index = ++net->layers;
    if (embed)
        EMIT("layer { name: 'of%d' type: 'Embed' bottom: 'label' top: 'of%d' embed_param { "
             "input_dim: 10 num_output: %d bias_term: %s weight_filler { type: 'uniform' min: -0.1 "
             "max: 0.1 } } }\n",
             index, index, bottom->channels, toss(net) ? "true" : "false");
    else
        EMIT("layer { name: 'of%d' type: 'Parameter' top: 'of%d' parameter_param { shape { dim: %d "
             "} } }\n",
             index, index, bottom->channels);
    struct blob top = begin_layer(net, "Bias", bottom);
    EMIT("bottom: 'of%d' bias_param { axis: %d } }\n", index, embed ? 0 : 1);
    return top;
}

/* Weights some of which stay zero. */
static struct blob emit_masked(struct random_net *net, const struct blob *bottom)
{
    struct blob top = begin_layer(net, "Convolution", bottom);
    top.channels = draw(net, 2, 9);
    EMIT("param { mask { slice { range { axis: 0 begin: %d } range { axis: 1 end: %d } } } }\n  "
         "convolution_param { num_output: %d kernel_size: 3 pad: 1 weight_filler { type: 'msra' } "
         "} }\n",
         draw(net, 0, top.channels - 1), draw(net, 1, bottom->channels), top.channels);
    return top;
}

/* ---- Layers that move, gather and scatter ---------------------------------------------------- */

static struct blob emit_permuted(struct random_net *net, const struct blob *bottom)
{
    static const int orders[][3] = {{2, 3, 1}, {3, 1, 2}, {1, 3, 2}, {3, 2, 1}};
    const int *order = orders[draw(net, 0, 3)];
    const int extents[] = {0, bottom->channels, bottom->height, bottom->width};
    struct blob top = begin_layer(net, "Permute", bottom);
    top.channels = extents[order[0]];
    top.height = extents[order[1]];
    top.width = extents[order[2]];
    EMIT("permute_param { order: [0, %d, %d, %d] } }\n", order[0], order[1], order[2]);
    return top;
}

static struct blob emit_reorganized(struct random_net *net, const struct blob *bottom)
{
    struct blob four = emit_same(net, bottom, 4 * draw(net, 1, 3), 1, NULL);
    struct blob even = begin_layer(net, "Interp", &four);
    even.height = 2 * draw(net, 1, 5);
    even.width = 2 * draw(net, 1, 5);
    EMIT("interp_param { height: %d width: %d } }\n", even.height, even.width);
    struct blob top = begin_layer(net, "Reorg", &even);
    top.channels *= 4;
    top.height /= 2;
    top.width /= 2;
    EMIT("reorg_param { stride: 2 } }\n");
    return emit_same(net, &top, bottom->channels, 1, NULL);
}

static struct blob emit_columns(struct random_net *net, const struct blob *bottom)
{
    struct blob few = emit_same(net, bottom, draw(net, 1, 3), 1, NULL);
    struct blob top = begin_layer(net, "Im2col", &few);
    struct window h = draw_window(net, few.height, true, &top.height);
    struct window w = draw_window(net, few.width, true, &top.width);
    top.channels *= h.kernel * w.kernel;
    EMIT("convolution_param { kernel_h: %d kernel_w: %d stride_h: %d stride_w: %d pad_h: %d pad_w: "
         "%d dilation: [%d, %d] } }\n",
         h.kernel, w.kernel, h.stride, w.stride, h.pad, w.pad, h.dilation, w.dilation);
    return emit_same(net, &top, draw(net, 1, 6), 1, NULL);
}

/* One of the numbers of each window, which may not be negative. */
static struct blob emit_drawn_pooling(struct random_net *net, const struct blob *bottom)
{
    struct blob positive = begin_layer(net, "ReLU", bottom);
    EMIT("}\n");
    struct blob top = begin_layer(net, "Pooling", &positive);
    struct window h = draw_window(net, bottom->height, false, &top.height);
    struct window w = draw_window(net, bottom->width, false, &top.width);
    top.height = (bottom->height - h.kernel < 0 ? 0 : bottom->height - h.kernel) / h.stride + 1;
    top.width = (bottom->width - w.kernel < 0 ? 0 : bottom->width - w.kernel) / w.stride + 1;
    int kernel_h = h.kernel < bottom->height ? h.kernel : bottom->height;
    int kernel_w = w.kernel < bottom->width ? w.kernel : bottom->width;
    EMIT("pooling_param { pool: STOCHASTIC kernel_h: %d kernel_w: %d stride_h: %d stride_w: %d "
         "round_mode: FLOOR } }\n",
         kernel_h, kernel_w, h.stride, w.stride);
    return top;
}

/* Maxima go back to where they came from. */
static struct blob emit_unpooled(struct random_net *net, const struct blob *bottom)
{
    const int index = ++net->layers;
    struct blob pooled = *bottom, top;
    if (bottom->height < 2 || bottom->width < 2)
        return emit_function(net, bottom);
    snprintf(pooled.name, sizeof pooled.name, "pooled%d", index);
    EMIT("layer { name: 'pooled%d' type: 'Pooling' bottom: '%s' top: 'pooled%d' top: 'places%d' "
         "pooling_param { pool: MAX kernel_size: 2 stride: 2 } }\n",
         index, bottom->name, index, index);
    top = begin_layer(net, "Upsample", &pooled);
    EMIT("bottom: 'places%d' upsample_param { upsample_h: %d upsample_w: %d } }\n", index,
         bottom->height, bottom->width);
    return top;
}

static struct blob emit_enlarged(struct random_net *net, const struct blob *bottom)
{
    if (4 * bottom->height * bottom->width > PLANE_MAX)
        return emit_unpooled(net, bottom);
    struct blob top = begin_layer(net, "Upsample", bottom);
    top.height *= 2;
    top.width *= 2;
    EMIT("upsample_param { scale: 2 } }\n");
    return top;
}

/* Planes in steps: rows one after another, or columns, as a sequence. */
static struct blob emit_sequence(struct random_net *net, const struct blob *bottom)
{
    static const char *const types[] = {"LSTM", "RNN", "GRU"};
    struct blob few = emit_same(net, bottom, draw(net, 1, 3), 1, NULL);
    struct blob steps = begin_layer(net, "Permute", &few);
    EMIT("permute_param { order: [2, 0, 1, 3] } }\n");
    struct blob sums = begin_layer(net, "Reduction", &steps);
    EMIT("reduction_param { axis: 2 } }\n");
    struct blob marks = begin_layer(net, "Threshold", &sums);
    EMIT("}\n");
    struct blob hidden = begin_layer(net, types[draw(net, 0, 2)], &steps);
    int outputs = draw(net, 1, 18);
    EMIT("bottom: '%s' ", marks.name);
    if (toss(net)) { /* another bottom that is there at every step */
        struct blob fixed = {"label", 1, 0, 0};
        EMIT("bottom: '%s' ", fixed.name);
    }
    EMIT("recurrent_param { num_output: %d weight_filler { type: 'xavier' } bias_filler { type: "
         "'uniform' min: -0.1 max: 0.1 } } }\n",
         outputs);
    struct blob top = begin_layer(net, "Permute", &hidden);
    EMIT("permute_param { order: [1, 0, 2] } }\n");
    hidden = top;
    top = begin_layer(net, "Reshape", &hidden);
    EMIT("reshape_param { shape { dim: [0, 0, -1, 1] } } }\n");
    top.channels = bottom->height;
    top.height = outputs;
    top.width = 1;
    return top;
}

struct blob emit_caffe_layer(struct random_net *net, const struct blob *bottom)
{
    static struct blob (*const kinds[])(struct random_net *, const struct blob *) = {
        emit_function, emit_length,   emit_shuffled,    emit_axpy,    emit_added,
        emit_masked,   emit_permuted, emit_reorganized, emit_columns, emit_drawn_pooling,
        emit_unpooled, emit_enlarged, emit_sequence};
    return kinds[draw(net, 0, sizeof kinds / sizeof *kinds - 1)](net, bottom);
}

/* ---- Layers that mix samples ----------------------------------------------------------------- */

/* Samples in another order, with one of them twice, by an array that belongs to no sample. */
static struct blob emit_picked(struct random_net *net, const struct blob *bottom)
{
    const int index = ++net->layers;
    EMIT("layer { name: 'rows%d' type: 'DummyData' top: 'rows%d' dummy_data_param { shape { dim: "
         "%d } data_filler { type: 'integer' max: %d } } }\n",
         index, index, net->batch, net->batch - 1);
    struct blob top = begin_layer(net, "BatchReindex", bottom);
    EMIT("bottom: 'rows%d' }\n", index);
    return top;
}

/* Samples are cut apart and put together in another order. */
static struct blob emit_cut(struct random_net *net, const struct blob *bottom)
{
    const int index = ++net->layers;
    struct blob top = *bottom;
    EMIT("layer { name: 'cut%d' type: 'Slice' bottom: '%s' top: 'front%d' top: 'back%d' "
         "slice_param { axis: 0 slice_point: %d } }\n"
         "layer { name: 'glued%d' type: 'Concat' bottom: 'back%d' bottom: 'front%d' top: 'glued%d' "
         "concat_param { axis: 0 } }\n",
         index, bottom->name, index, index, draw(net, 1, net->batch - 1), index, index, index,
         index);
    snprintf(top.name, sizeof top.name, "glued%d", index);
    return top;
}

/* A softmax over the samples. */
static struct blob emit_softmax_of_batch(struct random_net *net, const struct blob *bottom)
{
    struct blob top = begin_layer(net, "Softmax", bottom);
    EMIT("softmax_param { axis: 0 } }\n");
    return top;
}

struct blob emit_mixing_layer(struct random_net *net, const struct blob *bottom)
{
    switch (draw(net, 0, 2)) {
    case 0:
        return emit_picked(net, bottom);
    case 1:
        return emit_cut(net, bottom);
    default:
        return emit_softmax_of_batch(net, bottom);
    }
}

void write_random_gains(void)
{
    float gains[100];
    uint8_t bytes[1000];
    Lockstep__BlobProto blob = LOCKSTEP__BLOB_PROTO__INIT;
    for (int i = 0; i < 100; i++)
        gains[i] = (float)(i % 11 == 0 ? 4 : i % 7) / 4;
    blob.n_data = 100;
    blob.data = gains;
    size_t size = lockstep__blob_proto__pack(&blob, bytes);
    assert_in_range(size, 400, sizeof bytes);
    ls_test_write(ls_test_path("gains.binaryproto"), bytes, size);
}

/* ---- Losses ---------------------------------------------------------------------------------- */

/* A layer that leaves samples out; the rest, and their labels, are its tops. */
static struct blob emit_filter(struct random_net *net, const struct blob *bottom, const char *label,
                               const struct blob *selector)
{
    const int index = ++net->layers;
    struct blob top = *bottom;
    snprintf(top.name, sizeof top.name, "some%d", index);
    EMIT("layer { name: 'some%d' type: 'Filter' bottom: '%s' bottom: '%s' bottom: '%s' top: "
         "'some%d' top: 'its%d' }\n",
         index, bottom->name, label, selector->name, index, index);
    return top;
}

/* Samples are chosen by their labels, or by what the net has learned, once or twice. */
static void emit_filtered_loss(struct random_net *net, const struct blob *bottom)
{
    static const struct blob data = {.name = "label", .channels = 1};
    struct blob learned = emit_product(net, bottom, 1, NULL);
    struct blob selector = begin_layer(net, "Threshold", toss(net) ? &learned : &data), some;
    char label[24];
    EMIT("threshold_param { threshold: 0.%d } }\n", draw(net, 0, 2));
    some = emit_filter(net, bottom, "label", &selector);
    snprintf(label, sizeof label, "its%d", net->layers);
    if (toss(net)) {
        struct blob its = {.channels = 1};
        memcpy(its.name, label, sizeof its.name);
        some = emit_pointwise(net, &some);
        selector = begin_layer(net, "Threshold", &its);
        EMIT("threshold_param { threshold: %d } }\n", draw(net, 0, 8));
        some = emit_filter(net, &some, label, &selector);
        snprintf(label, sizeof label, "its%d", net->layers);
    }
    struct blob scores = emit_product(net, &some, 10, NULL);
    emit_loss(net, toss(net) ? "SoftmaxWithLoss" : "HingeLoss", &scores, label, "");
}

void emit_caffe_loss(struct random_net *net, const struct blob *bottom)
{
    struct blob a, b;
    switch (draw(net, 0, 4)) {
    case 0:
        a = emit_product(net, bottom, 10, NULL);
        emit_loss(net, "HingeLoss", &a, "label", toss(net) ? "hinge_loss_param { norm: L2 }" : "");
        return;
    case 1: /* labels above 0 are of pairs that are alike */
        a = emit_product(net, bottom, 5, NULL);
        b = emit_product(net, bottom, 5, NULL);
        emit_loss(net, "ContrastiveLoss", &a, b.name,
                  toss(net) ? "bottom: 'label' contrastive_loss_param { margin: 3 }"
                            : "bottom: 'label' contrastive_loss_param { legacy_version: true }");
        return;
    case 2:
        emit_filtered_loss(net, bottom);
        return;
    case 3:
        a = emit_product(net, bottom, 6, NULL);
        b = emit_product(net, bottom, 6, NULL);
        emit_loss(net, "SmoothL1Loss", &a, b.name, "smooth_l1_loss_param { sigma: 3 }");
        return;
    default: {
        char rest[300];
        snprintf(rest, sizeof rest, "infogain_loss_param { source: '%s' }",
                 ls_test_path("gains.binaryproto"));
        a = emit_product(net, bottom, 10, NULL);
        emit_loss(net, "InfogainLoss", &a, "label", rest);
    }
    }
}
