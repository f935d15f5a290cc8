/* The notes of a snapshot (see snapshot/archive.h), and weights on their way in and out.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SOLVER_NOTES_H
#define LS_SOLVER_NOTES_H

#include "engine/engine.h"

#define LS_NOTE_DEFINITION  "definition"  /* canonical text of the solver with its net */
#define LS_NOTE_DATA        "data"        /* what the training data are, as lines */
#define LS_NOTE_DIGESTS     "digests"     /* of the running epoch and of a whole one */
#define LS_NOTE_ENVIRONMENT "environment" /* lines "key=value" that decide bits */
#define LS_NOTE_HISTORY     "history"     /* the environments so far, one a line */
#define LS_NOTE_NUMERICS    "numerics"    /* LOCKSTEP_NUMERICS */
#define LS_NOTE_VERSION     "version"     /* of Lockstep */
#define LS_NOTE_BEST        "best"        /* the best value of snapshot_best so far */
#define LS_NOTE_CHAIN       "chain"       /* of the weights' hashes, and where it begins */
#define LS_NOTE_COURSE      "course"      /* what resumes have changed of its rates, a line each */
/* Iterations "first last" in which gradients outgrew their recent past most recently, the sign of a
 * loss that explodes; there once that has happened. */
#define LS_NOTE_OUTGREW "outgrew"
#define LS_NOTE_CLASSES "classes" /* names, one a line */

/* Stores the weights of `files` (separated by commas, later ones over earlier ones) into the
 * parameters of the nets whose graphs are given, by layer name. `say` (may be NULL) gets a line for
 * each layer that was ignored or kept; `classes` (may be NULL) the class names that the last file
 * has, one a line, owned by the caller. With `all`, a layer with weights that no file has is
 * LOCKSTEP_WEIGHTS. Views are not refreshed. */
int ls_load_weights(struct ls_store *store, const struct ls_graph *const *graphs, size_t count,
                    const char *files, bool all, void (*say)(void *user, const char *line),
                    void *user, char **classes, struct ls_error *error);
/* Fails, with the place of the layer, where the net of `graph` normalises by saved averages that
 * the store's weights do not have. */
int ls_check_averages(const struct ls_store *store, const struct ls_graph *graph, const char *hint,
                      struct ls_error *error);
/* Writes a caffemodel with the layers of `graph` and the weights that lie, by parameter, at
 * plain[]: in Caffe's order. */
int ls_write_caffemodel(const struct ls_graph *graph, float *const *plain, const char *path,
                        struct ls_error *error);
/* Writes the store's weights as a caffemodel with the layers of `graph`. */
int ls_save_caffemodel(const struct ls_engine *engine, const struct ls_graph *graph,
                       const char *path, struct ls_error *error);

#endif
