/* What the forms of batch normalisation share. See struct ls_batch_norm_attr for the formulae.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_LAYERS_NORMALIZE_H
#define LS_LAYERS_NORMALIZE_H

#include "layers/common.h"

/* The state of a layer of such a type: `setup` fills it in, but for what is marked. */
struct ls_normalize {
    bool by_batch;    /* by the statistics of the group, else by averages */
    int64_t group;    /* samples that share statistics; 0: the batch */
    int64_t channels; /* set by ls_normalize_begin */
    float eps;
    int mean, variance, factor; /* blobs of the averages, or -1 */
    int scale, bias;            /* learned blobs, or -1 */
    float keep, add;            /* how averages advance: see struct ls_averages */
    int moments;                /* set by ls_normalize_forward */
    struct ls_value *x, *y;     /* the same: bottom and top with an axis of channels */
};

/* Checks the bottom and finds the channels. */
int ls_normalize_begin(struct ls_layer *layer, struct ls_error *error, struct ls_normalize *state);
/* Reports a fraction of averages that is kept, the field `field` of `message`, outside 0 to 1, and
 * a `group` that no batch can have. */
int ls_normalize_check_kept(const struct ls_layer *layer, struct ls_error *error,
                            const void *message, const char *field, float kept);
int ls_normalize_check_group(const struct ls_layer *layer, struct ls_error *error,
                             const void *message, uint32_t group);

/* Emits top 0, and what the backward pass wants; what that costs. */
void ls_normalize_forward(struct ls_layer *layer, struct ls_normalize *state);
void ls_normalize_backward(struct ls_layer *layer, const struct ls_normalize *state);
void ls_normalize_cost(const struct ls_layer *layer, const struct ls_normalize *state,
                       struct ls_cost *cost);

#endif
