/* The line that is redrawn in place while work goes on.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_MONITOR_LIVE_H
#define LS_MONITOR_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* How long a bar was drawn last: it does not grow again when numbers beside it become shorter. */
struct ls_live_bar {
    int columns, width; /* of the bar; of what it was drawn for */
};

/* A line on a terminal, which is drawn over itself. */
struct ls_live_line {
    FILE *out;   /* borrowed */
    int columns; /* that it takes on the screen; 0: it is not there */
    struct ls_live_bar bar;
};

/* Puts `text`, which must not be wider than a terminal of `width` columns, in the line's place.
 * Where the terminal has become narrower than what was drawn, it has wrapped that: all of it goes.
 */
void ls_live_line_draw(struct ls_live_line *line, const char *text, int width);
/* Removes the line from the screen, so that others can write. */
void ls_live_line_clear(struct ls_live_line *line, int width);

/* What the line of a training says. */
struct ls_live {
    int64_t iteration, iteration_end;
    double loss, learning_rate;
    double samples_per_second; /* 0: not known yet */
    double seconds_left;       /* < 0: not known yet */
    const char *score_name;    /* of the last test, as "accuracy"; NULL: there is none */
    double score;
    struct ls_live_bar *bar; /* of the lines before; NULL: there are none */
};

/* Composes the line, at most `width` columns of ASCII, in `out` of `size` bytes:
 *     [=====>     ]  1234/10000  12%  loss 0.0123  1:23 left  accuracy 0.982  8123 samples/s
 *
 * and the learning rate, "lr 0.01". What does not fit gets shorter or is left out, beginning with
 * what matters least; the bar takes what remains. */
void ls_live_compose(const struct ls_live *live, int width, char *out, size_t size);

/* Composes a line about `done` of `all` things, which took `seconds`, as above:
 *     [=====>     ]  12000/60000 records  20%  35100 records/s  2s left */
struct ls_counted {
    const char *what; /* "records" */
    int64_t done, all;
    double seconds; /* 0: not known yet */
    bool has_bar;
    struct ls_live_bar *bar; /* as above */
};
void ls_live_compose_count(const struct ls_counted *counted, int width, char *out, size_t size);

/* "59s", "1:23" (minutes), "2h05" or "3d04h". */
void ls_format_duration(double seconds, char *out, size_t size);
/* "0.25", "7.2", "812", "8123", "35.1k", "1.2M": how many a second. */
void ls_format_speed(double speed, char *out, size_t size);

#endif
