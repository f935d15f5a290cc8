/* What writes the events of a training for other programs, besides the log: --tensorboard and
 * --metrics.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_CLI_OBSERVERS_H
#define LS_CLI_OBSERVERS_H

#include <stddef.h>

#include "lockstep/lockstep.h"

struct ls_cli_observers {
    const char *tensorboard; /* a folder; NULL: none */
    const char *metrics;     /* a file; NULL: none */
    struct lockstep_tensorboard *board;
    struct lockstep_metrics *published;
    struct lockstep_error *error; /* of what has failed first */
    int status;                   /* the same; 0: nothing */
};

/* On the rank that writes, when the first two members are set. Says what fails. */
int ls_cli_observers_open(struct ls_cli_observers *observers);
/* Whether this event is the first that could not be written; `text` (of `size` bytes) gets why. */
int ls_cli_observe(struct ls_cli_observers *observers, const struct lockstep_event *event,
                   char *text, size_t size);
/* The run ends with this code: metrics say so. From any thread. */
void ls_cli_observers_end(struct ls_cli_observers *observers, int status);
/* Returns `status`, or where that is 0 what has failed, which it says. */
int ls_cli_observers_close(struct ls_cli_observers *observers, int status);

#endif
