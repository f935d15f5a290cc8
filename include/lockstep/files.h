/* What is in files: the snapshots of a training, and any file by itself. A part of
 * lockstep/lockstep.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LOCKSTEP_FILES_H
#define LOCKSTEP_FILES_H

#include <stddef.h>
#include <stdint.h>

#include "lockstep/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A snapshot of a training, as a file. Strings live as long as the call of the callback. */
struct lockstep_listed_snapshot {
    const char *path;
    int64_t iteration;      /* updates done, by its name; -1: that of the best, by its notes */
    int64_t bytes, written; /* size; time of the last change in seconds since 1970 */
    const char *version;    /* of the Lockstep that wrote it; NULL: not known */
    int has_best;           /* whether `best` is known */
    double best;            /* the best score of snapshot_best that the training had before it */
    int is_best;            /* <prefix>_best is this file */
    int caffemodel;         /* a caffemodel of the same name lies beside it */
    int solverstate;        /* the same of a solver state */
    const char *problem;    /* why it is not whole; NULL: it is */
};
/* Tells of each snapshot <prefix>_iter_<N>.safetensors, the oldest first, and at the end of
 * <prefix>_best.safetensors if that is none of these files. Each is read to its end, as its
 * checksum says whether it is whole. `prefix` may also be the name of one of these files.
 * LOCKSTEP_WEIGHTS where there is none; a snapshot that is not whole is told of and no failure. */
LOCKSTEP_API int
lockstep_list_snapshots(const char *prefix,
                        void (*tell)(void *user, const struct lockstep_listed_snapshot *snapshot),
                        void *user, struct lockstep_error *error);

/* Compares two files of weights (snapshots and other safetensors, an index of several, caffemodels,
 * Caffe's HDF5), two nets or two solvers, which it knows by their content, and tells what differs,
 * a line each: tensors with how many elements and the first of them, fields with their places,
 * notes. 0 where all tensors are the same, whatever the notes, or all fields; LOCKSTEP_DIFFERENT
 * where they are not. */
LOCKSTEP_API int lockstep_diff(const char *first, const char *second,
                               void (*tell)(void *user, const char *line), void *user,
                               struct lockstep_error *error);

/* A tensor or array in a file. Strings live as long as the call of the callback, here and below. */
struct lockstep_shown_tensor {
    const char *name, *type; /* "conv1.weight", "F32" */
    int rank;
    const int64_t *shape;
    int64_t count;                  /* elements */
    int has_figures;                /* whether what follows is known: of elements that are finite */
    double least, most, mean, norm; /* norm: the root of the sum of squares */
    int64_t zeros, not_finite;
};
/* A record of a source, a token, a layer: what a file has many of. */
struct lockstep_shown_record {
    int64_t index;    /* from 0 */
    const char *name; /* a key, a path, a layer's name; "" where it has none */
    const char *text; /* what it is: "data 1x28x28 U8; label 5" */
    int64_t label;    /* -1: none */
    /* A picture: channels (1, or 3: red, green, blue), height, width; 0 to 255, channel by channel.
     * NULL: it is none. */
    int64_t shape[3];
    const float *pixels;
};
struct lockstep_show_options {
    size_t struct_size;
    int64_t records; /* how many records are told of; -1: 10. All layers of a net are. */
    void *user;      /* for the callbacks, each of which may be NULL */
    void (*kind)(void *user, const char *name, const char *summary); /* first: "lmdb", ... */
    void (*fact)(void *user, const char *name, const char *value);   /* may have several lines */
    void (*tensor)(void *user, const struct lockstep_shown_tensor *tensor);
    void (*record)(void *user, const struct lockstep_shown_record *record);
};
LOCKSTEP_API void lockstep_show_options_init(struct lockstep_show_options *options);
/* Tells what is in a file, which it knows by its content: snapshots and other files of weights,
 * solver states, databases, pictures, arrays, token ids, tokenizers, mean files, definitions. A
 * training's log has its kind ("log") alone: lockstep_log_read reads it. Files that are damaged
 * fail behind what could be read; so do those of no known kind (LOCKSTEP_USAGE). */
LOCKSTEP_API int lockstep_show(const char *path, const struct lockstep_show_options *options,
                               struct lockstep_error *error);

#ifdef __cplusplus
}
#endif
#endif
