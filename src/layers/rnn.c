/* RNN: sequences through cells that are one function (Caffe's recurrent_param).
 *
 *   h[t] = tanh(W_xh x[t] + b_h + W_xh_static x_static + W_hh h[t - 1])
 *   o[t] = tanh(W_ho h[t] + b_o)
 *
 * Blobs: W_xh [H, I], b_h [H], (W_xh_static [H, S]), W_hh [H, H], W_ho [H, H], b_o [H]. Bottoms and
 * tops: layers/recurrent.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/recurrent.h"

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    static const struct ls_recurrent_blobs names = {.x = "W_xh",
                                                    .x_bias = "b_h",
                                                    .still = "W_xh_static",
                                                    .h = "W_hh",
                                                    .o = "W_ho",
                                                    .o_bias = "b_o"};
    return ls_recurrent_setup(layer, LS_CELL_RNN, &names, error);
}

const struct ls_layer_type ls_layer_rnn = {
    .type = "RNN",
    LS_RECURRENT_TYPE,
    .bottoms_max = 4,
    .tops_max = 2,
    .setup = setup,
};
