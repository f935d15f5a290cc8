/* Sections of a page in words and tables. See report/page.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "report/html.h"
#include "report/page.h"
#include "report/parting.h"

/* ---- Two runs -------------------------------------------------------------------------------- */

static void put_losses(const struct ls_page *page, const struct lockstep_parting *parting)
{
    if (parting->common == 0) {
        ls_text_add(page->out, "<p>The two logs have no update in common.</p>\n");
        return;
    }
    if (parting->differs_by == 0) {
        ls_text_format(page->out,
                       "<p class=\"good\">All %" PRId64 " losses that both logs have are equal, "
                       "to the last bit.</p>\n",
                       parting->common);
        return;
    }
    ls_text_add(page->out, "<p>The losses ");
    if (parting->same_until > 0)
        ls_text_format(page->out, "are equal up to update %" PRId64 " and ", parting->same_until);
    ls_text_format(page->out, "differ by update %" PRId64 ": ", parting->differs_by);
    ls_text_format(page->out, "%.9g and %.9g, by %.3g. ", parting->first, parting->second,
                   fabs(parting->first - parting->second));
    ls_text_format(page->out, "The largest difference is %.3g, at update %" PRId64 ".</p>\n",
                   parting->largest, parting->largest_iteration);
}

void ls_page_parting(const struct ls_page *page)
{
    struct lockstep_parting parting;
    if (page->count != 2)
        return;
    ls_log_compare(page->logs[0], page->logs[1], &parting);
    ls_text_add(page->out, "<section><h2>Where the two runs part</h2>\n");
    put_losses(page, &parting);
    if (parting.weights_differ_by > 0 && parting.weights_same_until >= 0)
        ls_text_format(page->out,
                       "<p>The hashes of the weights are equal up to update %" PRId64
                       " and differ at %" PRId64 ".</p>\n",
                       parting.weights_same_until, parting.weights_differ_by);
    else if (parting.weights_differ_by > 0)
        ls_text_format(page->out,
                       "<p>The hashes of the weights differ from the first that both have, at "
                       "update %" PRId64 ".</p>\n",
                       parting.weights_differ_by);
    else if (parting.weights_same_until >= 0)
        ls_text_format(page->out,
                       "<p class=\"good\">The hashes of the weights are equal up to the last that "
                       "both have, at update %" PRId64 ".</p>\n",
                       parting.weights_same_until);
    ls_text_add(page->out, "</section>\n");
}

/* ---- Parameters ------------------------------------------------------------------------------ */

static void put_parameters(const struct ls_page *page, const struct lockstep_log *log)
{
    ls_text_add(page->out, "<div class=\"scroll\" tabindex=\"0\"><table><tr><th>parameter</th>"
                           "<th class=\"n\">weights</th><th class=\"n\">gradient</th>"
                           "<th class=\"n\">update</th><th class=\"n\">update / weights</th>"
                           "</tr>\n");
    for (size_t i = 0; i < log->parameter_count; i++) {
        const struct lockstep_log_parameter *p = &log->parameters[i];
        const double figures[] = {p->weight_norm, p->gradient_norm, p->update_norm,
                                  p->weight_norm > 0 ? p->update_norm / p->weight_norm : NAN};
        ls_text_add(page->out, "<tr><td>");
        ls_html_text(page->out, p->name);
        ls_text_add(page->out, "</td>");
        for (size_t f = 0; f < sizeof figures / sizeof *figures; f++) {
            ls_text_add(page->out, "<td class=\"n\">");
            ls_html_number(page->out, figures[f]);
            ls_text_add(page->out, "</td>");
        }
        ls_text_add(page->out, "</tr>\n");
    }
    ls_text_add(page->out, "</table></div>\n");
}

void ls_page_parameters(const struct ls_page *page)
{
    bool begun = false;
    for (int r = 0; r < page->count; r++) {
        if (page->logs[r]->parameter_count == 0)
            continue;
        if (!begun)
            ls_text_add(page->out, "<section><h2>Norms of the parameters</h2>\n");
        begun = true;
        ls_text_add(page->out, "<details><summary>At the last display of ");
        ls_html_text(page->out, page->names[r]);
        ls_text_add(page->out, "</summary>\n");
        put_parameters(page, page->logs[r]);
        ls_text_add(page->out, "</details>\n");
    }
    if (begun)
        ls_text_add(page->out, "</section>\n");
}

