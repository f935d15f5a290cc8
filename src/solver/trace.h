/* The trace of a training: one file of all ranks.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SOLVER_TRACE_H
#define LS_SOLVER_TRACE_H

#include "base/timeline.h"

struct ls_trainer;

/* Bytes of what a rank remembers for its trace. */
size_t ls_trainer_trace_bytes(uint64_t limit);

/* The calling thread becomes worker 0 of a trace. Rank 0 finds out whether the file can be made. */
int ls_trainer_trace_begin(struct ls_trainer *trainer, const char *path, uint64_t limit,
                           struct ls_error *error);
/* Other threads that are there by now get their tracks: workers, and what exchanges. */
void ls_trainer_trace_threads(struct ls_trainer *trainer);
/* At the end of a run, whose status is `status`: where that is common to all ranks, all of them
 * call it, and rank 0 writes what all have; else rank 0 writes its own. */
int ls_trainer_trace_write(struct ls_trainer *trainer, int status, struct ls_error *error);
/* Nothing is recorded any more. */
void ls_trainer_trace_end(struct ls_trainer *trainer);

#endif
