/* A page in HTML. See report/page.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "report/page.h"

#include <stdio.h>
#include <string.h>

#include "base/atomic_file.h"
#include "base/memory.h"
#include "report/chart.h"
#include "report/html.h"

enum { CHARTS = 2 * LS_LOG_SERIES };

/* ---- Curves ---------------------------------------------------------------------------------- */

/* The order of the charts; a name that ends with '/' is that of a group. */
static const char *const order[] = {
    "loss",          "test/",       "test ",       "train data/",        "train/", "learning_rate",
    "gradient_norm", "weight_norm", "update_norm", "samples_per_second", "penalty"};

static size_t rank_of(const char *name)
{
    const size_t count = sizeof order / sizeof *order;
    for (size_t i = 0; i < count; i++) {
        const size_t length = strlen(order[i]);
        const bool group = strchr("/ ", order[i][length - 1]) != NULL;
        if (group ? strncmp(name, order[i], length) == 0 : strcmp(name, order[i]) == 0)
            return i;
    }
    return count;
}

/* The outputs of a training net with one loss are that loss. */
static bool is_repeated(const struct ls_page *page, const char *name)
{
    size_t outputs = 0;
    if (strncmp(name, "train/", 6) != 0)
        return false;
    for (size_t i = 0; i < page->logs[0]->series_count; i++)
        outputs += strncmp(page->logs[0]->series[i].name, "train/", 6) == 0;
    return outputs == 1;
}

/* The penalty of a training without weight decay. */
static bool is_nothing(const struct ls_series *series)
{
    bool nothing = strcmp(series->name, "penalty") == 0;
    for (size_t i = 0; i < series->count && nothing; i++)
        nothing = series->points[i].least == 0 && series->points[i].most == 0;
    return nothing;
}

/* The names of all series of all logs, in order; how many. */
static size_t list_charts(const struct ls_page *page, const char *names[CHARTS])
{
    size_t count = 0;
    for (size_t rank = 0; rank <= sizeof order / sizeof *order; rank++)
        for (int l = 0; l < page->count; l++)
            for (size_t i = 0; i < page->logs[l]->series_count; i++) {
                const struct ls_series *series = &page->logs[l]->series[i];
                bool known = is_repeated(page, series->name) || is_nothing(series);
                for (size_t k = 0; k < count; k++)
                    known = known || strcmp(names[k], series->name) == 0;
                if (!known && series->count > 0 && rank_of(series->name) == rank && count < CHARTS)
                    names[count++] = series->name;
            }
    return count;
}

/* Which curve is whose. */
static void put_key(const struct ls_page *page)
{
    if (page->count < 2)
        return;
    ls_text_add(page->out, "<ul class=\"key\">");
    for (int r = 0; r < page->count; r++) {
        ls_text_format(page->out,
                       "<li><label><input class=\"controls\" type=\"checkbox\" checked "
                       "data-run=\"%d\"> <svg viewBox=\"0 0 30 10\" aria-hidden=\"true\"><path "
                       "class=\"line r%d\" d=\"M0 5H30\"/></svg>",
                       r, r);
        ls_html_text(page->out, page->names[r]);
        ls_text_add(page->out, "</label></li>");
    }
    ls_text_add(page->out, "</ul>\n");
}

void ls_page_curves(const struct ls_page *page)
{
    const char *names[CHARTS];
    const size_t count = list_charts(page, names);
    if (count == 0)
        return;
    ls_text_add(page->out,
                "<section><h2>Curves</h2>\n<div class=\"controls\">"
                "<label><input type=\"checkbox\" id=\"log\"> logarithmic</label>"
                "<label><input type=\"checkbox\" id=\"raw\" checked> raw figures</label>"
                "<label>smoothing <input type=\"range\" id=\"smooth\" min=\"0\" max=\"100\" "
                "value=\"45\"></label></div>\n");
    put_key(page);
    ls_text_add(page->out, "<div class=\"charts\">\n");
    struct ls_text figures = {0};
    for (size_t c = 0; c < count; c++) {
        struct ls_chart chart = {.name = names[c], .run_count = page->count, .index = (int)c};
        for (int l = 0; l < page->count; l++) {
            chart.series[l] = ls_log_find(page->logs[l], names[c]);
            chart.runs[l] = page->names[l];
        }
        ls_chart_draw(page->out, &chart);
        ls_text_add(&figures, c > 0 ? ",\n" : "");
        ls_chart_figures(&figures, &chart);
    }
    ls_text_add(page->out, "</div>\n<p class=\"soft\">Below each curve: updates done.</p>"
                           "</section>\n<script type=\"application/json\" id=\"figures\">"
                           "{\"runs\":[");
    for (int r = 0; r < page->count; r++) {
        ls_text_add(page->out, r > 0 ? "," : "");
        ls_html_json(page->out, page->names[r]);
    }
    ls_text_add(page->out, "],\"charts\":[\n");
    ls_text_add_bytes(page->out, figures.data != NULL ? figures.data : "", figures.length);
    ls_text_add(page->out, "]}</script>\n");
    page->out->failed = page->out->failed || figures.failed;
    ls_text_free(&figures);
}

