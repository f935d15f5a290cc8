/* Small random networks: text of a solver with its net, valid by construction, a function of a
 * seed. Every kind of layer, odd extents, branches, shared parameters, several losses.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_NUMERICS_RANDOM_NET_H
#define LS_TESTS_NUMERICS_RANDOM_NET_H

#include "base/text.h"
#include "numerics/training.h"

struct random_net {
    uint64_t key, drawn;
    struct ls_text text;
    int layers; /* so far; numbers their names */
    int batch, iter_size;
    int channels, height, width; /* of the data */
    int group;                   /* of most layers that normalise by the batch; 0: all of it */
    int grouped, others;         /* how many have that group, and another one */
};

struct blob {
    char name[24];
    int channels, height, width; /* height 0: samples x channels only */
};

/* Uniform in [low, high]. */
static inline int draw(struct random_net *net, int low, int high)
{
    return low + (int)ls_random_below(net->key, 0, net->drawn++, (uint32_t)(high - low + 1));
}

static inline bool toss(struct random_net *net)
{
    return draw(net, 0, 1) == 1;
}

#define EMIT(...) ls_text_format(&net->text, __VA_ARGS__)

/* ---- Data ------------------------------------------------------------------------------------ */

/* Files that random nets read: write them once. */
static inline void write_random_net_data(void)
{
    write_idx_pair(ls_test_path("images"), ls_test_path("labels"), 101, 11);
    write_cifar(ls_test_path("cifar.bin"), 61);
}

static inline void emit_source(struct random_net *net)
{
    int kind = draw(net, 0, 2), crop = draw(net, 9, 14);
    net->channels = kind == 0 ? 1 : kind == 1 ? 3 : draw(net, 1, 4);
    net->height = kind == 0 ? 11 : kind == 1 ? crop : draw(net, 8, 13);
    net->width = kind == 0 ? 11 : kind == 1 ? crop : draw(net, 8, 13);
    EMIT("  transform_param { scale: 0.0039 mirror: %s", toss(net) ? "true" : "false");
    if (kind == 1)
        EMIT(" pad: %d crop_size: %d", draw(net, 0, 3), crop);
    if (toss(net))
        EMIT(" brightness: 20 contrast_lower: 0.8 contrast_upper: 1.3");
    EMIT(" }\n  data_param { ");
    if (kind == 0)
        EMIT("backend: IDX source: '%s' label_source: '%s'", ls_test_path("images"),
             ls_test_path("labels"));
    else if (kind == 1)
        EMIT("backend: CIFAR source: '%s'", ls_test_path("cifar.bin"));
    else
        EMIT("backend: SYNTHETIC synthetic_param { count: %d channels: %d height: %d width: %d }",
             draw(net, 40, 90), net->channels, net->height, net->width);
}

static inline struct blob emit_data(struct random_net *net)
{
    static const char *const lasts[] = {"WRAP", "PARTIAL", "DROP"};
    EMIT("layer { name: 'data' type: 'Data' top: 'data' top: 'label'\n");
    emit_source(net);
    EMIT(" batch_size: %d shuffle: %s last_batch: %s cache: %s } }\n", net->batch,
         toss(net) ? "true" : "false", lasts[draw(net, 0, 2)], toss(net) ? "true" : "false");
    return (struct blob){"data", net->channels, net->height, net->width};
}

/* ---- Layers ---------------------------------------------------------------------------------- */

/* Begins a layer with one bottom; its top is named after it. */
static inline struct blob begin_layer(struct random_net *net, const char *type,
                                      const struct blob *bottom)
{
    struct blob top = *bottom;
    snprintf(top.name, sizeof top.name, "%.12s%d", type, ++net->layers);
    EMIT("layer { name: '%s' type: '%s' bottom: '%s' top: '%s'\n  ", top.name, type, bottom->name,
         top.name);
    return top;
}

struct window {
    int kernel, stride, pad, dilation;
};

/* A window along an axis of `extent`; the extent it makes is *out, at least 1. */
static inline struct window draw_window(struct random_net *net, int extent, bool dilate, int *out)
{
    for (;;) {
        struct window w = {draw(net, 1, 5), draw(net, 1, 2), draw(net, 0, 2),
                           dilate ? draw(net, 1, 2) : 1};
        int reach = w.dilation * (w.kernel - 1) + 1;
        if (w.pad >= w.kernel || extent + 2 * w.pad < reach)
            continue;
        *out = (extent + 2 * w.pad - reach) / w.stride + 1;
        return w;
    }
}

