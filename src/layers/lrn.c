/* Local response normalisation: each number is divided by a function of its neighbours' squares.
 *
 *   ACROSS_CHANNELS: y = x (k + alpha / n sum of x^2 over n channels around)^-beta
 *   WITHIN_CHANNEL:  y = x (1 + alpha avg of x^2 over an n by n square around)^-beta
 *
 * x, y [N, C, H, W]; n is local_size, odd. alpha is divided by n in the first form, and the average
 * of the second is that of AVE pooling with padding (n - 1) / 2. Caffe's lrn_param; there k does
 * nothing within channels, so that it is refused here. (Krizhevsky, Sutskever, Hinton: ImageNet
 * classification with deep convolutional neural networks; 2012.)
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "layers/common.h"

struct lrn {
    struct ls_lrn_attr attr;
    struct ls_value *scale; /* ACROSS, for training: k + alpha / n sum of x^2 */
};

static const Lockstep__LRNParameter *param_of(const struct ls_layer *layer)
{
    static const Lockstep__LRNParameter defaults = LOCKSTEP__LRNPARAMETER__INIT;
    const Lockstep__LRNParameter *param = layer->definition->lrn_param;
    return param != NULL ? param : &defaults;
}

static int check_numbers(const struct ls_layer *layer, struct ls_error *error)
{
    const Lockstep__LRNParameter *p = param_of(layer);
    int status = 0;
    if (p->local_size % 2 != 1 || p->local_size > INT32_MAX)
        status = ls_layer_fail(layer, error, p, "local_size", NULL,
                               "local_size %u must be an odd number", p->local_size);
    const struct {
        const char *name;
        float value;
    } numbers[] = {{"alpha", p->alpha}, {"beta", p->beta}, {"k", p->k}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!isfinite(numbers[i].value))
            status = ls_layer_fail(layer, error, p, numbers[i].name, NULL,
                                   "%s must be a finite number", numbers[i].name);
    if (p->norm_region == LOCKSTEP__LRNPARAMETER__NORM_REGION__WITHIN_CHANNEL && p->k != 1)
        status = ls_layer_fail(layer, error, p, "k", "remove it",
                               "k has no effect within channels, where 1 takes its place");
    return status;
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct lrn *state = layer->state;
    const Lockstep__LRNParameter *p = param_of(layer);
    LS_TRY(ls_layer_begin(layer, error, NULL));
    LS_TRY(check_numbers(layer, error));
    LS_TRY(ls_layer_check_planes(layer, error, 0));
    LS_TRY(ls_layer_check_samples(layer, error, 0));
    state->attr = (struct ls_lrn_attr){
        .within = p->norm_region == LOCKSTEP__LRNPARAMETER__NORM_REGION__WITHIN_CHANNEL,
        .size = p->local_size,
        .alpha = p->alpha,
        .beta = p->beta,
        .k = p->k,
    };
    return 0;
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    struct lrn *state = layer->state;
    struct ls_value *x = layer->bottom[0];
    struct ls_op *op = ls_layer_emit_map(layer, LS_OP_LRN);
    if (!state->attr.within && layer->graph->training && x->needs_grad)
        state->scale = ls_layer_make_side(layer, "scale", x);
    ls_op_out(layer->graph, op, state->scale);
    if (op != NULL)
        op->attr.lrn = state->attr;
    return 0;
}

static int backward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    const struct lrn *state = layer->state;
    struct ls_value *inputs[] = {layer->bottom[0], layer->top[0],
                                 ls_graph_gradient(layer->graph, layer->top[0]), state->scale};
    struct ls_op *op = ls_layer_emit_gradient(layer, 0, LS_OP_LRN_BACKWARD, inputs, 4);
    if (op != NULL)
        op->attr.lrn = state->attr;
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    const struct lrn *state = layer->state;
    double size = (double)state->attr.size;
    double neighbours = state->attr.within ? size * size : size;
    ls_layer_map_cost(layer, cost, 2 * neighbours + 4, 4 * neighbours + 6,
                      state->scale != NULL ? 3 : 2);
    cost->forward_bytes += ls_layer_bytes(state->scale);
}

const struct ls_layer_type ls_layer_lrn = {
    .type = "LRN",
    .parameter = "lrn_param",
    .state_size = sizeof(struct lrn),
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
