/* MultinomialLogisticLoss: the mean of the negative logarithm of the true class's probability.
 *
 *   loss = sum_n -w[label[n]] log max(p[n, label[n]], 1e-20) / divisor
 *
 * p [N, C...] are probabilities (the top of a Softmax layer, say), the axes behind the first taken
 * as one list of classes; label [N]; w are loss_param.class_weight, or 1. SoftmaxWithLoss does both
 * at once, more exactly. Samples whose label is loss_param.ignore_label count nowhere. Divisor: see
 * layers/loss.h; BATCH_SIZE, the default, is what Caffe does, which knows nothing of loss_param
 * here.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/loss.h"

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct ls_loss *loss = layer->state;
    const struct ls_value *p = layer->bottom[0], *label = layer->bottom[1];
    char text[160];
    LS_TRY(ls_layer_begin(layer, error, NULL));
    LS_TRY(ls_layer_check_samples(layer, error, 0));
    LS_TRY(ls_layer_check_samples(layer, error, 1));
    LS_TRY(ls_loss_check_bottoms(layer, error));
    const struct ls_loss_rules rules = {.missing = LS_NORM_BATCH_SIZE,
                                        .classes = ls_shape_count(&p->shape, 1, p->shape.rank)};
    LS_TRY(ls_loss_read(layer, &rules, loss, error));
    loss->attr.axis = 1;
    ls_loss_set_positions(loss, p->rows, 1);
    if (p->shape.rank < 2)
        return ls_layer_fail(layer, error, NULL, "bottom", NULL,
                             "'%s' has no axis of classes behind that of the samples", p->name);
    if (ls_shape_size(&label->shape) != label->shape.dim[0])
        return ls_layer_fail(layer, error, NULL, "bottom", NULL,
                             "'%s' must be one label a sample, but is %s", label->name,
                             ls_shape_text(&label->shape, text, sizeof text));
    return 0;
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    ls_loss_emit(layer, layer->state, LS_OP_LOG_LOSS);
    return 0;
}

static int backward(struct ls_layer *layer, struct ls_error *error)
{
    const struct ls_loss *loss = layer->state;
    LS_TRY(ls_loss_check_labels(layer, error));
    if (layer->propagate[0])
        ls_loss_emit_backward(layer, loss, LS_OP_LOG_LOSS_BACKWARD, loss->in[0], loss->in[1], 0);
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    double labels = ls_layer_bytes(layer->bottom[1]);
    cost->forward_flops = labels / 4 * 3;
    cost->forward_bytes = 2 * labels; /* one probability a label */
    if (!ls_layer_has_gradient(layer, 0))
        return;
    cost->backward_data_flops = labels / 4 * 2;
    cost->backward_bytes = ls_layer_bytes(layer->bottom[0]) + 2 * labels;
}

const struct ls_layer_type ls_layer_multinomial_logistic_loss = {
    .type = "MultinomialLogisticLoss",
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