static inline void emit_filler(struct random_net *net)
{
    static const char *const fillers[] = {"type: 'xavier'", "type: 'msra'",
                                          "type: 'gaussian' std: 0.1",
                                          "type: 'uniform' min: -0.2 max: 0.2"};
    EMIT(" weight_filler { %s }", fillers[draw(net, 0, 3)]);
    if (toss(net))
        EMIT(" bias_filler { type: 'constant' value: 0.1 }");
}

static inline struct blob emit_convolution(struct random_net *net, const struct blob *bottom)
{
    struct blob top = begin_layer(net, "Convolution", bottom);
    struct window h = draw_window(net, bottom->height, true, &top.height);
    struct window w = draw_window(net, bottom->width, true, &top.width);
    int group = draw(net, 1, 3);
    group = bottom->channels % group == 0 ? group : 1;
    top.channels = group * (draw(net, 0, 3) == 0 ? 16 : draw(net, 1, 9)); /* 16: full blocks */
    if (toss(net))
        EMIT("param { lr_mult: %d } param { lr_mult: 2 decay_mult: 0 }\n  ", draw(net, 0, 2));
    EMIT("convolution_param { num_output: %d group: %d kernel_h: %d kernel_w: %d stride_h: %d "
         "stride_w: %d pad_h: %d pad_w: %d dilation: [%d, %d]",
         top.channels, group, h.kernel, w.kernel, h.stride, w.stride, h.pad, w.pad, h.dilation,
         w.dilation);
    emit_filler(net);
    EMIT(" } }\n");
    return top;
}

/* The extent where it is rounded up, as in layers/pooling.c; 0 if that asks for a window that lies
 * behind the input. */
static inline int ceil_extent(int extent, const struct window *w, bool any_pad)
{
    int last = (extent + 2 * w->pad - w->kernel + w->stride - 1) / w->stride;
    if (any_pad && last * w->stride >= extent + w->pad)
        last--;
    return last * w->stride - w->pad >= extent ? 0 : last + 1;
}

static inline struct blob emit_pooling(struct random_net *net, const struct blob *bottom)
{
    struct blob top = begin_layer(net, "Pooling", bottom);
    const char *method = toss(net) ? "MAX" : "AVE";
    if (draw(net, 0, 5) == 0) {
        top.height = top.width = 1;
        EMIT("pooling_param { pool: %s global_pooling: true } }\n", method);
        return top;
    }
    struct window h = draw_window(net, bottom->height, false, &top.height);
    struct window w = draw_window(net, bottom->width, false, &top.width);
    int height = ceil_extent(bottom->height, &h, h.pad + w.pad > 0);
    int width = ceil_extent(bottom->width, &w, h.pad + w.pad > 0);
    bool up = height > 0 && width > 0 && toss(net);
    if (up) {
        top.height = height;
        top.width = width;
    }
    EMIT("pooling_param { pool: %s kernel_h: %d kernel_w: %d stride_h: %d stride_w: %d pad_h: %d "
         "pad_w: %d round_mode: %s } }\n",
         method, h.kernel, w.kernel, h.stride, w.stride, h.pad, w.pad, up ? "CEIL" : "FLOOR");
    return top;
}

static inline struct blob emit_norm(struct random_net *net, const struct blob *bottom)
{
    struct blob top = begin_layer(net, "LRN", bottom);
    EMIT("lrn_param { local_size: %d alpha: 0.1 beta: 0.75 norm_region: %s } }\n",
         toss(net) ? 3 : 5, toss(net) ? "ACROSS_CHANNELS" : "WITHIN_CHANNEL");
    return top;
}

/* Planes may grow, but not without end. */
static inline struct blob emit_deconvolution(struct random_net *net, const struct blob *bottom)
{
    struct blob top = begin_layer(net, "Deconvolution", bottom);
    bool fixed = draw(net, 0, 2) == 0, small = bottom->height * bottom->width <= 150;
    int factor = small ? draw(net, 1, 3) : 1;
    int pad = draw(net, 0, factor / 2), kernel = factor + 2 * pad, rest = toss(net) ? 1 : 0;
    int group = fixed || toss(net) ? bottom->channels : 1;
    top.channels = fixed ? bottom->channels : group * draw(net, 1, group > 1 ? 2 : 17);
    top.height = factor * bottom->height + rest;
    top.width = factor * bottom->width + rest;
    if (fixed)
        EMIT("param { lr_mult: 0 } ");
    EMIT("convolution_param { num_output: %d group: %d kernel_size: %d stride: %d pad: %d "
         "bias_term: %s",
         top.channels, group, kernel + rest, factor, pad, toss(net) ? "true" : "false");
    EMIT(" weight_filler { type: '%s' } } }\n", fixed ? "bilinear" : "xavier");
    return top;
}

