/* What the forms of batch normalisation share. See layers/normalize.h.
 *
 * By the batch: MOMENTS, sync point, BATCH_NORM; backward SUMS, sync point, BATCH_NORM_BACKWARD. By
 * saved averages everything is elementwise, and there is no sync point.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/normalize.h"

int ls_normalize_begin(struct ls_layer *layer, struct ls_error *error, struct ls_normalize *state)
{
    const struct ls_value *x = layer->bottom[0];
    LS_TRY(ls_layer_check_samples(layer, error, 0));
    state->channels = x->shape.rank > 1 ? x->shape.dim[1] : 1;
    return 0;
}

int ls_normalize_check_kept(const struct ls_layer *layer, struct ls_error *error,
                            const void *message, const char *field, float kept)
{
    if (kept >= 0 && kept <= 1)
        return 0;
    return ls_layer_fail(layer, error, message, field, NULL, "%s %g must be from 0 to 1", field,
                         (double)kept);
}

int ls_normalize_check_group(const struct ls_layer *layer, struct ls_error *error,
                             const void *message, uint32_t group)
{
    const struct ls_value *x = layer->bottom[0];
    if (group > 0 && layer->graph->samples > 1 && ls_layer_is_mixed(layer, x))
        return ls_layer_fail(layer, error, message, "group", "leave it out: 0 is the whole batch",
                             "group %u is of samples, but '%s' has rows that are none: a layer "
                             "before it mixes them",
                             group, x->name);
    if (group <= INT32_MAX)
        return 0;
    return ls_layer_fail(layer, error, message, "group", "0 is the whole batch",
                         "group %u is more samples than a batch may have", group);
}

/* ---- Ops ------------------------------------------------------------------------------------- */

static struct ls_value *blob_of(struct ls_layer *layer, int blob)
{
    return blob >= 0 ? ls_graph_parameter(layer->graph, layer, blob) : NULL;
}

/* The averages, for ops that normalise by them. */
static void add_averages(struct ls_layer *layer, const struct ls_normalize *state, struct ls_op *op)
{
    const int blobs[] = {state->mean, state->variance, state->factor};
    for (int i = 0; i < 3; i++)
        ls_op_in(layer->graph, op, state->by_batch ? NULL : blob_of(layer, blobs[i]));
}

static struct ls_op *emit(struct ls_layer *layer, const struct ls_normalize *state,
                          enum ls_op_kind kind, int sums)
{
    struct ls_op *op = ls_graph_op(layer->graph, kind);
    if (op != NULL)
        op->attr.batch_norm =
            (struct ls_batch_norm_attr){.moments = state->moments, .sums = sums, .eps = state->eps};
    return op;
}

/* Values of one axis are those of one channel; the ops want to see it. */
static struct ls_value *emit_view(struct ls_graph *graph, struct ls_value *value,
                                  struct ls_value *view)
{
    struct ls_op *op = ls_graph_op(graph, LS_OP_VIEW);
    ls_op_in(graph, op, value);
    ls_op_out(graph, op, view);
    return view;
}

static struct ls_shape with_channels(const struct ls_shape *shape)
{
    struct ls_shape wider = *shape;
    if (shape->rank == 1) {
        wider.rank = 2;
        wider.dim[1] = 1;
    }
    return wider;
}

/* Emits the moments and their sync point. Averages advance in training alone: a test by the
 * statistics of its batches leaves them as they are. */
static void emit_moments(struct ls_layer *layer, struct ls_normalize *state)
{
    struct ls_graph *graph = layer->graph;
    struct ls_sync sync = {.kind = LS_SYNC_MOMENTS, .channels = state->channels, .eps = state->eps};
    if (graph->training && state->mean >= 0)
        sync.averages =
            (struct ls_averages){.mean = layer->blob[state->mean],
                                 .variance = layer->blob[state->variance],
                                 .factor = state->factor >= 0 ? layer->blob[state->factor] : NULL,
                                 .keep = state->keep,
                                 .add = state->add};
    state->moments = ls_graph_sync(graph, sync, state->group);
    ls_op_in(graph, emit(layer, state, LS_OP_MOMENTS, -1), state->x);
    ls_graph_emit_sync(graph, state->moments);
}

void ls_normalize_forward(struct ls_layer *layer, struct ls_normalize *state)
{
    struct ls_graph *graph = layer->graph;
    struct ls_value *bottom = layer->bottom[0];
    struct ls_shape shape = with_channels(&bottom->shape);
    bool flat = bottom->shape.rank == 1;
    state->x = flat ? emit_view(graph, bottom, ls_graph_value(graph, bottom->name, &shape, bottom))
                    : bottom;
    state->moments = -1;
    if (state->by_batch)
        emit_moments(layer, state);
    struct ls_value *top = ls_layer_make_top(layer, 0, &bottom->shape, bottom);
    state->y = flat ? ls_graph_value(graph, ls_layer_top_name(layer, 0), &shape, bottom) : top;
    struct ls_op *op = emit(layer, state, LS_OP_BATCH_NORM, -1);
    ls_op_in(graph, op, state->x);
    add_averages(layer, state, op);
    ls_op_in(graph, op, blob_of(layer, state->scale));
    ls_op_in(graph, op, blob_of(layer, state->bias));
    ls_op_out(graph, op, state->y);
    if (state->by_batch && state->y != NULL)
        state->y->learned = true; /* what is merged is not there before the pass */
    if (flat)
        emit_view(graph, state->y, top);
}

