/* Events. See solver/events.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver/events.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "transport/comm.h"

void ls_events_send(struct ls_trainer *trainer, struct lockstep_event *event)
{
    if (trainer->callbacks.event == NULL || trainer->comm->rank != 0)
        return;
    event->iteration = trainer->iteration;
    if (trainer->train->batching.samples != INT64_MAX)
        event->epoch =
            (double)trainer->iteration / ls_batching_updates_per_epoch(&trainer->train->batching);
    event->learning_rate = trainer->figures.rate;
    trainer->callbacks.event(trainer->callbacks.user, event);
}

void ls_events_say(struct ls_trainer *trainer, enum lockstep_event_kind kind, const char *format,
                   ...)
{
    char text[sizeof trainer->last_warning];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (kind == LOCKSTEP_EVENT_WARNING)
        memcpy(trainer->last_warning, text, sizeof text);
    struct lockstep_event event = {.kind = kind, .text = text};
    ls_events_send(trainer, &event);
}
