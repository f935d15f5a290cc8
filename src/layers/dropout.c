/* Dropout: in training, each number is set to zero with probability dropout_ratio, and the others
 * are divided by 1 - dropout_ratio, so that nothing needs to be done in testing: there the top is
 * the bottom's value and no op is emitted. Forks' fields say it otherwise: with scale_train: false
 * what is kept is not divided and testing multiplies by 1 - dropout_ratio instead; with
 * sample_weights_test: true testing drops as training does.
 *
 * The mask is a function of (seed, layer name, ordinal of the sample, element of the sample), so
 * that the backward pass computes it again instead of keeping it. Caffe's dropout_param.
 * (Srivastava et al.: Dropout; JMLR 2014.)
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/random.h"
#include "layers/common.h"

struct dropout {
    struct ls_dropout_attr attr;
    bool drops;
    float factor; /* of all elements, besides */
};

/* Dropping divides by 1 - ratio. Where the definition wants it otherwise (scale_train: false),
 * training takes that back and testing, which drops nothing, multiplies. */
static void choose(struct ls_layer *layer, const Lockstep__DropoutParameter *param)
{
    struct dropout *state = layer->state;
    bool train = layer->graph->phase == LOCKSTEP__PHASE__TRAIN;
    bool samples = train || (param != NULL && param->sample_weights_test);
    state->drops = samples && state->attr.ratio != 0;
    state->factor = param != NULL && !param->scale_train ? 1 - state->attr.ratio : 1;
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct dropout *state = layer->state;
    const Lockstep__DropoutParameter *param = layer->definition->dropout_param;
    LS_TRY(ls_layer_begin(layer, error, NULL));
    state->attr.ratio = param != NULL ? param->dropout_ratio : 0.5f;
    state->attr.key = ls_random_key(layer->graph->seed, LS_RANDOM_DROPOUT, layer->name);
    if (!(state->attr.ratio >= 0 && state->attr.ratio < 1)) /* also refuses what is not a number */
        return ls_layer_fail(layer, error, param, "dropout_ratio", NULL,
                             "dropout_ratio %g must be at least 0 and less than 1",
                             (double)state->attr.ratio);
    choose(layer, param);
    if (state->drops && layer->bottom[0]->sample_axis < 0)
        return ls_layer_fail(layer, error, NULL, "bottom", NULL,
                             "'%s' has no axis of samples, by which the mask goes",
                             layer->bottom[0]->name);
    return 0;
}

/* y = mask x, or factor x, or both one after the other: y <- x. */
static void emit(struct ls_layer *layer, struct ls_value *x, struct ls_value *y)
{
    const struct dropout *state = layer->state;
    struct ls_graph *graph = layer->graph;
    struct ls_value *dropped = state->factor == 1 ? y : x;
    if (state->drops) {
        if (state->factor != 1)
            dropped = ls_graph_value(graph, y != NULL ? y->name : "", &x->shape, x);
        struct ls_op *op = ls_graph_op(graph, LS_OP_DROPOUT);
        ls_op_in(graph, op, x);
        ls_op_out(graph, op, dropped);
        if (op != NULL)
            op->attr.dropout = state->attr;
    }
    if (state->factor == 1)
        return;
    struct ls_op *op = ls_graph_op(graph, LS_OP_ACTIVATION);
    ls_op_in(graph, op, dropped);
    ls_op_out(graph, op, y);
    if (op != NULL)
        op->attr.activation =
            (struct ls_activation_attr){.function = LS_POWER, .power = 1, .scale = state->factor};
}

static bool is_identity(const struct dropout *state)
{
    return !state->drops && state->factor == 1;
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    struct ls_value *x = layer->bottom[0];
    if (is_identity(layer->state)) {
        ls_layer_pass(layer, 0, 0);
        return 0;
    }
    emit(layer, x, ls_layer_make_top(layer, 0, &x->shape, x));
    return 0;
}

static int backward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    struct ls_graph *graph = layer->graph;
    if (is_identity(layer->state))
        return 0; /* top and bottom are one value, and so are their gradients */
    struct ls_value *dx = ls_graph_gradient_value(graph, layer->bottom[0]);
    emit(layer, ls_graph_gradient(graph, layer->top[0]), dx);
    ls_graph_add_gradient(graph, layer->bottom[0], dx);
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    const struct dropout *state = layer->state;
    if (!is_identity(state))
        ls_layer_map_cost(layer, cost, 1, 1, 0);
}

const struct ls_layer_type ls_layer_dropout = {
    .type = "Dropout",
    .parameter = "dropout_param",
    .state_size = sizeof(struct dropout),
    .bottoms_min = 1,
    .bottoms_max = 1,
    .tops_min = 1,
    .tops_max = 1,
    .is_random = true,
    .filtered = LS_FILTERED_HANDED_ON,
    .setup = setup,
    .forward = forward,
    .backward = backward,
    .cost = cost,
};
