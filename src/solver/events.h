/* Events: what a trainer tells its caller.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SOLVER_EVENTS_H
#define LS_SOLVER_EVENTS_H

#include "solver/trainer.h"

/* Hands an event to the caller, if this is rank 0; fields that concern training are filled in. */
void ls_events_send(struct ls_trainer *trainer, struct lockstep_event *event);
void ls_events_say(struct ls_trainer *trainer, enum lockstep_event_kind kind, const char *format,
                   ...) __attribute__((format(printf, 3, 4)));

#endif