/* ---- The page -------------------------------------------------------------------------------- */

static void put_head(const struct ls_page *page, const char *title)
{
    ls_text_add(page->out, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                           "<meta name=\"viewport\" content=\"width=device-width,"
                           "initial-scale=1\">\n"
                           "<meta name=\"generator\" content=\"lockstep\">\n"
                           /* Nothing is loaded from anywhere, whatever a log may hold. */
                           "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
                           "'none';style-src 'unsafe-inline';script-src 'unsafe-inline';"
                           "img-src data:\">\n");
    if (page->options->refresh > 0)
        ls_text_format(page->out, "<meta http-equiv=\"refresh\" content=\"%d\">\n",
                       page->options->refresh);
    ls_text_add(page->out, "<title>");
    ls_html_text(page->out, title);
    ls_text_add(page->out, "</title>\n<style>\n");
    ls_text_add(page->out, ls_page_style);
    ls_text_add(page->out, "</style></head>\n<body>\n<header><h1>");
    ls_html_text(page->out, title);
    ls_text_add(page->out, "</h1></header>\n<main>\n");
}

static void put_net(const struct ls_page *page)
{
    if (page->options->net != NULL) {
        ls_text_add(page->out,
                    "<section><h2>The net</h2>\n<div class=\"scroll net\" tabindex=\"0\" "
                    "aria-label=\"the net as a graph\">\n");
        ls_text_add(page->out, page->options->net);
        ls_text_add(page->out, "</div></section>\n");
    }
    if (page->options->definition == NULL)
        return;
    ls_text_add(page->out, "<section><h2>Definition</h2>\n<details><summary>The text of the "
                           "definition</summary><pre tabindex=\"0\">");
    ls_html_text(page->out, page->options->definition);
    ls_text_add(page->out, "</pre></details></section>\n");
}

static int put_page(const struct ls_page *page, const char *title, struct ls_error *error)
{
    put_head(page, title);
    ls_page_summary(page);
    ls_page_parting(page);
    ls_page_curves(page);
    ls_page_confusion(page);
    LS_TRY(ls_page_pictures(page, error));
    ls_page_spreads(page);
    ls_page_parameters(page);
    LS_TRY(ls_page_times(page, error));
    put_net(page);
    ls_page_facts(page);
    ls_page_messages(page);
    ls_text_format(page->out,
                   "</main>\n<footer>Written by lockstep report.</footer>\n"
                   "<script>%s</script>\n</body></html>\n",
                   ls_page_script);
    return 0;
}

int ls_page_write(const char *path, const struct lockstep_log *const *logs, size_t count,
                  const struct lockstep_page_options *options, struct ls_error *error)
{
    char number[LS_CHART_RUNS][24];
    const char *names[LS_CHART_RUNS];
    struct ls_text text = {0}, title = {0};
    if (count == 0 || count > LS_CHART_RUNS)
        return ls_fail(error, LOCKSTEP_USAGE, NULL, NULL, "a page shows 1 to %d logs, not %zu",
                       LS_CHART_RUNS, count);
    for (size_t i = 0; i < count; i++) {
        snprintf(number[i], sizeof number[i], "run %zu", i + 1);
        names[i] = options->names != NULL ? options->names[i] : number[i];
        ls_text_add(&title, i > 0 ? ", " : "");
        ls_text_add(&title, names[i]);
    }
    struct ls_page page = {
        .out = &text, .logs = logs, .count = (int)count, .names = names, .options = options};
    int status = 0;
    if (title.failed)
        status = ls_fail_memory(error, path);
    if (status == 0)
        status = put_page(&page, options->title != NULL ? options->title : title.data, error);
    if (status == 0 && text.failed)
        status = ls_fail_memory(error, path);
    if (status == 0)
        status = ls_atomic_replace(path, text.data, text.length, error);
    ls_text_free(&text);
    ls_text_free(&title);
    return status;
}
