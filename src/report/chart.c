/* Curves as SVG. See report/chart.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "report/chart.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/html.h"

/* The drawing's own units; the script has the same. */
static const double width = 480, height = 270, left = 66, right = 12, top = 12, bottom = 30;

enum { DOTS = 40, SMOOTHED_FROM = 50, LABEL = 8 /* characters beside an axis */ };

#define MOST  1e300
#define LEAST 1e-290

/* The ranges of a drawing. */
struct range {
    double x0, x1, y0, y1;
};

static void join(struct lockstep_point *to, const struct lockstep_point *point)
{
    const double count = (double)(to->count + point->count);
    to->mean =
        to->mean * ((double)to->count / count) + point->mean * ((double)point->count / count);
    to->last = point->last;
    to->count += point->count;
    to->least = fmin(to->least, point->least);
    to->most = fmax(to->most, point->most);
}

size_t ls_chart_points(const struct ls_series *series, struct lockstep_point out[LS_CHART_POINTS])
{
    const size_t parts = series->count < LS_CHART_POINTS ? series->count : LS_CHART_POINTS;
    for (size_t i = 0; i < parts; i++) {
        const size_t begin = i * series->count / parts, end = (i + 1) * series->count / parts;
        out[i] = series->points[begin];
        for (size_t j = begin + 1; j < end; j++)
            join(&out[i], &series->points[j]);
    }
    return parts;
}

/* Curves that go up and down from update to update are smoothed, too. */
static bool is_smoothed(const struct ls_chart *chart)
{
    if (strcmp(chart->name, "learning_rate") == 0 || strncmp(chart->name, "test", 4) == 0)
        return false;
    for (int r = 0; r < chart->run_count; r++)
        if (chart->series[r] != NULL && chart->series[r]->count > SMOOTHED_FROM)
            return true;
    return false;
}

static struct range range_of(const struct ls_chart *chart)
{
    struct range range = {INFINITY, -INFINITY, INFINITY, -INFINITY};
    struct lockstep_point points[LS_CHART_POINTS];
    for (int r = 0; r < chart->run_count; r++) {
        const size_t count =
            chart->series[r] != NULL ? ls_chart_points(chart->series[r], points) : 0;
        for (size_t i = 0; i < count; i++) {
            range.x0 = fmin(range.x0, (double)points[i].first);
            range.x1 = fmax(range.x1, (double)points[i].last);
            range.y0 = fmin(range.y0, points[i].mean);
            range.y1 = fmax(range.y1, points[i].mean);
        }
    }
    if (!(range.x1 > range.x0))
        range.x1 = range.x0 + 1;
    /* Neither the distance of two figures nor a part of it may leave the range of numbers. */
    range.y0 = fmax(range.y0, -MOST);
    range.y1 = fmin(range.y1, MOST);
    if (!(range.y1 - range.y0 > LEAST)) { /* a line in the middle */
        const double room = range.y0 != 0 ? fabs(range.y0) * 0.5 : 1;
        range.y0 -= room;
        range.y1 += room;
    }
    return range;
}

static double place_x(const struct range *range, double x)
{
    return left + (x - range->x0) / (range->x1 - range->x0) * (width - left - right);
}

static double place_y(const struct range *range, double y)
{
    y = fmin(fmax(y, range->y0), range->y1);
    return height - bottom - (y - range->y0) / (range->y1 - range->y0) * (height - top - bottom);
}

/* A distance of 1, 2 or 5 times a power of ten of which about `parts` make `length`. */
static double step_for(double length, int parts)
{
    const double raw = length / parts, power = pow(10, floor(log10(raw)));
    const double part = raw / power;
    return power * (part < 1.5 ? 1 : part < 3.5 ? 2 : part < 7.5 ? 5 : 10);
}

/* "1500", "20k", "3M", with so many digits that values a `step` apart differ; the script has the
 * same. */
static void format_tick(char text[32], double value, double step, bool updates)
{
    const double size = fabs(value), unit = updates && size >= 1e6   ? 1e6
                                            : updates && size >= 1e4 ? 1e3
                                                                     : 1;
    const double whole = size > 0 ? floor(log10(size / unit) + 1e-9) : 0;
    const double more = size > 0 ? floor(log10(size) + 1e-9) - floor(log10(step) + 1e-9) : 0;
    const double digits = fmax(more, whole < 6 ? whole : 0) + 1; /* "1000", not "1e+03" */
    struct ls_text made = {0}; /* which is the same in every locale */
    ls_text_format(&made, "%.*g%s", (int)fmin(fmax(digits, 1), 12), value / unit,
                   unit > 1e3 ? "M"
                   : unit > 1 ? "k"
                              : "");
    snprintf(text, 32, "%s", made.data != NULL ? made.data : "");
    ls_text_free(&made);
}

/* A number beside the axis, which becomes narrower where there is no room for it. */
static void put_value(struct ls_text *page, double y, double value, double step)
{
    char text[32];
    format_tick(text, value, step, false);
    ls_text_format(
        page, "<text class=\"ty\" x=\"%.1f\" y=\"%.1f\"%s>%s</text>", left - 6, y + 4,
        strlen(text) > LABEL ? " textLength=\"58\" lengthAdjust=\"spacingAndGlyphs\"" : "", text);
}

