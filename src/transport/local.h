/* Transports between the threads of one process: each rank of the job is a thread, or several. For
 * verification (solver/verify_run.c), for tests of all that stands on transports, and for trying
 * out what a slow network would cost.
 *
 * Operations move on in `test` alone, as those of a real network may: each rank fetches there what
 * is for it, of all operations that all ranks have started, and none is DONE before all ranks have
 * fetched it.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TRANSPORT_LOCAL_H
#define LS_TRANSPORT_LOCAL_H

#include <stdbool.h>

#include "base/error.h"
#include "transport/transport.h"

/* Makes transports[0..size-1], one for each rank; each is freed by its `end`, which does not
 * wait. Their `abort` returns: see ls_local_ended. */
int ls_local_transports(int size, struct ls_transport **transports, struct ls_error *error);

/* From now on nothing arrives earlier than `latency` seconds after all have started it plus the
 * time that its bytes take: a rank sends and receives `bytes_per_second` each (0: any number), one
 * operation after another; those of the small channel go in between. Any of the job's transports.
 */
void ls_local_delay(struct ls_transport *transport, double latency, double bytes_per_second);

/* As if this rank hung: its messages are lost, and operations that it starts from now on never end.
 */
void ls_local_mute(struct ls_transport *transport);

/* As if a library hung: calls that this rank makes from now on do not return. */
void ls_local_block(struct ls_transport *transport);

/* Whether some rank has called `abort`, and with which code (may be NULL). Operations fail from
 * then on; messages still go. */
bool ls_local_ended(struct ls_transport *transport, int *code);

#endif