/* A new value for the gradient of a learned blob; NULL where it is not wanted. */
static struct ls_value *wanted_gradient(struct ls_layer *layer, int blob)
{
    bool wanted = blob >= 0 && layer->train_blob[blob];
    return wanted ? ls_graph_parameter_gradient(layer->graph, layer, blob) : NULL;
}

static void emit_sums(struct ls_layer *layer, const struct ls_normalize *state, struct ls_value *dy,
                      int sums)
{
    struct ls_graph *graph = layer->graph;
    struct ls_value *dscale = wanted_gradient(layer, state->scale);
    struct ls_value *dbias = wanted_gradient(layer, state->bias);
    if (sums < 0 && dscale == NULL && dbias == NULL)
        return;
    struct ls_op *op = emit(layer, state, LS_OP_BATCH_NORM_SUMS, sums);
    ls_op_in(graph, op, dy);
    ls_op_in(graph, op, state->x);
    ls_op_in(graph, op, NULL);
    add_averages(layer, state, op);
    ls_op_out(graph, op, dscale);
    ls_op_out(graph, op, dbias);
    if (dscale != NULL)
        ls_graph_accumulate(graph, layer, state->scale, dscale);
    if (dbias != NULL)
        ls_graph_accumulate(graph, layer, state->bias, dbias);
}

static void emit_data(struct ls_layer *layer, const struct ls_normalize *state, struct ls_value *dy,
                      int sums)
{
    struct ls_graph *graph = layer->graph;
    struct ls_value *bottom = layer->bottom[0];
    struct ls_value *dx = ls_graph_gradient_value(graph, state->x);
    struct ls_op *op = emit(layer, state, LS_OP_BATCH_NORM_BACKWARD, sums);
    ls_op_in(graph, op, dy);
    ls_op_in(graph, op, state->x);
    ls_op_in(graph, op, NULL);
    add_averages(layer, state, op);
    ls_op_in(graph, op, blob_of(layer, state->scale));
    ls_op_out(graph, op, dx);
    if (state->x != bottom)
        dx = emit_view(graph, dx, ls_graph_gradient_value(graph, bottom));
    ls_graph_add_gradient(graph, bottom, dx);
}

void ls_normalize_backward(struct ls_layer *layer, const struct ls_normalize *state)
{
    struct ls_graph *graph = layer->graph;
    struct ls_value *dy = ls_graph_gradient(graph, layer->top[0]);
    bool learns = (state->scale >= 0 && layer->train_blob[state->scale]) ||
                  (state->bias >= 0 && layer->train_blob[state->bias]);
    if (!layer->propagate[0] && !learns)
        return;
    if (state->y != layer->top[0])
        dy = emit_view(graph, dy, ls_graph_gradient_value(graph, state->y));
    int sums = -1;
    if (state->by_batch && layer->propagate[0])
        sums = ls_graph_sync(graph,
                             (struct ls_sync){.kind = LS_SYNC_SUMS, .channels = state->channels},
                             state->group);
    emit_sums(layer, state, dy, sums);
    if (sums >= 0)
        ls_graph_emit_sync(graph, sums);
    if (layer->propagate[0])
        emit_data(layer, state, dy, sums);
}

/* A tensor is read once for the moments (about 4 operations an element), once to normalise it;
 * backward the gradient and x are read for the sums, and again for dx. */
void ls_normalize_cost(const struct ls_layer *layer, const struct ls_normalize *state,
                       struct ls_cost *cost)
{
    double elements = (double)ls_shape_size(&layer->bottom[0]->shape);
    double bytes = ls_layer_bytes(layer->bottom[0]);
    bool learns = (state->scale >= 0 && ls_layer_trains_blob(layer, state->scale)) ||
                  (state->bias >= 0 && ls_layer_trains_blob(layer, state->bias));
    bool dx = ls_layer_has_gradient(layer, 0);
    cost->forward_flops = elements * (state->by_batch ? 8 : 4);
    cost->forward_bytes = bytes * (state->by_batch ? 3 : 2);
    if (learns || (dx && state->by_batch)) {
        cost->backward_weights_flops = learns ? elements * 4 : 0;
        cost->backward_data_flops = learns ? 0 : elements * 4;
        cost->backward_bytes += 2 * bytes;
    }
    if (dx) {
        cost->backward_data_flops += elements * (state->by_batch ? 5 : 1);
        cost->backward_bytes += bytes * (state->by_batch ? 3 : 2);
    }
}
