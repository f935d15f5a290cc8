/* Sections of a page about classes. See report/page.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/html.h"
#include "report/page.h"

enum { MATRIX_MOST = 40 /* classes of a matrix that is shown */ };

static void put_class(struct ls_text *out, const struct lockstep_class_figures *figures,
                      size_t class)
{
    if (figures[class].name != NULL)
        ls_html_text(out, figures[class].name);
    else
        ls_text_format(out, "%zu", class);
}

/* A matrix whose cells are the darker the more of a row they have. */
static void put_matrix(struct ls_text *out, const struct lockstep_confusion *confusion)
{
    const size_t classes = confusion->classes;
    ls_text_add(out, "<div><p class=\"soft\">Rows: labels; columns: what they were taken for.</p>\n"
                     "<div class=\"scroll\" tabindex=\"0\"><table class=\"matrix\"><tr><th></th>");
    for (size_t c = 0; c < classes; c++) {
        ls_text_add(out, "<th class=\"c\">");
        put_class(out, confusion->figures, c);
        ls_text_add(out, "</th>");
    }
    ls_text_add(out, "</tr>\n");
    for (size_t i = 0; i < classes; i++) {
        ls_text_add(out, "<tr><th>");
        put_class(out, confusion->figures, i);
        ls_text_add(out, "</th>");
        for (size_t j = 0; j < classes; j++) {
            const int64_t cell = confusion->matrix[i * classes + j],
                          all = confusion->figures[i].count;
            ls_text_format(out, "<td style=\"background:rgba(var(--%s),%.2f)\">",
                           i == j ? "heat" : "miss",
                           all > 0 ? 0.6 * sqrt((double)cell / (double)all) : 0.0);
            ls_html_count(out, cell);
            ls_text_add(out, "</td>");
        }
        ls_text_add(out, "</tr>\n");
    }
    ls_text_add(out, "</table></div></div>\n");
}

/* `maps`: with the intersection over union. Classes that do not occur have no row. */
static void put_figures(struct ls_text *out, const struct lockstep_class_figures *all,
                        size_t classes, bool maps)
{
    ls_text_format(out,
                   "<div class=\"scroll\" tabindex=\"0\"><table><tr><th>class</th><th "
                   "class=\"n\">precision</th><th class=\"n\">recall</th><th class=\"n\">F1</th>%s"
                   "<th class=\"n\">count</th></tr>\n",
                   maps ? "<th class=\"n\">IoU</th>" : "");
    for (size_t c = 0; c < classes; c++) {
        const struct lockstep_class_figures *figures = &all[c];
        const double parts[] = {figures->precision, figures->recall, figures->f1, figures->iou};
        if (figures->count == 0 && figures->predicted == 0)
            continue;
        ls_text_add(out, "<tr><td class=\"w\">");
        put_class(out, all, c);
        ls_text_add(out, "</td>");
        for (int i = 0; i < (maps ? 4 : 3); i++) {
            if (isnan(parts[i]))
                ls_text_add(out, "<td class=\"n\">\xe2\x80\x93</td>");
            else
                ls_text_format(out, "<td class=\"n\">%.4f</td>", parts[i]);
        }
        ls_text_add(out, "<td class=\"n\">");
        ls_html_count(out, figures->count);
        ls_text_add(out, "</td></tr>\n");
    }
    ls_text_add(out, "</table></div>\n");
}

/* Which weights the figures are of. */
static void put_weights(const struct ls_page *page)
{
    if (page->options->weights == NULL)
        return;
    ls_text_add(page->out, "<p class=\"soft\">With the weights ");
    ls_html_text(page->out, page->options->weights);
    ls_text_add(page->out, "</p>\n");
}

/* How a net does that finds boxes. */
static void put_found(const struct ls_page *page)
{
    const struct lockstep_found_boxes *found = page->options->found;
    ls_text_add(page->out, "<section><h2>Boxes</h2>\n<p>Looked for in ");
    ls_html_count(page->out, found->samples);
    ls_text_add(page->out, found->judged
                               ? " samples. A box is right if it overlaps a true one of its class "
                                 "by half.</p>\n"
                               : " samples, whose true boxes are not known.</p>\n");
    put_weights(page);
    if (found->judged)
        put_figures(page->out, found->figures, found->classes, false);
    ls_text_add(page->out, "</section>\n");
}

void ls_page_confusion(const struct ls_page *page)
{
    const struct lockstep_confusion *confusion = page->options->confusion;
    if (page->options->found != NULL)
        put_found(page);
    if (confusion == NULL)
        return;
    ls_text_add(page->out, "<section><h2>Classes</h2>\n<p>Accuracy ");
    ls_html_number(page->out, confusion->accuracy);
    ls_text_add(page->out, " of ");
    ls_html_count(page->out, confusion->counted);
    ls_text_add(page->out, confusion->positions > 1 ? " positions" : " samples");
    if (confusion->positions > 1) {
        ls_text_add(page->out, ", mean intersection over union ");
        ls_html_number(page->out, confusion->mean_iou);
    }
    ls_text_add(page->out, ".");
    if (confusion->left_out > 0) {
        ls_text_add(page->out, " Labels that name no class: ");
        ls_html_count(page->out, confusion->left_out);
        ls_text_add(page->out, ".");
    }
    ls_text_add(page->out, "</p>\n");
    put_weights(page);
    ls_text_add(page->out, "<div class=\"beside\">\n");
    if (confusion->classes <= MATRIX_MOST)
        put_matrix(page->out, confusion);
    put_figures(page->out, confusion->figures, confusion->classes, confusion->positions > 1);
    ls_text_add(page->out, "</div></section>\n");
}
