/* Branches of random networks: see random_branches.h. SPDX-License-Identifier: BSD-2-Clause */
#include "trainings/random_branches.h"

struct blob emit_same(struct random_net *net, const struct blob *bottom, int channels, int kernel,
                      const char *shared)
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

static struct blob join(struct random_net *net, const char *type, const struct blob *a,
                        const struct blob *b)
{
    struct blob top = *a;
    snprintf(top.name, sizeof top.name, "%s%d", type, ++net->layers);
    EMIT("layer { name: '%s' type: '%s' bottom: '%s' bottom: '%s' top: '%s' ", top.name, type,
         a->name, b->name, top.name);
    return top;
}

struct blob emit_branch(struct random_net *net, const struct blob *bottom)
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

struct blob emit_slice(struct random_net *net, const struct blob *bottom)
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

struct blob emit_shape(struct random_net *net, const struct blob *bottom)
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

struct blob emit_gate(struct random_net *net, const struct blob *bottom)
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