static inline struct blob emit_interp(struct random_net *net, const struct blob *bottom)
{
    struct blob top = begin_layer(net, "Interp", bottom);
    int cut = bottom->height > 2 && bottom->width > 2 && toss(net) ? draw(net, 1, 2) : 0;
    int shrink = draw(net, 1, 3), zoom = bottom->height * bottom->width <= 150 ? shrink : 1;
    switch (draw(net, 0, 2)) {
    case 0:
        top.height = draw(net, 1, 15);
        top.width = draw(net, 1, 15);
        EMIT("interp_param { height: %d width: %d pad_beg: -%d } }\n", top.height, top.width, cut);
        return top;
    case 1:
        top.height = (bottom->height - cut - 1) / shrink * zoom + 1;
        top.width = (bottom->width - cut - 1) / shrink * zoom + 1;
        EMIT("interp_param { shrink_factor: %d zoom_factor: %d pad_end: -%d } }\n", shrink, zoom,
             cut);
        return top;
    default:
        top.height = net->height;
        top.width = net->width;
        EMIT("bottom: 'data' }\n");
        return top;
    }
}

/* To what a convolution without padding makes of it, somewhere inside. */
static inline struct blob emit_crop(struct random_net *net, const struct blob *bottom)
{
    struct blob size = begin_layer(net, "Convolution", bottom);
    int h = draw(net, 1, bottom->height < 4 ? bottom->height : 4);
    int w = draw(net, 1, bottom->width < 4 ? bottom->width : 4);
    size.channels = draw(net, 1, bottom->channels);
    EMIT("convolution_param { num_output: %d kernel_h: %d kernel_w: %d weight_filler { type: "
         "'xavier' } } }\n",
         size.channels, h, w);
    struct blob top = begin_layer(net, "Crop", bottom);
    bool channels = toss(net);
    top.channels = channels ? size.channels : bottom->channels;
    top.height = bottom->height - h + 1;
    top.width = bottom->width - w + 1;
    EMIT("bottom: '%s' crop_param { ", size.name);
    if (channels)
        EMIT("axis: 1 offset: %d ", draw(net, 0, bottom->channels - size.channels));
    EMIT("offset: %d offset: %d } }\n", draw(net, 0, h - 1), draw(net, 0, w - 1));
    return top;
}

/* Begins a layer that keeps the shape, in place or not. (The data are read by others, too.) */
static inline struct blob begin_either(struct random_net *net, const char *type,
                                       const struct blob *bottom)
{
    if (!toss(net) || strcmp(bottom->name, "data") == 0)
        return begin_layer(net, type, bottom);
    EMIT("layer { name: '%s%d' type: '%s' bottom: '%s' top: '%s' ", type, ++net->layers, type,
         bottom->name, bottom->name);
    return *bottom;
}

/* A factor for each channel, or for more, or for none (then there is a bias). */
static inline struct blob emit_scale(struct random_net *net, const struct blob *bottom)
{
    const char *filler = "filler { type: 'uniform' min: 0.5 max: 1.5 }";
    int axes = bottom->height == 0 || draw(net, 0, 2) > 0 ? 1 : draw(net, 2, 3);
    if (draw(net, 0, 4) == 0) {
        struct blob bias = begin_either(net, "Bias", bottom);
        EMIT("bias_param { num_axes: %d %s } }\n", axes, filler);
        return bias;
    }
    struct blob top = begin_either(net, "Scale", bottom);
    EMIT("scale_param { num_axes: %d bias_term: %s %s } }\n", axes, toss(net) ? "true" : "false",
         filler);
    return top;
}

/* By the batch or by a few of its samples; with what it can take in, or some of it, behind it. */
static inline struct blob emit_batch_norm(struct random_net *net, const struct blob *bottom)
{
    int kind = draw(net, 0, 3);
    bool other = draw(net, 0, 3) == 0;
    int group = other ? draw(net, 0, net->batch + 1) : net->group;
    net->grouped += group == net->group;
    net->others += group != net->group;
    struct blob top = begin_either(net, kind == 0 ? "BN" : "BatchNorm", bottom);
    if (kind == 0)
        EMIT("bn_param { group: %d eps: 0.01 } }\n", group);
    else
        EMIT("batch_norm_param { group: %d eps: 0.01 moving_average_fraction: 0.%d scale_bias: %s "
             "%s } }\n",
             group, draw(net, 1, 9), kind == 1 ? "true" : "false",
             draw(net, 0, 3) == 0 ? "use_global_stats: false" : "");
    if (kind > 1 && toss(net))
        top = emit_scale(net, &top);
    if (toss(net)) {
        top = begin_either(net, "ReLU", &top);
        EMIT("%s }\n", toss(net) ? "relu_param { negative_slope: 0.2 }" : "");
    }
    return top;
}

