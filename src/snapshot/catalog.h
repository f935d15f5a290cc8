/* The snapshots of a training on disk: their names, the newest, the best, and which may go.
 *
 *   <prefix>_iter_<N>.safetensors     the snapshot after N updates
 *   <prefix>_iter_<N>.caffemodel      its weights for Caffe, where the solver wants them, or
 *                    .caffemodel.h5
 *   <prefix>_iter_<N>.solverstate     what Caffe's solver needs to go on with them, or
 *                    .solverstate.h5
 *   <prefix>_best.safetensors         the snapshot with the best score so far: a hard link to one
 *                                     of the first kind, or a copy of it, so that it has the same
 *                                     bytes for the same training and outlives the other's removal
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SNAPSHOT_CATALOG_H
#define LS_SNAPSHOT_CATALOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "snapshot/archive.h"

/* The note of a snapshot that says how many updates were done; ls_catalog_newest compares it with
 * the file's name. */
#define LS_NOTE_ITERATION "iteration"

/* Names, owned by the caller; NULL: out of memory. */
char *ls_catalog_path(const char *prefix, int64_t iteration);
char *ls_catalog_caffemodel_path(const char *prefix, int64_t iteration, bool hdf5);
char *ls_catalog_solverstate_path(const char *prefix, int64_t iteration, bool hdf5);
char *ls_catalog_best_path(const char *prefix);

struct ls_catalog_entry {
    char *path;
    int64_t iteration;
};
struct ls_catalog {
    struct ls_catalog_entry *entries; /* by iteration, the oldest first */
    size_t count, capacity;
};

/* Lists the files of the first kind, by name only. A folder that does not exist has none. */
int ls_catalog_list(const char *prefix, struct ls_catalog *catalog, struct ls_error *error);
void ls_catalog_free(struct ls_catalog *catalog);

/* Opens the newest snapshot that is whole (written by Lockstep, its checksum right, and of the
 * iteration that its name says) and that `fits` accepts: a question whose
 * status other than 0, with a reason, refuses it; NULL: all fit. Newer ones are collected,
 * each with its name and the reason: those that are not whole in *skipped, those that do not fit in
 * *others (both may be NULL). *path is the file's name, owned by the caller; NULL (and an empty
 * archive, and success) if there is none. */
struct ls_catalog_question {
    int (*fits)(void *user, const struct ls_archive *archive, struct ls_error *reason);
    void *user;
};
int ls_catalog_newest(const char *prefix, const struct ls_catalog_question *question,
                      struct ls_archive *archive, char **path, struct ls_error *skipped,
                      struct ls_error *others, struct ls_error *error);

/* Whether there is any snapshot of this prefix; *path is the newest, owned by the caller. */
int ls_catalog_any(const char *prefix, char **path, struct ls_error *error);

/* Removes the oldest snapshots up to `iteration`, with their files for Caffe, until `keep` of these
 * are left; keep <= 0 keeps all. What is newer than `iteration` (a longer run before this one), the
 * best, damaged files and files that Lockstep did not write are neither counted nor touched. */
int ls_catalog_prune(const char *prefix, int64_t iteration, int keep, struct ls_error *error);

/* Makes the snapshot of `iteration`, which exists, the best one. Atomic: a reader finds the old
 * best one or the new one. */
int ls_catalog_mark_best(const char *prefix, int64_t iteration, struct ls_error *error);

#endif
