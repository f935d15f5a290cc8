/* Pictures in the terminal.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "monitor/draw.h"

#include <string.h>

enum { IN_A_ROW = 10, GAP = 2, COLUMNS_MIN = 16, COLUMNS_MAX = 48 };

struct colour {
    int red, green, blue;
};

/* A picture on its grid of cells. */
struct grid {
    const struct ls_drawing *picture;
    int factor;        /* pixels of a cell, in both directions */
    int columns, rows; /* cells */
};

static struct grid make_grid(const struct ls_drawing *picture, int columns)
{
    int factor = (picture->width + columns - 1) / columns;
    return (struct grid){picture, factor, (picture->width + factor - 1) / factor,
                         (picture->height + factor - 1) / factor};
}

/* The mean of a channel over a cell, 0 to 255. */
static int cell_mean(const struct grid *grid, int channel, int row, int column)
{
    const struct ls_drawing *picture = grid->picture;
    const float *plane =
        picture->pixels + (size_t)channel * (size_t)picture->height * (size_t)picture->width;
    double sum = 0;
    int count = 0;
    for (int y = row * grid->factor; y < (row + 1) * grid->factor && y < picture->height; y++) {
        for (int x = column * grid->factor; x < (column + 1) * grid->factor && x < picture->width;
             x++) {
            sum += plane[(size_t)y * (size_t)picture->width + (size_t)x];
            count++;
        }
    }
    double mean = count > 0 ? sum / count : 0;
    return mean > 0 ? mean < 255 ? (int)(mean + 0.5) : 255 : 0; /* NaN is black */
}

static struct colour cell_colour(const struct grid *grid, int row, int column)
{
    int first = cell_mean(grid, 0, row, column);
    if (grid->picture->channels != 3)
        return (struct colour){first, first, first};
    return (struct colour){first, cell_mean(grid, 1, row, column), cell_mean(grid, 2, row, column)};
}

/* The nearest of the 6 x 6 x 6 colours, or of the 24 greys between black and white. */
static int palette_index(struct colour colour)
{
    static const int levels[6] = {0, 95, 135, 175, 215, 255};
    const int channels[3] = {colour.red, colour.green, colour.blue};
    if (colour.red == colour.green && colour.green == colour.blue)
        return colour.red < 4 ? 16 : colour.red > 246 ? 231 : 232 + (colour.red - 3) / 10;
    int index = 0;
    for (int i = 0; i < 3; i++) {
        int level = 0;
        while (level < 5 && 2 * channels[i] >= levels[level] + levels[level + 1])
            level++;
        index = 6 * index + level;
    }
    return 16 + index;
}

static void put_colour(FILE *out, int ground, struct colour colour, enum ls_colours colours)
{
    if (colours == LS_COLOURS_ALL)
        fprintf(out, "\033[%d;2;%d;%d;%dm", ground, colour.red, colour.green, colour.blue);
    else
        fprintf(out, "\033[%d;5;%dm", ground, palette_index(colour));
}

static bool same(struct colour a, struct colour b)
{
    return a.red == b.red && a.green == b.green && a.blue == b.blue;
}

/* Two rows of cells as one row of half blocks. A colour is set only where it changes. */
static void put_half_blocks(FILE *out, const struct grid *grid, int row, enum ls_colours colours)
{
    struct colour upper = {-1, -1, -1}, lower = {-1, -1, -1};
    for (int column = 0; column < grid->columns; column++) {
        struct colour above = cell_colour(grid, row, column), below = {0, 0, 0};
        if (row + 1 < grid->rows)
            below = cell_colour(grid, row + 1, column);
        if (!same(above, upper))
            put_colour(out, 38, above, colours);
        if (!same(below, lower))
            put_colour(out, 48, below, colours);
        fputs("\xe2\x96\x80", out); /* U+2580, upper half block */
        upper = above;
        lower = below;
    }
    fputs("\033[0m", out);
}

