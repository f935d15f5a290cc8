/* Layers of small random networks, one after another: the text of each, with parameters that are
 * drawn. See random_net.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_RANDOM_LAYERS_H
#define LS_TESTS_RANDOM_LAYERS_H

#include "base/text.h"
#include "trainings/training.h"

struct random_net {
    uint64_t key, drawn;
    struct ls_text text;
    int layers; /* so far; numbers their names */
    int batch, iter_size;
    int channels, height, width; /* of the data */
    int group;                   /* of most layers that normalise by the batch; 0: all of it */
    int grouped, others;         /* how many have that group, and another one */
    bool mixes;                  /* the samples of a batch: it is one micro-batch */
};

struct blob {
    char name[24];
    int channels, height, width; /* height 0: samples x channels only */
};

/* Appends to the text of `net`. */
#define EMIT(...) ls_text_format(&net->text, __VA_ARGS__)

struct window {
    int kernel, stride, pad, dilation;
};

/* Uniform in [low, high]. */
int draw(struct random_net *net, int low, int high);

bool toss(struct random_net *net);

/* Begins a layer with one bottom; its top is named after it. */
struct blob begin_layer(struct random_net *net, const char *type, const struct blob *bottom);

/* A window along an axis of `extent`; the extent it makes is *out, at least 1. */
struct window draw_window(struct random_net *net, int extent, bool dilate, int *out);

struct blob emit_convolution(struct random_net *net, const struct blob *bottom);

struct blob emit_pooling(struct random_net *net, const struct blob *bottom);

struct blob emit_norm(struct random_net *net, const struct blob *bottom);

/* Planes may grow, but not without end. */
struct blob emit_deconvolution(struct random_net *net, const struct blob *bottom);

struct blob emit_interp(struct random_net *net, const struct blob *bottom);

/* To what a convolution without padding makes of it, somewhere inside. */
struct blob emit_crop(struct random_net *net, const struct blob *bottom);

/* Begins a layer that keeps the shape, in place or not. (The data are read by others, too.) */
struct blob begin_either(struct random_net *net, const char *type, const struct blob *bottom);

/* A factor for each channel, or for more, or for none (then there is a bias). */
struct blob emit_scale(struct random_net *net, const struct blob *bottom);

/* By the batch or by a few of its samples; with what it can take in, or some of it, behind it. */
struct blob emit_batch_norm(struct random_net *net, const struct blob *bottom);

/* A layer that keeps the shape, in place or not. */
struct blob emit_pointwise(struct random_net *net, const struct blob *bottom);

struct blob emit_product(struct random_net *net, const struct blob *bottom, int outputs,
                         const char *shared);

/* Products so large that their gradients are kept as factors, or would be were they not shared. */
struct blob emit_large_products(struct random_net *net, const struct blob *bottom);

#endif