/* A layer that keeps the shape, in place or not. */
static inline struct blob emit_pointwise(struct random_net *net, const struct blob *bottom)
{
    static const char *const types[] = {"ReLU",  "Sigmoid",   "TanH",      "Dropout",      "ELU",
                                        "Swish", "PReLU",     "BNLL",      "AbsVal",       "MVN",
                                        "Clip",  "GroupNorm", "LayerNorm", "InstanceNorm", "Power"};
    const char *type = types[draw(net, 0, sizeof types / sizeof *types - 1)];
    struct blob top = begin_either(net, type, bottom);
    if (strcmp(type, "Dropout") == 0)
        EMIT("dropout_param { dropout_ratio: 0.%d } ", draw(net, 1, 7));
    if (strcmp(type, "Clip") == 0)
        EMIT("clip_param { min: -0.7 max: 1.5 } ");
    if (strcmp(type, "MVN") == 0)
        EMIT("mvn_param { eps: 0.1 } "); /* planes may be constant */
    if (strcmp(type, "GroupNorm") == 0)
        EMIT("group_norm_param { groups: %d } ", top.channels % 2 == 0 ? 2 : 1);
    if (strcmp(type, "InstanceNorm") == 0)
        EMIT("instance_norm_param { eps: 0.1 affine: %s } ", toss(net) ? "true" : "false");
    if (strcmp(type, "Power") == 0)
        EMIT("power_param { power: %d scale: 0.5 shift: 0.5 } ", draw(net, 1, 2));
    EMIT("}\n");
    return top;
}

static inline struct blob emit_product(struct random_net *net, const struct blob *bottom,
                                       int outputs, const char *shared)
{
    struct blob top = begin_layer(net, "InnerProduct", bottom);
    top.channels = outputs;
    top.height = top.width = 0;
    if (shared != NULL)
        EMIT("param { name: '%s_w' } param { name: '%s_b' }\n  ", shared, shared);
    EMIT("inner_product_param { num_output: %d", outputs);
    emit_filler(net);
    EMIT(" } }\n");
    return top;
}

/* Products so large that their gradients are kept as factors, or would be were they not shared. */
static inline struct blob emit_large_products(struct random_net *net, const struct blob *bottom)
{
    struct blob top = emit_product(net, bottom, draw(net, 190, 300), NULL);
    const char *shared = draw(net, 0, 3) == 0 ? "large" : NULL;
    for (int again = draw(net, 1, 2); again > 0; again--) {
        top = begin_either(net, toss(net) ? "ReLU" : "Dropout", &top);
        EMIT("}\n");
        int outputs = shared != NULL ? top.channels : draw(net, 190, 260);
        bool transpose = shared == NULL && toss(net), bias = shared != NULL || toss(net);
        struct blob next = begin_layer(net, "InnerProduct", &top);
        next.channels = outputs;
        next.height = next.width = 0;
        if (shared != NULL)
            EMIT("param { name: '%s_w' } param { name: '%s_b' }\n  ", shared, shared);
        else if (bias && draw(net, 0, 2) == 0)
            EMIT("param { lr_mult: %d } param { lr_mult: %d }\n  ", draw(net, 0, 2),
                 draw(net, 0, 1));
        EMIT("inner_product_param { num_output: %d transpose: %s bias_term: %s", outputs,
             transpose ? "true" : "false", bias ? "true" : "false");
        emit_filler(net);
        EMIT(" } }\n");
        top = next;
    }
    return top;
}

/* ---- Branches -------------------------------------------------------------------------------- */

/* A convolution that keeps height and width; with `shared`, its parameters have that name. */
static inline struct blob emit_same(struct random_net *net, const struct blob *bottom, int channels,
                                    int kernel, const char *shared)
{
    struct blob top = begin_layer(net, "Convolution", bottom);
    top.channels = channels;
    if (shared != NULL)
        EMIT("param { name: '%s_w' } param { name: '%s_b' }\n  ", shared, shared);
    EMIT("convolution_param { num_output: %d kernel_size: %d pad: %d weight_filler { type: "
         "'xavier' } } }\n",
         channels, kernel, kernel / 2);
    return top;
}

