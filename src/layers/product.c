/* See layers/product.h. SPDX-License-Identifier: BSD-2-Clause */
#include "layers/product.h"

void ls_layer_product_forward(struct ls_layer *layer, const struct ls_layer_product *product,
                              struct ls_value *x, struct ls_value *y)
{
    struct ls_graph *graph = layer->graph;
    struct ls_value *weight = ls_graph_parameter(graph, layer, product->weight);
    struct ls_value *bias =
        product->bias >= 0 ? ls_graph_parameter(graph, layer, product->bias) : NULL;
    struct ls_op *op = ls_graph_op(graph, LS_OP_INNER_PRODUCT);
    ls_op_in(graph, op, x);
    ls_op_in(graph, op, weight);
    ls_op_in(graph, op, bias);
    ls_op_out(graph, op, y);
    if (op != NULL)
        op->attr.inner_product = product->attr;
}

static bool trains_bias(const struct ls_layer *layer, const struct ls_layer_product *product)
{
    return product->bias >= 0 && layer->train_blob[product->bias];
}

/* The gradients are exchanged as factors: that is decided once, for all shapes of samples that
 * there are. Of parameters that are shared the layer knows a part of the gradient only. */
static bool use_factors(const struct ls_layer *layer, const struct ls_layer_product *product,
                        const struct ls_value *x, struct ls_factoring *factoring)
{
    const struct ls_inner_product_attr *attr = &product->attr;
    const struct ls_graph *graph = layer->graph;
    struct ls_parameter *weight = layer->blob[product->weight];
    struct ls_parameter *bias = trains_bias(layer, product) ? layer->blob[product->bias] : NULL;
    *factoring = weight->factoring;
    if (weight->trained || factoring->weight != NULL)
        return factoring->weight != NULL;
    *factoring = (struct ls_factoring){.weight = weight,
                                       .bias = bias,
                                       .size = {attr->k, attr->n},
                                       .rows = attr->m * graph->update_samples / graph->samples,
                                       .transpose = attr->transpose,
                                       .portable = attr->portable || layer->bf16};
    return layer->train_blob[product->weight] && weight->share == NULL &&
           (bias == NULL || bias->share == NULL) && x->sample_axis >= 0 &&
           graph->update_samples > 0 && ls_factors_pay(factoring->rows, attr->k, attr->n);
}

void ls_layer_product_backward_weights(struct ls_layer *layer,
                                       const struct ls_layer_product *product, struct ls_value *x,
                                       struct ls_value *dy)
{
    struct ls_graph *graph = layer->graph;
    const bool bias = trains_bias(layer, product);
    struct ls_factoring factoring;
    if ((!layer->train_blob[product->weight] && !bias) || x == NULL)
        return;
    if (use_factors(layer, product, x, &factoring)) {
        ls_graph_factors(graph, &factoring, product->attr.m, x, dy);
        return;
    }
    /* The op always writes dw; where only the bias learns, it is not read. */
    struct ls_value *dw = ls_graph_parameter_gradient(graph, layer, product->weight);
    struct ls_value *db = bias ? ls_graph_parameter_gradient(graph, layer, product->bias) : NULL;
    struct ls_op *op = ls_graph_op(graph, LS_OP_INNER_PRODUCT_WEIGHTS);
    ls_op_in(graph, op, x);
    ls_op_in(graph, op, dy);
    ls_op_out(graph, op, dw);
    ls_op_out(graph, op, db);
    if (op != NULL) {
        op->attr.inner_product = product->attr;
        op->attr.inner_product.bias = bias;
    }
    if (layer->train_blob[product->weight])
        ls_graph_accumulate(graph, layer, product->weight, dw);
    if (bias)
        ls_graph_accumulate(graph, layer, product->bias, db);
}

void ls_layer_product_backward_data(struct ls_layer *layer, const struct ls_layer_product *product,
                                    struct ls_value *x, struct ls_value *dy)
{
    struct ls_graph *graph = layer->graph;
    struct ls_value *weight = ls_graph_parameter(graph, layer, product->weight);
    struct ls_value *dx = ls_graph_gradient_value(graph, x);
    struct ls_op *op = ls_graph_op(graph, LS_OP_INNER_PRODUCT_DATA);
    ls_op_in(graph, op, dy);
    ls_op_in(graph, op, weight);
    ls_op_out(graph, op, dx);
    ls_graph_add_gradient(graph, x, dx);
    if (op != NULL)
        op->attr.inner_product = product->attr;
}

void ls_layer_product_cost(const struct ls_layer *layer, const struct ls_layer_product *product,
                           bool data, struct ls_cost *cost)
{
    const struct ls_inner_product_attr *attr = &product->attr;
    double m = (double)attr->m, k = (double)attr->k, n = (double)attr->n;
    double flops = 2 * m * k * n, bytes = 4 * (m * k + k * n + m * n);
    cost->forward_flops += flops;
    cost->forward_bytes += bytes;
    if (ls_layer_trains_blob(layer, product->weight)) {
        cost->backward_weights_flops += flops;
        cost->backward_bytes += bytes;
    }
    if (data) {
        cost->backward_data_flops += flops;
        cost->backward_bytes += bytes;
    }
}
