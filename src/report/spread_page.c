/* Distributions of weights and gradients, as small drawings. See report/page.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "report/html.h"
#include "report/page.h"

/* The drawings' own units. */
static const double width = 200, height = 104, left = 2, right = 2, top = 6, bottom = 20,
                    scale = 54 /* the room for labels left of what is drawn over time */;

static const double inner = width - left - right, floor_y = height - bottom;

static void put_label(struct ls_text *out, const char *class, double x, double y, double value)
{
    ls_text_format(out, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">%.2g</text>", class, x, y, value);
}

static void begin_drawing(struct ls_text *out, const char *what)
{
    ls_text_format(out,
                   "<svg viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-label=\"%s\"><title>%s"
                   "</title>",
                   width, height, what, what);
}

/* The last histogram; heights are square roots, so that what is rare is seen, too. */
static void draw_histogram(struct ls_text *out, const struct ls_spread *spread, const char *what)
{
    const double low = spread->edge[0], range = spread->edge[spread->bins] - low;
    double most = 0;
    for (int i = 0; i < spread->bins; i++)
        most = fmax(most, spread->count[i]);
    begin_drawing(out, what);
    ls_text_format(out, "<path class=\"area\" d=\"M%.1f %.1f", left, floor_y);
    for (int i = 0; i < spread->bins; i++) {
        const double end =
            range > 0 ? (spread->edge[i + 1] - low) / range : (double)(i + 1) / spread->bins;
        ls_text_format(out, "V%.1fH%.1f", floor_y - sqrt(spread->count[i] / most) * (floor_y - top),
                       left + end * inner);
    }
    ls_text_format(out, "V%.1fZ\"/>", floor_y);
    if (low < 0 && low + range > 0)
        ls_text_format(out, "<path class=\"zero\" d=\"M%.1f %.1fV%.1f\"/>",
                       left - low / range * inner, top, floor_y);
    put_label(out, "tl", left, height - 6, low);
    put_label(out, "te", width - right, height - 6, low + range);
    ls_text_add(out, "</svg>");
}

struct plane {
    double x0, x1, y0, y1;
};

static double place_x(const struct plane *plane, const struct ls_spread_moment *moment)
{
    return scale + ((double)moment->iteration - plane->x0) / (plane->x1 - plane->x0) *
                       (width - right - scale);
}

static double place_y(const struct plane *plane, double y)
{
    return floor_y - (y - plane->y0) / (plane->y1 - plane->y0) * (floor_y - top);
}

static struct plane plane_of(const struct ls_spread *spread)
{
    struct plane plane = {.x0 = (double)spread->moment[0].iteration,
                          .x1 = (double)spread->moment[spread->moments - 1].iteration,
                          .y0 = INFINITY,
                          .y1 = -INFINITY};
    for (int i = 0; i < spread->moments; i++) {
        plane.y0 = fmin(plane.y0, spread->moment[i].at[0]);
        plane.y1 = fmax(plane.y1, spread->moment[i].at[LS_SPREAD_PARTS - 1]);
    }
    if (!(plane.y1 - plane.y0 > 1e-290)) {
        plane.y0 -= 0.5 * fabs(plane.y0) + 1e-30;
        plane.y1 += 0.5 * fabs(plane.y1) + 1e-30;
    }
    return plane;
}

/* The band between two of the parts, over time. */
static void draw_band(struct ls_text *out, const struct ls_spread *spread,
                      const struct plane *plane, int low, int high)
{
    ls_text_add(out, "<path class=\"band\" d=\"");
    for (int i = 0; i < spread->moments; i++)
        ls_text_format(out, "%s%.1f %.1f", i == 0 ? "M" : "L", place_x(plane, &spread->moment[i]),
                       place_y(plane, spread->moment[i].at[low]));
    for (int i = spread->moments; i-- > 0;)
        ls_text_format(out, "L%.1f %.1f", place_x(plane, &spread->moment[i]),
                       place_y(plane, spread->moment[i].at[high]));
    ls_text_add(out, "Z\"/>");
}

static void draw_times(struct ls_text *out, const struct ls_spread *spread, const char *what)
{
    if (spread->moments < 2)
        return;
    const struct plane plane = plane_of(spread);
    begin_drawing(out, what);
    for (int p = 0; p < LS_SPREAD_PARTS / 2; p++)
        draw_band(out, spread, &plane, p, LS_SPREAD_PARTS - 1 - p);
    ls_text_add(out, "<path class=\"middle\" d=\"");
    for (int i = 0; i < spread->moments; i++)
        ls_text_format(out, "%s%.1f %.1f", i == 0 ? "M" : "L", place_x(&plane, &spread->moment[i]),
                       place_y(&plane, spread->moment[i].at[LS_SPREAD_PARTS / 2]));
    ls_text_add(out, "\"/>");
    put_label(out, "te", scale - 4, top + 8, plane.y1);
    put_label(out, "te", scale - 4, floor_y, plane.y0);
    ls_text_format(out,
                   "<text class=\"tl\" x=\"%.1f\" y=\"%.1f\">%" PRId64 "</text>"
                   "<text class=\"te\" x=\"%.1f\" y=\"%.1f\">%" PRId64 "</text></svg>",
                   scale, height - 6, spread->moment[0].iteration, width - right, height - 6,
                   spread->moment[spread->moments - 1].iteration);
}

static void put_pair(struct ls_text *out, const struct ls_spread *spread, const char *what)
{
    char said[80];
    if (spread->bins == 0)
        return;
    ls_text_format(out, "<div class=\"pair\"><span>%s</span>", what);
    snprintf(said, sizeof said, "%s at the last display", what);
    draw_histogram(out, spread, said);
    snprintf(said, sizeof said, "%s over the updates", what);
    draw_times(out, spread, said);
    ls_text_add(out, "</div>");
}

static void put_spreads(const struct ls_page *page, int run)
{
    const struct lockstep_log *log = page->logs[run];
    ls_text_format(page->out, "<details%s><summary>", page->count == 1 ? " open" : "");
    ls_html_text(page->out, page->names[run]);
    ls_text_add(page->out, "</summary><div class=\"spreads\">\n");
    for (size_t i = 0; i < log->spread_count; i++) {
        ls_text_add(page->out, "<figure><figcaption>");
        ls_html_text(page->out, log->spreads[i].name);
        ls_text_add(page->out, "</figcaption>");
        put_pair(page->out, &log->spreads[i].weights, "weights");
        put_pair(page->out, &log->spreads[i].gradient, "gradient");
        ls_text_add(page->out, "</figure>\n");
    }
    ls_text_add(page->out, "</div>");
    if (log->parameter_count > log->spread_count)
        ls_text_format(page->out, "<p class=\"soft\">The first %zu of %zu parameters.</p>",
                       log->spread_count, log->parameter_count);
    ls_text_add(page->out, "</details>\n");
}

void ls_page_spreads(const struct ls_page *page)
{
    size_t all = 0;
    for (int r = 0; r < page->count; r++)
        all += page->logs[r]->spread_count;
    if (all == 0)
        return;
    ls_text_add(page->out,
                "<section><h2>Weights and gradients</h2>\n<p class=\"soft\">Left: a histogram at "
                "the last display, whose heights are square roots of the counts. Right, over the "
                "updates: the middle line is the median, the bands hold 50 %, 90 % and all of the "
                "numbers.</p>\n");
    for (int r = 0; r < page->count; r++)
        if (page->logs[r]->spread_count > 0)
            put_spreads(page, r);
    ls_text_add(page->out, "</section>\n");
}
