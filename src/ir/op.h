/* Ops: the small closed set of computations that layers are made of.
 *
 * An op reads and writes values of one micro-batch; ir/ops.def says what each kind means, this file
 * which attributes it has. Devices carry ops out with kernels (ir/kernel.h), in layouts of theirs.
 *
 * Metrics: ops that measure (losses, accuracies) add doubles to the record of the micro-batch,
 * `context->partials + attr.metric_offset`; the engine merges records in a fixed order.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_IR_OP_H
#define LS_IR_OP_H

#include <stdbool.h>
#include <stdint.h>

#include "ir/activation.h"
#include "ir/attention.h"
#include "ir/detection.h"
#include "ir/loss.h"
#include "ir/methods.h"
#include "ir/value.h"

struct ls_error;

/* LS_OP_REORDER and so on: ir/ops.def says what each of them means. */
enum ls_op_kind {
#define LS_OP(kind, ...) LS_OP_##kind,
#include "ir/ops.def"
#undef LS_OP
    LS_OP_KINDS
};

/* Spatial parameters, for up to 3 axes (unused axes: kernel 1, stride 1, dilation 1, pad 0). */
struct ls_window {
    int axes;
    int64_t kernel[3], stride[3], pad[3], dilation[3];
};

/* How a convolution is computed; see ops/cpu/winograd.h, and winograd_volume.c for volumes. */
enum ls_convolution_algorithm {
    LS_CONVOLUTION_AUTO, /* as a static rule says, which knows the shapes and what there is */
    LS_CONVOLUTION_DIRECT,
    LS_CONVOLUTION_WINOGRAD,
    LS_CONVOLUTION_PORTABLE /* with sums in a declared order (docs/numerics.md, "PORTABLE") */
};

struct ls_convolution_attr {
    struct ls_window window;
    int64_t group;
    enum ls_convolution_algorithm algorithm;
    bool bias;
    bool relu; /* fused: y = y > 0 ? y : relu_slope * y */
    float relu_slope;
};

struct ls_inner_product_attr {
    int64_t m, k, n; /* rows, inputs, outputs */
    bool bias, transpose;
    bool relu;
    float relu_slope;
    bool large;    /* the weights are plain; see ls_product_is_large */
    bool portable; /* see LS_CONVOLUTION_PORTABLE */
};

struct ls_record_attr {
    struct ls_parameter *parameter; /* the weights */
    enum ls_factor_side side;
    int64_t rows, columns;
};

struct ls_pooling_attr {
    enum ls_pooling method;
    /* The average divides by the window's size clipped to the padded input, as Caffe does:
     * (min(h0 + kh, H + ph) - h0) * (min(w0 + kw, W + pw) - w0) with h0 = i * sh - ph. */
    struct ls_window window;
    uint64_t key; /* STOCHASTIC: of the Philox numbers, by sample ordinal and element of y */
};

struct ls_lrn_attr {
    bool within; /* within channels, else across */
    int64_t size;
    float alpha, beta, k;
};

struct ls_op;

/* What a layer of a plugin computes: a function of the layer's code (layers/plugin.c), which hands
 * the op's values, plain, to the plugin. */
struct ls_plugin_attr {
    int (*run)(const struct ls_op *op, void *const *in, void *const *out, void *scratch,
               int64_t first_ordinal, struct ls_error *error);
    const void *instance; /* of the layer, which lives as long as the graph */
    size_t scratch_bytes;
};

/* What a LINEAR_LOSS leaves in the record beside the loss: at `figures` the sum of -log p[label]
 * over the labels that count, without weights, their number, how many have the highest score, and
 * the sum of their bytes. */
enum { LS_LINEAR_NATS, LS_LINEAR_COUNT, LS_LINEAR_HITS, LS_LINEAR_BYTES, LS_LINEAR_FIGURES };

struct ls_linear_loss_attr {
    struct ls_loss_attr loss; /* axis: the first of the inputs */
    int64_t rows, inputs, classes;
    bool bias, bytes; /* which inputs there are */
    bool hits;        /* they are counted */
    int figures;      /* offset into the record; -1: there are none */
};

