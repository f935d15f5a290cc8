/* What layers that are one function of one number share: struct ls_activation_attr is their state,
 * set by `setup`.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_LAYERS_ACTIVATION_H
#define LS_LAYERS_ACTIVATION_H

#include "layers/common.h"

/* `forward` and `backward`: y or x is kept for the gradient, whichever the function needs. */
int ls_activation_forward(struct ls_layer *layer, struct ls_error *error);
int ls_activation_backward(struct ls_layer *layer, struct ls_error *error);
/* `cost` for the functions that cost about as much as an exponential, and for the others. */
void ls_activation_cost(const struct ls_layer *layer, struct ls_cost *cost);
/* Reports a `value` that is not finite; `message` is what holds the field. */
int ls_activation_check(const struct ls_layer *layer, struct ls_error *error, const void *message,
                        const char *field, float value);
/* The logarithm of a field `base` of Exp and Log: -1 stands for e, others must be above 0. */
int ls_activation_log_base(const struct ls_layer *layer, struct ls_error *error,
                           const void *message, float base, double *logarithm);

#endif
