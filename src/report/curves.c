/* The curves of a page: one chart for each figure, of training and of tests. See report/page.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/units.h"
#include "report/chart.h"
#include "report/html.h"
#include "report/page.h"

enum { CHARTS = 2 * LS_LOG_SERIES };

/* The charts of a page, by their keys; each has a series that its place is found by. */
struct charts {
    const struct ls_series *of[CHARTS];
    size_t count;
};

/* ---- Which there are ------------------------------------------------------------------------- */

/* The outputs of a training net with one loss are that loss. */
static bool is_repeated(const struct lockstep_log *log, const struct ls_series *series)
{
    size_t outputs = 0;
    if (strncmp(series->name, "train/", 6) != 0 || ls_log_find(log, "loss") == NULL)
        return false;
    for (size_t i = 0; i < log->series_count; i++)
        outputs += strncmp(log->series[i].name, "train/", 6) == 0;
    return series->total || outputs == 1;
}

/* The penalty of a training without weight decay. */
static bool is_nothing(const struct ls_series *series)
{
    bool nothing = strcmp(series->name, "penalty") == 0;
    for (size_t i = 0; i < series->count && nothing; i++)
        nothing = series->points[i].least == 0 && series->points[i].most == 0;
    return nothing;
}

static bool is_shown(const struct lockstep_log *log, const struct ls_series *series)
{
    return series->count > 0 && !is_repeated(log, series) && !is_nothing(series);
}

static bool same_chart(const struct ls_series *a, const struct ls_series *b)
{
    return a->total == b->total && strcmp(ls_figure_key(a), ls_figure_key(b)) == 0;
}

/* In the place that its rank gives it, behind those of the same rank. */
static void add_chart(struct charts *charts, const struct ls_series *series)
{
    size_t at = charts->count;
    for (size_t k = 0; k < charts->count; k++)
        if (same_chart(charts->of[k], series)) {
            if (ls_figure_rank(charts->of[k]) <= ls_figure_rank(series))
                return;
            memmove(&charts->of[k], &charts->of[k + 1],
                    (--charts->count - k) * sizeof charts->of[0]);
            at = charts->count;
            break;
        }
    if (charts->count == CHARTS)
        return;
    while (at > 0 && ls_figure_rank(charts->of[at - 1]) > ls_figure_rank(series))
        at--;
    memmove(&charts->of[at + 1], &charts->of[at], (charts->count - at) * sizeof charts->of[0]);
    charts->of[at] = series;
    charts->count++;
}

static void find_charts(const struct ls_page *page, struct charts *charts)
{
    charts->count = 0;
    for (int l = 0; l < page->count; l++)
        for (size_t i = 0; i < page->logs[l]->series_count; i++)
            if (is_shown(page->logs[l], &page->logs[l]->series[i]))
                add_chart(charts, &page->logs[l]->series[i]);
}

/* ---- One chart ------------------------------------------------------------------------------- */

/* The number of a part ("training", "test") among those of the chart. */
static int part_number(const char *part, char parts[LS_CHART_CURVES][LS_FIGURE_NAME], int *count)
{
    int at = 0;
    while (at < *count && strcmp(parts[at], part) != 0)
        at++;
    if (at == *count && *count < LS_CHART_CURVES)
        snprintf(parts[(*count)++], LS_FIGURE_NAME, "%s", part);
    return at;
}

/* Colours tell the runs apart, or the parts of a single one; dashes the other of the two. */
static void fill_chart(const struct ls_page *page, const struct ls_series *of,
                       struct ls_chart *chart)
{
    char parts[LS_CHART_CURVES][LS_FIGURE_NAME], room[LS_FIGURE_NAME];
    int part[LS_CHART_CURVES], part_count = 0;
    chart->title = ls_figure_title(ls_figure_key(of));
    chart->curve_count = 0;
    for (int turn = 0; turn < 2 * page->count; turn++) { /* training before tests */
        const struct lockstep_log *log = page->logs[turn / 2];
        for (size_t i = 0; i < log->series_count; i++) {
            const struct ls_series *series = &log->series[i];
            if (!is_shown(log, series) || !same_chart(series, of) ||
                ls_figure_trains(series) != (turn % 2 == 0) ||
                chart->curve_count == LS_CHART_CURVES)
                continue;
            part[chart->curve_count] =
                part_number(ls_figure_part(series, room), parts, &part_count);
            chart->curve[chart->curve_count++] =
                (struct ls_curve){.series = series, .run = turn / 2};
        }
    }
    for (int c = 0; c < chart->curve_count; c++) {
        struct ls_curve *curve = &chart->curve[c];
        const char *own = parts[part[c]], *run = page->names[curve->run];
        curve->colour = (page->count > 1 ? curve->run : part[c]) % LS_CHART_RUNS;
        curve->dash = (part_count > 1 ? part[c] : curve->colour) % LS_CHART_RUNS;
        if (page->count > 1)
            snprintf(curve->name, sizeof curve->name, part_count > 1 ? "%.150s: %s" : "%.150s", run,
                     own);
        else if (part_count > 1 || strchr(curve->series->name, '/') != NULL)
            snprintf(curve->name, sizeof curve->name, "%s", own);
    }
}

