/* Weights from files and to caffemodels.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SOLVER_WEIGHTS_H
#define LS_SOLVER_WEIGHTS_H

#include "engine/engine.h"
#include "solver/trainer.h"

/* Weights that a training starts from: files separated by commas, later ones over earlier ones,
 * with names that `map` knows (NULL: ours). `partial`: as in struct ls_weights_request, where the
 * solver does not say so anyway. All ranks call it; only rank 0 needs to see the files. */
int ls_trainer_load_weights(struct ls_trainer *trainer, const char *files, const char *map,
                            bool partial, struct ls_error *error);
/* What weights are read for. */
enum ls_weights_use {
    LS_WEIGHTS_TRAIN,   /* layers that no file has keep their values */
    LS_WEIGHTS_COMPUTE, /* a layer with weights that no file has is LOCKSTEP_WEIGHTS */
    LS_WEIGHTS_PART,    /* the same, of a net that was cut: files may have what lies behind */
};

struct ls_weights_request {
    const char *files; /* separated by commas, later ones over earlier ones */
    const char *map;   /* what makes our names of those in the files; NULL: they are ours */
    enum ls_weights_use use;
    /* Parameters may stay random although a tensor of their shape is left over, and a parameter of
     * several names may have other numbers under each: what has the net's names is meant. */
    bool partial;
    /* May be NULL. Gets lines that tell what became of the files. */
    void (*say)(void *user, enum lockstep_event_kind kind, const char *line);
    void *user;
};

/* Stores weights into the parameters of the nets whose graphs are given, by layer name. Views are
 * not refreshed. */
int ls_load_weights(struct ls_store *store, const struct ls_graph *const *graphs, size_t count,
                    const struct ls_weights_request *request, struct ls_error *error);

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
