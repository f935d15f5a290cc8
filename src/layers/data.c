/* Data, AnnotatedData, HDF5Data, ImageData, WindowData: tensors of the samples of a data set, the
 * first layer of a net that is trained. What the other types say has been brought into data_param
 * (schema/data_layers.h).
 *
 *   AnnotatedData: the pictures of a database of SSD's fork, with rows of boxes
 *   HDF5Data: arrays of the HDF5 files that a list file names, a sample for each row
 *   ImageData: the pictures of a list file, with their labels
 *   WindowData: regions of pictures with their classes, as a window file lists them
 *
 * Tops: what the samples have, with the samples along an axis of their own, the first one unless
 * data_param's tensor { sample_axis } says another: of pictures data
 * [N, C, H, W], after transformation, and, if the definition names a second top, label [N], or [N,
 * 1, H, W] where labels are maps, or [N, 1, G, 8] where they are boxes. What data_param and
 * transform_param say about files, order and transformation is read by what opens the data set;
 * here only shapes and types count, which graph->sources has.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "layers/source_layer.h"

static const struct ls_source_shape *find_source(const struct ls_layer *layer)
{
    const struct ls_source_shapes *sources = layer->graph->sources;
    for (size_t i = 0; sources != NULL && i < sources->count; i++) {
        const struct ls_source_shape *source = &sources->item[i];
        if (source->definition != NULL ? source->definition == layer->definition
                                       : strcmp(source->layer, layer->name) == 0)
            return source;
    }
    return NULL;
}

/* The shape of a top: what a sample has, with an axis of samples between or in front. */
static struct ls_shape shape_of(const struct ls_layer *layer, int top,
                                const struct ls_source_tensor *tensor)
{
    const int axis = ls_source_axis(layer->definition, top);
    struct ls_shape shape = {.rank = tensor->shape.rank + 1};
    for (int i = 0; i < shape.rank; i++)
        shape.dim[i] = i < axis ? tensor->shape.dim[i] : i > axis ? tensor->shape.dim[i - 1] : 0;
    shape.dim[axis] = layer->definition->data_param->batch_size;
    ls_source_cut(layer, (size_t)axis, &shape);
    return shape;
}

static int check_sample_axis(const struct ls_layer *layer, int top,
                             const struct ls_source_shape *source, struct ls_error *error)
{
    const Lockstep__DataParameter *param = layer->definition->data_param;
    if ((size_t)top >= param->n_tensor || param->tensor[top]->sample_axis == 0)
        return 0;
    if (source->varies)
        return ls_layer_fail(layer, error, param->tensor[top], "sample_axis", "leave it out",
                             "samples that differ in size lie along axis 0");
    if (param->tensor[top]->sample_axis <= (uint32_t)source->tensor[top].shape.rank)
        return 0;
    return ls_layer_fail(layer, error, param->tensor[top], "sample_axis", NULL,
                         "top %d has %d axes with that of the samples; there is no axis %u",
                         top + 1, source->tensor[top].shape.rank + 1,
                         param->tensor[top]->sample_axis);
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    const Lockstep__DataParameter *param = layer->definition->data_param;
    LS_TRY(ls_layer_begin(layer, error, "transform_param data_param"));
    if (param == NULL)
        return ls_layer_fail(layer, error, NULL, NULL, NULL, "data_param is missing");
    if (!param->has_batch_size &&
        (layer->graph->sources == NULL || layer->graph->sources->batch >= 0))
        return ls_layer_fail(layer, error, param, NULL, NULL, "batch_size is missing");
    LS_TRY(ls_source_check_batch(layer, error, param, "batch_size", param->batch_size));
    const struct ls_source_shape *source = find_source(layer);
    if (source == NULL)
        return ls_layer_fail(layer, error, param, "source", NULL, "its data set is not open");
    int status = 0;
    for (int i = 0; i < layer->tops && i < source->tensors; i++) {
        if (source->tensor[i].shape.rank >= LS_RANK_MAX)
            return ls_layer_fail(layer, error, param, "source", NULL,
                                 "top %d would have more than %d axes", i + 1, LS_RANK_MAX);
        LS_TRY(check_sample_axis(layer, i, source, error));
        struct ls_shape shape = shape_of(layer, i, &source->tensor[i]);
        int failed = ls_layer_check_shape(layer, error, "the top", &shape);
        status = failed != 0 ? failed : status;
    }
    return status;
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    const struct ls_source_shape *source = find_source(layer);
    for (int i = 0; i < layer->tops; i++) {
        if (i >= source->tensors)
            return ls_layer_fail(layer, error, NULL, NULL, NULL,
                                 "has %d tops, but its data have %d tensors", layer->tops,
                                 source->tensors);
        struct ls_shape shape = shape_of(layer, i, &source->tensor[i]);
        layer->top[i] = ls_graph_input(layer->graph, layer, i, &shape, source->tensor[i].type,
                                       ls_source_axis(layer->definition, i));
    }
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    for (int i = 0; i < layer->tops; i++)
        cost->forward_bytes += ls_layer_bytes(layer->top[i]);
}

#define DATA_LAYER(name, type_name, parameter_name)                                                \
    const struct ls_layer_type ls_layer_##name = {                                                 \
        .type = type_name,                                                                         \
        .parameter = parameter_name,                                                               \
        .tops_min = 1,                                                                             \
        .tops_max = -1,                                                                            \
        .setup = setup,                                                                            \
        .forward = forward,                                                                        \
        .cost = cost,                                                                              \
    }

DATA_LAYER(data, "Data", "data_param");
DATA_LAYER(annotated_data, "AnnotatedData", "annotated_data_param");
DATA_LAYER(hdf5_data, "HDF5Data", "hdf5_data_param");
DATA_LAYER(image_data, "ImageData", "image_data_param");
DATA_LAYER(window_data, "WindowData", "window_data_param");
