/* What the figures of a record mean.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_FIGURES_H
#define LS_ENGINE_FIGURES_H

#include "ir/graph.h"

/* What came of the micro-batches of one or many batches. */
struct ls_totals {
    double *record;      /* merged; graph->record_size doubles */
    double *normalizers; /* by index: the divisors that were used */
    int64_t samples;
};

/* Figure `i` of a metric. */
double ls_figures_metric(const struct ls_metric *metric, const double *record, int i);
/* The weighted sum of all losses of a net. */
double ls_figures_loss(const struct ls_graph *graph, const double *record);

#endif
