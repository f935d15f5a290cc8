/* What layers that are one function of one number share: struct ls_activation_attr is their state,
 * set by `setup`.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_LAYERS_ACTIVATION_H
#define LS_LAYERS_ACTIVATION_H

#include "layers/common.h"

/* `forward` and `backward`: y or x is kept for the gradient, whichever the function needs. */
int ls_activation_forward(struct ls_layer *layer, struct ls_error *error);
int ls_activation_backward(struct ls_layer *layer, struct ls_error *error);
/* `cost`: one operation an element, or the four or so that an exponential counts as. */
void ls_activation_cost(const struct ls_layer *layer, struct ls_cost *cost);
/* Reports the `value` of a field of `message` if it is not finite. Returns 0 or a status. */
int ls_activation_check(const struct ls_layer *layer, struct ls_error *error, const void *message,
                        const char *field, float value);
/* *logarithm = log(base), for the field `base` of Exp and Log (in `message`): -1 stands for e,
 * others must be above 0, which is reported. */
int ls_activation_log_base(const struct ls_layer *layer, struct ls_error *error,
                           const void *message, float base, double *logarithm);

/* The fields of struct ls_layer_type that such a type has beside its own; one that differs in any
 * writes all of them. */
#define LS_ACTIVATION_TYPE                                                                         \
    .state_size = sizeof(struct ls_activation_attr), .bottoms_min = 1, .bottoms_max = 1,           \
    .tops_min = 1, .tops_max = 1, .filtered = LS_FILTERED_HANDED_ON,                               \
    .forward = ls_activation_forward, .backward = ls_activation_backward,                          \
    .cost = ls_activation_cost

#endif
