/* Pictures in the terminal, several in a row, each with two lines of text below it.
 *
 * With colours a character shows two pixels, one above the other: the upper half block in the
 * colour of the upper one on a background of the lower one. Without, characters of growing
 * density stand for the mean of the two.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_MONITOR_DRAW_H
#define LS_MONITOR_DRAW_H

#include <stddef.h>
#include <stdio.h>

#include "monitor/terminal.h"

struct ls_drawing {
    int channels; /* 3: red, green, blue; else the first one is shown in grey */
    int height, width;
    const float *pixels;     /* channel by channel, row by row; 0 to 255 */
    const char *captions[2]; /* cut to the picture's columns; NULL: empty */
    int mark;                /* colours the captions: 1 green, -1 red, 0 not at all */
};

/* Draws pictures in rows of at most ten, as many as fit into `width` columns, made smaller by
 * whole factors where need be. */
void ls_draw_pictures(FILE *out, const struct ls_drawing *pictures, size_t count, int width,
                      enum ls_colours colours);

#endif
