/* Sections of a page about classes and samples. See report/page.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "data/picture_write.h"
#include "report/html.h"
#include "report/page.h"

enum { MATRIX_MOST = 40 /* classes of a matrix that is shown */ };

static void put_class(struct ls_text *out, const struct lockstep_confusion *confusion, size_t class)
{
    const char *name = confusion->figures[class].name;
    if (name != NULL)
        ls_html_text(out, name);
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
        put_class(out, confusion, c);
        ls_text_add(out, "</th>");
    }
    ls_text_add(out, "</tr>\n");
    for (size_t i = 0; i < classes; i++) {
        ls_text_add(out, "<tr><th>");
        put_class(out, confusion, i);
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

static void put_figures(struct ls_text *out, const struct lockstep_confusion *confusion)
{
    const bool maps = confusion->positions > 1;
    ls_text_format(out,
                   "<div class=\"scroll\" tabindex=\"0\"><table><tr><th>class</th><th "
                   "class=\"n\">precision</th><th class=\"n\">recall</th><th class=\"n\">F1</th>%s"
                   "<th class=\"n\">count</th></tr>\n",
                   maps ? "<th class=\"n\">IoU</th>" : "");
    for (size_t c = 0; c < confusion->classes; c++) {
        const struct lockstep_class_figures *figures = &confusion->figures[c];
        const double parts[] = {figures->precision, figures->recall, figures->f1, figures->iou};
        ls_text_add(out, "<tr><td class=\"w\">");
        put_class(out, confusion, c);
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

void ls_page_confusion(const struct ls_page *page)
{
    const struct lockstep_confusion *confusion = page->options->confusion;
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
    ls_text_add(page->out, "<div class=\"beside\">\n");
    if (confusion->classes <= MATRIX_MOST)
        put_matrix(page->out, confusion);
    put_figures(page->out, confusion);
    ls_text_add(page->out, "</div></section>\n");
}

/* ---- Pictures -------------------------------------------------------------------------------- */

static void put_base64(struct ls_text *out, const uint8_t *bytes, size_t size)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < size; i += 3) {
        const uint32_t next = i + 1 < size ? bytes[i + 1] : 0,
                       last = i + 2 < size ? bytes[i + 2] : 0;
        const uint32_t all = (uint32_t)bytes[i] << 16 | next << 8 | last;
        const char four[4] = {digits[all >> 18], digits[all >> 12 & 63],
                              i + 1 < size ? digits[all >> 6 & 63] : '=',
                              i + 2 < size ? digits[all & 63] : '='};
        ls_text_add_bytes(out, four, 4);
    }
}

/* The planes as files have them: blue, green, red. */
static int put_picture(struct ls_text *out, const struct lockstep_page_picture *picture,
                       struct ls_error *error)
{
    const int64_t *shape = picture->shape;
    uint8_t *planes = NULL, *file = NULL;
    int64_t size;
    size_t length;
    if ((shape[0] != 1 && shape[0] != 3) || shape[1] < 1 || shape[2] < 1 || shape[1] > 16384 ||
        shape[2] > 16384 || !ls_multiply(shape[1], shape[2], &size))
        return ls_fail(error, LOCKSTEP_USAGE, NULL, NULL,
                       "a picture of a page has 1 or 3 planes of at most 16384 x 16384");
    planes = ls_alloc((size_t)(shape[0] * size), 1);
    if (planes == NULL)
        return ls_fail_memory(error, "a picture");
    for (int64_t c = 0; c < shape[0]; c++)
        memcpy(planes + (shape[0] - 1 - c) * size, picture->planes + c * size, (size_t)size);
    int status = ls_picture_encode(planes, shape, "png", &file, &length, error);
    ls_free(planes);
    LS_TRY(status);
    ls_text_format(out, "<figure class=\"sample%s\"><img alt=\"",
                   picture->mark > 0   ? " good"
                   : picture->mark < 0 ? " bad"
                                       : "");
    ls_html_text(out, picture->caption);
    ls_text_add(out, "\" src=\"data:image/png;base64,");
    put_base64(out, file, length);
    ls_text_add(out, "\"><figcaption>");
    ls_html_text(out, picture->caption);
    ls_text_add(out, "</figcaption></figure>\n");
    ls_free(file);
    return 0;
}

int ls_page_pictures(const struct ls_page *page, struct ls_error *error)
{
    const struct lockstep_page_options *options = page->options;
    if (options->picture_count == 0)
        return 0;
    ls_text_add(page->out, "<section><h2>");
    ls_html_text(page->out, options->pictures_title != NULL ? options->pictures_title : "Samples");
    ls_text_add(page->out, "</h2>\n<div class=\"samples\">\n");
    for (size_t i = 0; i < options->picture_count; i++)
        LS_TRY(put_picture(page->out, &options->pictures[i], error));
    ls_text_add(page->out, "</div></section>\n");
    return 0;
}
