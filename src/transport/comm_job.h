/* How the communicator of a job is made and ended.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TRANSPORT_COMM_JOB_H
#define LS_TRANSPORT_COMM_JOB_H

#include "transport/comm.h"

struct ls_comm_options {
    double timeout; /* see struct ls_comm */
    bool dynamic;   /* micro-batches go to free ranks; no effect with one rank */
    bool watched;   /* the process may be ended where the transport hangs (transport/watchdog.h) */
};

/* Takes over a transport (also where it fails). */
int ls_comm_create(struct ls_transport *transport, const struct ls_comm_options *options,
                   struct ls_comm **comm, struct ls_error *error);
/* A process by itself. */
int ls_comm_create_alone(struct ls_comm **comm, struct ls_error *error);
/* Says how many workers this rank has, learns how many the others have, starts the progress thread.
 * Again for another number of workers. `enter_thread` prepares the progress thread for computing. A
 * rank that cannot start has no workers; the others do not fail here (see ls_comm_agree). */
int ls_comm_start(struct ls_comm *comm, int workers, void (*enter_thread)(void),
                  struct ls_error *error);
/* Ends the job in good order: all ranks call it. */
void ls_comm_end(struct ls_comm *comm);

#endif