static inline struct blob join(struct random_net *net, const char *type, const struct blob *a,
                               const struct blob *b)
{
    struct blob top = *a;
    snprintf(top.name, sizeof top.name, "%s%d", type, ++net->layers);
    EMIT("layer { name: '%s' type: '%s' bottom: '%s' bottom: '%s' top: '%s' ", top.name, type,
         a->name, b->name, top.name);
    return top;
}

/* Two ways through convolutions (one way may be no layer at all), joined again. */
static inline struct blob emit_branch(struct random_net *net, const struct blob *bottom)
{
    char name[24];
    int kernel = toss(net) ? 1 : 3, channels = draw(net, 1, 6);
    const char *shared = NULL;
    if (toss(net)) {
        snprintf(name, sizeof name, "shared%d", net->layers);
        shared = name;
    }
    bool skip = shared == NULL && toss(net), concat = toss(net);
    struct blob a = skip ? *bottom : emit_same(net, bottom, channels, kernel, shared);
    int others = concat && shared == NULL ? draw(net, 1, 6) : a.channels;
    struct blob b = emit_same(net, bottom, others, kernel, shared);
    if (concat) {
        struct blob top = join(net, "Concat", &a, &b);
        top.channels = a.channels + b.channels;
        EMIT("}\n");
        return top;
    }
    static const char *const operations[] = {"SUM", "PROD", "MAX", "SUM coeff: 0.5 coeff: -1.5"};
    struct blob top = join(net, "Eltwise", &a, &b);
    EMIT("eltwise_param { operation: %s } }\n", operations[draw(net, 0, 3)]);
    return top;
}

/* Cut in two along the channels, joined again the other way round. */
static inline struct blob emit_slice(struct random_net *net, const struct blob *bottom)
{
    bool blocks = toss(net);
    struct blob from = *bottom;
    if (blocks || from.channels < 2)
        from = emit_same(net, bottom, blocks ? 32 : draw(net, 2, 9), 1, NULL);
    int index = ++net->layers, first = blocks ? 16 : draw(net, 1, from.channels - 1);
    struct blob a = from, b = from;
    snprintf(a.name, sizeof a.name, "first%d", index);
    snprintf(b.name, sizeof b.name, "second%d", index);
    a.channels = first;
    b.channels = from.channels - first;
    EMIT("layer { name: 'slice%d' type: 'Slice' bottom: '%s' top: '%s' top: '%s'\n"
         "  slice_param { slice_point: %d } }\n",
         index, from.name, a.name, b.name, first);
    a = emit_pointwise(net, &a);
    if (toss(net))
        b = emit_batch_norm(net, &b);
    struct blob top = join(net, "Concat", &b, &a);
    top.channels = from.channels;
    EMIT("}\n");
    return top;
}

/* Repeated, or with its axes in other places, or taken apart into rows and put together again. */
static inline struct blob emit_shape(struct random_net *net, const struct blob *bottom)
{
    int kind = draw(net, 0, 2), channels = bottom->channels;
    bool small = channels * bottom->height * bottom->width <= 600;
    if (kind == 0 && small) {
        struct blob top = begin_layer(net, "Tile", bottom);
        int axis = draw(net, 1, 3), tiles = draw(net, 1, 3);
        top.channels *= axis == 1 ? tiles : 1;
        top.height *= axis == 2 ? tiles : 1;
        top.width *= axis == 3 ? tiles : 1;
        EMIT("tile_param { axis: %d tiles: %d } }\n", axis, tiles);
        return top;
    }
    struct blob top = begin_layer(net, "Reshape", bottom);
    if (kind < 2 || !small) {
        top.channels = channels * bottom->width;
        top.width = 1;
        EMIT("reshape_param { shape { dim: [0, -1, %d, 1] } } }\n", top.height);
        return top;
    }
    EMIT("reshape_param { shape { dim: [%d, -1] } } }\n", net->batch * channels);
    top = begin_layer(net, "InnerProduct", &top);
    EMIT("inner_product_param { num_output: 12 weight_filler { type: 'xavier' } } }\n");
    top.channels = 12;
    top.height = top.width = 0;
    if (toss(net)) /* a sample has several rows */
        top = emit_batch_norm(net, &top);
    top = begin_layer(net, "Reshape", &top);
    top.channels = channels;
    top.height = 3;
    top.width = 4;
    EMIT("reshape_param { shape { dim: [%d, -1, 3, 4] } } }\n", net->batch);
    return top;
}