struct ls_accuracy_attr {
    int axis, top_k;
    bool has_ignore;
    int ignore_label;
    int64_t classes;
    int metric_offset;    /* [hits, valid] */
    int class_offset;     /* -1, or [hits x classes, valid x classes] */
    int confusion_offset; /* -1, or [classes x classes]: row = label, column = predicted */
};

struct ls_mean_iou_attr {
    int axis;
    bool has_ignore;
    int ignore_label;
    int64_t classes;
    int metric_offset; /* [hits x classes, taken x classes, true x classes] */
};

struct ls_eltwise_attr {
    enum ls_eltwise method;
    const float *coefficients; /* SUM: one an input, owned by the graph; NULL: all 1 */
    int which;                 /* BACKWARD: the input whose gradient this is */
    /* Not BACKWARD, of the result s: relu: y = s > 0 ? s : relu_slope s. gated: the last input, g,
     * is none of those above: y = g > 0 ? s : relu_slope s. relu_slope >= 0; not both. */
    bool relu, gated;
    float relu_slope;
};

/* Position i of n along an axis of y is position begin + i (m - 1) / (n - 1) along x (begin, where
 * n is 1), with m = length - begin - end; numbers between two positions are interpolated. */
struct ls_resize_attr {
    int64_t begin, end; /* how much of x is left out at either end of both axes */
};

struct ls_upsample_attr {
    int64_t factor[2]; /* rows, columns */
};

struct ls_crop_attr {
    int64_t offset[LS_RANK_MAX]; /* an axis each; 0 along axis 0 */
};

struct ls_tile_attr {
    int axis;
    int64_t tiles;
};

struct ls_reduction_attr {
    int axis;
    enum ls_reduction method;
    float coeff;
    /* REDUCE_LOSS: */
    int normalizer;    /* index into context->normalizers: what MEAN divides by; -1: no gradient */
    float loss_weight; /* multiplies the gradient */
    int metric_offset; /* [coeff * sum, count]; MEAN is their quotient */
};

struct ls_constant_attr {
    const float *numbers; /* as many as the output has */
};

/* The top_k largest numbers, largest first; of equal ones the later one counts as the larger, and
 * a NaN as larger than any number. */
struct ls_argmax_attr {
    int axis; /* y [..., top_k, ...] along it; -1: of each x[n], y [N, 1 or 2, top_k] */
    int64_t top_k;
    bool values; /* the numbers instead of their places; axis -1: behind the places */
};

struct ls_regions_attr {
    int64_t bins[2]; /* of a region: down, across */
    float scale;     /* positions of x that one position of the regions' coordinates is */
};

struct ls_fill_attr {
    const Lockstep__FillerParameter *filler; /* NULL: the constant `value` */
    float value;
    uint64_t key;
};

/* Batch normalisation: x^ = (x - mean) / sqrt(variance + eps), y = f(scale x^ + bias).
 *
 * By the batch (moments >= 0): mean and variance (divided by the number of values) of the group,
 * from the merged moments; dx = scale / sqrt(variance + eps) (dz - mean(dz) - x^ mean(dz x^)) with
 * dz the gradient behind f, and its two means over the group from the merged sums.
 * By saved averages (moments -1): inputs mean, variance and factor, a, b and c: mean = a / c and
 * variance = b / c; c absent is 1, c = 0 means that there are none yet: mean 0, variance 1. Then
 * dx = scale / sqrt(variance + eps) dz, and SUMS serves dscale and dbias only. */
struct ls_batch_norm_attr {
    int moments; /* index of a sync of the graph; -1: saved averages */
    int sums;    /* index of a sync of the graph, backward; -1: none */
    float eps;
    bool relu; /* f(z) = z > 0 ? z : relu_slope z, relu_slope >= 0; else f(z) = z */
    float relu_slope;
};

/* The axes [axis, axis + axes) of x are those of the factor; axes 0: the factor is one number. */
struct ls_scale_attr {
    int axis, axes;
};

