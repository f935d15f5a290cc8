/* Weights from files and to caffemodels.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SOLVER_WEIGHTS_H
#define LS_SOLVER_WEIGHTS_H

#include "engine/engine.h"
#include "solver/trainer.h"

/* Weights that a training starts from: files separated by commas, later ones over earlier ones. All
 * ranks call it; only rank 0 needs to see the files. */
int ls_trainer_load_weights(struct ls_trainer *trainer, const char *files, struct ls_error *error);
/* Stores the weights of `files` (separated by commas, later ones over earlier ones) into the
 * parameters of the nets whose graphs are given, by layer name. `say` (may be NULL) gets a line for
 * each layer that was ignored or kept; `classes` (may be NULL) the class names that the last file
 * has, one a line, owned by the caller. With `all`, a layer with weights that no file has is
 * LOCKSTEP_WEIGHTS. Views are not refreshed. */
int ls_load_weights(struct ls_store *store, const struct ls_graph *const *graphs, size_t count,
                    const char *files, bool all, void (*say)(void *user, const char *line),
                    void *user, char **classes, struct ls_error *error);

/* Writes a caffemodel (HDF5 where `path` ends in .h5) with the layers of `graph` and the weights
 * that lie, by parameter, at plain[], in Caffe's order; with their gradients, if `gradients` is not
 * NULL. */
int ls_write_caffemodel(const struct ls_graph *graph, const float *const *plain,
                        float *const *gradients, const char *path, struct ls_error *error);
/* Writes the store's weights likewise. */
int ls_save_caffemodel(const struct ls_engine *engine, const struct ls_graph *graph,
                       const char *path, struct ls_error *error);

#endif