/* Each channel of each sample by a number that the sample itself gives it. */
static inline struct blob emit_gate(struct random_net *net, const struct blob *bottom)
{
    struct blob by = begin_layer(net, "Reduction", bottom), flat = *bottom;
    EMIT("reduction_param { axis: 2 operation: %s } }\n", toss(net) ? "MEAN" : "ASUM coeff: 0.1");
    flat.height = 0;
    snprintf(flat.name, sizeof flat.name, "%s", by.name);
    flat = emit_product(net, &flat, bottom->channels, NULL);
    struct blob gate = begin_layer(net, "Sigmoid", &flat);
    EMIT("}\n");
    struct blob top = join(net, "Scale", bottom, &gate);
    EMIT("scale_param { axis: 0 } }\n");
    return top;
}

/* ---- Volumes --------------------------------------------------------------------------------- */

struct volume {
    struct blob blob; /* name and channels */
    int extent[3];
};

static inline void emit_list(struct random_net *net, const char *field, const int values[3])
{
    EMIT("%s: [%d, %d, %d] ", field, values[0], values[1], values[2]);
}

/* Windows along all three axes, and the extents that they make. */
static inline void emit_windows(struct random_net *net, struct volume *volume, bool dilate)
{
    int kernel[3], stride[3], pad[3], dilation[3];
    for (int i = 0; i < 3; i++) {
        struct window w = draw_window(net, volume->extent[i], dilate, &volume->extent[i]);
        kernel[i] = w.kernel;
        stride[i] = w.stride;
        pad[i] = w.pad;
        dilation[i] = w.dilation;
    }
    emit_list(net, "kernel_size", kernel);
    emit_list(net, "stride", stride);
    emit_list(net, "pad", pad);
    if (dilate)
        emit_list(net, "dilation", dilation);
}

static inline void emit_volume_layer(struct random_net *net, struct volume *volume)
{
    struct blob *blob = &volume->blob;
    bool small = volume->extent[0] * volume->extent[1] * volume->extent[2] <= 200;
    switch (draw(net, 0, 5)) {
    case 0:
    case 1:
        *blob = begin_layer(net, "Convolution", blob);
        EMIT("convolution_param { ");
        emit_windows(net, volume, true);
        blob->channels = draw(net, 0, 3) == 0 ? 16 : draw(net, 1, 6);
        EMIT("num_output: %d weight_filler { type: 'msra' } } }\n", blob->channels);
        return;
    case 2:
        *blob = begin_layer(net, "Pooling", blob);
        EMIT("pooling_param { round_mode: FLOOR pool: %s ", toss(net) ? "MAX" : "AVE");
        emit_windows(net, volume, false);
        EMIT("} }\n");
        return;
    case 3:
        if (small) {
            *blob = begin_layer(net, "Deconvolution", blob);
            blob->channels = draw(net, 1, 5);
            for (int i = 0; i < 3; i++)
                volume->extent[i] *= 2;
            EMIT("convolution_param { num_output: %d kernel_size: 2 stride: 2 weight_filler { "
                 "type: 'xavier' } } }\n",
                 blob->channels);
            return;
        }
        break;
    case 4:
        *blob = begin_either(net, "BatchNorm", blob);
        EMIT("batch_norm_param { eps: 0.01 scale_bias: true } }\n");
        net->others += net->group != 0;
        net->grouped += net->group == 0;
        return;
    default:
        break;
    }
    *blob = begin_either(net, toss(net) ? "ReLU" : "Dropout", blob);
    EMIT("}\n");
}

/* Channels taken for the depth of a volume, layers over three axes, and a plane again. */
static inline struct blob emit_volume(struct random_net *net, const struct blob *bottom)
{
    int channels = bottom->channels % 3 == 0 ? 3 : bottom->channels % 2 == 0 ? 2 : 1;
    if (bottom->channels * bottom->height * bottom->width > 3000)
        return emit_pooling(net, bottom);
    struct volume volume = {begin_layer(net, "Reshape", bottom),
                            {bottom->channels / channels, bottom->height, bottom->width}};
    volume.blob.channels = channels;
    EMIT("reshape_param { shape { dim: [0, %d, %d, %d, %d] } } }\n", channels, volume.extent[0],
         volume.extent[1], volume.extent[2]);
    for (int layers = draw(net, 1, 4); layers > 0; layers--)
        emit_volume_layer(net, &volume);
    struct blob top = begin_layer(net, "Reshape", &volume.blob);
    top.height = volume.extent[0] * volume.extent[1];
    top.width = volume.extent[2];
    EMIT("reshape_param { shape { dim: [0, %d, %d, %d] } } }\n", top.channels, top.height,
         top.width);
    return top;
}