static void draw_axes(struct ls_text *page, const struct range *range)
{
    char text[32];
    enum { TICKS = 20 }; /* so that no range of extremes makes this endless */
    double step = step_for(range->y1 - range->y0, 5);
    double first = ceil(range->y0 / step) * step;
    for (int i = 0; i < TICKS && first + i * step <= range->y1; i++) {
        double value = first + i * step;
        if (fabs(value) < step * 1e-6)
            value = 0;
        const double y = place_y(range, value);
        ls_text_format(page, "<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/>", left, y,
                       width - right);
        put_value(page, y, value, step);
    }
    step = fmax(1, step_for(range->x1 - range->x0, 5));
    first = ceil(range->x0 / step) * step;
    for (int i = 0; i < TICKS && first + i * step <= range->x1; i++) {
        const double x = place_x(range, first + i * step);
        ls_text_format(page, "<path class=\"grid\" d=\"M%.1f %.1fV%.1f\"/>", x, top,
                       height - bottom);
        format_tick(text, first + i * step, step, true);
        ls_text_format(page, "<text class=\"tx\" x=\"%.1f\" y=\"%.1f\">%s</text>", x,
                       height - bottom + 18, text);
    }
}

static void draw_line(struct ls_text *page, const struct range *range,
                      const struct lockstep_point *points, const double *values, size_t count,
                      const char *class, int run)
{
    ls_text_format(page, "<path class=\"%s r%d\" d=\"", class, run);
    for (size_t i = 0; i < count; i++)
        ls_text_format(page, "%s%.1f %.1f", i == 0 ? "M" : "L",
                       place_x(range, (double)points[i].last), place_y(range, values[i]));
    ls_text_add(page, "\"/>");
}

/* An exponential mean over the last 2 % of the figures, in which each counts as much as it should
 * from the first one on. */
static void smooth(const struct lockstep_point *points, size_t count, double *values)
{
    double all = 0, sum = 0, weight = 0;
    for (size_t i = 0; i < count; i++)
        all += (double)points[i].count;
    const double time = fmax(1, all * 0.02);
    for (size_t i = 0; i < count; i++) {
        const double keep = exp(-(double)points[i].count / time);
        sum = keep * sum + (1 - keep) * points[i].mean;
        weight = keep * weight + (1 - keep);
        values[i] = sum / weight;
    }
}

static void draw_run(struct ls_text *page, const struct ls_chart *chart, const struct range *range,
                     int run)
{
    struct lockstep_point points[LS_CHART_POINTS];
    double values[LS_CHART_POINTS] = {0};
    const size_t count = ls_chart_points(chart->series[run], points);
    const bool smoothed = is_smoothed(chart);
    for (size_t i = 0; i < count; i++)
        values[i] = points[i].mean;
    draw_line(page, range, points, values, count, smoothed ? "raw" : "line", run);
    for (size_t i = 0; i < count && count <= DOTS && !smoothed; i++)
        ls_text_format(page, "<circle class=\"r%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"2.6\"/>", run,
                       place_x(range, (double)points[i].last), place_y(range, values[i]));
    if (!smoothed)
        return;
    smooth(points, count, values);
    draw_line(page, range, points, values, count, "line", run);
}

/* What a screen reader says of it. */
static void put_description(struct ls_text *page, const struct ls_chart *chart)
{
    ls_text_add(page, "<desc>");
    for (int r = 0; r < chart->run_count; r++) {
        const struct ls_series *series = chart->series[r];
        if (series == NULL || series->count == 0)
            continue;
        const struct lockstep_point *last = &series->points[series->count - 1];
        ls_html_text(page, chart->runs[r]);
        ls_text_format(page, ": from %.5g to %.5g in %" PRId64 " updates. ", series->points[0].mean,
                       last->mean, last->last);
    }
    ls_text_add(page, "</desc>");
}

void ls_chart_draw(struct ls_text *page, const struct ls_chart *chart)
{
    const struct range range = range_of(chart);
    ls_text_format(page, "<figure class=\"chart\" data-chart=\"%d\"><figcaption>", chart->index);
    ls_html_text(page, chart->name);
    ls_text_add(page, "</figcaption>");
    ls_text_format(page, "<svg viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-label=\"", width,
                   height);
    ls_html_text(page, chart->name);
    ls_text_add(page, "\">");
    put_description(page, chart);
    ls_text_add(page, "<g class=\"plot\">");
    draw_axes(page, &range);
    for (int r = 0; r < chart->run_count; r++)
        if (chart->series[r] != NULL && chart->series[r]->count > 0)
            draw_run(page, chart, &range, r);
    ls_text_add(page, "</g></svg></figure>\n");
}

void ls_chart_figures(struct ls_text *page, const struct ls_chart *chart)
{
    struct lockstep_point points[LS_CHART_POINTS];
    ls_text_add(page, "{\"name\":");
    ls_html_json(page, chart->name);
    ls_text_format(page, ",\"smooth\":%s,\"runs\":[", is_smoothed(chart) ? "true" : "false");
    for (int r = 0; r < chart->run_count; r++) {
        const size_t count =
            chart->series[r] != NULL ? ls_chart_points(chart->series[r], points) : 0;
        ls_text_add(page, r > 0 ? ",[" : "[");
        for (size_t i = 0; i < count; i++)
            ls_text_format(page, "%s[%" PRId64 ",%.6g,%" PRId64 "]", i > 0 ? "," : "",
                           points[i].last, points[i].mean, points[i].count);
        ls_text_add(page, "]");
    }
    ls_text_add(page, "]}");
}
