/* Input, MemoryData: tensors that the caller of a net hands in, as nets for prediction have them.
 * The extents of MemoryData have been brought into input_param (schema/data_layers.h).
 *
 * input_param has one shape for each top, or one for all of them, and in the same way the axis that
 * holds the samples (sample_axis; default 0): a time-major top has the shape [steps, batch, ...]
 * and sample_axis 1.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/source_layer.h"

/* Reads the shape of a top, once it is clear that there are enough of them. */
static int read_shape(const struct ls_layer *layer, size_t top, struct ls_shape *shape,
                      struct ls_error *error)
{
    const Lockstep__InputParameter *param = layer->definition->input_param;
    return ls_source_read_shape(layer, error, param->shape[param->n_shape == 1 ? 0 : top],
                                ls_input_sample_axis(param, top), shape);
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    const Lockstep__InputParameter *param = layer->definition->input_param;
    /* Pictures of predictions are transformed (api/picture_rule.h), what callers hand in is not. */
    const bool trains = layer->graph->phase == LOCKSTEP__PHASE__TRAIN;
    LS_TRY(ls_layer_begin(layer, error, trains ? "input_param" : "input_param transform_param"));
    if (param == NULL)
        return ls_layer_fail(layer, error, NULL, NULL, NULL, "%s is missing",
                             layer->type->parameter);
    size_t shapes = param->n_shape;
    if (shapes == 0)
        return ls_layer_fail(layer, error, param, NULL, NULL, "input_param has no shape");
    if (shapes != 1 && shapes != (size_t)layer->tops)
        return ls_layer_fail(layer, error, param, "shape", NULL,
                             "shape must be given once, or once for each of the %d tops; it is "
                             "given %zu times",
                             layer->tops, shapes);
    if (param->n_sample_axis > 1 && param->n_sample_axis != (size_t)layer->tops)
        return ls_layer_fail(layer, error, param, "sample_axis", NULL,
                             "sample_axis must be given once, or once for each of the %d tops; it "
                             "is given %zu times",
                             layer->tops, param->n_sample_axis);
    int status = 0;
    size_t forms = shapes > param->n_sample_axis ? shapes : param->n_sample_axis;
    for (size_t i = 0; i < forms; i++) {
        struct ls_shape shape;
        int failed = read_shape(layer, i, &shape, error);
        status = failed != 0 ? failed : status;
    }
    return status;
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    for (int i = 0; i < layer->tops; i++) {
        struct ls_shape shape;
        LS_TRY(read_shape(layer, (size_t)i, &shape, error));
        int axis = (int)ls_input_sample_axis(layer->definition->input_param, (size_t)i);
        layer->top[i] = ls_graph_input(layer->graph, layer, i, &shape, LS_F32, axis);
    }
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    for (int i = 0; i < layer->tops; i++)
        cost->forward_bytes += ls_layer_bytes(layer->top[i]);
}

const struct ls_layer_type ls_layer_input = {
    .type = "Input",
    .parameter = "input_param",
    .tops_min = 1,
    .tops_max = -1,
    .setup = setup,
    .forward = forward,
    .cost = cost,
};

const struct ls_layer_type ls_layer_memory_data = {
    .type = "MemoryData",
    .parameter = "memory_data_param",
    .tops_min = 1,
    .tops_max = 2,
    .setup = setup,
    .forward = forward,
    .cost = cost,
};
