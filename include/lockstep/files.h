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

#ifdef __cplusplus
}
#endif
#endif
