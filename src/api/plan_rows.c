/* Rows of a plan: layers with what they take, steps with what does them. See api/plan_rows.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "api/plan_rows.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "ir/layer.h"
#include "ir/op_type.h"
#include "solver/environment.h"

/* The plan of the micro-batches that take most. */
static const struct ls_plan *largest_plan(const struct ls_net *net)
{
    const struct ls_plan *largest = ls_net_first_plan(net);
    for (size_t i = 1; i < net->plan_count; i++)
        if (net->plans[i]->plan->graph->samples > largest->graph->samples)
            largest = net->plans[i]->plan;
    return largest;
}

static struct lockstep_plan_layer *row_of(const struct ls_plan_net *rows,
                                          const struct ls_layer *layer)
{
    return layer != NULL ? &rows->layers[layer->index] : NULL;
}

static void add_learned(const struct ls_layer *layer, const struct ls_view_set *views,
                        const struct ls_store_options *store, struct lockstep_plan_layer *row)
{
    for (int b = 0; b < layer->blobs; b++) {
        const struct ls_parameter *blob = layer->blob[b];
        if (blob == NULL || strcmp(blob->layer, layer->name) != 0)
            continue; /* another layer's, that this one shares */
        size_t bytes = ls_parameter_bytes(blob);
        row->parameters += bytes;
        uint64_t weights = (uint64_t)ls_shape_size(&blob->shape);
        uint64_t masked = blob->mask != NULL ? (uint64_t)blob->mask->masked : 0;
        row->masked += masked;
        *(blob->trained ? &row->learned : &row->fixed) += weights - masked;
        for (size_t v = 0; v < views->count; v++)
            if (views->items[v].parameter == blob)
                row->views += ls_view_bytes(&views->items[v]);
        if (!blob->trained || !store->training)
            continue;
        row->gradients += ls_gradient_bytes(blob);
        row->state += bytes * (size_t)ls_store_arrays(store, blob);
        row->state += ls_store_factored_bytes(store, blob);
    }
}

static int make_layers(const struct ls_graph *graph, const struct ls_view_set *views,
                       const struct ls_store_options *store, struct ls_plan_net *rows,
                       struct ls_error *error)
{
    rows->layers = ls_alloc(graph->layer_count + 1, sizeof *rows->layers);
    if (rows->layers == NULL)
        return ls_fail_memory(error, "a plan");
    for (size_t i = 0; i < graph->layer_count; i++) {
        const struct ls_layer *layer = graph->layers[i];
        rows->layers[i].name = layer->name;
        rows->layers[i].type = layer->type->type;
        for (int t = 0; t < layer->tops; t++)
            if (layer->top[t] != NULL && layer->top[t]->storage != LS_STORE_NONE)
                rows->layers[i].output += ls_value_bytes(layer->top[t]);
        add_learned(layer, views, store, &rows->layers[i]);
    }
    rows->shown.layers = rows->layers;
    rows->shown.layer_count = graph->layer_count;
    return 0;
}

/* Adds to the layers that wrote it in the forward pass what the backward pass reads. `writer` has
 * room for a layer by value. */
static void add_kept(const struct ls_plan *plan, const struct ls_layer **writer,
                     struct ls_plan_net *rows)
{
    for (size_t s = 0; s < plan->step_count; s++) {
        const struct ls_op *op = plan->steps[s].prepared.op;
        bool backward = op->backward || plan->steps[s].recomputed;
        for (int i = 0; i < op->inputs && op->backward; i++) {
            const struct ls_value *root = op->input[i] != NULL ? ls_value_root(op->input[i]) : NULL;
            struct lockstep_plan_layer *row =
                root != NULL ? row_of(rows, writer[root->index]) : NULL;
            if (row == NULL || root->storage != LS_STORE_ARENA)
                continue;
            row->kept += ls_value_bytes(root);
            writer[root->index] = NULL; /* once */
        }
        for (int i = 0; i < op->outputs && !backward; i++)
            if (op->output[i] != NULL && writer[ls_value_root(op->output[i])->index] == NULL)
                writer[ls_value_root(op->output[i])->index] = op->layer;
        for (int i = 0; i < op->outputs && plan->steps[s].recomputed; i++)
            if (op->output[i] != NULL)
                writer[ls_value_root(op->output[i])->index] = NULL; /* made anew: not kept */
    }
}

