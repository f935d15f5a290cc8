/* The snapshots of a training: when one is written, what becomes of one that fails, and all that
 * belongs to them besides their bytes (solver/checkpoint.h): the caffemodel, how many are kept, the
 * best one.
 *
 * A snapshot between two updates is copied, and a thread of its own writes the copy while the
 * training goes on; one at a time. Where there is no memory for a copy, and for the last snapshot,
 * which must be waited for anyway, it is written at once. Its bytes are the same.
 *
 * One that cannot be written is a warning, and the next one is tried when it is due: the older ones
 * are whole. The last one, or any where the caller has said so (`required`), must succeed.
 *
 * All ranks of a job call these functions, but for those that say otherwise; rank 0 writes.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SOLVER_SNAPSHOTS_H
#define LS_SOLVER_SNAPSHOTS_H

#include "solver/trainer.h"

struct ls_snapshots;

/* `copies`: there is memory for a copy of what a snapshot holds. `none`: nothing is written, and
 * what is under the prefix does not matter. */
struct ls_snapshots_options {
    bool required, overwrite, copies, none;
};
int ls_snapshots_create(struct ls_trainer *trainer, const struct ls_snapshots_options *options,
                        struct ls_snapshots **snapshots, struct ls_error *error);
/* Rank 0 by itself, before a run: makes sure that snapshots can be written under the prefix, that
 * no other training does so, and that a training that begins does not write over one that is there
 * (unless `overwrite`: trainer->goes_on says whether it is its own). Until ls_snapshots_release. */
int ls_snapshots_claim(struct ls_trainer *trainer, struct ls_error *error);
void ls_snapshots_release(struct ls_snapshots *snapshots);
/* Waits for what is being written. */
void ls_snapshots_free(struct ls_snapshots *snapshots);

/* A snapshot of this iteration, unless there is one. The last one is there when this returns, or it
 * fails. */
int ls_snapshots_take(struct ls_trainer *trainer, bool last, struct ls_error *error);
/* The snapshot of this iteration is the best one so far; what it scored is in trainer->best.now. */
void ls_snapshots_mark_best(struct ls_trainer *trainer);
/* Waits for what is being written and reports it. Fails where one had to succeed and did not. */
int ls_snapshots_settle(struct ls_trainer *trainer, struct ls_error *error);
/* The end of a run: as settle, and the last snapshot that was tried must have been written. */
int ls_snapshots_end(struct ls_trainer *trainer, struct ls_error *error);

/* Each rank by itself, after an update: reports what has been written meanwhile. True where a
 * snapshot failed that had to succeed: all ranks must settle then. */
bool ls_snapshots_poll(struct ls_trainer *trainer);
/* Rank 0 by itself, where a run ends with a failure: waits, and reports. */
void ls_snapshots_wait(struct ls_trainer *trainer);

#endif
