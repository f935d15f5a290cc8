/* See layers/regions.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/regions.h"

#include <math.h>

enum { REGION_NUMBERS = 5 };

int ls_region_pooling_check(const struct ls_layer *layer, struct ls_error *error,
                            const void *message, float scale)
{
    const struct ls_value *x = layer->bottom[0], *regions = layer->bottom[1];
    char text[160];
    int status = 0;
    if (!(isfinite(scale) && scale > 0))
        status = ls_layer_fail(layer, error, message, "spatial_scale",
                               "0.0625 where the net has halved pictures four times",
                               "spatial_scale %g must be a number above 0", (double)scale);
    if (x->shape.rank != 4)
        status = ls_layer_fail(layer, error, NULL, "bottom", NULL,
                               "its bottom '%s' must have 4 axes (pictures, channels, height, "
                               "width), but is %s",
                               x->name, ls_shape_text(&x->shape, text, sizeof text));
    if (regions->shape.rank < 2 ||
        ls_shape_count(&regions->shape, 1, regions->shape.rank) != REGION_NUMBERS)
        status = ls_layer_fail(layer, error, NULL, "bottom", NULL,
                               "'%s' must have 5 numbers for each region (number of the picture, "
                               "left, top, right, bottom), but is %s",
                               regions->name, ls_shape_text(&regions->shape, text, sizeof text));
    return status != 0 ? status : ls_layer_check_samples(layer, error, 0);
}

int ls_region_pooling_forward(struct ls_layer *layer, struct ls_error *error)
{
    struct ls_region_pooling *state = layer->state;
    struct ls_graph *graph = layer->graph;
    const struct ls_shape top = {
        4,
        {layer->bottom[1]->shape.dim[0], state->planes, state->attr.bins[0], state->attr.bins[1]}};
    LS_TRY(ls_layer_check_shape(layer, error, "the top", &top));
    struct ls_value *y = ls_layer_make_top(layer, 0, &top, layer->bottom[1]);
    if (state->maximum && graph->training && layer->bottom[0]->needs_grad) {
        state->index = ls_layer_make_side(layer, "index", y);
        if (state->index != NULL)
            state->index->type = LS_I32;
    }
    struct ls_op *op = ls_graph_op(graph, state->maximum ? LS_OP_REGION_MAX : LS_OP_REGION_AVERAGE);
    ls_op_in(graph, op, layer->bottom[0]);
    ls_op_in(graph, op, layer->bottom[1]);
    ls_op_out(graph, op, y);
    if (state->maximum)
        ls_op_out(graph, op, state->index);
    if (op != NULL)
        op->attr.regions = state->attr;
    return 0;
}

int ls_region_pooling_backward(struct ls_layer *layer, struct ls_error *error)
{
    const struct ls_region_pooling *state = layer->state;
    struct ls_value *dy = ls_graph_gradient(layer->graph, layer->top[0]);
    struct ls_value *of_maxima[] = {dy, state->index, layer->bottom[1]};
    struct ls_value *of_averages[] = {dy, layer->bottom[1]};
    if (layer->propagate[1])
        return ls_layer_fail(layer, error, NULL, "bottom",
                             "write propagate_down: true and propagate_down: false into the layer "
                             "to stop the gradient there",
                             "a %s layer cannot backpropagate to its regions, but '%s' depends on "
                             "learned parameters",
                             layer->type->type, layer->bottom[1]->name);
    if (!layer->propagate[0])
        return 0;
    struct ls_op *op =
        state->maximum
            ? ls_layer_emit_gradient(layer, 0, LS_OP_REGION_MAX_BACKWARD, of_maxima, 3)
            : ls_layer_emit_gradient(layer, 0, LS_OP_REGION_AVERAGE_BACKWARD, of_averages, 2);
    if (op != NULL)
        op->attr.regions = state->attr;
    return 0;
}

void ls_region_pooling_cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    const struct ls_region_pooling *state = layer->state;
    double x = ls_layer_bytes(layer->bottom[0]), y = ls_layer_bytes(layer->top[0]);
    cost->forward_flops = 4 * (double)ls_shape_size(&layer->top[0]->shape);
    cost->forward_bytes = x + y + ls_layer_bytes(state->index);
    if (!ls_layer_has_gradient(layer, 0))
        return;
    cost->backward_data_flops = cost->forward_flops;
    cost->backward_bytes = cost->forward_bytes;
}
