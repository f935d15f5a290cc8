/* The fake library: what writes events for other programs.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "fake_inner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct lockstep_tensorboard {
    int events;
};

int lockstep_tensorboard_new(const char *folder, struct lockstep_tensorboard **board,
                             struct lockstep_error *error)
{
    fake_note("tensorboard(%s) ", folder);
    if (strcmp(folder, "no") == 0) {
        *board = NULL;
        return fake_answer(LOCKSTEP_RESOURCE, error);
    }
    *board = fake_make(sizeof **board);
    return 0;
}

int lockstep_tensorboard_event(struct lockstep_tensorboard *board,
                               const struct lockstep_event *event, struct lockstep_error *error)
{
    (void)event;
    return fake.board_room > 0 && ++board->events > fake.board_room
               ? fake_answer(LOCKSTEP_RESOURCE, error)
               : 0;
}

int lockstep_tensorboard_flush(struct lockstep_tensorboard *board, struct lockstep_error *error)
{
    (void)board;
    (void)error;
    return 0;
}

void lockstep_tensorboard_free(struct lockstep_tensorboard *board)
{
    if (board != NULL)
        fake_unmake(board);
}

void lockstep_number_text(double value, char *text)
{
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, 32, "%.*g", digits, value);
        if ((float)strtod(text, NULL) == (float)value)
            break;
    }
}

struct lockstep_metrics {
    int events;
};

int lockstep_metrics_new(const char *path, struct lockstep_metrics **metrics,
                         struct lockstep_error *error)
{
    fake_note("metrics(%s) ", path);
    *metrics = NULL;
    if (strcmp(path, "no") == 0)
        return fake_answer(LOCKSTEP_RESOURCE, error);
    *metrics = fake_make(sizeof **metrics);
    return 0;
}

int lockstep_metrics_event(struct lockstep_metrics *metrics, const struct lockstep_event *event,
                           struct lockstep_error *error)
{
    (void)metrics;
    (void)event;
    (void)error;
    return 0;
}

int lockstep_metrics_end(struct lockstep_metrics *metrics, int code, struct lockstep_error *error)
{
    (void)metrics;
    (void)code;
    (void)error;
    return 0;
}

void lockstep_metrics_free(struct lockstep_metrics *metrics)
{
    if (metrics != NULL)
        fake_unmake(metrics);
}
