/* The blobs of an update and their gradients, for callers to look at. The ops of debug_info
 * (graph/debug.h), which read each of them as soon as it is computed, show where they lie; they are
 * copied then, for their memory is used again.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SOLVER_BLOBS_H
#define LS_SOLVER_BLOBS_H

#include "ir/graph.h"

struct ls_trainer;
struct ls_blobs;

/* A blob of the train net. */
struct ls_blob {
    const char *name;
    struct ls_shape shape; /* for all samples of an update; rank 0: one number */
    int kept[2];           /* which arrays have its values and its gradient; -1: none has */
    const struct ls_metric *metric; /* it is a figure; NULL: it has an array */
};

/* For a trainer with a pass; it watches the pass from then on. Outlived by the trainer. */
int ls_blobs_create(struct ls_trainer *trainer, struct ls_blobs **blobs, struct ls_error *error);
void ls_blobs_free(struct ls_blobs *blobs);

/* Around the forward and backward pass, which may fail before its end; `record` is what came of
 * it. NULL: nothing to do. */
void ls_blobs_begin(struct ls_blobs *blobs);
void ls_blobs_end(struct ls_blobs *blobs, const double *record);

/* NULL: there is none. `blobs` may be NULL, too. */
const struct ls_blob *ls_blobs_at(const struct ls_blobs *blobs, size_t index);
size_t ls_blobs_count(const struct ls_blobs *blobs);
/* Copies the numbers of a blob, or of its gradient, to `data`, which has room for all. */
int ls_blobs_read(const struct ls_blobs *blobs, size_t index, bool gradient, float *data,
                  struct ls_error *error);

#endif
