/* Caffe's solver states: what its solver remembers beside the weights, as a SolverState in binary
 * form (.solverstate) or as HDF5 (.solverstate.h5).
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SNAPSHOT_SOLVERSTATE_H
#define LS_SNAPSHOT_SOLVERSTATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "snapshot/caffemodel.h"
#include "snapshot/weights.h"

/* Whether a path is that of a solver state, by its ending. */
bool ls_solverstate_named(const char *path);

struct ls_solverstate {
    int64_t iteration, current_step;
    char *learned_net; /* the file with its weights, as Caffe wrote it; NULL: none */
    /* Its blobs, in order: one layer each, named by its number, with one blob. Of Adam and AdaDelta
     * all first arrays come before all second ones. */
    struct ls_weights history;
};

/* Reads a file of either form, which it knows by its content. On failure *state is empty. */
int ls_solverstate_read(const char *path, struct ls_solverstate *state, struct ls_error *error);
void ls_solverstate_free(struct ls_solverstate *state); /* leaves it empty */

/* What is written; all pointers are borrowed. */
struct ls_solverstate_draft {
    int64_t iteration, current_step;
    const char *learned_net;
    const struct ls_caffemodel_blob *history;
    size_t count;
};

/* Writes `path` atomically: HDF5 where it ends in .h5. The bytes are a function of the draft. */
int ls_solverstate_write(const char *path, const struct ls_solverstate_draft *draft,
                         struct ls_error *error);

#endif
