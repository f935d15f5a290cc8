/* Building graphs: values, ops, metrics. See ir/graph.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "ir/graph.h"

#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "ir/filter.h"
#include "ir/layer.h"

struct ls_graph *ls_graph_new(void)
{
    return ls_alloc(1, sizeof(struct ls_graph));
}

static void free_layer(struct ls_layer *layer)
{
    if (layer == NULL)
        return;
    ls_free(layer->bottom);
    ls_free(layer->top);
    ls_free(layer->loss_weight);
    ls_free(layer->propagate);
    ls_free(layer->top_used);
    ls_free(layer->state);
    ls_free(layer);
}

void ls_graph_free(struct ls_graph *graph)
{
    if (graph == NULL)
        return;
    for (size_t i = 0; i < graph->layer_count; i++)
        free_layer(graph->layers[i]);
    for (size_t i = 0; i < graph->value_count; i++)
        ls_free(graph->values[i]);
    for (size_t i = 0; i < graph->op_count; i++) {
        ls_free(graph->ops[i]->input);
        ls_free(graph->ops[i]->output);
        ls_free(graph->ops[i]);
    }
    for (size_t i = 0; i < graph->owned_count; i++)
        ls_free(graph->owned[i]);
    ls_free(graph->layers);
    ls_free(graph->values);
    ls_free(graph->of_parameter);
    ls_free(graph->ops);
    ls_free(graph->inputs);
    ls_free(graph->metrics);
    ls_free(graph->rankings);
    ls_free(graph->ignored);
    ls_free(graph->debug);
    ls_free(graph->normalizers);
    ls_free(graph->syncs);
    ls_free(graph->sample_states);
    ls_free(graph->row_files);
    ls_free(graph->groupings);
    ls_free(graph->gradients);
    ls_free(graph->owned);
    ls_free(graph);
}

void *ls_graph_own(struct ls_graph *graph, void *memory)
{
    if (memory == NULL) {
        graph->failed = true;
        return NULL;
    }
    if (!LS_GROW(graph->owned, graph->owned_count, graph->owned_capacity)) {
        ls_free(memory);
        graph->failed = true;
        return NULL;
    }
    graph->owned[graph->owned_count++] = memory;
    return memory;
}

/* ---- Values ---------------------------------------------------------------------------------- */

static struct ls_value *new_value(struct ls_graph *graph, const char *name,
                                  const struct ls_shape *shape, enum ls_storage storage)
{
    struct ls_value *value = ls_alloc(1, sizeof *value);
    if (value == NULL || !LS_GROW(graph->values, graph->value_count, graph->value_capacity)) {
        ls_free(value);
        graph->failed = true;
        return NULL;
    }
    value->index = (int)graph->value_count;
    value->name = ls_graph_own(graph, ls_copy_string(name));
    value->shape = *shape;
    value->type = LS_F32;
    value->storage = storage;
    value->sample_axis = -1;
    graph->values[graph->value_count++] = value;
    return value;
}

struct ls_value *ls_graph_value(struct ls_graph *graph, const char *name,
                                const struct ls_shape *shape, const struct ls_value *like)
{
    struct ls_value *value = new_value(graph, name, shape, LS_STORE_ARENA);
    if (value != NULL && like != NULL) {
        value->sample_axis = like->sample_axis;
        value->rows = like->rows;
    }
    return value;
}

/* The list of the values that a parameter is, or NULL after a failed allocation. */
static struct ls_value **parameter_slot(struct ls_graph *graph,
                                        const struct ls_parameter *parameter)
{
    size_t old = graph->of_parameter_capacity, wanted = 2 * (size_t)parameter->index + 16;
    if ((size_t)parameter->index >= old) {
        struct ls_value **longer = ls_resize(graph->of_parameter, wanted, sizeof *longer);
        if (longer == NULL) {
            graph->failed = true;
            return NULL;
        }
        memset(longer + old, 0, (wanted - old) * sizeof *longer);
        graph->of_parameter = longer;
        graph->of_parameter_capacity = wanted;
    }
    return &graph->of_parameter[parameter->index];
}

