/* How runs stand: the head of a page. See report/page.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "report/figure.h"
#include "report/html.h"
#include "report/page.h"

enum { TESTS = 5 /* figures of tests that there is room for */ };

/* ---- Where a run is -------------------------------------------------------------------------- */

/* Whether a log without an end is one that is still written to. */
static bool is_running(const struct ls_page *page, const struct lockstep_log *log)
{
    enum { PATIENCE = 120 /* seconds */, UPDATES = 10 };
    const int64_t updates = log->state.iteration - log->first;
    const double slow = updates > 0 ? UPDATES * log->elapsed / (double)updates : 0;
    if (log->state.ended)
        return false;
    return page->options->refresh > 0 ||
           (log->written > 0 && difftime(time(NULL), log->written) < fmax(PATIENCE, slow));
}

static void put_state(const struct ls_page *page, const struct lockstep_log *log)
{
    const struct lockstep_log_state *state = &log->state;
    const char *most = ls_log_fact(log, "max_iter");
    if (state->ended && (most == NULL || (double)state->iteration >= ls_parse_double(most)))
        ls_text_add(page->out, "done");
    else if (state->ended)
        ls_text_format(page->out, "stopped before %.20s", most);
    else
        ls_text_add(page->out, is_running(page, log) ? "running" : "interrupted");
    if (state->runs > 1)
        ls_text_format(page->out, ", resumed %s", state->runs == 2 ? "once" : "several times");
}

/* The part of its updates that a run which is not done has; NaN: that is not known. */
static double part_done(const struct lockstep_log *log)
{
    const struct lockstep_log_state *state = &log->state;
    return !state->ended && state->iteration_end > 0
               ? fmin((double)state->iteration / (double)state->iteration_end, 1)
               : (double)NAN;
}

/* Seconds to the end, as fast as the present run is; NaN: that is not known. */
static double time_left(const struct lockstep_log *log)
{
    const double done = (double)(log->state.iteration - log->first);
    if (!(done > 0 && log->elapsed > 0) || isnan(part_done(log)))
        return (double)NAN;
    return log->elapsed / done * fmax((double)(log->state.iteration_end - log->state.iteration), 0);
}

static void put_time_left(const struct ls_page *page, const struct lockstep_log *log)
{
    const double left = time_left(log);
    if (isnan(left) || !is_running(page, log))
        return;
    ls_text_add(page->out, ", about ");
    ls_html_time(page->out, left < 60 ? ceil(left) : left);
    ls_text_add(page->out, " left");
}

static void put_progress(const struct ls_page *page, const struct lockstep_log *log)
{
    const double part = part_done(log);
    if (isnan(part))
        return;
    ls_text_format(page->out,
                   "<div class=\"progress\" role=\"progressbar\" aria-valuemin=\"0\" "
                   "aria-valuemax=\"100\" aria-valuenow=\"%.0f\"><span style=\"width:%.1f%%\">"
                   "</span></div>\n<p>%.0f %%",
                   100 * part, 100 * part, floor(100 * part));
    put_time_left(page, log);
    ls_text_add(page->out, "</p>\n");
}

static void put_updates(const struct ls_page *page, const struct lockstep_log *log)
{
    ls_html_count(page->out, log->state.iteration);
    if (log->state.iteration_end > log->state.iteration) {
        ls_text_add(page->out, " of ");
        ls_html_count(page->out, log->state.iteration_end);
    }
}

/* ---- Figures --------------------------------------------------------------------------------- */

/* The outputs of tests, the most important first, as far as there is room. */
static size_t list_tests(const struct ls_page *page, const struct ls_series *tests[TESTS])
{
    size_t count = 0;
    for (int l = 0; l < page->count; l++)
        for (size_t i = 0; i < page->logs[l]->series_count; i++) {
            const struct ls_series *series = &page->logs[l]->series[i];
            bool known = ls_figure_trains(series) || series->count == 0;
            for (size_t k = 0; k < count; k++)
                known = known || strcmp(tests[k]->name, series->name) == 0;
            size_t at = count;
            while (at > 0 && ls_figure_rank(tests[at - 1]) > ls_figure_rank(series))
                at--;
            if (known || at == TESTS)
                continue;
            count += count < TESTS;
            memmove(&tests[at + 1], &tests[at], (count - 1 - at) * sizeof *tests);
            tests[at] = series;
        }
    return count;
}

/* "accuracy", "Loss, test". */
static void put_name(const struct ls_page *page, const struct ls_series *series)
{
    char room[LS_FIGURE_NAME];
    const char *part = ls_figure_part(series, room);
    ls_html_text(page->out, ls_figure_title(ls_figure_key(series)));
    if (series->total || (!ls_figure_trains(series) && strcmp(part, "test") != 0)) {
        ls_text_add(page->out, ", ");
        ls_html_text(page->out, part);
    }
}

static double last_of(const struct ls_series *series)
{
    return series != NULL && series->count > 0 ? series->last : (double)NAN;
}

/* ---- One run --------------------------------------------------------------------------------- */

static void begin_tile(const struct ls_page *page, const char *name)
{
    ls_text_format(page->out, "<div><dt>%s</dt><dd>", name);
}

static void end_tile(const struct ls_page *page)
{
    ls_text_add(page->out, "</dd></div>\n");
}