/* y = scale (x - mean) / deviation + bias, with mean and deviation those of a group of values.
 *
 * Axis `axis` of x is cut into `groups`; the part of a group, with all axes behind it, is one group
 * of values for each place of the axes in front. Variance is divided by the number of values. A
 * group of equal values gives the bias. Stats [axes in front..., 4 groups], a group: the mean and
 * what it lacks to twice the precision, 1 / deviation, (deviation / root of the variance; 0 where
 * the gradient has no such part). */
struct ls_normalize_attr {
    int axis;
    int64_t groups;
    bool variance; /* false: deviation is 1 */
    bool behind;   /* deviation = sqrt(variance) + eps, else sqrt(variance + eps) */
    float eps;
    bool elements;    /* scale and bias have the shape of the axes from `axis` on, else [axis] */
    bool around_zero; /* the mean is taken for 0, and variance is the mean of squares */
};

/* y = scale op(a) op(b) for the matrices of the last two axes, which `transpose_*` turns around. */
struct ls_matmul_attr {
    bool transpose_a, transpose_b;
    float scale;
};

/* y = value f(gate). One input has both along `axis`, in halves; else there are two. */
struct ls_glu_attr {
    int axis;
    bool gate_first;                /* of the halves: gate, value; else value, gate */
    bool linear;                    /* f(gate) = gate */
    struct ls_activation_attr gate; /* else: RELU, SIGMOID, SWISH, GELU or GELU_TANH */
};

/* index [samples of x, K] names places along `axis` of each sample; shared: [K], of all. */
struct ls_gather_attr {
    int axis; /* not that of the samples; indices by sample: behind it */
    bool shared;
};

enum ls_pad_mode { LS_PAD_CONSTANT, LS_PAD_REFLECT, LS_PAD_EDGE };

/* Place i along an axis of y is place i - before of x; where x has none, `mode` says which number
 * is there. REFLECT: before and after are less than the extent of x. */
struct ls_pad_attr {
    enum ls_pad_mode mode;
    float value; /* CONSTANT */
    int64_t before[LS_RANK_MAX];
};

/* Bags of indices; see EMBED_BAG in ir/ops.def. */
struct ls_bag_attr {
    bool mean; /* divided by the number of indices that count */
    bool has_padding;
    int padding; /* an index that does not count */
};

enum ls_cell { LS_CELL_RNN, LS_CELL_LSTM, LS_CELL_GRU };

/* A layer of cells over T = `steps` steps of N = `rows` sequences, with H = `hidden` numbers each.
 * From z[t], what is put in, with G parts of H numbers, each step computes, with s the sigmoid,
 *
 *   before = cont[t] h[t - 1],  u = w before + b,  a = z[t] + static + u (without w: u is left out)
 *   RNN (G = 1):  h[t] = tanh(a)
 *   LSTM (G = 4, parts i, f, o, g):
 *     c[t] = s(a_f) (cont[t] c[t - 1]) + s(a_i) tanh(a_g),  h[t] = s(a_o) tanh(c[t])
 *   GRU (G = 3, parts r, z, n), where a_n has no u:
 *     r = s(a_r),  z = s(a_z),  n = tanh(a_n + r u_n),  h[t] = n + z (before - n)
 *
 * with h0 and c0 in front of the first step (absent: zeros). Gates hold i, f, o, g of LSTM, r, z, n
 * and u_n of GRU. */
struct ls_recurrent_attr {
    enum ls_cell cell;
    int64_t steps, rows, hidden;
    bool bf16; /* what w is multiplied with, and w, are rounded to bf16 */
};

/* G. */
static inline int ls_cell_parts(enum ls_cell cell)
{
    return cell == LS_CELL_LSTM ? 4 : cell == LS_CELL_GRU ? 3 : 1;
}

/* Values that an op reads, or writes; a layer has at most LS_LAYER_VALUES_MAX bottoms, or tops, as
 * its ops may need some more (parameters, statistics). */
