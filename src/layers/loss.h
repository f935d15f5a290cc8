/* What the loss layers share: loss_param, the divisor, the record of a micro-batch.
 *
 * A loss is a sum over samples (or positions, or valid labels) of all micro-batches of an update,
 * divided by their number, as one big batch would have it. Its op adds [sum, count] to the record
 * of its micro-batch, where count is what `attr.normalization` says: FULL all positions, VALID
 * those that are not ignored, BATCH_SIZE the samples, WEIGHTS the sum of the class weights of those
 * that are not ignored. The gradient of a micro-batch is divided by the update's true count, which
 * is known before the pass or comes by a sync point (ls_graph_normalizer). Where nothing counts,
 * loss and gradient are 0.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_LAYERS_LOSS_H
#define LS_LAYERS_LOSS_H

#include "layers/common.h"

enum { LS_LOSS_BOTTOMS_MAX = 4 };

struct ls_loss {
    struct ls_loss_attr attr;
    /* What its op takes: the bottoms, where rows that a Filter layer leaves out are such that they
     * count nowhere. Set by ls_loss_begin. */
    struct ls_value *in[LS_LOSS_BOTTOMS_MAX];
    /* One for each bottom: numbers of such rows, of which loss and gradient are 0. NULL: bottom 1
     * has labels, which are ignored there. */
    const float *left_out;
    int64_t per_sample; /* what one sample contributes to the divisor, unless labels are counted */
    double fixed;       /* the divisor instead; 0: there is none */
};

/* What a loss makes of loss_param. */
struct ls_loss_rules {
    enum ls_normalization missing; /* the normalization if the definition says nothing */
    int64_t classes;               /* that labels name; 0: there are none, and no class_weight */
    bool smoothing;                /* takes label_smoothing */
};

/* Reads and checks loss_param. */
int ls_loss_read(const struct ls_layer *layer, const struct ls_loss_rules *rules,
                 struct ls_loss *loss, struct ls_error *error);

/* Checks that both bottoms have samples, with equally many rows each. */
int ls_loss_check_bottoms(const struct ls_layer *layer, struct ls_error *error);

/* Checks that both bottoms have equally many elements, of the same samples in the same order. */
int ls_loss_check_sizes(const struct ls_layer *layer, struct ls_error *error);

/* Sets loss->per_sample for `outer` rows a sample with `inner` positions each, as Caffe's four
 * modes divide. */
void ls_loss_set_positions(struct ls_loss *loss, int64_t outer, int64_t inner);

/* Says what the op takes, reserves the record, asks for the divisor if there will be a gradient,
 * makes top 0 the loss. The layer's op, which comes after this, takes loss->attr. */
void ls_loss_begin(struct ls_layer *layer, struct ls_loss *loss);

/* ls_loss_begin and the op: kind(bottom 0, bottom 1), without a value as output. */
void ls_loss_emit(struct ls_layer *layer, struct ls_loss *loss, enum ls_op_kind kind);

/* For `backward`: refuses to give a gradient to the labels (bottom 1), as Caffe does. */
int ls_loss_check_labels(const struct ls_layer *layer, struct ls_error *error);

/* The same for any other bottom that gets no gradient. */
int ls_loss_check_unlearned(const struct ls_layer *layer, struct ls_error *error, int bottom);

/* The same for top `top`, if it is there: the losses of positions, which get no gradient either. */
int ls_loss_check_each(const struct ls_layer *layer, struct ls_error *error, int top);

/* Emits gradient of bottom `bottom` = kind(first, second), scaled by loss weight and divisor, which
 * is 0 for rows that are left out. */
void ls_loss_emit_backward(struct ls_layer *layer, const struct ls_loss *loss, enum ls_op_kind kind,
                           struct ls_value *first, struct ls_value *second, int bottom);

#endif
