/* Dropout: in training, each number is set to zero with probability dropout_ratio, and the others
 * are divided by 1 - dropout_ratio, so that nothing needs to be done in testing: there the top is
 * the bottom's value and no op is emitted.
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
    bool identity;
};

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
    state->identity = layer->graph->phase != LOCKSTEP__PHASE__TRAIN || state->attr.ratio == 0;
    if (!state->identity && layer->bottom[0]->sample_axis < 0)
        return ls_layer_fail(layer, error, NULL, "bottom", NULL,
                             "'%s' has no axis of samples, by which the mask goes",
                             layer->bottom[0]->name);
    return 0;
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    const struct dropout *state = layer->state;
    if (state->identity) {
        ls_layer_pass(layer, 0, 0);
        return 0;
    }
    struct ls_op *op = ls_layer_emit_map(layer, LS_OP_DROPOUT);
    if (op != NULL)
        op->attr.dropout = state->attr;
    return 0;
}

static int backward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    const struct dropout *state = layer->state;
    if (state->identity)
        return 0; /* top and bottom are one value, and so are their gradients */
    struct ls_value *dy = ls_graph_gradient(layer->graph, layer->top[0]);
    struct ls_op *op = ls_layer_emit_gradient(layer, 0, LS_OP_DROPOUT, &dy, 1);
    if (op != NULL)
        op->attr.dropout = state->attr;
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    const struct dropout *state = layer->state;
    if (!state->identity)
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
    .setup = setup,
    .forward = forward,
    .backward = backward,
    .cost = cost,
};
