/* Axpy: y = a x + b, with one factor for each channel of each sample.
 *
 * Bottoms a [N, C] (or [N, C, 1, 1]), x [N, C, ...], b like x. It is what a Scale layer with two
 * bottoms and `axis: 0`, and an Eltwise layer behind it give. Of SENet's fork of Caffe. (Hu, Shen,
 * Sun: Squeeze-and-excitation networks; 2018.)
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/emit.h"

struct axpy {
    struct ls_value *factor, *product;
};

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    const struct ls_shape *a = &layer->bottom[0]->shape, *x = &layer->bottom[1]->shape;
    char first[160], second[160];
    LS_TRY(ls_layer_begin(layer, error, NULL));
    LS_TRY(ls_layer_check_channels(layer, error));
    LS_TRY(ls_layer_check_alike(layer, error, 1));
    LS_TRY(ls_layer_check_alike(layer, error, 2));
    if (x->rank < 2 || ls_shape_size(a) != ls_shape_count(x, 0, 2) || a->dim[0] != x->dim[0] ||
        a->dim[1] != x->dim[1])
        return ls_layer_fail(layer, error, NULL, "bottom", NULL,
                             "its bottom '%s' must have one number for each channel of '%s', which "
                             "is %s, but is %s",
                             layer->bottom[0]->name, layer->bottom[1]->name,
                             ls_shape_text(x, first, sizeof first),
                             ls_shape_text(a, second, sizeof second));
    if (!ls_shape_equal(x, &layer->bottom[2]->shape))
        return ls_layer_fail(layer, error, NULL, "bottom", NULL,
                             "its bottoms '%s' and '%s' must have one shape, but are %s and %s",
                             layer->bottom[1]->name, layer->bottom[2]->name,
                             ls_shape_text(x, first, sizeof first),
                             ls_shape_text(&layer->bottom[2]->shape, second, sizeof second));
    return 0;
}

static void set_scale(struct ls_op *op)
{
    if (op != NULL)
        op->attr.scale = (struct ls_scale_attr){.axis = 0, .axes = 2};
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    struct axpy *state = layer->state;
    struct ls_value *a = layer->bottom[0], *x = layer->bottom[1];
    const struct ls_shape channels = {2, {a->shape.dim[0], a->shape.dim[1]}};
    state->factor = a->shape.rank == 2 ? a : ls_emit_view(layer, "factor", a, &channels, a);
    struct ls_value *inputs[] = {x, state->factor, NULL};
    struct ls_emitted product =
        ls_emit_side(layer, LS_OP_SCALE, "product", &x->shape, x, inputs, 3);
    set_scale(product.op);
    state->product = product.value;
    struct ls_value *terms[] = {product.value, layer->bottom[2]};
    struct ls_emitted sum = ls_emit_top(layer, LS_OP_ELTWISE, 0, &x->shape, x, terms, 2);
    if (sum.op != NULL)
        sum.op->attr.eltwise = (struct ls_eltwise_attr){.method = LS_ELTWISE_SUM};
    return 0;
}

/* The gradient of the factors. */
static void backward_factor(struct ls_layer *layer, struct ls_value *dy)
{
    const struct axpy *state = layer->state;
    struct ls_graph *graph = layer->graph;
    struct ls_value *a = layer->bottom[0], *inputs[] = {dy, layer->bottom[1]};
    struct ls_emitted sums = ls_emit_slope(layer, LS_OP_SCALE_SUMS, state->factor, inputs, 2);
    ls_op_out(graph, sums.op, NULL);
    set_scale(sums.op);
    struct ls_value *da = sums.value;
    if (state->factor != a)
        da = ls_emit_slope(layer, LS_OP_VIEW, a, &da, 1).value;
    ls_graph_add_gradient(graph, a, da);
}

static int backward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    const struct axpy *state = layer->state;
    struct ls_value *dy = ls_graph_gradient(layer->graph, layer->top[0]);
    if (layer->propagate[0])
        backward_factor(layer, dy);
    if (layer->propagate[1]) {
        struct ls_value *inputs[] = {dy, state->factor, NULL};
        set_scale(ls_layer_emit_gradient(layer, 1, LS_OP_SCALE, inputs, 3));
    }
    if (layer->propagate[2])
        ls_graph_add_gradient(layer->graph, layer->bottom[2], dy);
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    const double elements = (double)ls_shape_size(&layer->bottom[1]->shape);
    const double bytes = ls_layer_bytes(layer->bottom[1]);
    cost->forward_flops = 2 * elements;
    cost->forward_bytes = 3 * bytes;
    if (ls_layer_has_gradient(layer, 0)) {
        cost->backward_data_flops += 2 * elements;
        cost->backward_bytes += 2 * bytes;
    }
    if (ls_layer_has_gradient(layer, 1)) {
        cost->backward_data_flops += elements;
        cost->backward_bytes += 2 * bytes;
    }
}

const struct ls_layer_type ls_layer_axpy = {
    .type = "Axpy",
    .state_size = sizeof(struct axpy),
    .bottoms_min = 3,
    .bottoms_max = 3,
    .tops_min = 1,
    .tops_max = 1,
    .filtered = LS_FILTERED_HANDED_ON,
    .setup = setup,
    .forward = forward,
    .backward = backward,
    .cost = cost,
};