static void show_step(const struct ls_plan *plan, size_t index, struct ls_plan_net *rows)
{
    const struct ls_step *step = &plan->steps[index];
    const struct ls_op *op = step->prepared.op;
    const struct ls_value *out = op->outputs > 0 ? op->output[0] : NULL;
    struct lockstep_plan_layer *row = row_of(rows, op->layer);
    if (row != NULL && step->prepared.scratch_bytes > row->scratch)
        row->scratch = step->prepared.scratch_bytes;
    memcpy(rows->implementations[index], step->prepared.implementation, 64);
    if (out != NULL && out->layout != NULL)
        snprintf(rows->layouts[index], sizeof rows->layouts[index], "%s%s%s",
                 ls_layout_name(out->layout, out->shape.rank), out->type != LS_F32 ? " " : "",
                 out->type != LS_F32 ? ls_dtype_name(out->type) : "");
    rows->steps[index] = (struct lockstep_plan_step){
        .layer = op->layer != NULL ? op->layer->name : NULL,
        .op = ls_op_kind_name(op->kind),
        .implementation = rows->implementations[index],
        .layout = out != NULL && out->layout != NULL ? rows->layouts[index] : NULL,
        .scratch = step->prepared.scratch_bytes,
        .backward = op->backward,
        .slow = step->prepared.slow,
        .reorder = op->kind == LS_OP_REORDER,
        .recomputed = step->recomputed,
        .sync = step->cut,
        .gathered = step->gathered,
        .chain = step->chain,
        .channels = step->chain > 0 ? step->at_once : 0,
        .library = step->prepared.kernel != NULL && step->prepared.kernel->library};
}

static int make_steps(const struct ls_plan *plan, struct ls_plan_net *rows, struct ls_error *error)
{
    const struct ls_layer **writer = ls_alloc(plan->graph->value_count + 1, sizeof *writer);
    rows->steps = ls_alloc(plan->step_count + 1, sizeof *rows->steps);
    rows->implementations = ls_alloc(plan->step_count + 1, sizeof *rows->implementations);
    rows->layouts = ls_alloc(plan->step_count + 1, sizeof *rows->layouts);
    if (rows->steps == NULL || rows->implementations == NULL || rows->layouts == NULL ||
        writer == NULL) {
        ls_free((void *)writer);
        return ls_fail_memory(error, "a plan");
    }
    for (size_t i = 0; i < plan->step_count; i++)
        show_step(plan, i, rows);
    add_kept(plan, writer, rows);
    ls_free((void *)writer);
    rows->shown.steps = rows->steps;
    rows->shown.step_count = plan->step_count;
    return 0;
}

static int make_library(const struct ls_net *net, struct ls_plan_net *rows, struct ls_error *error)
{
    size_t most = rows->shown.layer_count;
    rows->library_layers = ls_alloc(most + 1, sizeof *rows->library_layers);
    if (rows->library_layers == NULL)
        return ls_fail_memory(error, "a plan");
    rows->shown.library_layer_count = ls_environment_layers(net, rows->library_layers, most);
    rows->shown.library_layers = rows->library_layers;
    return 0;
}

int ls_plan_rows(const struct ls_net *net, const struct ls_view_set *views,
                 const struct ls_store_options *store, struct ls_plan_net *rows,
                 struct ls_error *error)
{
    const struct ls_plan *plan = largest_plan(net);
    bool outside = net->options.from_outside;
    rows->shown = (struct lockstep_plan_net){
        .name = rows->name,
        .training = net->options.training,
        .batch = outside ? ls_net_sample_count(net) : net->batching.batch,
        .micro_batch = outside ? ls_net_sample_count(net) : ls_batching_largest(&net->batching),
        .micro_batches = outside ? 1 : ls_batching_most(&net->batching, net->batching.batch),
        .mixer = net->mixer != NULL ? ls_net_mixer_name(net) : NULL,
        .mixer_type = net->mixer != NULL ? net->mixer->type : NULL,
        .segments = plan->segments,
        .arena = plan->arena_bytes,
        .stashed = plan->stashed_bytes,
        .scratch = plan->scratch_bytes,
        .recomputed_part = plan->work > 0 ? plan->recompute_work / plan->work : 0};
    const struct ls_precision_counts counts = ls_graph_count_precisions(plan->graph);
    rows->shown.computing_layers = counts.computing;
    rows->shown.bf16_layers = counts.bf16;
    LS_TRY(make_layers(plan->graph, views, store, rows, error));
    LS_TRY(make_library(net, rows, error));
    rows->shown.any_processor = plan->graph->portable && rows->shown.library_layer_count == 0;
    return make_steps(plan, rows, error);
}

void ls_plan_rows_free(struct ls_plan_net *rows)
{
    ls_free(rows->layers);
    ls_free(rows->steps);
    ls_free(rows->implementations);
    ls_free(rows->layouts);
    ls_free((void *)rows->library_layers);
}
