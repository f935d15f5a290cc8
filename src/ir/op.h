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

struct ls_loss_attr {
    int axis; /* classes (softmax) */
    bool has_ignore;
    int ignore_label;
    enum ls_normalization normalization;
    int normalizer;    /* index into context->normalizers: the divisor of the gradient; -1 in
                          a forward op that no backward op follows */
    float loss_weight; /* multiplies the gradient */
    float smoothing;   /* SOFTMAX: in [0, 1) */
    bool clamped;      /* SOFTMAX: as two layers have it; without smoothing */
    /* SOFTMAX, LOG, COUNT_LABELS: one for each of `classes`, of the definition; NULL: all 1 */
    const float *class_weight;
    int64_t classes;
    float scale;  /* EUCLIDEAN, CONTRASTIVE, SMOOTH_L1 backward: +1 for a's gradient, -1 for b's */
    bool squared; /* HINGE */
    float margin; /* CONTRASTIVE */
    bool legacy;  /* CONTRASTIVE */
    float sigma2; /* SMOOTH_L1: > 0 */
    const float *matrix; /* INFOGAIN: H, row by label, of the graph; NULL: it is input 2 */
    /* Into the record: [sum, count], count as `normalization` divides: FULL all positions, VALID
     * those that are not ignored, BATCH_SIZE the rows in front of `axis` (SOFTMAX; others: axis 0),
     * WEIGHTS the sum of class_weight[label] over those that are not ignored. */
    int metric_offset;
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

/* Boxes are xmin, ymin, xmax, ymax, of an image from 0 to 1. A prior has a box and four variances;
 * what is predicted of a box is how it differs from the prior's, in one of three codes. */
enum ls_box_code { LS_BOX_CORNER, LS_BOX_CENTER_SIZE, LS_BOX_CORNER_SIZE };

/* Which priors SSD's loss learns from: all, hard negatives, or hard examples. */
enum ls_mining { LS_MINING_NONE, LS_MINING_NEGATIVES, LS_MINING_EXAMPLES };

/* SSD's loss; see device/multibox.h. */
struct ls_multibox_attr {
    int64_t priors, classes, objects; /* of a sample */
    enum ls_box_code code;
    bool variance_in_target, bipartite, difficult, euclidean, logistic;
    bool agnostic; /* all classes but the background are one */
    bool by_class; /* each class has its own places: loc [N, P classes 4] */
    bool by_place; /* predicted boxes are matched, not those of the priors */
    bool within;   /* boxes that leave the picture are not matched */
    bool inside;   /* sides outside the picture learn nothing */
    int background;
    float overlap, neg_overlap, neg_pos_ratio, loc_weight;
    enum ls_mining mining;
    int64_t sample_size;    /* EXAMPLES: how many are chosen */
    int64_t top_k;          /* so many can be chosen; -1: all */
    float nms_threshold;    /* chosen ones overlap by no more; 0: they may */
    bool suppresses_priors; /* whose overlap is that of the priors, not of the predicted boxes */
    enum ls_normalization normalization;
    int normalizer;    /* as in ls_loss_attr */
    float loss_weight; /* multiplies the gradient */
    int metric_offset; /* [sum, count]; COUNT_MATCHES: [count] */
    int count_offset;  /* where matches that depend on predictions are counted; -1: nowhere */
};

/* What the score of a found object learns, see layers/region_loss.c: to be 1, the more the further
 * it is from it; 1; or how far its box and the true one overlap. */
enum ls_region_score { LS_REGION_SCORE_FOCUSED, LS_REGION_SCORE_ONE, LS_REGION_SCORE_OVERLAP };

/* YOLOv2's loss; see layers/region_loss.c. */
struct ls_region_attr {
    struct ls_loss_attr loss;
    enum ls_region_score score;
    int anchors;
    int64_t classes, objects;  /* rows of true boxes a sample */
    const float *anchor_sizes; /* width and height of each, in positions, of the definition */
    bool by_anchor;
    float object, no_object, kind, place, threshold;
};

/* YOLOv3's loss; see layers/yolov3.c. Numbers of anchors are those of `biases`. */
struct ls_yolo_attr {
    struct ls_loss_attr loss;
    int anchors, all;         /* of this bottom; of all bottoms */
    const uint32_t *mask;     /* which those of this bottom are, of the definition */
    const float *biases;      /* width and height of each of all, in pixels, of the definition */
    double step;              /* pixels from one position to the next */
    int64_t classes, objects; /* rows of true boxes a sample */
    float object, kind, place, threshold, also, smoothing; /* also: other anchors from here on */
    bool logistic; /* the gradient goes through the logistic function */
};

/* What YOLO's nets have found; see layers/yolo_output.c. Each input has the planes of `anchors`
 * anchors. */
struct ls_yolo_output_attr {
    int anchors;
    const uint32_t *mask;  /* which of `biases`, input by input; NULL: all, in each input */
    const float *biases;   /* width and height, in pixels */
    const uint32_t *steps; /* pixels from one position to the next, by input; NULL: 1 */
    int64_t classes, keep; /* rows of a sample in the top */
    bool softmax;          /* scores of classes; else each by itself */
    float threshold, nms_threshold;
};

/* What a region proposal network has found; see layers/proposal.c. */
struct ls_proposal_attr {
    const float *ratio, *scale; /* `ratios` and `scales` of them, of the definition */
    int64_t ratios, scales;
    int64_t info;            /* numbers of a picture in im_info */
    int64_t before, regions; /* boxes that count; rows of a sample in the top */
    double base, stride;
    uint32_t least;
    float overlap;
};

/* The regions of a picture whose losses are the largest; see layers/box_annotator_ohem.c. */
struct ls_hardest_attr {
    int64_t most; /* of a picture */
    float ignore_label;
};

struct ls_detection_attr {
    int64_t priors, classes, keep; /* rows of a sample in the top */
    enum ls_box_code code;
    bool by_class; /* each class has its own places: loc [N, P classes 4] */
    bool variance_in_target, has_threshold;
    int background;     /* -1: there is none */
    int64_t top_k;      /* of a class, before boxes that overlap are left out; -1: all */
    int64_t keep_top_k; /* of a sample; -1: all */
    float threshold, nms_threshold, eta;
};

/* What an overlap is taken of: boxes in sizes of the picture, or in its pixels. */
struct ls_picture_sizes {
    const int32_t *sizes; /* height and width by ordinal, owned by the graph; NULL: not in pixels */
    int64_t count;
    enum { LS_FIT_WARPED, LS_FIT_PADDED, LS_FIT_CROPPED } fit; /* how a picture became the input */
    double height, width; /* PADDED: of the input; CROPPED: what boxes are in sizes of */
};

/* How many of the boxes that a net finds are right; see layers/detection_evaluate.c. The record has
 * at `truths` the numbers of true boxes by class and of those of no class, the lists have at `list`
 * a find each (struct ls_ranking). */
struct ls_evaluate_attr {
    int64_t finds, objects; /* of a sample */
    int classes, background;
    bool difficult; /* true boxes that are marked as difficult count like others */
    float overlap;  /* from which on a box is right */
    struct ls_picture_sizes pictures;
    int truths, list;
    /* REGION_EVALUATE: */
    int anchors;
    const float *anchor_sizes; /* as in ls_region_attr */
    enum { LS_SCORE_OBJECT, LS_SCORE_CLASS, LS_SCORE_BOTH } score;
    float nms; /* boxes that overlap a better one so much do not count; negative: all do */
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

enum { LS_OP_VALUES_MAX = 64 };

struct ls_layer;

struct ls_op {
    enum ls_op_kind kind;
    const struct ls_layer *layer; /* whose op it is, for messages and tables; NULL: the plan's */
    bool backward;                /* part of the backward pass */
    bool before;                  /* must run before the pass of the update (label counts) */
    bool bf16;                    /* a product of numbers that are rounded to bf16 first, as its
                                     record says (ir/op_type.h: rounded_inputs) */
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