/* ---- Facts ----------------------------------------------------------------------------------- */

static bool differ(const struct ls_page *page, const char *name)
{
    const char *first = ls_log_fact(page->logs[0], name);
    for (int r = 1; r < page->count; r++) {
        const char *other = ls_log_fact(page->logs[r], name);
        if ((first == NULL) != (other == NULL) ||
            (first != NULL && other != NULL && strcmp(first, other) != 0))
            return true;
    }
    return false;
}

/* Sizes and counts of operations in units that people read. */
static void put_value(const struct ls_page *page, const char *name, const char *value)
{
    const double number = ls_parse_double(value);
    char text[LS_UNITS_ROOM];
    if (strncmp(name, "memory", 6) == 0 && number > 0)
        ls_text_add(page->out, ls_format_size(text, number));
    else if (strcmp(name, "flops_per_sample") == 0 && number > 0)
        ls_text_add(page->out, ls_format_flops(text, number));
    else if (strncmp(name, "memory", 6) == 0)
        ls_text_add(page->out, "none");
    else
        ls_html_text(page->out, value);
}

static void put_fact(const struct ls_page *page, const char *name)
{
    ls_text_format(page->out, "<tr%s><th>", differ(page, name) ? " class=\"differs\"" : "");
    for (const char *c = name; *c != '\0';) { /* "parameters_learned": as words */
        char word[64];
        const size_t length = strcspn(c, "_");
        snprintf(word, sizeof word, "%.*s", length < 60 ? (int)length : 60, c);
        ls_html_text(page->out, word);
        c += length + (c[length] == '_');
        ls_text_add(page->out, *c != '\0' ? " " : "");
    }
    ls_text_add(page->out, "</th>");
    for (int r = 0; r < page->count; r++) {
        const char *value = ls_log_fact(page->logs[r], name);
        ls_text_add(page->out, "<td class=\"w\">");
        put_value(page, name, value != NULL ? value : "");
        ls_text_add(page->out, "</td>");
    }
    ls_text_add(page->out, "</tr>\n");
}

void ls_page_facts(const struct ls_page *page)
{
    size_t facts = 0;
    for (int r = 0; r < page->count; r++)
        facts += page->logs[r]->fact_count;
    if (facts == 0)
        return;
    ls_text_format(page->out,
                   "<section><h2>The run%s</h2>\n<div class=\"scroll\" tabindex=\"0\"><table>"
                   "<tr><th></th>",
                   page->count > 1 ? "s" : "");
    for (int r = 0; r < page->count; r++) {
        ls_text_add(page->out, "<th>");
        ls_html_text(page->out, page->names[r]);
        ls_text_add(page->out, "</th>");
    }
    ls_text_add(page->out, "</tr>\n");
    for (int r = 0; r < page->count; r++)
        for (size_t i = 0; i < page->logs[r]->fact_count; i++) {
            const char *name = page->logs[r]->facts[i].name;
            bool shown = false;
            for (int before = 0; before < r; before++)
                shown = shown || ls_log_fact(page->logs[before], name) != NULL;
            if (!shown)
                put_fact(page, name);
        }
    ls_text_add(page->out, "</table></div></section>\n");
}

void ls_page_messages(const struct ls_page *page)
{
    for (int r = 0; r < page->count; r++) {
        const struct lockstep_log *log = page->logs[r];
        if (log->message_count == 0)
            continue;
        ls_text_add(page->out,
                    r == 0 ? "<section><h2>What the program said</h2>\n" : "<section>\n");
        ls_text_add(page->out, "<details><summary>");
        ls_html_text(page->out, page->names[r]);
        ls_text_format(page->out, ", %zu lines</summary><pre tabindex=\"0\">", log->message_count);
        for (size_t i = 0; i < log->message_count; i++) {
            const struct lockstep_log_message *message = &log->messages[i];
            if (strcmp(message->kind, "start") != 0)
                ls_text_format(page->out, "[%s at %" PRId64 "] ", message->kind,
                               message->iteration);
            ls_html_text(page->out, message->text);
            ls_text_add(page->out, "\n");
        }
        ls_text_add(page->out, "</pre></details></section>\n");
    }
}
