/* The table of layer types: a new one is a file and two lines here. See layers/layers.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "layers/layers.h"

extern const struct ls_layer_type ls_layer_deconvolution;
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
    &ls_layer_deconvolution,
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

/* Caffe's other types, with what does the same where there is something. */
static const struct {
    const char *name, *hint;
} others[] = {
    {"AbsVal", NULL},
    {"ArgMax", NULL},
    {"BNLL", NULL},
    {"BatchNorm", NULL},
    {"BatchReindex", NULL},
    {"Bias", NULL},
    {"Clip", NULL},
    {"ContrastiveLoss", NULL},
    {"Crop", NULL},
    {"ELU", NULL},
    {"Embed", NULL},
    {"Exp", NULL},
    {"Filter", NULL},
    {"HDF5Data", "a Data layer reads LMDB, IDX, CIFAR and folders of pictures"},
    {"HDF5Output", NULL},
    {"HingeLoss", NULL},
    {"Im2col", NULL},
    {"ImageData", "a Data layer with backend: IMAGES reads list files and folders of pictures"},
    {"InfogainLoss", NULL},
    {"LSTM", NULL},
    {"LSTMUnit", NULL},
    {"Log", NULL},
    {"MVN", NULL},
    {"MemoryData", "an Input layer takes tensors from the caller"},
    {"PReLU", NULL},
    {"Parameter", NULL},
    {"Power", NULL},
    {"Python", NULL},
    {"RNN", NULL},
    {"Reduction", NULL},
    {"Reshape", "a Flatten layer joins axes"},
    {"SPP", NULL},
    {"Scale", NULL},
    {"Slice", NULL},
    {"Swish", NULL},
    {"Threshold", NULL},
    {"Tile", NULL},
    {"WindowData", "a Data layer with backend: IMAGES reads list files and folders of pictures"},
};

const char *ls_layer_type_hint(const char *name)
{
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(others[i].name, name) == 0)
            return others[i].hint != NULL ? others[i].hint
                                          : "Caffe has it; Lockstep does not have it yet";
    return NULL;
}