struct ls_value *ls_graph_parameter(struct ls_graph *graph, struct ls_layer *layer, int index)
{
    struct ls_parameter *parameter = layer->blob[index];
    if (parameter == NULL) {
        graph->failed = true;
        return NULL;
    }
    /* One value a parameter, however many layers share it; a layer that shares it under another
     * shape of the same size (PERMISSIVE) sees its own shape. */
    struct ls_value **slot = parameter_slot(graph, parameter);
    if (slot == NULL)
        return NULL;
    for (struct ls_value *value = *slot; value != NULL; value = value->other_shape)
        if (value->parameter == parameter &&
            ls_shape_equal(&value->shape, &layer->request[index].shape))
            return value;
    struct ls_value *value =
        new_value(graph, parameter->name, &layer->request[index].shape, LS_STORE_PARAMETER);
    if (value != NULL) {
        value->parameter = parameter;
        value->other_shape = *slot;
        *slot = value;
        value->learned = true;
        value->needs_grad = graph->training && parameter->lr_mult != 0;
    }
    return value;
}

struct ls_value *ls_graph_input(struct ls_graph *graph, struct ls_layer *layer, int top,
                                const struct ls_shape *shape, enum ls_dtype type, int sample_axis)
{
    struct ls_value *value = new_value(graph, ls_layer_top_name(layer, top), shape, LS_STORE_INPUT);
    if (value == NULL || !LS_GROW(graph->inputs, graph->input_count, graph->input_capacity)) {
        graph->failed = true;
        return NULL;
    }
    value->type = type;
    value->sample_axis = sample_axis;
    value->rows = 1;
    value->input = (int)graph->input_count;
    graph->inputs[graph->input_count++] =
        (struct ls_input){.layer = layer, .top = top, .value = value};
    return value;
}

struct ls_value *ls_graph_cache(struct ls_graph *graph, const char *name,
                                const struct ls_shape *shape, const struct ls_value *like)
{
    struct ls_text full = {0};
    struct ls_value *value = NULL;
    ls_text_format(&full, "%s.%s", graph->emitting->name, name);
    if (!full.failed)
        value = new_value(graph, full.data, shape, LS_STORE_INPUT);
    ls_text_free(&full);
    if (value == NULL || !LS_GROW(graph->inputs, graph->input_count, graph->input_capacity)) {
        graph->failed = true;
        return NULL;
    }
    value->sample_axis = like->sample_axis;
    value->rows = like->rows;
    value->input = (int)graph->input_count;
    graph->inputs[graph->input_count++] =
        (struct ls_input){.layer = graph->emitting, .top = -1, .value = value, .cache = true};
    return value;
}

/* ---- Ops ------------------------------------------------------------------------------------- */

struct ls_op *ls_graph_op(struct ls_graph *graph, enum ls_op_kind kind)
{
    struct ls_op *op = ls_alloc(1, sizeof *op);
    if (op == NULL || !LS_GROW(graph->ops, graph->op_count, graph->op_capacity)) {
        ls_free(op);
        graph->failed = true;
        return NULL;
    }
    op->kind = kind;
    op->layer = graph->emitting;
    op->backward = graph->backward;
    graph->ops[graph->op_count++] = op;
    return op;
}

static bool append(struct ls_value ***list, int *count, struct ls_value *value)
{
    struct ls_value **longer = NULL;
    if (*count < LS_OP_VALUES_MAX)
        longer = ls_resize(*list, (size_t)*count + 1, sizeof *longer);
    if (longer == NULL)
        return false;
    longer[(*count)++] = value;
    *list = longer;
    return true;
}

void ls_op_in(struct ls_graph *graph, struct ls_op *op, struct ls_value *value)
{
    if (op == NULL || !append(&op->input, &op->inputs, value))
        graph->failed = true;
}

void ls_op_out(struct ls_graph *graph, struct ls_op *op, struct ls_value *value)
{
    if (op == NULL || !append(&op->output, &op->outputs, value)) {
        graph->failed = true;
        return;
    }
    if (op->kind == LS_OP_VIEW && value != NULL && op->inputs > 0 && op->input[0] != NULL)
        value->type = op->input[0]->type;
    for (int i = 0; i < op->inputs && value != NULL; i++) {
        const struct ls_value *input = op->input[i];
        if (input == NULL)
            continue;
        value->learned |= input->learned;
        value->needs_grad |=
            input->needs_grad && !graph->backward && ls_dtype_is_float(value->type);
    }
}

/* ---- Metrics --------------------------------------------------------------------------------- */

int ls_graph_record(struct ls_graph *graph, int count)
{
    int offset = graph->record_size;
    graph->record_size += count;
    return offset;
}

bool ls_graph_ranking(struct ls_graph *graph, const struct ls_layer *layer,
                      struct ls_ranking *ranking)
{
    if (ranking->finds > (INT32_MAX / 2 - graph->list_size) / LS_FIND)
        return false;
    if (!LS_GROW(graph->rankings, graph->ranking_count, graph->ranking_capacity)) {
        graph->failed = true;
        return true;
    }
    ranking->layer = layer;
    ranking->truths = ls_graph_record(graph, ranking->classes + 1);
    ranking->figures = ls_graph_record(graph, ranking->classes + 1);
    ranking->list = graph->list_size;
    graph->list_size += ranking->finds * LS_FIND;
    graph->rankings[graph->ranking_count++] = *ranking;
    return true;
}

