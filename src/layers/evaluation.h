/* What the layers that judge found boxes share: a ranking over a whole test.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_LAYERS_EVALUATION_H
#define LS_LAYERS_EVALUATION_H

#include "layers/boxes.h"

/* Checks that the layer is in a test, is no loss, and that bottoms 0 and 1 have the same samples;
 * bottom 1 has true boxes, whose number of rows a sample is set in `attr`. */
int ls_evaluation_check(const struct ls_layer *layer, struct ls_error *error,
                        struct ls_evaluate_attr *attr);
/* Makes the tops, the mean of the average precisions of the classes and (optional) those of each,
 * and emits the op `kind`; `attr` gets the places of the ranking. */
int ls_evaluation_forward(struct ls_layer *layer, struct ls_error *error, enum ls_op_kind kind,
                          struct ls_evaluate_attr *attr);

#endif
