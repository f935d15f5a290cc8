/* Curves of several runs as SVG, readable without scripts; the page's script draws them anew from
 * the same figures for other scales.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_REPORT_CHART_H
#define LS_REPORT_CHART_H

#include "report/figure.h"

enum { LS_CHART_RUNS = 8, LS_CHART_CURVES = 32, LS_CHART_POINTS = 400 };

/* What all charts of a page share: the updates that they begin and end with, and how many of them
 * are an epoch (0: not known, or not the same in all runs). */
struct ls_chart_axis {
    double from, to, epoch;
};

struct ls_curve {
    const struct ls_series *series;
    char name[LS_FIGURE_NAME * 2]; /* "training", "first: test"; "" where it is the only one */
    int run, colour, dash;
};

struct ls_chart {
    const char *title;
    struct ls_curve curve[LS_CHART_CURVES];
    int curve_count, index; /* of the chart in the page */
    struct ls_chart_axis axis;
};

/* The range of the updates of these series, with that of what is there already. */
void ls_chart_widen(struct ls_chart_axis *axis, const struct ls_series *series);
/* Whether there is something to draw: more than one point in some curve. */
bool ls_chart_has_lines(const struct ls_chart *chart);
/* A <figure> with the last and the best figures, and the drawing where there are lines. */
void ls_chart_draw(struct ls_text *page, const struct ls_chart *chart);
/* Its figures for the script, an object of JSON. */
void ls_chart_figures(struct ls_text *page, const struct ls_chart *chart);
/* The same series in fewer points; returns how many. */
size_t ls_chart_points(const struct ls_series *series, struct lockstep_point out[LS_CHART_POINTS]);

#endif
