/* Outputs. See solver/outputs.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver/outputs.h"

#include "base/memory.h"
#include "engine/figures.h"

int ls_outputs_set(struct ls_outputs *outputs, const struct ls_graph *graph, const double *record,
                   struct ls_error *error)
{
    size_t values = 0, count = 0;
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
        if (outputs->items == NULL || outputs->values == NULL)
            return ls_fail_memory(error, "outputs");
        outputs->capacity = count;
        outputs->value_capacity = values;
    }
    double *next = outputs->values;
    for (size_t m = 0; m < graph->metric_count; m++) {
        const struct ls_metric *metric = &graph->metrics[m];
        if (!metric->is_output)
            continue;
        outputs->items[outputs->count++] =
            (struct lockstep_output){.name = metric->name,
                                     .values = next,
                                     .count = (size_t)metric->entries,
                                     .loss_weight = (double)metric->loss_weight};
        for (int i = 0; i < metric->entries; i++)
            *next++ = ls_figures_metric(metric, record, i);
    }
    return 0;
}

void ls_outputs_free(struct ls_outputs *outputs)
{
    ls_free(outputs->items);
    ls_free(outputs->values);
    *outputs = (struct ls_outputs){0};
}
