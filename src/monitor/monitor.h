/* What a person sees of a run: events of the library become lines.
 *
 * A file or a pipe gets lines in Caffe's phrases, so that tools that read its logs work:
 *     Iteration 100 (37.2 iter/s, 2.7s/100 iters, 1:23 left), loss = 0.213
 *         Train net output #0: loss = 0.21 (* 1 = 0.21 loss)
 *     Iteration 100, lr = 0.01
 *     Iteration 500, Testing net (#0)
 *         Test net output #0: accuracy = 0.98
 * and one such line at least every ten seconds; without `display` also one for every twentieth of
 * the run, and one at its end. As in Caffe, "Iteration 100, loss" is that of the update with number
 * 100, counted from 0: 101 updates are done then. A terminal gets a line that is redrawn in place,
 * and one line for each test. A quiet run writes warnings and, at the end, the last test,
 * the loss and the snapshot, a verbose one details as well. A log in JSON gets one object for each
 * event.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_MONITOR_MONITOR_H
#define LS_MONITOR_MONITOR_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "lockstep/lockstep.h"
#include "monitor/live.h"

enum { LS_MONITOR_LINE_MAX = 8192 };

struct ls_monitor {
    FILE *out;             /* borrowed */
    FILE *log;             /* JSON, borrowed; NULL: none */
    bool terminal;         /* `out` is one */
    bool quiet;            /* warnings and the result alone */
    bool verbose;          /* details, too */
    int width;             /* of the terminal; 0: ask it each time */
    double (*clock)(void); /* seconds, going forward */
    double (*time)(void);  /* seconds since 1970 */

    char last_snapshot[4096]; /* the last file that was announced; "" before */
    int64_t iteration;        /* updates done, as of the last event */
    int64_t max_iter;         /* of the training; 0: not known yet */

    /* Private. */
    double begun;              /* when the monitor was made */
    double line_time;          /* when the last line about progress was written */
    int64_t line_iteration;    /* updates done by then */
    int64_t display_iteration; /* of the last DISPLAY event */
    int64_t loss_iteration;    /* updates done when the loss was last written */
    int64_t first_iteration;   /* updates done before this run */
    bool displayed;            /* there was a DISPLAY event */
    bool displays;             /* there will be some */
    double drawn;              /* when the live line was drawn */
    struct ls_live_line line;  /* the live line */
    char score_name[32];       /* of the last test; "": there was none */
    double score;
    bool trained;       /* there was an update */
    double window_time; /* since when the speed is being measured */
    int64_t window_iteration;
    double window_samples;
    double iteration_speed, sample_speed; /* smoothed, per second; 0: not known yet */
    double log_flushed;
};

/* For `out`, which may be a terminal, and `log`, which may be NULL. `clock` is the monitor's; NULL:
 * the system's. */
void ls_monitor_init(struct ls_monitor *monitor, FILE *out, FILE *log, double (*clock)(void));

/* The `event` callback; `user` is the monitor. */
void ls_monitor_event(void *user, const struct lockstep_event *event);

/* Writes a line of the program's own, cut to LS_MONITOR_LINE_MAX - 1 bytes; control characters in
 * it become '?'. */
void ls_monitor_say(struct ls_monitor *monitor, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Removes the live line, so that others can write. */
void ls_monitor_clear(struct ls_monitor *monitor);

#endif
