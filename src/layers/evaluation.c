/* See layers/evaluation.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/evaluation.h"

#include <string.h>

#include "base/memory.h"
#include "base/text.h"

int ls_evaluation_check(const struct ls_layer *layer, struct ls_error *error,
                        struct ls_evaluate_attr *attr)
{
    const struct ls_graph *graph = layer->graph;
    const char *type = layer->type->type;
    if (graph->phase != LOCKSTEP__PHASE__TEST)
        return ls_layer_fail(layer, error, NULL, "type", "include { phase: TEST }",
                             "%s judges a whole test, and is for test nets", type);
    for (int i = 0; i < layer->tops; i++)
        if (layer->loss_weight[i] != 0)
            return ls_layer_fail(layer, error, NULL, "loss_weight", "set it to 0",
                                 "a layer of type %s has no gradient and cannot be a loss", type);
    LS_TRY(ls_layer_check_samples(layer, error, 0));
    LS_TRY(ls_boxes_check_truths(layer, error, 1, &attr->objects));
    for (int i = 0; i < 2; i++) {
        const struct ls_value *value = layer->bottom[i];
        const int64_t samples = ls_value_sample_rows(value) / value->rows;
        if (samples != graph->samples)
            return ls_layer_fail(layer, error, NULL, "bottom",
                                 "a DummyData layer gives each sample of the batch its own with "
                                 "shape { dim: BATCH ... }; layers that mix samples come behind",
                                 "its bottom '%s' has rows for %lld sample%s, and the batch has "
                                 "%lld",
                                 value->name, (long long)samples, samples == 1 ? "" : "s",
                                 (long long)graph->samples);
    }
    return 0;
}

/* Figures of the classes where the definition asks for them without a top of their own. */
static void show_classes(struct ls_layer *layer, const struct ls_ranking *ranking)
{
    struct ls_graph *graph = layer->graph;
    struct ls_text name = {0};
    ls_text_format(&name, "%s_per_class", ls_layer_top_name(layer, 0));
    char *copy = ls_graph_own(graph, ls_alloc(name.length + 1, 1));
    const size_t before = graph->metric_count;
    if (copy == NULL || name.failed) {
        graph->failed = true;
    } else {
        memcpy(copy, name.data, name.length + 1);
        ls_graph_metric(graph, layer, 0,
                        (struct ls_metric){.entries = ranking->classes,
                                           .offset = ranking->figures + 1,
                                           .count_offset = -1});
        if (graph->metric_count > before)
            graph->metrics[before].name = copy;
    }
    ls_text_free(&name);
}

int ls_evaluation_forward(struct ls_layer *layer, struct ls_error *error, enum ls_op_kind kind,
                          struct ls_evaluate_attr *attr)
{
    struct ls_graph *graph = layer->graph;
    struct ls_ranking ranking = {.classes = attr->classes, .background = attr->background};
    const int64_t finds = attr->finds * graph->samples;
    ranking.finds = finds < INT32_MAX ? (int)finds : INT32_MAX;
    if (!ls_graph_ranking(graph, layer, &ranking))
        return ls_layer_fail(
            layer, error, NULL, "bottom", "keep_top_k of DetectionOutput limits them",
            "its bottom '%s' has %lld boxes for each of %lld samples, which are "
            "too many to be ranked",
            layer->bottom[0]->name, (long long)attr->finds, (long long)graph->samples);
    attr->truths = ranking.truths;
    attr->list = ranking.list;
    for (int top = 0; top < layer->tops; top++) {
        ls_layer_make_metric(layer, top, top == 0 ? 0 : attr->classes);
        ls_graph_metric(graph, layer, top,
                        (struct ls_metric){.entries = top == 0 ? 1 : attr->classes,
                                           .offset = ranking.figures + top,
                                           .count_offset = -1});
    }
    if (layer->tops == 1 && graph->class_figures)
        show_classes(layer, &ranking);
    struct ls_op *op = ls_graph_op(graph, kind);
    for (int i = 0; i < 2; i++)
        ls_op_in(graph, op, layer->bottom[i]);
    if (op != NULL)
        op->attr.evaluate = *attr;
    return 0;
}
