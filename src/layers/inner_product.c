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
#include "layers/common.h"

struct inner_product {
    struct ls_inner_product_attr attr;
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
    const struct ls_inner_product_attr *attr = &((struct inner_product *)layer->state)->attr;
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
    state->attr = (struct ls_inner_product_attr){
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
    return request_blobs(layer, error);
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    const struct inner_product *state = layer->state;
    struct ls_graph *graph = layer->graph;
    struct ls_value *weight = ls_graph_parameter(graph, layer, 0);
    struct ls_value *bias = layer->blobs > 1 ? ls_graph_parameter(graph, layer, 1) : NULL;
    struct ls_value *y = ls_layer_make_top(layer, 0, &state->top, layer->bottom[0]);
    struct ls_op *op = ls_graph_op(graph, LS_OP_INNER_PRODUCT);
    ls_op_in(graph, op, layer->bottom[0]);
    ls_op_in(graph, op, weight);
    ls_op_in(graph, op, bias);
    ls_op_out(graph, op, y);
    if (op != NULL)
        op->attr.inner_product = state->attr;
    return 0;
}

/* The gradients are exchanged as factors: that is decided once, for all shapes of samples that
 * there are. Of parameters that are shared the layer knows a part of the gradient only. */
static bool use_factors(const struct ls_layer *layer, struct ls_factoring *factoring)
{
    const struct ls_inner_product_attr *attr = &((const struct inner_product *)layer->state)->attr;
    const struct ls_graph *graph = layer->graph;
    struct ls_parameter *weight = layer->blob[0];
    struct ls_parameter *bias = layer->blobs > 1 && layer->train_blob[1] ? layer->blob[1] : NULL;
    *factoring = weight->factoring;
    if (weight->trained || factoring->weight != NULL)
        return factoring->weight != NULL;
    *factoring = (struct ls_factoring){.weight = weight,
                                       .bias = bias,
                                       .size = {attr->k, attr->n},
                                       .rows = attr->m * graph->update_samples / graph->samples,
                                       .transpose = attr->transpose,
                                       .portable = attr->portable || layer->bf16};
    return layer->train_blob[0] && weight->share == NULL && (bias == NULL || bias->share == NULL) &&
           layer->bottom[0]->sample_axis >= 0 && graph->update_samples > 0 &&
           ls_factors_pay(factoring->rows, attr->k, attr->n);
}

static void backward_weights(struct ls_layer *layer, struct ls_value *dy)
{
    const struct inner_product *state = layer->state;
    struct ls_graph *graph = layer->graph;
    bool bias = layer->blobs > 1 && layer->train_blob[1];
    struct ls_factoring factoring;
    if (use_factors(layer, &factoring)) {
        ls_graph_factors(graph, &factoring, state->attr.m, layer->bottom[0], dy);
        return;
    }
    /* The op always writes dw; where only the bias learns, it is not read. */
    struct ls_value *dw = ls_graph_parameter_gradient(graph, layer, 0);
    struct ls_value *db = bias ? ls_graph_parameter_gradient(graph, layer, 1) : NULL;
    struct ls_op *op = ls_graph_op(graph, LS_OP_INNER_PRODUCT_WEIGHTS);
    ls_op_in(graph, op, layer->bottom[0]);
    ls_op_in(graph, op, dy);
    ls_op_out(graph, op, dw);
    ls_op_out(graph, op, db);
    if (op != NULL) {
        op->attr.inner_product = state->attr;
        op->attr.inner_product.bias = bias;
    }
    if (layer->train_blob[0])
        ls_graph_accumulate(graph, layer, 0, dw);
    if (bias)
        ls_graph_accumulate(graph, layer, 1, db);
}

static void backward_data(struct ls_layer *layer, struct ls_value *dy)
{
    const struct inner_product *state = layer->state;
    struct ls_value *inputs[] = {dy, ls_graph_parameter(layer->graph, layer, 0)};
    struct ls_op *op = ls_layer_emit_gradient(layer, 0, LS_OP_INNER_PRODUCT_DATA, inputs, 2);
    if (op != NULL)
        op->attr.inner_product = state->attr;
}

static int backward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    struct ls_value *dy = ls_graph_gradient(layer->graph, layer->top[0]);
    if (layer->train_blob[0] || (layer->blobs > 1 && layer->train_blob[1]))
        backward_weights(layer, dy);
    if (layer->propagate[0])
        backward_data(layer, dy);
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    const struct ls_inner_product_attr *attr = &((const struct inner_product *)layer->state)->attr;
    double m = (double)attr->m, k = (double)attr->k, n = (double)attr->n;
    double flops = 2 * m * k * n, bytes = 4 * (m * k + k * n + m * n);
    cost->forward_flops = flops;
    cost->forward_bytes = bytes;
    if (ls_layer_trains_blob(layer, 0)) {
        cost->backward_weights_flops = flops;
        cost->backward_bytes += bytes;
    }
    if (ls_layer_has_gradient(layer, 0)) {
        cost->backward_data_flops = flops;
        cost->backward_bytes += bytes;
    }
}

const struct ls_layer_type ls_layer_inner_product = {
    .type = "InnerProduct",
    .parameter = "inner_product_param",
    .state_size = sizeof(struct inner_product),
    .bottoms_min = 1,
    .bottoms_max = 1,
    .tops_min = 1,
    .tops_max = 1,
    .setup = setup,
    .forward = forward,
    .backward = backward,
    .cost = cost,
};
