/* When status.json is written. See solver/heartbeat.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver/heartbeat.h"

#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "base/thread.h"
#include "solver/events.h"
#include "transport/comm.h"
#include "transport/status_file.h"

int ls_heartbeat_place(struct ls_trainer *trainer, const char *status_file, struct ls_error *error)
{
    if (status_file == NULL || trainer->comm->size > 1)
        return 0;
    trainer->status_file = status_file[0] != '\0' ? ls_copy_string(status_file)
                                                  : ls_status_file_beside(trainer->prefix);
    return trainer->status_file != NULL ? 0 : ls_fail_memory(error, "status.json");
}

/* What cannot be written is no reason to end. */
static int write_status(struct ls_trainer *trainer, bool running, int code, const char *message,
                        struct ls_error *error)
{
    char host[256] = "";
    if (trainer->status_file == NULL)
        return 0;
    gethostname(host, sizeof host - 1);
    const struct ls_job_state state = {.running = running,
                                       .code = code,
                                       .ranks = 1,
                                       .iteration = trainer->iteration,
                                       .host = host,
                                       .message = message,
                                       .warning = trainer->last_warning};
    trainer->beaten = ls_clock();
    return ls_status_file_write(trainer->status_file, &state, error);
}

void ls_heartbeat_begin(struct ls_trainer *trainer)
{
    struct ls_error error = {0};
    char reason[1024];
    if (write_status(trainer, true, 0, NULL, &error) == 0)
        return;
    ls_error_format(&error, reason, sizeof reason);
    ls_events_say(trainer, LOCKSTEP_EVENT_WARNING, "nothing will say how the training stands: %s",
                  reason);
}

void ls_heartbeat_beat(struct ls_trainer *trainer)
{
    if (trainer->status_file != NULL && ls_clock() - trainer->beaten >= LS_STATUS_INTERVAL)
        (void)write_status(trainer, true, 0, NULL, NULL);
}

void ls_heartbeat_end(struct ls_trainer *trainer, int status, const struct ls_error *error)
{
    char text[2048] = "";
    if (status != 0 && status != LOCKSTEP_STOPPED && error != NULL)
        ls_error_format(error, text, sizeof text);
    (void)write_status(trainer, false, status, text, NULL);
}
