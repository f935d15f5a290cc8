/* The table of layer types: a new one is a file and two lines here. See layers/layers.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "layers/layers.h"

extern const struct ls_layer_type ls_layer_accuracy, ls_layer_concat, ls_layer_convolution,
    ls_layer_data, ls_layer_dropout, ls_layer_dummy_data, ls_layer_eltwise, ls_layer_euclidean_loss,
    ls_layer_flatten, ls_layer_inner_product, ls_layer_input, ls_layer_lrn,
    ls_layer_multinomial_logistic_loss, ls_layer_pooling, ls_layer_relu, ls_layer_sigmoid,
    ls_layer_sigmoid_cross_entropy_loss, ls_layer_silence, ls_layer_softmax, ls_layer_softmax_loss,
    ls_layer_split, ls_layer_tanh;

const struct ls_layer_type *const ls_layer_types[] = {
    &ls_layer_accuracy,
    &ls_layer_concat,
    &ls_layer_convolution,
    &ls_layer_data,
    &ls_layer_dropout,
    &ls_layer_dummy_data,
    &ls_layer_eltwise,
    &ls_layer_euclidean_loss,
    &ls_layer_flatten,
    &ls_layer_inner_product,
    &ls_layer_input,
    &ls_layer_lrn,
    &ls_layer_multinomial_logistic_loss,
    &ls_layer_pooling,
    &ls_layer_relu,
    &ls_layer_sigmoid,
    &ls_layer_sigmoid_cross_entropy_loss,
    &ls_layer_silence,
    &ls_layer_softmax,
    &ls_layer_softmax_loss,
    &ls_layer_split,
    &ls_layer_tanh,
    NULL,
};

const struct ls_layer_type *ls_layer_type_find(const char *name)
{
    for (size_t i = 0; ls_layer_types[i] != NULL; i++)
        if (strcmp(ls_layer_types[i]->type, name) == 0)
            return ls_layer_types[i];
    return NULL;
}
