/* What MVN, GroupNorm, LayerNorm, RMSNorm and InstanceNorm share. See layers/sample_norm.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/sample_norm.h"

#include "base/text.h"

enum { STATS = 4 }; /* numbers a group, see struct ls_normalize_attr */

/* A filler for what is not learned would do nothing. */
static int check_fillers(const struct ls_layer *layer, struct ls_error *error,
                         const struct ls_sample_norm_fields *fields)
{
    int status = 0;
    if (!fields->affine && fields->scale_filler != NULL)
        status = ls_layer_fail(layer, error, fields->message, "scale_filler", NULL,
                               "scale_filler is for affine: true only");
    if (!fields->affine && fields->bias_filler != NULL)
        status = ls_layer_fail(layer, error, fields->message, "bias_filler", NULL,
                               "bias_filler is for affine: true only");
    return status;
}

int ls_sample_norm_fields(struct ls_layer *layer, struct ls_error *error,
                          const struct ls_sample_norm_fields *fields, int axes)
{
    struct ls_sample_norm *state = layer->state;
    const struct ls_shape *x = &layer->bottom[0]->shape;
    struct ls_shape shape = {.rank = axes};
    int fillers = check_fillers(layer, error, fields);
    LS_TRY(ls_layer_check_eps(layer, error, fields->message, fields->eps));
    LS_TRY(fillers);
    state->attr.eps = fields->eps;
    state->attr.variance = true;
    if (!fields->affine)
        return 0;
    for (int i = 0; i < axes; i++)
        shape.dim[i] = x->dim[state->attr.axis + i];
    layer->request[0] = (struct ls_blob_request){
        .name = "scale",
        .shape = shape,
        .filler = fields->scale_filler != NULL ? fields->scale_filler : &ls_filler_one};
    layer->request[1] =
        (struct ls_blob_request){.name = "bias", .shape = shape, .filler = fields->bias_filler};
    layer->blobs = fields->no_bias ? 1 : 2;
    return 0;
}

static struct ls_value *make_stats(struct ls_layer *layer)
{
    const struct ls_sample_norm *state = layer->state;
    struct ls_value *x = layer->bottom[0];
    struct ls_shape shape = x->shape;
    struct ls_text name = {0};
    shape.rank = state->attr.axis + 1;
    shape.dim[state->attr.axis] = STATS * state->attr.groups;
    ls_text_format(&name, "%s.stats", layer->name);
    struct ls_value *value = NULL;
    if (name.failed)
        layer->graph->failed = true;
    else
        value = ls_graph_value(layer->graph, name.data, &shape, x);
    ls_text_free(&name);
    return value;
}

int ls_sample_norm_forward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    struct ls_sample_norm *state = layer->state;
    struct ls_graph *graph = layer->graph;
    struct ls_value *x = layer->bottom[0];
    struct ls_op *op = ls_graph_op(graph, LS_OP_NORMALIZE);
    ls_op_in(graph, op, x);
    for (int i = 0; i < layer->blobs; i++)
        ls_op_in(graph, op, ls_graph_parameter(graph, layer, i));
    ls_op_out(graph, op, ls_layer_make_top(layer, 0, &x->shape, x));
    if (graph->training && (x->needs_grad || layer->blobs > 0))
        state->stats = make_stats(layer);
    ls_op_out(graph, op, state->stats);
    if (op != NULL)
        op->attr.normalize = state->attr;
    return 0;
}

static void backward_sums(struct ls_layer *layer, struct ls_value *dy)
{
    const struct ls_sample_norm *state = layer->state;
    struct ls_graph *graph = layer->graph;
    enum { BLOBS = 2 }; /* scale, bias */
    struct ls_value *gradient[BLOBS] = {NULL, NULL};
    struct ls_op *op = ls_graph_op(graph, LS_OP_NORMALIZE_SUMS);
    ls_op_in(graph, op, dy);
    ls_op_in(graph, op, layer->bottom[0]);
    ls_op_in(graph, op, state->stats);
    for (int i = 0; i < layer->blobs && i < BLOBS; i++) {
        if (layer->train_blob[i])
            gradient[i] = ls_graph_parameter_gradient(graph, layer, i);
        ls_op_out(graph, op, gradient[i]);
    }
    if (op != NULL)
        op->attr.normalize = state->attr;
    for (int i = 0; i < layer->blobs && i < BLOBS; i++)
        if (layer->train_blob[i])
            ls_graph_accumulate(graph, layer, i, gradient[i]);
}

int ls_sample_norm_backward(struct ls_layer *layer, struct ls_error *error)
{
    (void)error;
    const struct ls_sample_norm *state = layer->state;
    struct ls_graph *graph = layer->graph;
    bool affine = layer->blobs > 0;
    struct ls_value *dy = ls_graph_gradient(graph, layer->top[0]);
    if (affine && (layer->train_blob[0] || (layer->blobs > 1 && layer->train_blob[1])))
        backward_sums(layer, dy);
    if (!layer->propagate[0])
        return 0;
    struct ls_value *inputs[] = {dy, layer->bottom[0], state->stats,
                                 affine ? ls_graph_parameter(graph, layer, 0) : NULL};
    struct ls_op *op =
        ls_layer_emit_gradient(layer, 0, LS_OP_NORMALIZE_DATA, inputs, affine ? 4 : 3);
    if (op != NULL)
        op->attr.normalize = state->attr;
    return 0;
}

void ls_sample_norm_cost(const struct ls_layer *layer, struct ls_cost *cost)
{
    double elements = (double)ls_shape_size(&layer->bottom[0]->shape);
    double bytes = ls_layer_bytes(layer->bottom[0]);
    ls_layer_map_cost(layer, cost, 8, 12, 1);
    if (!ls_layer_trains_blob(layer, 0) && !ls_layer_trains_blob(layer, 1))
        return;
    cost->backward_weights_flops = 6 * elements;
    cost->backward_bytes += 2 * bytes;
}
