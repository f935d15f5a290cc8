/* Input: tensors that the caller of a net hands in, as nets for prediction have them.
 *
 * input_param has one shape for each top, or one for all of them; the first axis holds the samples.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/source_layer.h"

/* The shape of a top, once it is clear that there are enough of them. */
static const Lockstep__BlobShape *shape_of(const struct ls_layer *layer, int top)
{
    const Lockstep__InputParameter *param = layer->definition->input_param;
    return param->shape[param->n_shape == 1 ? 0 : top];
}

static int setup(struct ls_layer *layer, struct ls_error *error)
{
    const Lockstep__InputParameter *param = layer->definition->input_param;
    LS_TRY(ls_layer_begin(layer, error, NULL));
    size_t shapes = param != NULL ? param->n_shape : 0;
    if (shapes == 0)
        return ls_layer_fail(layer, error, param, NULL, NULL, "input_param has no shape");
    if (shapes != 1 && shapes != (size_t)layer->tops)
        return ls_layer_fail(layer, error, param, "shape", NULL,
                             "shape must be given once, or once for each of the %d tops; it is "
                             "given %zu times",
                             layer->tops, shapes);
    int status = 0;
    for (size_t i = 0; i < shapes; i++) {
        struct ls_shape shape;
        int failed = ls_source_read_shape(layer, error, param->shape[i], &shape);
        status = failed != 0 ? failed : status;
    }
    return status;
}

static int forward(struct ls_layer *layer, struct ls_error *error)
{
    for (int i = 0; i < layer->tops; i++) {
        struct ls_shape shape;
        LS_TRY(ls_source_read_shape(layer, error, shape_of(layer, i), &shape));
        layer->top[i] = ls_graph_input(layer->graph, layer, i, &shape, LS_F32);
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
