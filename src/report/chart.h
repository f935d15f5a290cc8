/* Curves of several runs as SVG, readable without scripts; the page's script draws them anew from
 * the same figures for other scales.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_REPORT_CHART_H
#define LS_REPORT_CHART_H

#include "report/log.h"

enum { LS_CHART_RUNS = 8, LS_CHART_POINTS = 400 };

struct ls_chart {
    const char *name;
    const struct ls_series *series[LS_CHART_RUNS]; /* NULL: this run has none */
    const char *runs[LS_CHART_RUNS];               /* their names */
    int run_count;
    int index; /* of the chart in the page */
};

/* A <figure> with the drawing. */
void ls_chart_draw(struct ls_text *page, const struct ls_chart *chart);
/* Its figures for the script, an object of JSON. */
void ls_chart_figures(struct ls_text *page, const struct ls_chart *chart);
/* The same series in fewer points; returns how many. */
size_t ls_chart_points(const struct ls_series *series, struct lockstep_point out[LS_CHART_POINTS]);

#endif
