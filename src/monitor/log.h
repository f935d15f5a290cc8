/* Events as JSON, one object a line.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_MONITOR_LOG_H
#define LS_MONITOR_LOG_H

#include <stdio.h>

#include "lockstep/lockstep.h"

/* Writes the event and a newline; `elapsed` is the time in seconds since the run began, `time` that
 * since 1970.
 *     {"event": "progress", "iteration": 7, "time": "2026-01-31T12:00:00.250Z", "elapsed": 1.25,
 *      "loss": 2.301, ...} */
void ls_log_event(FILE *log, const struct lockstep_event *event, double time, double elapsed);

#endif
