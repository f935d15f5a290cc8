/* The table of layer types: a new one is a file and a line here. See layers/layers.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "layers/layers.h"

/* In the order of their types' names. */
#define LS_LAYER_TABLE(LAYER)                                                                      \
    LAYER(absval)                                                                                  \
    LAYER(accuracy)                                                                                \
    LAYER(annotated_data)                                                                          \
    LAYER(argmax)                                                                                  \
    LAYER(attention)                                                                               \
    LAYER(axpy)                                                                                    \
    LAYER(bn)                                                                                      \
    LAYER(bnll)                                                                                    \
    LAYER(batch_norm)                                                                              \
    LAYER(batch_reindex)                                                                           \
    LAYER(bias)                                                                                    \
    LAYER(box_annotator_ohem)                                                                      \
    LAYER(clip)                                                                                    \
    LAYER(concat)                                                                                  \
    LAYER(contrastive_loss)                                                                        \
    LAYER(convolution)                                                                             \
    LAYER(crop)                                                                                    \
    LAYER(data)                                                                                    \
    LAYER(deconvolution)                                                                           \
    LAYER(detection_evaluate)                                                                      \
    LAYER(detection_output)                                                                        \
    LAYER(dropout)                                                                                 \
    LAYER(dummy_data)                                                                              \
    LAYER(elu)                                                                                     \
    LAYER(eltwise)                                                                                 \
    LAYER(embed)                                                                                   \
    LAYER(embedding_bag)                                                                           \
    LAYER(euclidean_loss)                                                                          \
    LAYER(eval_detection)                                                                          \
    LAYER(exp)                                                                                     \
    LAYER(filter)                                                                                  \
    LAYER(flatten)                                                                                 \
    LAYER(gelu)                                                                                    \
    LAYER(glu)                                                                                     \
    LAYER(gru)                                                                                     \
    LAYER(gather)                                                                                  \
    LAYER(group_norm)                                                                              \
    LAYER(hdf5_data)                                                                               \
    LAYER(hdf5_output)                                                                             \
    LAYER(hinge_loss)                                                                              \
    LAYER(im2col)                                                                                  \
    LAYER(image_data)                                                                              \
    LAYER(infogain_loss)                                                                           \
    LAYER(inner_product)                                                                           \
    LAYER(input)                                                                                   \
    LAYER(instance_norm)                                                                           \
    LAYER(interp)                                                                                  \
    LAYER(lrn)                                                                                     \
    LAYER(lstm)                                                                                    \
    LAYER(lstm_unit)                                                                               \
    LAYER(layer_norm)                                                                              \
    LAYER(linear_softmax_loss)                                                                     \
    LAYER(log)                                                                                     \
    LAYER(mvn)                                                                                     \
    LAYER(matmul)                                                                                  \
    LAYER(mean_iou)                                                                                \
    LAYER(memory_data)                                                                             \
    LAYER(multibox_loss)                                                                           \
    LAYER(multinomial_logistic_loss)                                                               \
    LAYER(normalize_length)                                                                        \
    LAYER(prelu)                                                                                   \
    LAYER(ps_roi_pooling)                                                                          \
    LAYER(pad)                                                                                     \
    LAYER(parameter)                                                                               \
    LAYER(permute)                                                                                 \
    LAYER(pooling)                                                                                 \
    LAYER(positions)                                                                               \
    LAYER(power)                                                                                   \
    LAYER(prior_box)                                                                               \
    LAYER(proposal)                                                                                \
    LAYER(rms_norm)                                                                                \
    LAYER(rnn)                                                                                     \
    LAYER(roi_pooling)                                                                             \
    LAYER(relu)                                                                                    \
    LAYER(relu6)                                                                                   \
    LAYER(reduction)                                                                               \
    LAYER(region_loss)                                                                             \
    LAYER(reorg)                                                                                   \
    LAYER(reshape)                                                                                 \
    LAYER(selu)                                                                                    \
    LAYER(spp)                                                                                     \
    LAYER(scale)                                                                                   \
    LAYER(shuffle_channel)                                                                         \
    LAYER(silu)                                                                                    \
    LAYER(sigmoid)                                                                                 \
    LAYER(sigmoid_cross_entropy_loss)                                                              \
    LAYER(silence)                                                                                 \
    LAYER(slice)                                                                                   \
    LAYER(smooth_l1_loss)                                                                          \
    LAYER(smooth_l1_loss_ohem)                                                                     \
    LAYER(softmax)                                                                                 \
    LAYER(softmax_loss)                                                                            \
    LAYER(split)                                                                                   \
    LAYER(swish)                                                                                   \
    LAYER(sync_bn)                                                                                 \
    LAYER(sync_batch_norm)                                                                         \
    LAYER(tanh)                                                                                    \
    LAYER(threshold)                                                                               \
    LAYER(tile)                                                                                    \
    LAYER(upsample)                                                                                \
    LAYER(window_data)                                                                             \
    LAYER(yolo_output)                                                                             \
    LAYER(yolov3)                                                                                  \
    LAYER(yolov3_output)

#define LAYER_DECLARE(name) extern const struct ls_layer_type ls_layer_##name;
#define LAYER_ENTRY(name)   &ls_layer_##name,
LS_LAYER_TABLE(LAYER_DECLARE)
const struct ls_layer_type *const ls_layer_types[] = {LS_LAYER_TABLE(LAYER_ENTRY) NULL};

/* Other names of forks for the same. (A ConvolutionDepthwise has as many groups as channels:
 * layers/window.c.) */
static const struct {
    const char *name, *type;
} aliases[] = {
    {"ConvolutionDepthwise", "Convolution"},    {"CuDNNBatchNorm", "BatchNorm"},
    {"DepthwiseConvolution", "Convolution"},    {"SeLu", "SELU"},
    {"SoftmaxWithLossOHEM", "SoftmaxWithLoss"},
};

const struct ls_layer_type *ls_layer_type_find(const char *name)
{
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        if (strcmp(aliases[i].name, name) == 0)
            name = aliases[i].type;
    for (size_t i = 0; ls_layer_types[i] != NULL; i++)
        if (strcmp(ls_layer_types[i]->type, name) == 0)
            return ls_layer_types[i];
    const struct ls_layer_type *type;
    for (size_t i = 0; (type = ls_layer_type_of_plugin(i)) != NULL; i++)
        if (strcmp(type->type, name) == 0)
            return type;
    return NULL;
}
