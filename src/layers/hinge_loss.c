/* HingeLoss: how far scores are from being on the right side of a margin of 1.
 *
 *   L1: loss = sum of max(0, 1 - s x[n, k]) / N,   s = 1 where k is the label of n, else -1
 *   L2: the same of the squares
 *
 * x [N, C...], the axes behind the first taken as one list of classes; label [N]. The divisor is N,
 * as in Caffe, so that there is no loss_param. Caffe's hinge_loss_param.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/loss.h"

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct ls_loss *loss = layer->state;
    const Lockstep__HingeLossParameter *param = layer->definition->hinge_loss_param;
    const struct ls_value *x = layer->bottom[0], *label = layer->bottom[1];
    char text[160];
    LS_TRY(ls_layer_begin(layer, error, NULL));
    LS_TRY(ls_layer_check_channels(layer, error));
    LS_TRY(ls_layer_check_samples(layer, error, 1));
    LS_TRY(ls_loss_check_bottoms(layer, error));
    loss->attr.normalization = LS_NORM_BATCH_SIZE;
    loss->attr.axis = 1;
    loss->attr.squared = param != NULL && param->norm == LOCKSTEP__HINGE_LOSS_PARAMETER__NORM__L2;
    ls_loss_set_positions(loss, x->rows, 1);
    if (ls_shape_size(&label->shape) != label->shape.dim[0])
        return ls_layer_fail(layer, error, NULL, "bottom", NULL,
                             "'%s' must be one label a sample, but is %s", label->name,
                             ls_shape_text(&label->shape, text, sizeof text));
    return 0;
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    ls_loss_emit(layer, layer->state, LS_OP_HINGE_LOSS);
    return 0;
}

static int backward(struct ls_layer *layer, struct ls_error *error)
{
    const struct ls_loss *loss = layer->state;
    LS_TRY(ls_loss_check_labels(layer, error));
    if (layer->propagate[0])
        ls_loss_emit_backward(layer, loss, LS_OP_HINGE_LOSS_BACKWARD, loss->in[0], loss->in[1], 0);
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    double elements = (double)ls_shape_size(&layer->bottom[0]->shape);
    cost->forward_flops = 3 * elements;
    cost->forward_bytes = ls_layer_bytes(layer->bottom[0]) + ls_layer_bytes(layer->bottom[1]);
    if (!ls_layer_has_gradient(layer, 0))
        return;
    cost->backward_data_flops = 3 * elements;
    cost->backward_bytes = 2 * ls_layer_bytes(layer->bottom[0]) + ls_layer_bytes(layer->bottom[1]);
}

const struct ls_layer_type ls_layer_hinge_loss = {
    .type = "HingeLoss",
    .parameter = "hinge_loss_param",
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
