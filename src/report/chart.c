/* Curves as SVG. See report/chart.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "report/chart.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/html.h"

/* The drawing's own units; the script has the same. Epochs are above the curves, where they are
 * known. */
static const double width = 480, height = 300, left = 84, right = 18, margin_top = 12,
                    epochs_top = 34, bottom = 30;

enum { DOTS = 40, SMOOTHED_FROM = 50, LABEL = 8 /* characters beside an axis */, TICKS = 20 };

#define MOST  1e300
#define LEAST 1e-290

/* The ranges of a drawing. */
struct range {
    double x0, x1, y0, y1, top;
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
static bool is_smoothed(const struct ls_curve *curve)
{
    return curve->series->count > SMOOTHED_FROM && ls_figure_trains(curve->series) &&
           strcmp(curve->series->name, "learning_rate") != 0;
}

/* A distance of 1, 2 or 5 times a power of ten of which about `parts` make `length`. */
static double step_for(double length, int parts)
{
    const double raw = length / parts, power = pow(10, floor(log10(raw)));
    const double part = raw / power;
    return power * (part < 1.5 ? 1 : part < 3.5 ? 2 : part < 7.5 ? 5 : 10);
}

/* Widens the range to whole steps, so that there is a number at both ends. */
static void round_range(struct range *range)
{
    const double step = step_for(range->y1 - range->y0, 5);
    const double y0 = floor(range->y0 / step + 1e-9) * step,
                 y1 = ceil(range->y1 / step - 1e-9) * step;
    if (y1 - y0 < 2 * (range->y1 - range->y0) && y0 >= -MOST && y1 <= MOST) {
        range->y0 = fmin(y0, range->y0);
        range->y1 = fmax(y1, range->y1);
    }
}

static struct range range_of(const struct ls_chart *chart)
{
    struct range range = {.x0 = chart->axis.from,
                          .x1 = chart->axis.to,
                          .y0 = INFINITY,
                          .y1 = -INFINITY,
                          .top = chart->axis.epoch > 0 ? epochs_top : margin_top};
    struct lockstep_point points[LS_CHART_POINTS];
    for (int c = 0; c < chart->curve_count; c++) {
        const size_t count = ls_chart_points(chart->curve[c].series, points);
        for (size_t i = 0; i < count; i++) {
            range.y0 = fmin(range.y0, points[i].mean);
            range.y1 = fmax(range.y1, points[i].mean);
        }
    }
    if (!(range.x1 > range.x0))
        range.x1 = range.x0 + 1;
    /* Neither the distance of two figures nor a part of it may leave the range of numbers. */
    range.y0 = fmax(range.y0, -MOST);
    range.y1 = fmin(range.y1, MOST);
    if (!(range.y1 - range.y0 > LEAST)) { /* from 0, or to it */
        range.y0 = fmin(range.y0, 0);
        range.y1 = fmax(range.y1, 0);
        if (!(range.y1 - range.y0 > LEAST))
            range.y1 = 1;
    }
    round_range(&range);
    return range;
}

void ls_chart_widen(struct ls_chart_axis *axis, const struct ls_series *series)
{
    if (series->count == 0)
        return;
    axis->from = fmin(axis->from, (double)series->points[0].first);
    axis->to = fmax(axis->to, (double)series->points[series->count - 1].last);
    if (axis->from < 0.05 * axis->to) /* nearly from the beginning */
        axis->from = 0;
}

static double place_x(const struct range *range, double x)
{
    return left + (x - range->x0) / (range->x1 - range->x0) * (width - left - right);
}

static double place_y(const struct range *range, double y)
{
    y = fmin(fmax(y, range->y0), range->y1);
    return height - bottom -
           (y - range->y0) / (range->y1 - range->y0) * (height - range->top - bottom);
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

/* A number above or below a place of the x axis, all of it inside of the drawing. */
static void put_place(struct ls_text *page, double x, double y, const char *text)
{
    const double half = 3.9 * (double)strlen(text);
    if (x + half > width)
        ls_text_format(page, "<text class=\"te\" x=\"%.1f\" y=\"%.1f\">%s</text>", width - 1, y,
                       text);
    else
        ls_text_format(page, "<text class=\"tx\" x=\"%.1f\" y=\"%.1f\">%s</text>", x, y, text);
}

/* Numbers along the x axis, each of which is `unit` updates. */
static void draw_places(struct ls_text *page, const struct range *range, double unit, double y,
                        bool grid, const char *name)
{
    char text[32];
    const double from = range->x0 / unit, to = range->x1 / unit;
    const double step = unit > 1 ? step_for(to - from, 5) : fmax(1, step_for(to - from, 5));
    const double first = ceil(from / step) * step;
    for (int i = 0; i < TICKS && first + i * step <= to; i++) {
        const double x = place_x(range, (first + i * step) * unit);
        if (grid)
            ls_text_format(page, "<path class=\"grid\" d=\"M%.1f %.1fV%.1f\"/>", x, range->top,
                           height - bottom);
        format_tick(text, first + i * step, step, true);
        put_place(page, x, y, text);
    }
    ls_text_format(page, "<text x=\"18\" y=\"%.1f\">%s</text>", y, name);
}

static void draw_axes(struct ls_text *page, const struct ls_chart *chart, const struct range *range)
{
    const double step = step_for(range->y1 - range->y0, 5);
    const double first = ceil(range->y0 / step - 1e-9) * step;
    for (int i = 0; i < TICKS && first + i * step <= range->y1 + 1e-9 * step; i++) {
        double value = first + i * step;
        if (fabs(value) < step * 1e-6)
            value = 0;
        const double y = place_y(range, value);
        ls_text_format(page, "<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/>", left, y,
                       width - right);
        put_value(page, y, value, step);
    }
    const double middle = (range->top + height - bottom) / 2;
    ls_text_format(page,
                   "<text class=\"tx\" x=\"12\" y=\"%.1f\" transform=\"rotate(-90 12 %.1f)\">",
                   middle, middle);
    ls_html_text(page, chart->title);
    ls_text_add(page, "</text>");
    draw_places(page, range, 1, height - bottom + 18, true, "updates");
    if (chart->axis.epoch > 0)
        draw_places(page, range, chart->axis.epoch, range->top - 12, false, "epochs");
}

static void draw_line(struct ls_text *page, const struct range *range,
                      const struct lockstep_point *points, const double *values, size_t count,
                      const char *class, const struct ls_curve *curve)
{
    ls_text_format(page, "<path class=\"%s r%d d%d\" d=\"", class, curve->colour, curve->dash);
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

static void draw_curve(struct ls_text *page, const struct range *range,
                       const struct ls_curve *curve)
{
    struct lockstep_point points[LS_CHART_POINTS];
    double values[LS_CHART_POINTS] = {0};
    const size_t count = ls_chart_points(curve->series, points);
    const bool smoothed = is_smoothed(curve);
    for (size_t i = 0; i < count; i++)
        values[i] = points[i].mean;
    draw_line(page, range, points, values, count, smoothed ? "raw" : "line", curve);
    for (size_t i = 0; i < count && count <= DOTS && !smoothed; i++)
        ls_text_format(page, "<circle class=\"r%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"2.6\"/>",
                       curve->colour, place_x(range, (double)points[i].last),
                       place_y(range, values[i]));
    if (!smoothed)
        return;
    smooth(points, count, values);
    draw_line(page, range, points, values, count, "line", curve);
}

/* Which curve is whose, its last figure and its best. */
static void put_curve_figures(struct ls_text *page, const struct ls_chart *chart,
                              const struct ls_curve *curve)
{
    double best;
    int64_t at;
    const struct ls_series *series = curve->series;
    ls_text_format(page, "<li data-of=\"%d\">", curve->run);
    if (chart->curve_count > 1)
        ls_text_format(page,
                       "<svg viewBox=\"0 0 30 10\" aria-hidden=\"true\"><path class=\"line r%d "
                       "d%d\" d=\"M0 5H30\"/></svg>",
                       curve->colour, curve->dash);
    if (curve->name[0] != '\0') {
        ls_html_text(page, curve->name);
        ls_text_add(page, " ");
    }
    ls_text_add(page, "<b>");
    ls_html_number(page, series->last);
    ls_text_add(page, "</b>");
    if (series->count > 1 && ls_figure_best(series, &best, &at)) {
        ls_text_add(page, " <span class=\"soft\">best ");
        ls_html_number(page, best);
        ls_text_add(page, " at ");
        ls_html_count(page, at);
        ls_text_add(page, "</span>");
    } else if (series->count == 1) {
        ls_text_add(page, " <span class=\"soft\">at ");
        ls_html_count(page, series->last_iteration);
        ls_text_add(page, "</span>");
    }
    ls_text_add(page, "</li>");
}

/* What a screen reader says of it. */
static void put_description(struct ls_text *page, const struct ls_chart *chart)
{
    ls_text_add(page, "<desc>");
    for (int c = 0; c < chart->curve_count; c++) {
        const struct ls_series *series = chart->curve[c].series;
        ls_html_text(page, chart->curve[c].name[0] != '\0' ? chart->curve[c].name : chart->title);
        ls_text_format(page, ": from %.5g to %.5g in %" PRId64 " updates. ", series->points[0].mean,
                       series->points[series->count - 1].mean,
                       series->points[series->count - 1].last);
    }
    ls_text_add(page, "</desc>");
}

bool ls_chart_has_lines(const struct ls_chart *chart)
{
    for (int c = 0; c < chart->curve_count; c++)
        if (chart->curve[c].series->count > 1)
            return true;
    return false;
}

static void draw_plot(struct ls_text *page, const struct ls_chart *chart)
{
    const struct range range = range_of(chart);
    ls_text_format(page, "<svg viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-label=\"", width,
                   height);
    ls_html_text(page, chart->title);
    ls_text_add(page, "\">");
    put_description(page, chart);
    ls_text_add(page, "<g class=\"plot\">");
    draw_axes(page, chart, &range);
    for (int c = 0; c < chart->curve_count; c++)
        draw_curve(page, &range, &chart->curve[c]);
    ls_text_add(page, "</g></svg>");
}

void ls_chart_draw(struct ls_text *page, const struct ls_chart *chart)
{
    const bool lines = ls_chart_has_lines(chart);
    if (lines)
        ls_text_format(page, "<figure class=\"chart\" data-chart=\"%d\"><figcaption>",
                       chart->index);
    else
        ls_text_add(page, "<figure class=\"single\"><figcaption>");
    ls_html_text(page, chart->title);
    ls_text_add(page, "</figcaption><ul class=\"last\">");
    for (int c = 0; c < chart->curve_count; c++)
        put_curve_figures(page, chart, &chart->curve[c]);
    ls_text_add(page, "</ul>");
    if (lines)
        draw_plot(page, chart);
    ls_text_add(page, "</figure>\n");
}

void ls_chart_figures(struct ls_text *page, const struct ls_chart *chart)
{
    struct lockstep_point points[LS_CHART_POINTS];
    ls_text_add(page, "{\"title\":");
    ls_html_json(page, chart->title);
    ls_text_add(page, ",\"curves\":[");
    for (int c = 0; c < chart->curve_count; c++) {
        const struct ls_curve *curve = &chart->curve[c];
        const size_t count = ls_chart_points(curve->series, points);
        ls_text_format(
            page, "%s{\"run\":%d,\"class\":\"r%d d%d\",\"smooth\":%s,\"name\":", c > 0 ? "," : "",
            curve->run, curve->colour, curve->dash, is_smoothed(curve) ? "true" : "false");
        ls_html_json(page, curve->name);
        ls_text_add(page, ",\"points\":[");
        for (size_t i = 0; i < count; i++)
            ls_text_format(page, "%s[%" PRId64 ",%.6g,%" PRId64 "]", i > 0 ? "," : "",
                           points[i].last, points[i].mean, points[i].count);
        ls_text_add(page, "]}");
    }
    ls_text_add(page, "]}");
}