void ls_graph_metric(struct ls_graph *graph, struct ls_layer *layer, int top,
                     struct ls_metric metric)
{
    if (!LS_GROW(graph->metrics, graph->metric_count, graph->metric_capacity)) {
        graph->failed = true;
        return;
    }
    metric.name = ls_layer_top_name(layer, top);
    metric.layer = layer;
    metric.top = top;
    metric.loss_weight = layer->loss_weight != NULL ? layer->loss_weight[top] : 0;
    if (metric.loss_weight != 0) /* what is minimised */
        metric.better = metric.loss_weight > 0 ? LS_BETTER_SMALLER : LS_BETTER_LARGER;
    else if (metric.better == LS_BETTER_UNKNOWN && top == 0 && layer->type->is_loss)
        metric.better = LS_BETTER_SMALLER;
    else if (metric.better == LS_BETTER_UNKNOWN)
        metric.better = layer->type->better;
    graph->metrics[graph->metric_count++] = metric;
}

/* Emits what leaves the count of labels in the record. */
static void count_labels(struct ls_graph *graph, const struct ls_loss_attr *attr,
                         struct ls_value *label, int index, struct ls_normalizer *normalizer)
{
    normalizer->per_sample = 0;
    normalizer->record_offset = ls_graph_record(graph, 1);
    struct ls_op *op = ls_graph_op(graph, LS_OP_COUNT_LABELS);
    ls_op_in(graph, op, label);
    if (op == NULL)
        return;
    op->attr.loss = *attr;
    op->attr.loss.normalizer = index;
    op->attr.loss.metric_offset = normalizer->record_offset;
    op->before = label == NULL || !label->learned;
    if (op->before)
        return;
    const struct ls_sync sync = {.kind = LS_SYNC_COUNT, .normalizer = index};
    normalizer->sync = ls_graph_sync(graph, sync, 0);
    ls_graph_emit_sync(graph, normalizer->sync);
}

int ls_graph_normalizer(struct ls_graph *graph, const struct ls_loss_attr *attr,
                        const struct ls_value *x, int64_t per_sample, struct ls_value *label)
{
    if (!LS_GROW(graph->normalizers, graph->normalizer_count, graph->normalizer_capacity)) {
        graph->failed = true;
        return 0;
    }
    enum ls_normalization mode = attr->normalization;
    struct ls_normalizer normalizer = {.per_sample = per_sample,
                                       .samples = graph->whole ? ls_value_sample_rows(x) / x->rows
                                                               : graph->samples,
                                       .record_offset = -1,
                                       .each = 1,
                                       .none = mode == LS_NORM_NONE,
                                       .fixed = 1,
                                       .sync = -1};
    int index = (int)graph->normalizer_count++;
    if (mode == LS_NORM_WEIGHTS || (mode == LS_NORM_VALID && attr->has_ignore))
        count_labels(graph, attr, label, index, &normalizer);
    else if (x->selected != NULL && mode != LS_NORM_NONE) {
        normalizer.each = per_sample / x->rows;
        count_labels(graph, &ls_selected_rows, x->selected, index, &normalizer);
    }
    graph->normalizers[index] = normalizer;
    return index;
}

void ls_graph_ignore(struct ls_graph *graph, const struct ls_layer *layer, const char *field)
{
    if (!LS_GROW(graph->ignored, graph->ignored_count, graph->ignored_capacity))
        graph->failed = true;
    else
        graph->ignored[graph->ignored_count++] = (struct ls_ignored){layer, field};
}

int ls_graph_counted(struct ls_graph *graph, struct ls_op *op, int *offset)
{
    if (op == NULL ||
        !LS_GROW(graph->normalizers, graph->normalizer_count, graph->normalizer_capacity)) {
        graph->failed = true;
        return 0;
    }
    *offset = ls_graph_record(graph, 1);
    op->before = true;
    graph->normalizers[graph->normalizer_count] = (struct ls_normalizer){
        .samples = graph->samples, .record_offset = *offset, .each = 1, .fixed = 1, .sync = -1};
    return (int)graph->normalizer_count++;
}

