/* The watchdog: ends a process whose transport does not come back.
 *
 * The failure detector takes its turns on threads that call the transport. A library of MPI may
 * wait within a call for what a stopped process holds (a queue in shared memory, say), and then
 * there are no turns. The watchdog is a thread that never calls the transport. Where no turn has
 * ended for some time, it looks at the processes of this machine and reports itself:
 *
 *   died     no turn for some seconds, and the process of a rank that this one looks after is gone
 *   lost     no turn for `timeout` seconds, and the process of another rank is stopped
 *   hangs    no turn for `timeout` seconds, for no reason that it can see: this rank
 *
 * then writes status.json and ends the process; the launcher ends the others. A watchdog that was
 * itself suspended restarts its time.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TRANSPORT_WATCHDOG_H
#define LS_TRANSPORT_WATCHDOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "transport/failure_detector.h"

struct ls_watchdog;

/* From now on turns must come in time: call it when the progress thread runs. */
int ls_watchdog_start(struct ls_detector *detector, struct ls_watchdog **watchdog,
                      struct ls_error *error);
/* NULL: no effect. */
void ls_watchdog_stop(struct ls_watchdog *watchdog);

/* One look, as the thread takes it at intervals; for tests. Begins with zeros. */
struct ls_watchdog_round {
    bool begun;
    uint64_t turns;     /* of the detector, as last seen */
    double since, last; /* when they changed, and when the last look was */
};
void ls_watchdog_look(struct ls_detector *detector, struct ls_watchdog_round *round);

#endif
