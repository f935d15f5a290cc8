/* Softmax along an axis: y_c = exp(x_c - max x) / sum_j exp(x_j - max x).
 *
 * x, y of any shape; `axis` (default 1); that of the samples mixes them (ls_layer_mix). A second
 * bottom is a mask of 0 and 1, with as many axes as x and along each of them as many places, or 1,
 * which is repeated: where it is 0 (numbers other than 0 count as 1), x does not count and y is 0;
 * where all of a row is masked, all of it is 0. No gradient goes to the mask. Caffe's
 * softmax_param; its `engine` is accepted and changes nothing.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/common.h"

struct softmax {
    int axis;
};

static int check_mask(const struct ls_layer *layer, struct ls_error *error)
{
    const struct ls_value *x = layer->bottom[0], *mask = layer->bottom[1];
    const bool samples = mask->sample_axis >= 0;
    char a[160], b[160];
    bool fits = mask->shape.rank == x->shape.rank;
    if (samples)
        LS_TRY(ls_layer_check_alike(layer, error, 1));
    for (int i = 0; fits && i < x->shape.rank; i++)
        fits = mask->shape.dim[i] == 1
                   ? !samples || i != x->sample_axis || x->shape.dim[i] == 1
                   : mask->shape.dim[i] == x->shape.dim[i] && (samples || i != x->sample_axis);
    if (fits)
        return 0;
    return ls_layer_fail(
        layer, error, NULL, "bottom", "a Reshape layer puts in axes of 1",
        "its mask '%s' is %s, but must have the axes of '%s', %s, or 1 place along "
        "some of them; along that of the samples it has samples, or 1 place",
        mask->name, ls_shape_text(&mask->shape, a, sizeof a), x->name,
        ls_shape_text(&x->shape, b, sizeof b));
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct softmax *state = layer->state;
    const Lockstep__SoftmaxParameter *param = layer->definition->softmax_param;
    LS_TRY(ls_layer_begin(layer, error, NULL));
    state->axis = ls_layer_one_axis(layer, error, param, "axis", param != NULL ? param->axis : 1,
                                    layer->bottom[0]);
    if (state->axis < 0)
        return LOCKSTEP_DEFINITION;
    if (param != NULL && param->n_metric > 0)
        return ls_layer_fail(layer, error, param, "metric", NULL,
                             "metric is of SoftmaxWithLoss layers");
    return layer->bottoms > 1 ? check_mask(layer, error) : 0;
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    const struct softmax *state = layer->state;
    struct ls_op *op = ls_layer_emit_map(layer, LS_OP_SOFTMAX);
    if (layer->bottoms > 1)
        ls_op_in(layer->graph, op, layer->bottom[1]);
    if (op != NULL)
        op->attr.axis = state->axis;
    return 0;
}

static int backward(struct ls_layer *layer, struct ls_error *error)
{
    const struct softmax *state = layer->state;
    if (layer->bottoms > 1 && layer->propagate[1])
        return ls_layer_fail(layer, error, NULL, "bottom",
                             "write propagate_down: true and propagate_down: false into the layer "
                             "to stop the gradient there",
                             "a Softmax layer cannot backpropagate to its mask, but '%s' depends "
                             "on learned parameters",
                             layer->bottom[1]->name);
    if (!layer->propagate[0])
        return 0;
    struct ls_value *inputs[] = {layer->top[0], ls_graph_gradient(layer->graph, layer->top[0])};
    struct ls_op *op = ls_layer_emit_gradient(layer, 0, LS_OP_SOFTMAX_BACKWARD, inputs, 2);
    if (op != NULL)
        op->attr.axis = state->axis;
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    ls_layer_map_cost(layer, cost, 5, 4, 1);
}

const struct ls_layer_type ls_layer_softmax = {
    .type = "Softmax",
    .parameter = "softmax_param",
    .state_size = sizeof(struct softmax),
    .bottoms_min = 1,
    .bottoms_max = 2,
    .tops_min = 1,
    .tops_max = 1,
    .filtered = LS_FILTERED_HANDED_ON,
    .setup = setup,
    .forward = forward,
    .backward = backward,
    .cost = cost,
};
