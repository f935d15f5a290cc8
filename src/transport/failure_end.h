/* How a job ends, well or badly, and what status.json says of it. The rules for failing ranks are
 * in transport/failure_detector.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TRANSPORT_FAILURE_END_H
#define LS_TRANSPORT_FAILURE_END_H

#include "transport/failure_detector.h"

/* Where status.json goes (a copy is kept); NULL: nowhere. Rank 0 writes it at once ("running"). */
int ls_detector_set_status_file(struct ls_detector *detector, const char *path,
                                struct ls_error *error);
/* Something was computed wrongly, and put right: rank 0 says so in status.json, now and at the end.
 */
void ls_detector_found(struct ls_detector *detector, const char *text);
/* Rank 0: something that a user should know, and that ends nothing; the last one stands in
 * status.json. */
void ls_detector_warn(struct ls_detector *detector, const char *text);

/* A failure of this rank alone (not for failures that all ranks find): tells rank 0, waits briefly
 * for it to end the job, else ends the job itself with this exit code. Does not return, except in
 * tests. */
void ls_detector_abort(struct ls_detector *detector, int status, const char *text);
/* Says in `error` which rank failed, where, and what it did last; returns LOCKSTEP_LOST. */
int ls_detector_fail(struct ls_detector *detector, struct ls_error *error);

/* The end of this rank's work, good or bad (`text`: what went wrong, or NULL): waits for all ranks
 * to call it, and returns the status of the first rank that failed, or 0. Rank 0 writes
 * status.json. If this rank failed and others never call it, the job is ended. Nothing is monitored
 * afterwards. */
int ls_detector_leave(struct ls_detector *detector, int status, const char *text);

#endif
