/* Curves as text. See monitor/plot.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "monitor/plot.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LABEL = 9, DOTS_X = 2, DOTS_Y = 4, COLOURS = 6, WIDTH_MIN = 20, WIDTH_MAX = 400 };
static const char marks[] = "*+ox#@%&";
static const int curve_colours[COLOURS] = {34, 31, 32, 35, 36, 33};

/* The area: for each cell the dots that are set, and the curve that set one last. */
struct area {
    int columns, rows; /* cells */
    int wide, high;    /* dots of a cell */
    int64_t left, right;
    double low, high_end; /* of the axis, in logarithms where it is logarithmic */
    bool logarithmic;
    unsigned char *dots;
    unsigned char *owner; /* 1 + the curve; 0: none */
    double *sum, *weight; /* of each column of dots */
};

/* Where a figure stands on the axis; NaN: nowhere. */
static double place(const struct area *area, double y)
{
    if (!isfinite(y) || (area->logarithmic && y <= 0))
        return (double)NAN;
    return area->logarithmic ? log10(y) : y;
}

/* The updates that there are points of. False: there is no point. */
static bool find_updates(struct area *area, const struct ls_plot *plot)
{
    bool any = false;
    for (size_t c = 0; c < plot->count; c++) {
        for (size_t i = 0; i < plot->curves[c].count; i++) {
            const struct ls_plot_point *point = &plot->curves[c].points[i];
            if (isnan(place(area, point->y)))
                continue;
            area->left = !any || point->x < area->left ? point->x : area->left;
            area->right = !any || point->x > area->right ? point->x : area->right;
            any = true;
        }
    }
    return any;
}

/* The mean of a curve in each column of dots, as a sum and its weight. */
static void fill_columns(struct area *area, const struct ls_plot_curve *curve)
{
    const int width = area->columns * area->wide;
    const double span = (double)area->right - (double)area->left;
    memset(area->sum, 0, (size_t)width * sizeof *area->sum);
    memset(area->weight, 0, (size_t)width * sizeof *area->weight);
    for (size_t i = 0; i < curve->count; i++) {
        const double y = place(area, curve->points[i].y);
        if (isnan(y))
            continue;
        const double from_left = (double)curve->points[i].x - (double)area->left;
        const int x = (int)((span > 0 ? from_left / span : 0) * (width - 1) + 0.5);
        const double weight = curve->points[i].count > 0 ? (double)curve->points[i].count : 1;
        area->sum[x] += y * weight;
        area->weight[x] += weight;
    }
}

/* The range of what is drawn: of the columns' means, which the largest single figure can be far
 * from. */
static void find_range(struct area *area, const struct ls_plot *plot)
{
    bool any = false;
    for (size_t c = 0; c < plot->count; c++) {
        fill_columns(area, &plot->curves[c]);
        for (int x = 0; x < area->columns * area->wide; x++) {
            const double y = area->sum[x] / area->weight[x];
            if (!(area->weight[x] > 0))
                continue;
            area->low = !any || y < area->low ? y : area->low;
            area->high_end = !any || y > area->high_end ? y : area->high_end;
            any = true;
        }
    }
    if (!(area->high_end > area->low)) {
        double around = fabs(area->low) > 0 ? 0.05 * fabs(area->low) : 1;
        area->low -= around;
        area->high_end += around;
    }
}