/* ---- Losses ---------------------------------------------------------------------------------- */

static inline void emit_loss(struct random_net *net, const char *type, const struct blob *a,
                             const char *b, const char *rest)
{
    int index = ++net->layers;
    EMIT("layer { name: 'loss%d' type: '%s' bottom: '%s' bottom: '%s' top: 'loss%d' loss_weight: "
         "0.%d %s }\n",
         index, type, a->name, b, index, draw(net, 1, 9), rest);
}

/* Of each position, whose labels come from the data, or are what another part of the net thinks. */
static inline void emit_map_loss(struct random_net *net, const struct blob *bottom)
{
    static const char *const modes[] = {"ignore_label: 0", "normalization: WEIGHTS",
                                        "ignore_label: 1 normalization: FULL label_smoothing: 0.2",
                                        "ignore_label: 1 normalization: WEIGHTS"};
    int classes = net->channels < 2 ? 2 : net->channels;
    struct blob data = {"data", net->channels, net->height, net->width};
    struct blob x = emit_same(net, bottom, classes, 1, NULL), sized = x;
    bool learned = toss(net);
    if (!learned) {
        sized = begin_layer(net, "Interp", &x);
        EMIT("bottom: 'data' }\n");
    }
    struct blob other = learned ? emit_same(net, bottom, classes, 1, NULL) : data;
    if (toss(net))
        other = emit_batch_norm(net, &other);
    struct blob label = begin_layer(net, "ArgMax", &other);
    EMIT("argmax_param { axis: 1 } }\n");
    struct ls_text rest = {0};
    ls_text_format(&rest, "propagate_down: true propagate_down: false loss_param { %s ",
                   modes[draw(net, 0, 3)]);
    for (int c = 0; c < classes; c++)
        ls_text_format(&rest, "class_weight: %d ", draw(net, 0, 3));
    ls_text_format(&rest, "}");
    emit_loss(net, "SoftmaxWithLoss", &sized, label.name, rest.data);
    ls_text_free(&rest);
    if (toss(net))
        EMIT("layer { name: 'iou%d' type: 'MeanIoU' bottom: '%s' bottom: '%s' top: 'iou%d'\n"
             "  mean_iou_param { ignore_label: 1 } }\n",
             net->layers, sized.name, label.name, net->layers);
}

#define WEIGHTED                                                                                   \
    "loss_param { normalization: WEIGHTS ignore_label: 2 label_smoothing: 0.1\n"                   \
    "  class_weight: [1, 0.5, 1, 2, 0, 1, 3, 1, 1, 0.1] }"

/* A further loss on a blob in the middle of the net. */
static inline void emit_side_loss(struct random_net *net, const struct blob *bottom)
{
    static const char *const modes[] = {
        "", "loss_param { ignore_label: 4 }", "loss_param { ignore_label: 7 normalization: FULL }",
        "loss_param { normalization: BATCH_SIZE ignore_label: 1 }", WEIGHTED};
    static const struct blob data = {.name = "data"};
    int size = net->channels * net->height * net->width;
    struct blob x, y;
    if (bottom->height > 0 && toss(net)) {
        emit_map_loss(net, bottom);
        return;
    }
    switch (draw(net, 0, 5)) {
    case 0:
        x = emit_product(net, bottom, 10, NULL);
        emit_loss(net, "SoftmaxWithLoss", &x, "label", modes[draw(net, 0, 4)]);
        return;
    case 1:
        x = emit_product(net, bottom, 10, NULL);
        y = begin_layer(net, "Softmax", &x);
        EMIT("}\n");
        emit_loss(net, "MultinomialLogisticLoss", &y, "label", "");
        return;
    case 2:
        x = emit_product(net, bottom, size, NULL);
        y = begin_layer(net, "Flatten", &data);
        EMIT("}\n");
        emit_loss(net, "EuclideanLoss", &x, y.name, "");
        return;
    case 3:
        x = emit_product(net, bottom, size, NULL);
        y = begin_layer(net, "Flatten", &data);
        EMIT("}\n");
        emit_loss(net, "SigmoidCrossEntropyLoss", &x, y.name, "");
        return;
    case 4: /* a figure of the whole batch */
        x = begin_layer(net, "Reduction", bottom);
        EMIT("loss_weight: 0.01 reduction_param { operation: %s } }\n",
             toss(net) ? "MEAN" : "SUMSQ");
        return;
    default: /* two learned values that shall become equal */
        x = emit_product(net, bottom, 5, NULL);
        y = emit_product(net, bottom, 5, NULL);
        emit_loss(net, "EuclideanLoss", &x, y.name, "");
    }
}

