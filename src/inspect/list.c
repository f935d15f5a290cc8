/* The snapshots of a training. See inspect/list.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "inspect/list.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "snapshot/catalog.h"
#include "solver/notes.h"

static const char middle[] = "_iter_", suffix[] = ".safetensors",
                  best_suffix[] = "_best.safetensors";

struct listing {
    void (*tell)(void *user, const struct lockstep_listed_snapshot *snapshot);
    void *user;
    char *prefix, *best_path;
    struct stat best; /* of the best one's file */
    bool has_best;    /* there is such a file, and no snapshot so far was it */
};

/* Where the digits of "<stem>_iter_<digits>.safetensors" are preceded by "_iter_"; NULL for other
 * names. */
static const char *numbered(const char *name)
{
    const char *found = NULL;
    for (const char *at = name; (at = strstr(at, middle)) != NULL; at++)
        found = at;
    if (found == NULL)
        return NULL;
    const char *digits = found + sizeof middle - 1;
    size_t count = strspn(digits, "0123456789");
    return count > 0 && strcmp(digits + count, suffix) == 0 ? found : NULL;
}

/* The prefix that a snapshot's name has, as a copy; of other texts a copy of all. */
static char *prefix_of(const char *text)
{
    size_t length = strlen(text), ending = sizeof best_suffix - 1;
    const char *end = numbered(text);
    if (end != NULL)
        length = (size_t)(end - text);
    else if (length > ending && strcmp(text + length - ending, best_suffix) == 0)
        length -= ending;
    return ls_copy_bytes(text, length);
}

/* Fails, and names a prefix that there is in the folder, the first by name. */
static int list_nothing(const char *prefix, struct ls_error *error)
{
    const char *slash = strrchr(prefix, '/');
    bool inside = slash == NULL && ls_is_directory(prefix); /* the folder itself was meant */
    char folder[512], hint[1024] = "", other[256] = "";
    snprintf(folder, sizeof folder, "%.*s",
             inside          ? (int)strlen(prefix)
             : slash != NULL ? (int)(slash - prefix) + 1
                             : 1,
             inside || slash != NULL ? prefix : ".");
    DIR *directory = opendir(folder);
    for (struct dirent *file; directory != NULL && (file = readdir(directory)) != NULL;) {
        const char *end = numbered(file->d_name);
        int length = end != NULL ? (int)(end - file->d_name) : 0;
        if (length > 0 && length < (int)sizeof other &&
            (other[0] == '\0' || strncmp(file->d_name, other, (size_t)length + 1) < 0))
            snprintf(other, sizeof other, "%.*s", length, file->d_name);
    }
    if (directory != NULL)
        closedir(directory);
    if (other[0] != '\0')
        snprintf(hint, sizeof hint, "there are some of %s%s%s",
                 slash != NULL || inside ? folder : "", inside ? "/" : "", other);
    return ls_fail(error, LOCKSTEP_WEIGHTS, prefix, hint[0] != '\0' ? hint : NULL,
                   "there are no snapshots of this prefix (%s_iter_<N>.safetensors)", prefix);
}

static bool list_has(char *path)
{
    bool there = path != NULL && ls_file_exists(path);
    ls_free(path);
    return there;
}

static void list_notes(const struct ls_archive *archive, struct lockstep_listed_snapshot *snapshot)
{
    const char *best = ls_archive_note(archive, LS_NOTE_BEST);
    snapshot->version = ls_archive_note(archive, LS_NOTE_VERSION);
    snapshot->has_best = best != NULL;
    if (best != NULL)
        snapshot->best = ls_parse_double(best);
}

/* Why a file is no whole snapshot: 0, or a status with the reason. */
static int list_read(const char *path, int64_t expected, struct ls_archive *archive,
                     int64_t *iteration, struct ls_error *reason)
{
    LS_TRY(ls_archive_read(path, LS_ARCHIVE_CHECK, archive, reason));
    if (!archive->ours)
        return ls_fail(reason, LOCKSTEP_WEIGHTS, path, NULL,
                       "was not written by Lockstep, or its checksum is missing");
    LS_TRY(ls_archive_take_integer(archive, LS_NOTE_ITERATION, iteration, reason));
    if (expected >= 0 && *iteration != expected)
        return ls_fail(reason, LOCKSTEP_WEIGHTS, path, NULL,
                       "is of iteration %lld, not of the one in its name", (long long)*iteration);
    return 0;
}

/* Tells of one file. `iteration` < 0: it is the best one. */
static int list_one(struct listing *listing, const char *path, int64_t iteration,
                    struct ls_error *error)
{
    struct lockstep_listed_snapshot snapshot = {.path = path, .iteration = iteration};
    struct ls_archive archive = {0};
    struct ls_error reason = {0};
    struct stat state;
    if (stat(path, &state) != 0)
        return 0; /* removed since it was listed */
    snapshot.bytes = (int64_t)state.st_size;
    snapshot.written = (int64_t)state.st_mtime;
    int64_t noted = -1;
    int status = list_read(path, iteration, &archive, &noted, &reason);
    if (status == LOCKSTEP_RESOURCE) {
        ls_archive_free(&archive);
        return ls_fail_memory(error, path);
    }
    if (status != 0)
        snapshot.problem = reason.problems[0].message;
    else
        list_notes(&archive, &snapshot);
    if (iteration >= 0) {
        snapshot.caffemodel =
            list_has(ls_catalog_caffemodel_path(listing->prefix, iteration, false)) ||
            list_has(ls_catalog_caffemodel_path(listing->prefix, iteration, true));
        snapshot.solverstate =
            list_has(ls_catalog_solverstate_path(listing->prefix, iteration, false)) ||
            list_has(ls_catalog_solverstate_path(listing->prefix, iteration, true));
        snapshot.is_best = listing->has_best && state.st_dev == listing->best.st_dev &&
                           state.st_ino == listing->best.st_ino;
        listing->has_best = listing->has_best && !snapshot.is_best;
    } else {
        snapshot.iteration = noted;
        snapshot.is_best = 1;
    }
    listing->tell(listing->user, &snapshot);
    ls_archive_free(&archive);
    return 0;
}

static int list_all(struct listing *listing, const char *given, struct ls_error *error)
{
    struct ls_catalog catalog;
    if (listing->prefix == NULL || listing->best_path == NULL)
        return ls_fail_memory(error, given);
    LS_TRY(ls_catalog_list(listing->prefix, &catalog, error));
    listing->has_best = stat(listing->best_path, &listing->best) == 0;
    int status =
        catalog.count == 0 && !listing->has_best ? list_nothing(listing->prefix, error) : 0;
    for (size_t i = 0; i < catalog.count && status == 0; i++)
        status = list_one(listing, catalog.entries[i].path, catalog.entries[i].iteration, error);
    if (status == 0 && listing->has_best)
        status = list_one(listing, listing->best_path, -1, error);
    ls_catalog_free(&catalog);
    return status;
}

int ls_list_snapshots(const char *prefix,
                      void (*tell)(void *user, const struct lockstep_listed_snapshot *snapshot),
                      void *user, struct ls_error *error)
{
    struct listing listing = {.tell = tell, .user = user, .prefix = prefix_of(prefix)};
    listing.best_path = listing.prefix != NULL ? ls_catalog_best_path(listing.prefix) : NULL;
    int status = list_all(&listing, prefix, error);
    ls_free(listing.prefix);
    ls_free(listing.best_path);
    return status;
}
