/* Products of rows with learned weights, y = x w^T + b, and their gradients: what InnerProduct is,
 * and what layers of several products emit.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_LAYERS_PRODUCT_H
#define LS_LAYERS_PRODUCT_H

#include "layers/common.h"

/* Which blobs of the layer are w and b (-1: there is no bias), and the shapes. */
struct ls_layer_product {
    int weight, bias;
    struct ls_inner_product_attr attr;
};

/* Emits y. */
void ls_layer_product_forward(struct ls_layer *layer, const struct ls_layer_product *product,
                              struct ls_value *x, struct ls_value *y);
/* Emits the gradients of those of its blobs that learn, if any does. */
void ls_layer_product_backward_weights(struct ls_layer *layer,
                                       const struct ls_layer_product *product, struct ls_value *x,
                                       struct ls_value *dy);
/* Emits a new contribution to the gradient of x. */
void ls_layer_product_backward_data(struct ls_layer *layer, const struct ls_layer_product *product,
                                    struct ls_value *x, struct ls_value *dy);
/* Adds what it costs; `data`: with the gradient of x. */
void ls_layer_product_cost(const struct ls_layer *layer, const struct ls_layer_product *product,
                           bool data, struct ls_cost *cost);

#endif
