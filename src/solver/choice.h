/* Which snapshot a training goes on from, and which of them can be trusted.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SOLVER_CHOICE_H
#define LS_SOLVER_CHOICE_H

#include "snapshot/archive.h"
#include "solver/trainer.h"

/* Rank 0: opens the newest snapshot of the prefix that is whole and of this training: the same
 * definition but for what changes no weight (lengths, displays, tests, snapshots). Others are named
 * in warnings; so is one whose loss may have exploded, with the one from before that. Where only
 * snapshots of other trainings are there it fails: what is meant must be said. *path NULL: there is
 * none. */
int ls_choose_snapshot(struct ls_trainer *trainer, struct ls_archive *archive, char **path,
                       struct ls_error *error);

/* LS_NOTE_OUTGREW of a snapshot; -1 both where it has none. */
void ls_read_outgrew(const struct ls_archive *archive, int64_t *first, int64_t *last);

/* Rank 0: adds to the error of a training that diverged which snapshots there are, and which of
 * them is from before the first sign of it. */
void ls_name_good_snapshots(const struct ls_trainer *trainer, struct ls_error *error);

#endif