/* ---- The whole ------------------------------------------------------------------------------- */

static inline void emit_solver(struct random_net *net, uint64_t seed)
{
    static const char *const types[] = {
        "base_lr: 0.01 momentum: 0.9 weight_decay: 0.001",
        "base_lr: 0.01 weight_decay: 0.0005 regularization_type: 'L1'",
        "type: 'Nesterov' base_lr: 0.005 momentum: 0.9",
        "type: 'Adam' base_lr: 0.002 momentum: 0.9 momentum2: 0.99 weight_decay: 0.001",
        "type: 'AdamW' base_lr: 0.002 momentum: 0.8 weight_decay: 0.1",
        "type: 'AdaGrad' base_lr: 0.01",
        "type: 'RMSProp' base_lr: 0.001 rms_decay: 0.9 weight_decay: 0.001",
        "type: 'AdaDelta' base_lr: 1 momentum: 0.9 delta: 1e-5"};
    static const char *const policies[] = {"'fixed'", "'inv' gamma: 0.1 power: 0.5",
                                           "'step' gamma: 0.5 stepsize: 2", "'cosine'",
                                           "'poly' power: 2"};
    EMIT("%s\nlr_policy: %s max_iter: 100 random_seed: %d iter_size: %d micro_batch: %d",
         types[draw(net, 0, 7)], policies[draw(net, 0, 4)], (int)(seed % 100000), net->iter_size,
         draw(net, 1, net->batch / 7));
    if (toss(net))
        EMIT(" clip_gradients: 0.%d", draw(net, 1, 9));
    if (toss(net))
        EMIT(" weight_average { decay: 0.9 }");
    if (toss(net))
        EMIT(" warmup_iter: 3 warmup_start: 0.1");
    EMIT(" average_loss: %d\n", draw(net, 1, 4));
    if (draw(net, 0, 2) == 0)
        EMIT("test_interval: %d test_iter: %d test_initialization: %s\n", draw(net, 1, 3),
             draw(net, 1, 2), toss(net) ? "true" : "false");
    else if (draw(net, 0, 5) == 0)
        EMIT("test_interval: 2 test_on_train: %d\n", draw(net, 24, 40)); /* a batch at least */
}

/* Text of a solver; free it with ls_text_free. An update has at least 7 micro-batches. */
static inline struct ls_text make_random_net(uint64_t seed)
{
    struct random_net made = {.key = ls_random_key(seed, LS_RANDOM_TEST, "net")}, *net = &made;
    net->batch = draw(net, 7, 24);
    net->iter_size = draw(net, 1, 3);
    net->group = toss(net) ? 0 : draw(net, 1, net->batch / 7);
    emit_solver(net, seed);
    EMIT("net_param {\n");
    struct blob blob = emit_data(net);
    for (int layers = draw(net, 1, 5); layers > 0; layers--) {
        static struct blob (*const kinds[])(struct random_net *, const struct blob *) = {
            emit_convolution, emit_convolution, emit_pooling,       emit_norm,   emit_pointwise,
            emit_pointwise,   emit_branch,      emit_deconvolution, emit_interp, emit_crop,
            emit_batch_norm,  emit_batch_norm,  emit_scale,         emit_slice,  emit_shape,
            emit_gate,        emit_volume,      emit_volume};
        blob = kinds[draw(net, 0, sizeof kinds / sizeof *kinds - 1)](net, &blob);
        if (draw(net, 0, 5) == 0)
            emit_side_loss(net, &blob);
    }
    if (draw(net, 0, 2) == 0)
        blob = emit_large_products(net, &blob);
    blob = emit_product(net, &blob, draw(net, 3, 40), NULL);
    blob = emit_pointwise(net, &blob);
    if (draw(net, 0, 3) == 0)
        blob = emit_batch_norm(net, &blob);
    for (int again = draw(net, 0, 2); again > 0; again--) /* one matrix, used several times */
        blob = emit_product(net, &blob, blob.channels, again == 2 || toss(net) ? "loop" : NULL);
    if (toss(net))
        emit_side_loss(net, &blob);
    blob = emit_product(net, &blob, 10, NULL);
    emit_loss(net, "SoftmaxWithLoss", &blob, "label", "");
    EMIT("}\n");
    if (net->group > 0 && net->grouped > 0 && net->others == 0 && toss(net))
        EMIT("follow_groups: true\n");
    return net->text;
}

#undef EMIT

#endif
