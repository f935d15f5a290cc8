/* Inner product (fully connected layer):
 *
 *   y[m,n] = b[n] + sum_k w[n,k] x[m,k]
 *
 * The axes of x from `axis` on are the K inputs, those before it are M rows: x [..., inputs...],
 * w [N, K] ([K, N] with `transpose`), b [N], y [..., N]. Blobs: weight w, bias b (bias_term).
 * Caffe's inner_product_param. Axis 0 makes one output of all samples, and mixes them
 * (ls_layer_mix).
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/assert.h"
#include "layers/product.h"

struct inner_product {
    struct ls_layer_product product;
    struct ls_shape top;
};

static const Lockstep__InnerProductParameter *param_of(const struct ls_layer *layer)
{
    static const Lockstep__InnerProductParameter defaults = LOCKSTEP__INNER_PRODUCT_PARAMETER__INIT;
    const Lockstep__InnerProductParameter *param = layer->definition->inner_product_param;
    return param != NULL ? param : &defaults;
}

static int request_blobs(struct ls_layer *layer, struct ls_error *error)
{
    const struct ls_inner_product_attr *attr =
        &((struct inner_product *)layer->state)->product.attr;
    const Lockstep__InnerProductParameter *p = param_of(layer);
    struct ls_shape weight = {.rank = 2, .dim = {attr->n, attr->k}};
    if (attr->transpose)
        weight = (struct ls_shape){.rank = 2, .dim = {attr->k, attr->n}};
    LS_TRY(ls_layer_check_shape(layer, error, "the weight", &weight));
    layer->request[0] =
        (struct ls_blob_request){.name = "weight", .shape = weight, .filler = p->weight_filler};
    layer->request[1] = (struct ls_blob_request){
        .name = "bias", .shape = {.rank = 1, .dim = {attr->n}}, .filler = p->bias_filler};
    layer->blobs = attr->bias ? 2 : 1;
    return 0;
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct inner_product *state = layer->state;
    const Lockstep__InnerProductParameter *p = param_of(layer);
    const void *message = layer->definition->inner_product_param;
    const struct ls_value *x = layer->bottom[0];
    int status = ls_layer_begin(layer, error, NULL);
    int axis = ls_layer_mixing_axis(layer, error, message, "axis", p->axis, x);
    if (axis < 0)
        status = LOCKSTEP_DEFINITION;
    if (p->num_output == 0 || p->num_output > INT32_MAX)
        status = ls_layer_fail(layer, error, message, "num_output", NULL,
                               p->has_num_output ? "num_output must be 1 to 2147483647"
                                                 : "num_output is missing");
    LS_TRY(status);
    LS_ASSERT(p->num_output > 0);
    state->product.bias = p->bias_term ? 1 : -1;
    state->product.attr = (struct ls_inner_product_attr){
        .m = ls_shape_count(&x->shape, 0, axis),
        .k = ls_shape_count(&x->shape, axis, x->shape.rank),
        .n = p->num_output,
        .bias = p->bias_term,
        .transpose = p->transpose,
        .portable = p->has_algorithm
                        ? p->algorithm == LOCKSTEP__INNER_PRODUCT_PARAMETER__ALGORITHM__PORTABLE
                        : layer->portable,
        .large = ls_product_is_large(ls_shape_count(&x->shape, axis, x->shape.rank), p->num_output),
    };
    state->top = x->shape;
    state->top.rank = axis + 1;
    state->top.dim[axis] = p->num_output;
    LS_TRY(ls_layer_check_shape(layer, error, "the top", &state->top));
    LS_TRY(ls_layer_check_tf32(layer, error, state->product.attr.portable));
    return request_blobs(layer, error);
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    const struct inner_product *state = layer->state;
    struct ls_value *y = ls_layer_make_top(layer, 0, &state->top, layer->bottom[0]);
    ls_layer_product_forward(layer, &state->product, layer->bottom[0], y);
    return 0;
}

static int backward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    const struct inner_product *state = layer->state;
    struct ls_value *dy = ls_graph_gradient(layer->graph, layer->top[0]);
    ls_layer_product_backward_weights(layer, &state->product, layer->bottom[0], dy);
    if (layer->propagate[0])
        ls_layer_product_backward_data(layer, &state->product, layer->bottom[0], dy);
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    const struct inner_product *state = layer->state;
    ls_layer_product_cost(layer, &state->product, ls_layer_has_gradient(layer, 0), cost);
}

const struct ls_layer_type ls_layer_inner_product = {
    .type = "InnerProduct",
    .parameter = "inner_product_param",
    .state_size = sizeof(struct inner_product),
    .bottoms_min = 1,
    .bottoms_max = 1,
    .tops_min = 1,
    .tops_max = 1,
    .filtered = LS_FILTERED_HANDED_ON,
    .setup = setup,
    .forward = forward,
    .backward = backward,
    .cost = cost,
};