/* Two rows of cells as one row of characters. */
static void put_ramp(FILE *out, const struct grid *grid, int row)
{
    static const char ramp[] = " .:-=+*#%@";
    for (int column = 0; column < grid->columns; column++) {
        int sum = 0, count = 0;
        for (int r = row; r < row + 2 && r < grid->rows; r++, count++) {
            struct colour c = cell_colour(grid, r, column);
            sum += (299 * c.red + 587 * c.green + 114 * c.blue) / 1000;
        }
        putc(ramp[sum / count * (int)(sizeof ramp - 1) / 256], out);
    }
}

static void put_spaces(FILE *out, int count)
{
    for (int i = 0; i < count; i++)
        putc(' ', out);
}

/* One line of pictures that lie beside each other. */
static void put_line(FILE *out, const struct grid *grids, int count, int row,
                     enum ls_colours colours)
{
    for (int i = 0; i < count; i++) {
        put_spaces(out, i > 0 ? GAP : 0);
        if (row >= grids[i].rows)
            put_spaces(out, grids[i].columns);
        else if (colours == LS_COLOURS_NONE)
            put_ramp(out, &grids[i], row);
        else
            put_half_blocks(out, &grids[i], row, colours);
    }
    putc('\n', out);
}

/* A line of captions, unless all of them are empty. */
static void put_captions(FILE *out, const struct grid *grids, int count, int line,
                         enum ls_colours colours)
{
    bool any = false;
    for (int i = 0; i < count; i++) {
        const char *caption = grids[i].picture->captions[line];
        any = any || (caption != NULL && caption[0] != '\0');
    }
    if (!any)
        return;
    for (int i = 0; i < count; i++) {
        const struct ls_drawing *picture = grids[i].picture;
        const char *caption = picture->captions[line] != NULL ? picture->captions[line] : "";
        bool coloured = colours != LS_COLOURS_NONE && picture->mark != 0 && caption[0] != '\0';
        char text[4 * COLUMNS_MAX + 1];
        /* A narrow picture's caption may use the gap, but for one column. */
        int room = grids[i].columns + (i + 1 < count ? GAP - 1 : 0);
        ls_text_cut(caption, room, text, sizeof text);
        if (coloured)
            fputs(picture->mark > 0 ? "\033[32m" : "\033[31m", out);
        ls_put_clean(out, text);
        if (coloured)
            fputs("\033[0m", out);
        if (i + 1 < count)
            put_spaces(out, grids[i].columns + GAP - ls_text_columns(text));
    }
    putc('\n', out);
}

/* Columns that a picture may have at most. */
static int columns_for(size_t count, int width)
{
    int beside = count < IN_A_ROW ? (int)count : IN_A_ROW;
    int columns = (width + GAP) / beside - GAP;
    return columns < COLUMNS_MIN ? COLUMNS_MIN : columns > COLUMNS_MAX ? COLUMNS_MAX : columns;
}

void ls_draw_pictures(FILE *out, const struct ls_drawing *pictures, size_t count, int width,
                      enum ls_colours colours)
{
    struct grid grids[IN_A_ROW];
    int columns = count > 0 ? columns_for(count, width) : 0;
    /* Each round is a row of pictures, with an empty line between rows. */
    for (size_t next = 0; next < count;) {
        int beside = 0, used = 0, rows = 0;
        while (beside < IN_A_ROW && next < count) {
            struct grid grid = make_grid(&pictures[next], columns);
            if (beside > 0 && used + GAP + grid.columns > width)
                break;
            used += grid.columns + (beside > 0 ? GAP : 0);
            rows = grid.rows > rows ? grid.rows : rows;
            grids[beside++] = grid;
            next++;
        }
        for (int row = 0; row < rows; row += 2)
            put_line(out, grids, beside, row, colours);
        put_captions(out, grids, beside, 0, colours);
        put_captions(out, grids, beside, 1, colours);
        if (next < count)
            putc('\n', out);
    }
}
