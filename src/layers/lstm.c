/* LSTM: sequences through cells with a memory of their own (Caffe's recurrent_param).
 *
 *   i, f, o = sigmoid(...), g = tanh(W_xc x[t] + b_c + W_xc_static x_static + W_hc h[t - 1])
 *   c[t] = f c[t - 1] + i g,  h[t] = o tanh(c[t])
 *
 * Blobs: W_xc [4 H, I], b_c [4 H], (W_xc_static [4 H, S]), W_hc [4 H, H], with the rows of i, then
 * f, o and g. Bottoms and tops: layers/recurrent.h. (Hochreiter, Schmidhuber: Long short-term
 * memory; 1997. Donahue et al.: Long-term recurrent convolutional networks; 2015.)
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/recurrent.h"

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    static const struct ls_recurrent_blobs names = {
        .x = "W_xc", .x_bias = "b_c", .still = "W_xc_static", .h = "W_hc"};
    return ls_recurrent_setup(layer, LS_CELL_LSTM, &names, error);
}

const struct ls_layer_type ls_layer_lstm = {
    .type = "LSTM",
    LS_RECURRENT_TYPE,
    .bottoms_max = 5,
    .tops_max = 3,
    .setup = setup,
};
