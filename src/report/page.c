/* A page in HTML. See report/page.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "report/page.h"

#include <stdio.h>
#include <string.h>

#include "base/atomic_file.h"
#include "base/memory.h"
#include "report/chart.h"
#include "report/html.h"

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

/* What the page is about: the net, where all runs have the same, and the runs. */
static void put_title(const struct lockstep_log *const *logs, const char *const *names,
                      size_t count, struct ls_text *title)
{
    const char *net = ls_log_fact(logs[0], "net");
    for (size_t i = 1; i < count && net != NULL; i++) {
        const char *other = ls_log_fact(logs[i], "net");
        if (other == NULL || strcmp(other, net) != 0)
            net = NULL;
    }
    if (net != NULL && *net != '\0')
        ls_text_add(title, net);
    for (size_t i = 0; i < count && (count > 1 || title->length == 0); i++) {
        ls_text_add(title, i > 0 ? ", " : title->length > 0 ? ": " : "");
        ls_text_add(title, names[i]);
    }
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
    }
    put_title(logs, names, count, &title);
    struct ls_page page = {
        .out = &text, .logs = logs, .count = (int)count, .names = names, .options = options};
    int status = 0;
    if (title.failed)
        status = ls_fail_memory(error, path);
    if (status == 0)
        status = put_page(&page,
                          options->title != NULL ? options->title
                          : title.data != NULL   ? title.data
                                                 : "",
                          error);
    if (status == 0 && text.failed)
        status = ls_fail_memory(error, path);
    if (status == 0)
        status = ls_atomic_replace(path, text.data, text.length, error);
    ls_text_free(&text);
    ls_text_free(&title);
    return status;
}