int ls_graph_counted_within(struct ls_graph *graph, int *offset)
{
    if (!LS_GROW(graph->normalizers, graph->normalizer_count, graph->normalizer_capacity)) {
        graph->failed = true;
        return 0;
    }
    *offset = ls_graph_record(graph, 1);
    graph->normalizers[graph->normalizer_count] = (struct ls_normalizer){
        .samples = graph->samples, .record_offset = *offset, .each = 1, .fixed = 1, .sync = -1};
    return (int)graph->normalizer_count++;
}

void ls_graph_share_count(struct ls_graph *graph, int normalizer)
{
    const struct ls_sync sync = {.kind = LS_SYNC_COUNT, .normalizer = normalizer};
    const int index = ls_graph_sync(graph, sync, 0);
    if (graph->failed)
        return;
    graph->normalizers[normalizer].sync = index;
    ls_graph_emit_sync(graph, index);
}

/* ---- Sync points ----------------------------------------------------------------------------- */

static int grouping_of(struct ls_graph *graph, int64_t group)
{
    for (size_t i = 0; i < graph->grouping_count; i++)
        if (graph->groupings[i] == group)
            return (int)i;
    if (!LS_GROW(graph->groupings, graph->grouping_count, graph->grouping_capacity)) {
        graph->failed = true;
        return 0;
    }
    graph->groupings[graph->grouping_count] = group;
    return (int)graph->grouping_count++;
}

int ls_graph_sync(struct ls_graph *graph, struct ls_sync sync, int64_t group)
{
    if (!LS_GROW(graph->syncs, graph->sync_count, graph->sync_capacity)) {
        graph->failed = true;
        return 0;
    }
    sync.layer = graph->emitting;
    sync.backward = graph->backward;
    sync.grouping = sync.kind == LS_SYNC_COUNT ? -1 : grouping_of(graph, group);
    graph->syncs[graph->sync_count] = sync;
    return (int)graph->sync_count++;
}

void ls_graph_emit_sync(struct ls_graph *graph, int sync)
{
    struct ls_op *op = ls_graph_op(graph, LS_OP_SYNC);
    if (op != NULL)
        op->attr.sync = sync;
}

/* ---- State per sample ------------------------------------------------------------------------ */

struct ls_value *ls_graph_recall(struct ls_graph *graph, const char *name,
                                 const struct ls_shape *shape, enum ls_dtype type,
                                 const struct ls_value *like)
{
    struct ls_text full = {0};
    ls_text_format(&full, "%s.%s", graph->emitting->name, name);
    struct ls_value *value = full.failed ? NULL : ls_graph_value(graph, full.data, shape, like);
    ls_text_free(&full);
    if (value == NULL ||
        !LS_GROW(graph->sample_states, graph->sample_state_count, graph->sample_state_capacity)) {
        graph->failed = true;
        return NULL;
    }
    value->type = type;
    value->learned = true; /* by the updates before */
    struct ls_op *op = ls_graph_op(graph, LS_OP_RECALL);
    ls_op_out(graph, op, value);
    if (op != NULL)
        op->attr.sample_state = (int)graph->sample_state_count;
    graph->sample_states[graph->sample_state_count++] =
        (struct ls_sample_state){.name = value->name, .layer = graph->emitting, .value = value};
    return value;
}

void ls_graph_keep(struct ls_graph *graph, const struct ls_value *recalled, struct ls_value *value)
{
    size_t state = 0;
    while (state < graph->sample_state_count && graph->sample_states[state].value != recalled)
        state++;
    struct ls_op *op = ls_graph_op(graph, LS_OP_KEEP);
    ls_op_in(graph, op, value);
    if (op != NULL)
        op->attr.sample_state = (int)state;
}

int ls_graph_collect(struct ls_graph *graph, const char *name, struct ls_value *value)
{
    struct ls_text full = {0};
    ls_text_format(&full, "%s.%s", graph->emitting->name, name);
    char *owned = full.failed ? NULL : ls_graph_own(graph, ls_copy_string(full.data));
    ls_text_free(&full);
    if (owned == NULL || value == NULL ||
        !LS_GROW(graph->sample_states, graph->sample_state_count, graph->sample_state_capacity)) {
        graph->failed = true;
        return 0;
    }
    graph->sample_states[graph->sample_state_count++] =
        (struct ls_sample_state){.name = owned, .layer = graph->emitting, .value = value};
    ls_graph_keep(graph, value, value);
    return (int)graph->sample_state_count - 1;
}

void ls_graph_row_file(struct ls_graph *graph, struct ls_row_file file)
{
    if (!LS_GROW(graph->row_files, graph->row_file_count, graph->row_file_capacity))
        graph->failed = true;
    else
        graph->row_files[graph->row_file_count++] = file;
}