static void set_dot(struct area *area, int x, int y, size_t curve)
{
    static const unsigned char bits[DOTS_Y][DOTS_X] = {
        {0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    int column = x / area->wide, row = y / area->high;
    if (column < 0 || column >= area->columns || row < 0 || row >= area->rows)
        return;
    size_t cell = (size_t)row * (size_t)area->columns + (size_t)column;
    area->dots[cell] |= bits[y % area->high][x % area->wide];
    area->owner[cell] = (unsigned char)(1 + curve);
}

/* The dots from (x0, y0), without it, to (x1, y1). */
static void set_line(struct area *area, int x0, int y0, int x1, int y1, size_t curve)
{
    int steps = abs(x1 - x0) > abs(y1 - y0) ? abs(x1 - x0) : abs(y1 - y0);
    for (int i = 1; i <= steps; i++)
        set_dot(area, x0 + (int)lround((double)(x1 - x0) * i / steps),
                y0 + (int)lround((double)(y1 - y0) * i / steps), curve);
}

static void draw_curve(struct area *area, const struct ls_plot_curve *curve, size_t number)
{
    int width = area->columns * area->wide, height = area->rows * area->high;
    fill_columns(area, curve);
    int last_x = -1, last_y = 0;
    for (int x = 0; x < width; x++) {
        if (!(area->weight[x] > 0))
            continue;
        double part = (area->sum[x] / area->weight[x] - area->low) / (area->high_end - area->low);
        part = part < 0 ? 0 : part > 1 ? 1 : part;
        int y = height - 1 - (int)(part * (height - 1) + 0.5);
        if (last_x >= 0)
            set_line(area, last_x, last_y, x, y, number);
        set_dot(area, x, y, number);
        last_x = x;
        last_y = y;
    }
}

/* U+2800 and the dots, in UTF-8. */
static void put_braille(FILE *out, unsigned char dots)
{
    putc(0xe2, out);
    putc(0xa0 | dots >> 6, out);
    putc(0x80 | (dots & 0x3f), out);
}

static void begin_colour(FILE *out, const struct ls_plot *plot, size_t curve)
{
    if (plot->colours != LS_COLOURS_NONE)
        fprintf(out, "\033[%dm", curve_colours[curve % COLOURS]);
}

static void end_colour(FILE *out, const struct ls_plot *plot)
{
    if (plot->colours != LS_COLOURS_NONE)
        fputs("\033[0m", out);
}

/* Digits with which the numbers of rows that are `every` apart differ. */
static int count_digits(const struct area *area, int every)
{
    enum { LEAST = 3, MOST = 7 };
    const double step = (area->high_end - area->low) * every / (area->rows - 1);
    const double largest = fmax(fabs(area->low), fabs(area->high_end));
    const double digits = floor(log10(largest)) - floor(log10(step)) + 1;
    return area->logarithmic || !(digits > LEAST) ? LEAST : digits < MOST ? (int)digits : MOST;
}

static void put_label(FILE *out, const struct area *area, int row)
{
    char label[32] = "";
    int every = area->rows >= 9 ? (area->rows - 1) / 4 : area->rows - 1;
    if (every > 0 && row % every == 0) {
        double part = 1 - (double)row / (area->rows - 1);
        double y = area->low + part * (area->high_end - area->low);
        snprintf(label, sizeof label, "%.*g", count_digits(area, every),
                 area->logarithmic ? pow(10, y) : y);
    }
    fprintf(out, "%*s |", LABEL, label);
}

static void put_rows(FILE *out, const struct area *area, const struct ls_plot *plot)
{
    for (int row = 0; row < area->rows; row++) {
        const unsigned char *dots = area->dots + (size_t)row * (size_t)area->columns;
        const unsigned char *owner = area->owner + (size_t)row * (size_t)area->columns;
        int end = area->columns;
        while (end > 0 && owner[end - 1] == 0)
            end--;
        put_label(out, area, row);
        for (int x = 0; x < end; x++) {
            if (owner[x] == 0) {
                putc(' ', out);
                continue;
            }
            begin_colour(out, plot, (size_t)owner[x] - 1);
            if (plot->ascii)
                putc(marks[(size_t)(owner[x] - 1) % (sizeof marks - 1)], out);
            else
                put_braille(out, dots[x]);
            end_colour(out, plot);
        }
        putc('\n', out);
    }
}

/* The axis below, with the first and the last update. */
static void put_axis(FILE *out, const struct area *area)
{
    char left[24], right[24];
    fprintf(out, "%*s +", LABEL, "");
    for (int i = 0; i < area->columns; i++)
        putc('-', out);
    snprintf(left, sizeof left, "%" PRId64, area->left);
    snprintf(right, sizeof right, "%" PRId64, area->right);
    int gap = area->columns - (int)strlen(left) - (int)strlen(right);
    fprintf(out, "\n%*s%s%*s%s\n", LABEL + 2, "", left, gap > 1 ? gap : 1, "", right);
}

/* "* run  0.0123  min 0.011 at 900  max 2.3 at 0", as much of it as fits. */
static void put_legend(FILE *out, const struct ls_plot *plot, size_t number)
{
    const struct ls_plot_curve *curve = &plot->curves[number];
    const struct ls_plot_point *last = NULL, *least = NULL, *most = NULL;
    for (size_t i = 0; i < curve->count; i++) {
        const struct ls_plot_point *point = &curve->points[i];
        if (!isfinite(point->y))
            continue;
        last = point;
        least = least == NULL || point->y < least->y ? point : least;
        most = most == NULL || point->y > most->y ? point : most;
    }
    char figures[160] = "no values", line[768], name[512];
    if (last != NULL) {
        int length = snprintf(figures, sizeof figures, "%.4g", last->y);
        char more[120];
        snprintf(more, sizeof more, "  min %.4g at %" PRId64 "  max %.4g at %" PRId64, least->y,
                 least->x, most->y, most->x);
        if (plot->width >= 2 + 12 + length + (int)strlen(more))
            snprintf(figures + length, sizeof figures - (size_t)length, "%s", more);
    }
    int room = plot->width - 4 - (int)strlen(figures);
    ls_text_cut(curve->name, room > 4 ? room : 4, name, sizeof name);
    snprintf(line, sizeof line, " %s  %s", name, figures);
    begin_colour(out, plot, number);
    if (plot->ascii)
        putc(marks[number % (sizeof marks - 1)], out);
    else
        put_braille(out, 0x36);
    end_colour(out, plot);
    ls_put_clean(out, line);
    putc('\n', out);
}

static bool make_area(struct area *area, const struct ls_plot *plot, int width)
{
    area->columns = width - LABEL - 2;
    area->rows = plot->height < 2 ? 2 : plot->height;
    area->wide = plot->ascii ? 1 : DOTS_X;
    area->high = plot->ascii ? 1 : DOTS_Y;
    size_t cells = (size_t)area->columns * (size_t)area->rows;
    size_t across = (size_t)(area->columns * area->wide);
    area->dots = calloc(cells, 1);
    area->owner = calloc(cells, 1);
    area->sum = calloc(across, sizeof *area->sum);
    area->weight = calloc(across, sizeof *area->weight);
    return area->dots != NULL && area->owner != NULL && area->sum != NULL && area->weight != NULL;
}

int ls_plot_put(FILE *out, const struct ls_plot *plot)
{
    struct area area = {.logarithmic = plot->logarithmic};
    int width = plot->width < WIDTH_MIN ? WIDTH_MIN : plot->width;
    width = width > WIDTH_MAX ? WIDTH_MAX : width;
    int lines = 1 + (int)plot->count;
    ls_put_clean(out, plot->title);
    if (!find_updates(&area, plot)) {
        fputs(plot->logarithmic ? ": there are no values above 0\n" : ": there are no values\n",
              out);
    } else {
        fputs(plot->logarithmic ? " (logarithmic)\n" : "\n", out);
        if (make_area(&area, plot, width)) {
            find_range(&area, plot);
            for (size_t i = 0; i < plot->count; i++)
                draw_curve(&area, &plot->curves[i], i);
            put_rows(out, &area, plot);
            put_axis(out, &area);
            lines += area.rows + 2;
        }
    }
    for (size_t i = 0; i < plot->count; i++)
        put_legend(out, plot, i);
    free(area.dots);
    free(area.owner);
    free(area.sum);
    free(area.weight);
    return lines;
}
