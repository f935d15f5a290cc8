/* GRU: sequences through gated cells, with the formulas and the order of parts of cuDNN and PyTorch
 * (Lockstep's own; recurrent_param, as LSTM).
 *
 *   r, z = sigmoid(W_x x[t] + b_x + W_x_static x_static + W_h h[t - 1] + b_h)
 *   n = tanh(W_x x[t] + b_x + W_x_static x_static + r (W_h h[t - 1] + b_h))
 *   h[t] = (1 - z) n + z h[t - 1]
 *
 * Blobs: W_x [3 H, I], b_x [3 H], (W_x_static [3 H, S]), W_h [3 H, H], b_h [3 H], with the rows of
 * r, then z and n. Bottoms and tops: layers/recurrent.h. (Cho et al.: Learning phrase
 * representations using RNN encoder-decoder; 2014.)
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/recurrent.h"

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    static const struct ls_recurrent_blobs names = {
        .x = "W_x", .x_bias = "b_x", .still = "W_x_static", .h = "W_h", .h_bias = "b_h"};
    return ls_recurrent_setup(layer, LS_CELL_GRU, &names, error);
}

const struct ls_layer_type ls_layer_gru = {
    .type = "GRU",
    LS_RECURRENT_TYPE,
    .bottoms_max = 4,
    .tops_max = 2,
    .setup = setup,
};