enum { LS_OP_VALUES_MAX = 1032, LS_LAYER_VALUES_MAX = 1024 };

struct ls_layer;

struct ls_op {
    enum ls_op_kind kind;
    const struct ls_layer *layer; /* whose op it is, for messages and tables; NULL: the plan's */
    bool backward;                /* part of the backward pass */
    bool before;                  /* must run before the pass of the update (label counts) */
    bool bf16;                    /* a product of numbers that are rounded to bf16 first, as its
                                     record says (ir/op_type.h: rounded_inputs) */
    bool tf32;                    /* a product that may take its factors in TF32 */
    int place;                    /* in its graph, for graph/links.h alone */
    int inputs, outputs;
    struct ls_value **input;  /* `inputs` of them; an optional one that is absent is NULL */
    struct ls_value **output; /* `outputs` of them; an optional one that is absent is NULL */
    union {
        struct ls_convolution_attr convolution;
        struct ls_inner_product_attr inner_product;
        struct ls_pooling_attr pooling;
        struct ls_activation_attr activation;
        struct ls_lrn_attr lrn;
        struct ls_dropout_attr dropout;
        struct ls_loss_attr loss;
        struct ls_linear_loss_attr linear_loss;
        struct ls_accuracy_attr accuracy;
        struct ls_mean_iou_attr mean_iou;
        struct ls_eltwise_attr eltwise;
        struct ls_resize_attr resize;
        struct ls_upsample_attr upsample;
        struct ls_crop_attr crop;
        struct ls_tile_attr tile;
        struct ls_reduction_attr reduction;
        struct ls_argmax_attr argmax;
        struct ls_fill_attr fill;
        struct ls_regions_attr regions;
        struct ls_batch_norm_attr batch_norm;
        struct ls_scale_attr scale;
        struct ls_normalize_attr normalize;
        struct ls_recurrent_attr recurrent;
        struct ls_matmul_attr matmul;
        struct ls_glu_attr glu;
        struct ls_gather_attr gather;
        struct ls_pad_attr pad;
        struct ls_bag_attr bag;
        int offset; /* POSITIONS: the first number */
        struct ls_attention_attr attention;
        int sync;                       /* SYNC: index of a sync of the graph */
        int sample_state;               /* RECALL, KEEP: index of a state of the graph */
        int axis;                       /* SOFTMAX, CONCAT, SLICE */
        float left_out;                 /* FILTER: what rows are that are not selected */
        struct ls_parameter *parameter; /* ACCUMULATE */
        struct ls_record_attr record;
        struct ls_multibox_attr multibox;
        struct ls_region_attr region;
        struct ls_yolo_attr yolo;
        struct ls_yolo_output_attr yolo_output;
        struct ls_proposal_attr proposal;
        struct ls_hardest_attr hardest;
        struct ls_detection_attr detection;
        struct ls_evaluate_attr evaluate;
        struct ls_constant_attr constant;
        int64_t embed_rows;      /* EMBED_ROWS: how many the table has */
        struct ls_window window; /* IM2COL, COL2IM */
        int order[LS_RANK_MAX];  /* PERMUTE */
        struct ls_plugin_attr plugin;
    } attr;
};

/* Whether Winograd's algorithm is one for the windows of a convolution: of 3 x 3 or 3 x 3 x 3 with
 * stride 1, dilation 1, a pad of at most 1 and one group. Which of them a device has is its own
 * decision. */
bool ls_convolution_suits_winograd(const struct ls_convolution_attr *attr);

/* Whether an op is a product of bf16 numbers, or PORTABLE: its sums have a declared order, which is
 * the same on every processor and device (docs/numerics.md, sections 16 and 17). */
bool ls_op_is_portable_product(const struct ls_op *op);

/* Whether an op does more than write its outputs: it adds to a record, a sum or partial results, so
 * that it must run exactly once, however often it is read. */
bool ls_op_has_effect(enum ls_op_kind kind);

const char *ls_op_kind_name(enum ls_op_kind kind); /* "convolution backward data" */

#endif