static void put_figure_tile(const struct ls_page *page, const struct ls_series *series)
{
    double best;
    int64_t at;
    if (series == NULL || series->count == 0)
        return;
    ls_text_add(page->out, "<div><dt>");
    put_name(page, series);
    ls_text_add(page->out, "</dt><dd>");
    ls_html_number(page->out, last_of(series));
    if (series->count > 1 && !ls_figure_trains(series) && ls_figure_best(series, &best, &at)) {
        ls_text_add(page->out, "<small>best ");
        ls_html_number(page->out, best);
        ls_text_add(page->out, " at ");
        ls_html_count(page->out, at);
        ls_text_add(page->out, "</small>");
    }
    end_tile(page);
}

static void put_tiles(const struct ls_page *page, const struct lockstep_log *log)
{
    const struct ls_series *tests[TESTS];
    const size_t count = list_tests(page, tests);
    const char *epoch = ls_log_fact(log, "iterations_per_epoch");
    const double updates = epoch != NULL ? ls_parse_double(epoch) : 0;
    put_progress(page, log);
    ls_text_add(page->out, "<dl class=\"tiles\">\n");
    begin_tile(page, "State");
    put_state(page, log);
    end_tile(page);
    begin_tile(page, "Updates");
    put_updates(page, log);
    if (updates > 0)
        ls_text_format(page->out, "<small>epoch %.3g</small>",
                       (double)log->state.iteration / updates);
    end_tile(page);
    begin_tile(page, "Time");
    ls_html_time(page->out, log->earlier + log->elapsed);
    end_tile(page);
    put_figure_tile(page, ls_log_find(log, "loss"));
    for (size_t t = 0; t < count; t++)
        put_figure_tile(page, tests[t]);
    put_figure_tile(page, ls_log_find(log, "samples_per_second"));
    if (log->hash[0] != '\0')
        ls_text_format(page->out,
                       "<div><dt>Hash of the weights</dt><dd><code>%.16s</code></dd></div>\n",
                       log->hash);
    ls_text_add(page->out, "</dl>\n");
}

/* ---- Several --------------------------------------------------------------------------------- */

static void put_last(const struct ls_page *page, const struct lockstep_log *log, const char *name)
{
    ls_text_add(page->out, "<td class=\"n\">");
    ls_html_number(page->out, last_of(ls_log_find(log, name)));
    ls_text_add(page->out, "</td>");
}

static void put_row(const struct ls_page *page, int run, const struct ls_series *const *tests,
                    size_t count)
{
    const struct lockstep_log *log = page->logs[run];
    ls_text_add(page->out, "<tr><th class=\"w\">");
    ls_html_text(page->out, page->names[run]);
    ls_text_add(page->out, "</th><td>");
    put_state(page, log);
    put_time_left(page, log);
    ls_text_add(page->out, "</td><td class=\"n\">");
    put_updates(page, log);
    ls_text_add(page->out, "</td><td class=\"n\">");
    ls_html_time(page->out, log->earlier + log->elapsed);
    ls_text_add(page->out, "</td>");
    put_last(page, log, "loss");
    for (size_t t = 0; t < count; t++)
        put_last(page, log, tests[t]->name);
    put_last(page, log, "samples_per_second");
    ls_text_format(page->out, "<td><code>%.16s</code></td></tr>\n", log->hash);
}

static void put_table(const struct ls_page *page)
{
    const struct ls_series *tests[TESTS];
    const size_t count = list_tests(page, tests);
    ls_text_add(page->out, "<div class=\"scroll\" tabindex=\"0\"><table class=\"held\">"
                           "<tr><th>Run</th><th>State</th><th class=\"n\">Updates</th>"
                           "<th class=\"n\">Time</th><th class=\"n\">Loss, training</th>");
    for (size_t t = 0; t < count; t++) {
        ls_text_add(page->out, "<th class=\"n\">");
        put_name(page, tests[t]);
        ls_text_add(page->out, "</th>");
    }
    ls_text_add(page->out,
                "<th class=\"n\">Samples per second</th><th>Hash of the weights</th></tr>\n");
    for (int r = 0; r < page->count; r++)
        put_row(page, r, tests, count);
    ls_text_add(page->out, "</table></div>\n");
}

static void put_complaints(const struct ls_page *page, int run)
{
    const struct lockstep_log_state *state = &page->logs[run]->state;
    if (state->bad == 0 && state->missing == 0 && !state->cut_off)
        return;
    ls_text_add(page->out, "<p class=\"bad\">");
    ls_html_text(page->out, page->names[run]);
    ls_text_add(page->out, ":");
    if (state->bad > 0)
        ls_text_format(page->out,
                       " %" PRId64 " line%s of the log %s no event and left out (the first is "
                       "line %" PRId64 ").",
                       state->bad, state->bad == 1 ? "" : "s", state->bad == 1 ? "is" : "are",
                       state->first_bad);
    if (state->cut_off)
        ls_text_add(page->out, " The last line of the log is cut off.");
    if (state->missing > 0)
        ls_text_format(page->out, " %" PRId64 " value%s not finite.", state->missing,
                       state->missing == 1 ? " is" : "s are");
    ls_text_add(page->out, "</p>\n");
}

void ls_page_summary(const struct ls_page *page)
{
    ls_text_add(page->out, "<section>");
    if (page->count == 1)
        put_tiles(page, page->logs[0]);
    else
        put_table(page);
    for (int r = 0; r < page->count; r++)
        put_complaints(page, r);
    ls_text_add(page->out, "</section>\n");
}
