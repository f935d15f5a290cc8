/* Weights from files and to caffemodels.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SOLVER_WEIGHTS_H
#define LS_SOLVER_WEIGHTS_H

#include "engine/engine.h"
#include "solver/trainer.h"

/* Weights that a training starts from: files separated by commas, later ones over earlier ones,
 * with names that `map` knows (NULL: ours). All ranks call it; only rank 0 needs to see the files.
 */
int ls_trainer_load_weights(struct ls_trainer *trainer, const char *files, const char *map,
                            struct ls_error *error);
/* What weights are read for. */
enum ls_weights_use {
    LS_WEIGHTS_TRAIN,   /* layers that no file has keep their values */
    LS_WEIGHTS_COMPUTE, /* a layer with weights that no file has is LOCKSTEP_WEIGHTS */
    LS_WEIGHTS_PART,    /* the same, of a net that was cut: files may have what lies behind */
};

/* Stores the weights of `files` (separated by commas, later ones over earlier ones) into the
 * parameters of the nets whose graphs are given, by layer name, or by what `map` (may be NULL)
 * makes of the names in the files. `say` (may be NULL) gets a line for each layer that was ignored
 * or kept; `classes` (may be NULL) the class names that the last file has, one a line, owned by the
 * caller. Views are not refreshed. */
int ls_load_weights(struct ls_store *store, const struct ls_graph *const *graphs, size_t count,
                    const char *files, const char *map, enum ls_weights_use use,
                    void (*say)(void *user, const char *line), void *user, char **classes,
                    struct ls_error *error);

/* The names of classes that the last of `files` has which has some, one a line, with what it says
 * of a tokenizer; *names and *tokenizer stay NULL where there are none, and are the caller's. Only
 * the heads of snapshots are read; nothing is said of files that cannot be read. */
int ls_read_weights_names(const char *files, char **names, char **tokenizer,
                          struct ls_error *error);
/* The hash in such a note (text/token_sheet.h); 0 for NULL and for what is none. */
uint64_t ls_weights_tokenizer(const char *note);

/* Writes a caffemodel (HDF5 where `path` ends in .h5) with the layers of `graph` and the weights
 * that lie, by parameter, at plain[], in Caffe's order; with their gradients, if `gradients` is not
 * NULL. */
int ls_write_caffemodel(const struct ls_graph *graph, const float *const *plain,
                        float *const *gradients, const char *path, struct ls_error *error);
/* Writes the store's weights likewise. */
int ls_save_caffemodel(const struct ls_engine *engine, const struct ls_graph *graph,
                       const char *path, struct ls_error *error);

#endif
