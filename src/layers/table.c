/* The table of layer types: a new one is a file and two lines here. See layers/layers.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "layers/layers.h"

extern const struct ls_layer_type ls_layer_group_norm, ls_layer_instance_norm, ls_layer_layer_norm,
    ls_layer_mvn;
extern const struct ls_layer_type ls_layer_absval, ls_layer_bnll, ls_layer_clip, ls_layer_elu,
    ls_layer_exp, ls_layer_log, ls_layer_power, ls_layer_prelu, ls_layer_swish, ls_layer_threshold;
extern const struct ls_layer_type ls_layer_crop, ls_layer_deconvolution, ls_layer_interp;
extern const struct ls_layer_type ls_layer_batch_norm, ls_layer_bias, ls_layer_bn, ls_layer_scale,
    ls_layer_sync_batch_norm, ls_layer_sync_bn;
extern const struct ls_layer_type ls_layer_argmax, ls_layer_reduction, ls_layer_reshape,
    ls_layer_slice, ls_layer_tile;
extern const struct ls_layer_type ls_layer_accuracy, ls_layer_concat, ls_layer_convolution,
    ls_layer_data, ls_layer_dropout, ls_layer_dummy_data, ls_layer_eltwise, ls_layer_euclidean_loss,
    ls_layer_flatten, ls_layer_inner_product, ls_layer_input, ls_layer_lrn, ls_layer_mean_iou,
    ls_layer_multinomial_logistic_loss, ls_layer_pooling, ls_layer_relu, ls_layer_sigmoid,
    ls_layer_sigmoid_cross_entropy_loss, ls_layer_silence, ls_layer_softmax, ls_layer_softmax_loss,
    ls_layer_split, ls_layer_tanh;

const struct ls_layer_type *const ls_layer_types[] = {
    &ls_layer_absval,
    &ls_layer_accuracy,
    &ls_layer_argmax,
    &ls_layer_bn,
    &ls_layer_bnll,
    &ls_layer_batch_norm,
    &ls_layer_bias,
    &ls_layer_clip,
    &ls_layer_concat,
    &ls_layer_convolution,
    &ls_layer_crop,
    &ls_layer_data,
    &ls_layer_deconvolution,
    &ls_layer_dropout,
    &ls_layer_dummy_data,
    &ls_layer_elu,
    &ls_layer_eltwise,
    &ls_layer_euclidean_loss,
    &ls_layer_exp,
    &ls_layer_flatten,
    &ls_layer_group_norm,
    &ls_layer_inner_product,
    &ls_layer_input,
    &ls_layer_instance_norm,
    &ls_layer_interp,
    &ls_layer_lrn,
    &ls_layer_layer_norm,
    &ls_layer_log,
    &ls_layer_mvn,
    &ls_layer_mean_iou,
    &ls_layer_multinomial_logistic_loss,
    &ls_layer_prelu,
    &ls_layer_pooling,
    &ls_layer_power,
    &ls_layer_relu,
    &ls_layer_reduction,
    &ls_layer_reshape,
    &ls_layer_scale,
    &ls_layer_sigmoid,
    &ls_layer_sigmoid_cross_entropy_loss,
    &ls_layer_silence,
    &ls_layer_slice,
    &ls_layer_softmax,
    &ls_layer_softmax_loss,
    &ls_layer_split,
    &ls_layer_swish,
    &ls_layer_sync_bn,
    &ls_layer_sync_batch_norm,
    &ls_layer_tanh,
    &ls_layer_threshold,
    &ls_layer_tile,
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
    {"BatchReindex",
     "it picks samples from all over the batch, which lie in different micro-batches on different "
     "workers; the order of a data set is its Data layer's"},
    {"ContrastiveLoss", NULL},
    {"DenseImageData", "a Data layer with backend: IMAGE_PAIRS reads pictures with label maps"},
    {"Embed", NULL},
    {"Filter", "it drops samples by their values, so that what a micro-batch holds would depend on "
               "the data; a loss with ignore_label leaves samples out"},
    {"HDF5Data", "a Data layer reads LMDB, IDX, CIFAR and folders of pictures"},
    {"HDF5Output", NULL},
    {"HingeLoss", NULL},
    {"Im2col", NULL},
    {"ImageData", "a Data layer with backend: IMAGES reads list files and folders of pictures"},
    {"ImageSegData", "a Data layer with backend: IMAGE_PAIRS reads pictures with label maps"},
    {"InfogainLoss", NULL},
    {"LSTM", NULL},
    {"LSTMUnit", NULL},
    {"MemoryData", "an Input layer takes tensors from the caller"},
    {"Parameter", NULL},
    {"Python", NULL},
    {"RNN", NULL},
    {"SPP", NULL},
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