/* ---- All of them ----------------------------------------------------------------------------- */

static struct ls_chart_axis find_axis(const struct ls_page *page)
{
    struct ls_chart_axis axis = {.from = INFINITY, .to = -INFINITY};
    for (int l = 0; l < page->count; l++) {
        const char *fact = ls_log_fact(page->logs[l], "iterations_per_epoch");
        const double epoch = fact != NULL ? ls_parse_double(fact) : 0;
        axis.epoch = l == 0 || epoch == axis.epoch ? epoch : 0;
        for (size_t i = 0; i < page->logs[l]->series_count; i++)
            ls_chart_widen(&axis, &page->logs[l]->series[i]);
    }
    if (!(axis.epoch > 0 && axis.to - axis.from > 0.05 * axis.epoch && axis.epoch < 1e15 &&
          axis.to < 1e15))
        axis.epoch = 0;
    return axis;
}

/* Which runs are shown. */
static void put_key(const struct ls_page *page)
{
    if (page->count < 2)
        return;
    ls_text_add(page->out, "<ul class=\"key\">");
    for (int r = 0; r < page->count; r++) {
        ls_text_format(page->out,
                       "<li><label><input class=\"controls\" type=\"checkbox\" checked "
                       "data-run=\"%d\"> <svg viewBox=\"0 0 30 10\" aria-hidden=\"true\"><path "
                       "class=\"line r%d d0\" d=\"M0 5H30\"/></svg>",
                       r, r);
        ls_html_text(page->out, page->names[r]);
        ls_text_add(page->out, "</label></li>");
    }
    ls_text_add(page->out, "</ul>\n");
}

static void put_figures(const struct ls_page *page, const struct ls_chart_axis *axis,
                        struct ls_text *figures)
{
    ls_text_format(page->out,
                   "<script type=\"application/json\" id=\"figures\">{\"from\":%.17g,\"to\":%.17g,"
                   "\"epoch\":%.17g,\"charts\":[\n",
                   axis->from, axis->to, axis->epoch);
    ls_text_add_bytes(page->out, figures->data != NULL ? figures->data : "", figures->length);
    ls_text_add(page->out, "]}</script>\n");
    page->out->failed = page->out->failed || figures->failed;
    ls_text_free(figures);
}

void ls_page_curves(const struct ls_page *page)
{
    struct charts charts;
    struct ls_text figures = {0}, singles = {0};
    find_charts(page, &charts);
    if (charts.count == 0)
        return;
    const struct ls_chart_axis axis = find_axis(page);
    ls_text_add(page->out,
                "<section><h2>Curves</h2>\n<div class=\"controls\">"
                "<label><input type=\"checkbox\" id=\"log\"> logarithmic</label>"
                "<label><input type=\"checkbox\" id=\"raw\" checked> raw values</label>"
                "<label>smoothing <input type=\"range\" id=\"smooth\" min=\"0\" max=\"100\" "
                "value=\"45\"></label></div>\n");
    put_key(page);
    ls_text_add(page->out, "<div class=\"charts\">\n");
    struct ls_chart *chart = ls_alloc(1, sizeof *chart);
    page->out->failed = page->out->failed || chart == NULL;
    for (size_t c = 0; c < charts.count && chart != NULL; c++) {
        fill_chart(page, charts.of[c], chart);
        chart->axis = axis;
        const bool lines = ls_chart_has_lines(chart);
        ls_chart_draw(lines ? page->out : &singles, chart);
        if (!lines)
            continue;
        ls_text_add(&figures, chart->index++ > 0 ? ",\n" : "");
        ls_chart_figures(&figures, chart);
    }
    ls_free(chart);
    ls_text_add(page->out, "</div>\n");
    if (singles.length > 0) {
        ls_text_add(page->out, "<div class=\"singles\">\n");
        ls_text_add_bytes(page->out, singles.data, singles.length);
        ls_text_add(page->out, "</div>\n");
    }
    page->out->failed = page->out->failed || singles.failed;
    ls_text_free(&singles);
    ls_text_add(page->out, "</section>\n");
    put_figures(page, &axis, &figures);
}
