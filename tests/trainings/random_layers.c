/* Layers of random networks: see random_layers.h. SPDX-License-Identifier: BSD-2-Clause */
#include "trainings/random_layers.h"

int draw(struct random_net *net, int low, int high)
{
    return low + (int)ls_random_below(net->key, 0, net->drawn++, (uint32_t)(high - low + 1));
}

bool toss(struct random_net *net)
{
    return draw(net, 0, 1) == 1;
}

struct blob begin_layer(struct random_net *net, const char *type, const struct blob *bottom)
{
    struct blob top = *bottom;
    snprintf(top.name, sizeof top.name, "%.12s%d", type, ++net->layers);
    EMIT("layer { name: '%s' type: '%s' bottom: '%s' top: '%s'\n  ", top.name, type, bottom->name,
         top.name);
    return top;
}

struct window draw_window(struct random_net *net, int extent, bool dilate, int *out)
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

static void emit_filler(struct random_net *net)
{
    static const char *const fillers[] = {"type: 'xavier'", "type: 'msra'",
                                          "type: 'gaussian' std: 0.1",
                                          "type: 'uniform' min: -0.2 max: 0.2"};
    EMIT(" weight_filler { %s }", fillers[draw(net, 0, 3)]);
    if (toss(net))
        EMIT(" bias_filler { type: 'constant' value: 0.1 }");
}

struct blob emit_convolution(struct random_net *net, const struct blob *bottom)
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
static int ceil_extent(int extent, const struct window *w, bool any_pad)
{
    int last = (extent + 2 * w->pad - w->kernel + w->stride - 1) / w->stride;
    if (any_pad && last * w->stride >= extent + w->pad)
        last--;
    return last * w->stride - w->pad >= extent ? 0 : last + 1;
}

struct blob emit_pooling(struct random_net *net, const struct blob *bottom)
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

struct blob emit_norm(struct random_net *net, const struct blob *bottom)
{
    struct blob top = begin_layer(net, "LRN", bottom);
    EMIT("lrn_param { local_size: %d alpha: 0.1 beta: 0.75 norm_region: %s } }\n",
         toss(net) ? 3 : 5, toss(net) ? "ACROSS_CHANNELS" : "WITHIN_CHANNEL");
    return top;
}

struct blob emit_deconvolution(struct random_net *net, const struct blob *bottom)
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

struct blob emit_interp(struct random_net *net, const struct blob *bottom)
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

struct blob emit_crop(struct random_net *net, const struct blob *bottom)
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

struct blob begin_either(struct random_net *net, const char *type, const struct blob *bottom)
{
    if (!toss(net) || strcmp(bottom->name, "data") == 0)
        return begin_layer(net, type, bottom);
    EMIT("layer { name: '%s%d' type: '%s' bottom: '%s' top: '%s' ", type, ++net->layers, type,
         bottom->name, bottom->name);
    return *bottom;
}

struct blob emit_scale(struct random_net *net, const struct blob *bottom)
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

struct blob emit_batch_norm(struct random_net *net, const struct blob *bottom)
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

struct blob emit_pointwise(struct random_net *net, const struct blob *bottom)
{
    static const char *const types[] = {"ReLU",  "Sigmoid",   "TanH",      "Dropout",      "ELU",
                                        "Swish", "PReLU",     "BNLL",      "AbsVal",       "MVN",
                                        "Clip",  "GroupNorm", "LayerNorm", "InstanceNorm", "Power",
                                        "GELU",  "SiLU",      "RMSNorm"};
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

struct blob emit_product(struct random_net *net, const struct blob *bottom, int outputs,
                         const char *shared)
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

struct blob emit_large_products(struct random_net *net, const struct blob *bottom)
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
