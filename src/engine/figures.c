/* Figures of records. See engine/figures.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/figures.h"

#include <sleef.h>

#include "ir/layer.h"

/* Intersection over union of class c; -1 where it does not occur. The sums are whole numbers. */
static double figures_overlap(const struct ls_metric *metric, const double *record, int c)
{
    const double *hits = record + metric->offset;
    double all = hits[metric->overlaps + c] + hits[2 * metric->overlaps + c] - hits[c];
    return all == 0 ? -1 : hits[c] / all;
}

static double figures_overlap_figure(const struct ls_metric *metric, const double *record, int i)
{
    if (!metric->mean) {
        double figure = figures_overlap(metric, record, i);
        return figure < 0 ? 0 : figure;
    }
    double sum = 0;
    int occur = 0;
    for (int c = 0; c < metric->overlaps; c++) {
        double figure = figures_overlap(metric, record, c);
        occur += !(figure < 0);
        sum += figure < 0 ? 0 : figure;
    }
    return occur == 0 ? 0 : sum / occur;
}

double ls_figures_metric(const struct ls_metric *metric, const double *record, int i)
{
    if (metric->overlaps > 0)
        return figures_overlap_figure(metric, record, i);
    double sum = record[metric->offset + i];
    if (metric->divisor != 0)
        sum /= metric->divisor;
    if (metric->is_count || metric->count_offset < 0)
        return sum;
    double count = record[metric->count_offset + (metric->count_each ? i : 0)];
    if (count == 0) /* a loss that divides by nothing keeps its sum; an empty class has figure 0 */
        return metric->loss_weight != 0 || (metric->layer->type->is_loss && metric->top == 0) ? sum
                                                                                              : 0;
    return metric->exponential ? Sleef_cinz_expd1_u10purec(sum / count) : sum / count;
}

double ls_figures_loss(const struct ls_graph *graph, const double *record)
{
    double loss = 0;
    for (size_t i = 0; i < graph->metric_count; i++)
        if (graph->metrics[i].loss_weight != 0)
            loss += (double)graph->metrics[i].loss_weight *
                    ls_figures_metric(&graph->metrics[i], record, 0);
    return loss;
}
