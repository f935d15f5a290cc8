/* Curves as text: braille dots, or characters of ASCII.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_MONITOR_PLOT_H
#define LS_MONITOR_PLOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "monitor/terminal.h"

struct ls_plot_point {
    int64_t x;
    double y;      /* not finite: no point */
    int64_t count; /* figures that it is the mean of */
};

struct ls_plot_curve {
    const char *name;
    const struct ls_plot_point *points;
    size_t count;
};

struct ls_plot {
    const char *title;
    const struct ls_plot_curve *curves;
    size_t count;
    int width, height; /* columns of all, at least 20; lines of the curves' area, at least 2 */
    bool logarithmic;  /* figures that are not positive have no place then */
    bool ascii;
    enum ls_colours colours;
};

/* Writes the title, the area with its axes, and a line for each curve: its mark, its name, the last
 * figure, the smallest and the largest. In ASCII each curve has a mark of its own; the figures of
 * one column are one mean. Returns the lines that it wrote. */
int ls_plot_put(FILE *out, const struct ls_plot *plot);

#endif
