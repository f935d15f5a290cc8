/* Caffe's files beside a snapshot, where the solver names a snapshot_format: the weights, and what
 * Caffe's solver needs to go on with them. The way back: a training goes on from Caffe's own.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SOLVER_CAFFE_FILES_H
#define LS_SOLVER_CAFFE_FILES_H

#include "snapshot/archive.h"
#include "solver/trainer.h"

/* Whether the solver wants these files. */
bool ls_caffe_files_wanted(const struct ls_trainer *trainer);

/* Whether Caffe could go on from them: it has no AdamW, and no averages beside its weights. */
bool ls_caffe_files_have_state(const struct ls_trainer *trainer);

/* snapshot_diff: the gradients of the last update, by parameter. All ranks call it; rank 0 gets
 * them, NULL where they are not wanted or there has been no update. A failure is that of all. */
int ls_caffe_files_gradients(struct ls_trainer *trainer, float ***gradients,
                             struct ls_error *error);
void ls_caffe_files_free_gradients(const struct ls_trainer *trainer, float **gradients);

/* Rank 0: writes the files of a snapshot of `iteration` that lies in `archive` (in memory, or as it
 * was read). Any thread may do so while the training goes on. */
int ls_caffe_files_write(const struct ls_trainer *trainer, int64_t iteration,
                         const struct ls_archive *archive, float *const *gradients,
                         struct ls_error *error);

/* Goes on from a .solverstate or .solverstate.h5 and the weights that it names. All ranks call it;
 * only rank 0 needs to see the files. */
int ls_caffe_files_resume(struct ls_trainer *trainer, const char *path, struct ls_error *error);

#endif
