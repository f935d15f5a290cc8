/* Requests. See solver/requests.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver/requests.h"

#include "solver/heartbeat.h"

uint32_t ls_requests_poll(struct ls_trainer *trainer)
{
    enum lockstep_request request = LOCKSTEP_GO_ON;
    ls_heartbeat_beat(trainer);
    if (trainer->callbacks.poll != NULL)
        request = trainer->callbacks.poll(trainer->callbacks.user);
    return request == LOCKSTEP_SNAPSHOT_AND_STOP    ? LS_STOP_WANTED
           : request == LOCKSTEP_SNAPSHOT_AND_GO_ON ? LS_SNAPSHOT_WANTED
                                                    : 0;
}
