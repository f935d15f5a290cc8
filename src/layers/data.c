/* Data: samples and labels of a data set, the first layer of a net that is trained.
 *
 * Tops: data [N, C, H, W], after transformation, and, if the definition names a second one, label
 * [N], or [N, 1, H, W] where labels are maps. What data_param and transform_param say about files,
 * order and transformation is read by who opens the data set; here only the shapes count, which
 * graph->sources has.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "layers/source_layer.h"

struct data {
    struct ls_shape sample, label;
};

static const struct ls_source_shape *find_source(const struct ls_layer *layer)
{
    const struct ls_source_shapes *sources = layer->graph->sources;
    for (size_t i = 0; sources != NULL && i < sources->count; i++)
        if (strcmp(sources->item[i].layer, layer->name) == 0)
            return &sources->item[i];
    return NULL;
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    struct data *state = layer->state;
    const Lockstep__DataParameter *param = layer->definition->data_param;
    LS_TRY(ls_layer_begin(layer, error, "transform_param"));
    if (param == NULL)
        return ls_layer_fail(layer, error, NULL, NULL, NULL, "data_param is missing");
    if (!param->has_batch_size &&
        (layer->graph->sources == NULL || layer->graph->sources->batch >= 0))
        return ls_layer_fail(layer, error, param, NULL, NULL, "batch_size is missing");
    LS_TRY(ls_source_check_batch(layer, error, param, "batch_size", param->batch_size));
    const struct ls_source_shape *source = find_source(layer);
    if (source == NULL)
        return ls_layer_fail(layer, error, param, "source", NULL, "its data set is not open");
    state->sample = (struct ls_shape){.rank = 4, .dim = {layer->graph->samples}};
    for (int i = 0; i < 3; i++)
        state->sample.dim[i + 1] = source->sample[i];
    state->label = (struct ls_shape){.rank = 1, .dim = {layer->graph->samples}};
    if (source->has_maps) {
        state->label = state->sample;
        state->label.dim[1] = 1;
    }
    return ls_layer_check_shape(layer, error, "the top", &state->sample);
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    const struct data *state = layer->state;
    layer->top[0] = ls_graph_input(layer->graph, layer, 0, &state->sample, LS_F32, 0);
    if (layer->tops > 1)
        layer->top[1] = ls_graph_input(layer->graph, layer, 1, &state->label, LS_F32, 0);
    return 0;
}

static void cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    for (int i = 0; i < layer->tops; i++)
        cost->forward_bytes += ls_layer_bytes(layer->top[i]);
}

const struct ls_layer_type ls_layer_data = {
    .type = "Data",
    .parameter = "data_param",
    .state_size = sizeof(struct data),
    .tops_min = 1,
    .tops_max = 2,
    .setup = setup,
    .forward = forward,
    .cost = cost,
};
