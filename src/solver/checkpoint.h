/* What a snapshot holds, and two ways to write it: at once, from where the training has it, or
 * later, from a copy, while the training goes on. Both give the same bytes.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SOLVER_CHECKPOINT_H
#define LS_SOLVER_CHECKPOINT_H

#include "snapshot/archive.h"
#include "solver/trainer.h"

/* A copy of all that a snapshot holds. All zeros is an empty one; its memory serves the next. */
struct ls_staged {
    struct ls_archive archive; /* its tensors lie in `memory` */
    unsigned char *memory;
    size_t size;
    float **gradients; /* by parameter, for Caffe's files; NULL: none */
};

/* About the bytes of a snapshot's tensors. */
size_t ls_checkpoint_bytes(const struct ls_trainer *trainer);
/* Rank 0: gets memory for copies, if it is not there; false: there is none. */
bool ls_checkpoint_reserve(const struct ls_trainer *trainer, struct ls_staged *staged);
/* Copies what a snapshot of this iteration holds. All ranks call it; rank 0 gets the copy, and a
 * failure of any is that of all. */
int ls_checkpoint_stage(struct ls_trainer *trainer, struct ls_staged *staged,
                        struct ls_error *error);
void ls_staged_free(const struct ls_trainer *trainer, struct ls_staged *staged);

/* Writes the snapshot of this iteration under its name, and Caffe's files; all ranks call it. */
int ls_checkpoint_write(struct ls_trainer *trainer, struct ls_error *error);
/* A snapshot to `path`. All ranks of a job call it; rank 0 writes, and a failure of any is
 * that of all. Those under the solver's name: solver/snapshots.h. */
int ls_trainer_write(struct ls_trainer *trainer, const char *path, struct ls_error *error);

#endif
