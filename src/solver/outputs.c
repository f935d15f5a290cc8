/* Outputs. See solver/outputs.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver/outputs.h"

#include "base/memory.h"
#include "engine/figures.h"

/* The ranking whose figures a metric shows, of each class or their mean; NULL: it is of none. */
static const struct ls_ranking *ranking_of(const struct ls_graph *graph,
                                           const struct ls_metric *metric)
{
    for (size_t r = 0; r < graph->ranking_count; r++)
        if (graph->rankings[r].layer == metric->layer)
            return &graph->rankings[r];
    return NULL;
}

/* What the classes are called that a metric has figures of; NULL where it has none of classes. */
static const char *const *name_classes(const struct ls_graph *graph, const struct ls_metric *metric,
                                       const struct ls_class_names *names, const char **next)
{
    const struct ls_ranking *ranking = ranking_of(graph, metric);
    const bool named = names != NULL && metric->entries <= names->count;
    if (metric->entries < 2 || (!named && ranking == NULL))
        return NULL;
    for (int i = 0; i < metric->entries; i++)
        next[i] = ranking != NULL && ranking->background == i ? NULL : named ? names->name[i] : "";
    return next;
}

static void set_output(struct ls_outputs *outputs, const struct ls_graph *graph,
                       const struct ls_metric *metric, const struct ls_class_names *names,
                       const double *record, size_t *at)
{
    double *values = outputs->values + *at;
    for (int i = 0; i < metric->entries; i++)
        values[i] = ls_figures_metric(metric, record, i);
    outputs->items[outputs->count++] = (struct lockstep_output){
        .name = metric->name,
        .values = values,
        .count = (size_t)metric->entries,
        .loss_weight = (double)metric->loss_weight,
        .better = (int)metric->better,
        .classes = name_classes(graph, metric, names, outputs->classes + *at)};
    *at += (size_t)metric->entries;
}

int ls_outputs_set(struct ls_outputs *outputs, const struct ls_graph *graph,
                   const struct ls_class_names *names, const double *record, struct ls_error *error)
{
    size_t values = 0, count = 0, at = 0;
    outputs->count = 0;
    for (size_t m = 0; m < graph->metric_count; m++)
        if (graph->metrics[m].is_output) {
            values += (size_t)graph->metrics[m].entries;
            count++;
        }
    if (count > outputs->capacity || values > outputs->value_capacity || outputs->items == NULL) {
        ls_outputs_free(outputs);
        outputs->items = ls_alloc(count + 1, sizeof *outputs->items);
        outputs->values = ls_alloc(values + 1, sizeof *outputs->values);
        outputs->classes = ls_alloc(values + 1, sizeof *outputs->classes);
        if (outputs->items == NULL || outputs->values == NULL || outputs->classes == NULL)
            return ls_fail_memory(error, "outputs");
        outputs->capacity = count;
        outputs->value_capacity = values;
    }
    for (int ranked = 0; ranked < 2; ranked++)
        for (size_t m = 0; m < graph->metric_count; m++) {
            const struct ls_metric *metric = &graph->metrics[m];
            const bool is_list = metric->entries > 1 && ranking_of(graph, metric) != NULL;
            if (metric->is_output && is_list == (ranked == 1))
                set_output(outputs, graph, metric, names, record, &at);
        }
    return 0;
}

void ls_outputs_free(struct ls_outputs *outputs)
{
    ls_free(outputs->items);
    ls_free(outputs->values);
    ls_free((void *)outputs->classes);
    *outputs = (struct ls_outputs){0};
}
