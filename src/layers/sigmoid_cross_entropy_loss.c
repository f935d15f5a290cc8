/* SigmoidCrossEntropyLoss: the cross-entropy of independent yes-or-no predictions.
 *
 *   loss = -sum [t log s + (1 - t) log(1 - s)] / divisor,  s = 1 / (1 + exp(-x))
 *
 * x and the target t (0 .. 1) have equally many elements, samples in front. Elements whose target,
 * cut to an integer, is loss_param.ignore_label count nowhere. Divisor: see layers/loss.h; here
 * BATCH_SIZE is the default, as in Caffe. Targets name no classes: there is no class_weight, and
 * label smoothing would be other targets.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/loss.h"

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct ls_loss *loss = layer->state;
    const struct ls_value *x = layer->bottom[0];
    LS_TRY(ls_layer_begin(layer, error, NULL));
    LS_TRY(ls_loss_check_bottoms(layer, error));
    LS_TRY(
        ls_loss_read(layer, &(struct ls_loss_rules){.missing = LS_NORM_BATCH_SIZE}, loss, error));
    ls_loss_set_positions(loss, x->rows, ls_value_sample_size(x) / x->rows);
    return ls_loss_check_sizes(layer, error);
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    ls_loss_emit(layer, layer->state, LS_OP_SIGMOID_LOSS);
    return 0;
}

static int backward(struct ls_layer *layer, struct ls_error *error)
{
    const struct ls_loss *loss = layer->state;
    LS_TRY(ls_loss_check_labels(layer, error));
    if (layer->propagate[0])
        ls_loss_emit_backward(layer, loss, LS_OP_SIGMOID_LOSS_BACKWARD, loss->in[0], loss->in[1],
                              0);
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    ls_layer_map_cost(layer, cost, 8, 6, 1);
}

const struct ls_layer_type ls_layer_sigmoid_cross_entropy_loss = {
    .type = "SigmoidCrossEntropyLoss",
    .parameter = "loss_param",
    .state_size = sizeof(struct ls_loss),
    .bottoms_min = 2,
    .bottoms_max = 2,
    .tops_min = 1,
    .tops_max = 1,
    .auto_tops = 1,
    .is_loss = true,
    .filtered = LS_FILTERED_COUNTED,
    .setup = setup,
    .forward = forward,
    .backward = backward,
    .cost = cost,
};
