/* Progress of a command that trains nothing: a line that is redrawn on a terminal; in a file a line
 * at least every ten seconds of work, and one at its end.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_MONITOR_PROGRESS_H
#define LS_MONITOR_PROGRESS_H

#include <stdbool.h>
#include <stdio.h>

#include "lockstep/lockstep.h"
#include "monitor/live.h"

struct ls_progress {
    FILE *out;             /* borrowed */
    bool terminal;         /* `out` is one */
    bool quiet;            /* nothing is written */
    int width;             /* of the terminal; 0: ask it each time */
    double (*clock)(void); /* seconds, going forward */
    const char *unit;      /* what is counted; "records" if nothing else is said */

    /* Private. */
    double begun, told, drawn;
    struct ls_live_line line;
};

/* `clock` NULL: the system's. */
void ls_progress_init(struct ls_progress *progress, FILE *out, double (*clock)(void));
/* The `event` callback; `user` is the struct ls_progress. NOTICE events with `samples` of
 * `iteration_end` (records done, of how many) become progress with speed and time left; the text of
 * others is shown as it is. */
void ls_progress_event(void *user, const struct lockstep_event *event);
/* Removes the line from the screen, so that results can follow. */
void ls_progress_clear(struct ls_progress *progress);

#endif
