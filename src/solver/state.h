/* The state of a training, as snapshots hold it and as rank 0 hands it out to the others.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SOLVER_STATE_H
#define LS_SOLVER_STATE_H

#include "base/text.h"
#include "snapshot/weights.h"
#include "solver/trainer.h"

/* What the names of states per sample begin with in a snapshot. */
#define LS_PREFIX_SAMPLE_STATE LS_PREFIX_STATE "sample."

/* Arrays of parameters, in their order in a snapshot, and what their names begin with there. */
enum { LS_STATE_ARRAYS = LS_STORE_ARRAYS };
struct ls_state_array {
    const char *prefix;
    enum ls_store_array array;
};
extern const struct ls_state_array ls_state_arrays[LS_STATE_ARRAYS];

/* Whether the trainer has such an array of a parameter; the same on all ranks. */
bool ls_state_has(const struct ls_trainer *trainer, size_t parameter, enum ls_store_array array);

/* For each array that there is, in order: rank 0 reads it whole, in Caffe's order, and every rank
 * stores what is its own. All ranks call it; a failure of any is that of all. */
struct ls_state_reader {
    int (*read)(void *user, size_t parameter, const struct ls_state_array *array, float *plain,
                struct ls_error *error);
    void *user;
    bool fresh; /* weights and their averages only: what a training begins with */
};
int ls_state_hand_out(struct ls_trainer *trainer, const struct ls_state_reader *reader,
                      struct ls_error *error);

/* Rank 0 has read or written a piece of a file: others wait while it does, and a slow disk is no
 * rank that hangs. `trainer` is a struct ls_trainer (for ls_progress_hear). */
void ls_state_note_piece(void *trainer);

/* What a resume compares: the canonical definition. */
int ls_state_definition(const struct ls_trainer *trainer, struct ls_text *text,
                        struct ls_error *error);

#endif
