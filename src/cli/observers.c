/* What writes events for other programs. See cli/observers.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cli/observers.h"

#include <stdio.h>

#include "cli/report.h"

int ls_cli_observers_open(struct ls_cli_observers *observers)
{
    int status = 0;
    observers->error = lockstep_error_new();
    if (observers->tensorboard != NULL)
        status =
            lockstep_tensorboard_new(observers->tensorboard, &observers->board, observers->error);
    if (status == 0 && observers->metrics != NULL)
        status = lockstep_metrics_new(observers->metrics, &observers->published, observers->error);
    if (status != 0)
        ls_cli_report(status, observers->error);
    return status;
}

int ls_cli_observe(struct ls_cli_observers *observers, const struct lockstep_event *event,
                   char *text, size_t size)
{
    if (observers->status != 0)
        return 0;
    if (observers->board != NULL)
        observers->status = lockstep_tensorboard_event(observers->board, event, observers->error);
    if (observers->published != NULL && observers->status == 0)
        observers->status = lockstep_metrics_event(observers->published, event, observers->error);
    if (observers->status == 0)
        return 0;
    snprintf(text, size, "%s", lockstep_error_text(observers->error));
    return 1;
}

void ls_cli_observers_end(struct ls_cli_observers *observers, int status)
{
    if (observers->published != NULL)
        observers->status = lockstep_metrics_end(observers->published, status, observers->error);
}

int ls_cli_observers_close(struct ls_cli_observers *observers, int status)
{
    if (observers->board != NULL && observers->status == 0)
        observers->status = lockstep_tensorboard_flush(observers->board, observers->error);
    if (observers->status == 0)
        ls_cli_observers_end(observers, status);
    if (observers->status != 0 && status == 0) {
        ls_cli_report(observers->status, observers->error);
        status = observers->status;
    }
    lockstep_tensorboard_free(observers->board);
    lockstep_metrics_free(observers->published);
    lockstep_error_free(observers->error);
    observers->board = NULL;
    observers->published = NULL;
    observers->error = NULL;
    return status;
}
