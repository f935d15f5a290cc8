/* Pictures of samples on a page, with boxes over them. See report/page.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "data/picture_write.h"
#include "report/html.h"
#include "report/page.h"

enum { SIDE = 512 /* pixels that a picture has at most: larger ones become smaller */ };

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

/* The mean of the pixels of a square of `step` x `step`, less at the right and lower edges. */
static uint8_t mean_of(const unsigned char *plane, const int64_t shape[3], int64_t y, int64_t x,
                       int64_t step)
{
    const int64_t below = y + step < shape[1] ? y + step : shape[1];
    const int64_t right = x + step < shape[2] ? x + step : shape[2];
    const int64_t count = (below - y) * (right - x);
    int64_t sum = 0;
    if (count <= 0) /* it begins outside */
        return 0;
    for (int64_t i = y; i < below; i++)
        for (int64_t j = x; j < right; j++)
            sum += plane[i * shape[2] + j];
    return (uint8_t)((sum + count / 2) / count);
}

/* The planes as files have them: blue, green, red. Smaller where the picture is large: `out` is
 * what it becomes. NULL: no memory. */
static uint8_t *planes_of(const struct lockstep_page_picture *picture, int64_t out[3])
{
    const int64_t *shape = picture->shape;
    const int64_t largest = shape[1] > shape[2] ? shape[1] : shape[2],
                  step = (largest + SIDE - 1) / SIDE;
    out[0] = shape[0];
    out[1] = (shape[1] + step - 1) / step;
    out[2] = (shape[2] + step - 1) / step;
    uint8_t *planes = ls_alloc((size_t)(out[0] * out[1] * out[2]), 1), *at = planes;
    for (int64_t c = shape[0] - 1; c >= 0 && planes != NULL; c--)
        for (int64_t y = 0; y < shape[1]; y += step)
            for (int64_t x = 0; x < shape[2]; x += step)
                *at++ = mean_of(picture->planes + c * shape[1] * shape[2], shape, y, x, step);
    return planes;
}

/* The units of the drawing over a picture: its width, and the height in proportion. */
static const double units = 300;

static void put_box(struct ls_text *out, const struct lockstep_box *box, double height)
{
    static const char *const kinds[] = {[LOCKSTEP_BOX_RIGHT] = "right",
                                        [LOCKSTEP_BOX_WRONG] = "wrong",
                                        [LOCKSTEP_BOX_MISSED] = "missed",
                                        [LOCKSTEP_BOX_OPEN] = "open"};
    const double x = fmin(fmax(box->xmin, 0), 1) * units, y = fmin(fmax(box->ymin, 0), 1) * height,
                 width = fmax(fmin(fmax(box->xmax, 0), 1) * units - x, 0),
                 tall = fmax(fmin(fmax(box->ymax, 0), 1) * height - y, 0);
    const bool at_right = x > 0.75 * units; /* so that the name stays within the picture */
    ls_text_format(out,
                   "<g class=\"box %s\"><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
                   "height=\"%.1f\"/><text x=\"%.1f\" y=\"%.1f\"%s>",
                   kinds[box->kind], x, y, width, tall, at_right ? x + width : x + 2,
                   y > 11 ? y - 2 : y + 10, at_right ? " text-anchor=\"end\"" : "");
    if (box->name != NULL)
        ls_html_text(out, box->name);
    else
        ls_text_format(out, "%d", box->label);
    if (!isnan(box->score))
        ls_text_format(out, " %.2f", box->score);
    ls_text_add(out, "</text></g>");
}

static void put_boxes(struct ls_text *out, const struct lockstep_page_picture *picture)
{
    const double height = units * (double)picture->shape[1] / (double)picture->shape[2];
    ls_text_format(out,
                   "<svg viewBox=\"0 0 %.0f %.1f\" preserveAspectRatio=\"none\" "
                   "aria-hidden=\"true\">",
                   units, height);
    for (size_t i = 0; i < picture->box_count; i++)
        put_box(out, &picture->boxes[i], height);
    ls_text_add(out, "</svg>");
}

static int put_picture(struct ls_text *out, const struct lockstep_page_picture *picture,
                       struct ls_error *error)
{
    const int64_t *shape = picture->shape;
    const bool boxed = picture->boxes != NULL;
    uint8_t *file = NULL;
    int64_t smaller[3];
    size_t length;
    if ((shape[0] != 1 && shape[0] != 3) || shape[1] < 1 || shape[2] < 1 || shape[1] > 16384 ||
        shape[2] > 16384)
        return ls_fail(error, LOCKSTEP_USAGE, NULL, NULL,
                       "a picture of a page has 1 or 3 planes of at most 16384 x 16384");
    uint8_t *planes = planes_of(picture, smaller);
    if (planes == NULL)
        return ls_fail_memory(error, "a picture");
    int status = ls_picture_encode(planes, smaller, "png", &file, &length, error);
    ls_free(planes);
    LS_TRY(status);
    ls_text_format(out, "<figure class=\"sample%s%s\">%s<img alt=\"", boxed ? " boxed" : "",
                   picture->mark > 0   ? " good"
                   : picture->mark < 0 ? " bad"
                                       : "",
                   boxed ? "<div class=\"frame\">" : "");
    ls_html_text(out, picture->caption);
    ls_text_add(out, "\" src=\"data:image/png;base64,");
    put_base64(out, file, length);
    ls_text_add(out, "\">");
    if (boxed) {
        put_boxes(out, picture);
        ls_text_add(out, "</div>");
    }
    ls_text_add(out, "<figcaption>");
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
