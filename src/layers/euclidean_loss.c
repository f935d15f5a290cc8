/* EuclideanLoss: half the mean squared distance, sum (a - b)^2 / (2 N).
 *
 * a [N, ...], b [N, ...] with equally many elements a row. Both bottoms may be learned and get a
 * gradient: (a - b) / N and (b - a) / N. As in Caffe the divisor is always N, so that there is no
 * loss_param.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/loss.h"

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct ls_loss *loss = layer->state;
    LS_TRY(ls_layer_begin(layer, error, NULL));
    LS_TRY(ls_loss_check_bottoms(layer, error));
    static const float left_out[LS_LOSS_BOTTOMS_MAX] = {0};
    loss->left_out = left_out;
    loss->attr.normalization = LS_NORM_BATCH_SIZE;
    ls_loss_set_positions(loss, layer->bottom[0]->rows, 1);
    return ls_loss_check_sizes(layer, error);
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    ls_loss_emit(layer, layer->state, LS_OP_EUCLIDEAN_LOSS);
    return 0;
}

static int backward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    const struct ls_loss *loss = layer->state;
    for (int i = 0; i < 2; i++) {
        if (!layer->propagate[i])
            continue;
        struct ls_loss side = *loss;
        side.attr.scale = i == 0 ? 1 : -1;
        ls_loss_emit_backward(layer, &side, LS_OP_EUCLIDEAN_LOSS_BACKWARD, loss->in[0], loss->in[1],
                              i);
    }
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    double elements = (double)ls_shape_size(&layer->bottom[0]->shape);
    cost->forward_flops = 3 * elements;
    cost->forward_bytes = 8 * elements;
    for (int i = 0; i < 2; i++) {
        if (!ls_layer_has_gradient(layer, i))
            continue;
        cost->backward_data_flops += 2 * elements;
        cost->backward_bytes += 12 * elements;
    }
}

const struct ls_layer_type ls_layer_euclidean_loss = {
    .type = "EuclideanLoss",
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
