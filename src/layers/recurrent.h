/* What the recurrent layers share: LSTM, RNN and GRU. See struct ls_recurrent_attr for the cells.
 *
 * Bottoms: x [T, N, ...], T steps of N sequences; cont [T, N], which is 0 where a sequence begins
 * and 1 where it goes on; (x_static [N, ...], put in at every step); with expose_hidden the state
 * in front of the first step, h0 [1, N, H], and of LSTM c0 [1, N, H] behind it. Tops: o [T, N, H],
 * and with expose_hidden the state behind the last step. Samples are sequences: they lie along axis
 * 1. (Where they lie otherwise, as records that are steps, the cells mix them: ls_layer_mix.)
 * Without expose_hidden the state goes on from each update to the next one, sequence by sequence,
 * as state per sample (docs/numerics.md, section 15). Caffe's recurrent_param.
 *
 * The products of x of all steps are one, and so are the gradients of weights; the sums of all
 * products have a declared order (docs/numerics.md, section 17).
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_LAYERS_RECURRENT_H
#define LS_LAYERS_RECURRENT_H

#include "layers/product.h"

enum { LS_RECURRENT_STATES = 2 }; /* h, c */

/* The state of a layer of such a type. */
struct ls_recurrent {
    struct ls_recurrent_attr attr;
    int states; /* 1, LSTM: 2 */
    int fixed;  /* the bottom x_static, or -1 */
    int first;  /* the bottom h0, c0 behind it, or -1: nothing is exposed */
    struct ls_layer_product x, still, h, o; /* of x, x_static, h from step to step; RNN: of o */
    struct ls_value *z, *s;                 /* products of x and x_static */
    struct ls_value *hidden, *gates, *before, *c, *start[LS_RECURRENT_STATES];
    struct ls_value *last[LS_RECURRENT_STATES];
    struct ls_value *logit; /* RNN: o in front of its tanh */
};

/* Names of a type's blobs; NULL: it has no such blob. */
struct ls_recurrent_blobs {
    const char *x, *x_bias, *still, *h, *h_bias, *o, *o_bias;
};

int ls_recurrent_setup(struct ls_layer *layer, enum ls_cell cell,
                       const struct ls_recurrent_blobs *names, struct ls_error *error);
int ls_recurrent_forward(struct ls_layer *layer, struct ls_error *error);
int ls_recurrent_backward(struct ls_layer *layer, struct ls_error *error);
void ls_recurrent_cost(const struct ls_layer *layer, struct ls_cost *cost);

/* The members of a type that are alike. */
#define LS_RECURRENT_TYPE                                                                          \
    .parameter = "recurrent_param", .state_size = sizeof(struct ls_recurrent), .bottoms_min = 2,   \
    .tops_min = 1, .forward = ls_recurrent_forward, .backward = ls_recurrent_backward,             \
    .cost = ls_recurrent_cost

#endif
