/* Finding, choosing and removing snapshots.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "snapshot/catalog.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/atomic_file.h"
#include "base/memory.h"
#include "base/text.h"

static const char suffix[] = ".safetensors";

/* A text as the caller's string; NULL if an append failed. */
static char *finish(struct ls_text *text)
{
    if (text->failed)
        ls_text_free(text);
    return text->data;
}

static char *numbered_path(const char *prefix, int64_t iteration, const char *ending)
{
    struct ls_text text = {0};
    ls_text_format(&text, "%s_iter_%" PRId64 "%s", prefix, iteration, ending);
    return finish(&text);
}

char *ls_catalog_path(const char *prefix, int64_t iteration)
{
    return numbered_path(prefix, iteration, suffix);
}

char *ls_catalog_caffemodel_path(const char *prefix, int64_t iteration, bool hdf5)
{
    return numbered_path(prefix, iteration, hdf5 ? ".caffemodel.h5" : ".caffemodel");
}

char *ls_catalog_solverstate_path(const char *prefix, int64_t iteration, bool hdf5)
{
    return numbered_path(prefix, iteration, hdf5 ? ".solverstate.h5" : ".solverstate");
}

char *ls_catalog_best_path(const char *prefix)
{
    struct ls_text text = {0};
    ls_text_format(&text, "%s_best%s", prefix, suffix);
    return finish(&text);
}

/* The length of the folder's part of a prefix, with its slash. */
static size_t folder_length(const char *prefix)
{
    const char *slash = strrchr(prefix, '/');
    return slash != NULL ? (size_t)(slash - prefix) + 1 : 0;
}

/* The iteration that a file name "<stem>_iter_<N>.safetensors" says; -1 for other names, and for
 * numbers that we would have written in another way. */
static int64_t parse_name(const char *name, const char *stem)
{
    static const char middle[] = "_iter_";
    size_t length = strlen(stem);
    if (strncmp(name, stem, length) != 0 || strncmp(name + length, middle, sizeof middle - 1) != 0)
        return -1;
    const char *digits = name + length + sizeof middle - 1;
    size_t count = strspn(digits, "0123456789");
    if (count < 1 || count > 18 || (digits[0] == '0' && count > 1) ||
        strcmp(digits + count, suffix) != 0)
        return -1;
    return strtoll(digits, NULL, 10);
}

static int compare_entries(const void *a, const void *b)
{
    int64_t left = ((const struct ls_catalog_entry *)a)->iteration;
    int64_t right = ((const struct ls_catalog_entry *)b)->iteration;
    return (left > right) - (left < right);
}

void ls_catalog_free(struct ls_catalog *catalog)
{
    for (size_t i = 0; i < catalog->count; i++)
        ls_free(catalog->entries[i].path);
    ls_free(catalog->entries);
    *catalog = (struct ls_catalog){0};
}

static int add_entry(struct ls_catalog *catalog, const char *prefix, int64_t iteration,
                     struct ls_error *error)
{
    if (!LS_GROW(catalog->entries, catalog->count, catalog->capacity))
        return ls_fail_memory(error, prefix);
    char *path = ls_catalog_path(prefix, iteration);
    if (path == NULL)
        return ls_fail_memory(error, prefix);
    catalog->entries[catalog->count++] = (struct ls_catalog_entry){path, iteration};
    return 0;
}

int ls_catalog_list(const char *prefix, struct ls_catalog *catalog, struct ls_error *error)
{
    *catalog = (struct ls_catalog){0};
    size_t length = folder_length(prefix);
    char *folder = length > 0 ? ls_copy_bytes(prefix, length) : ls_copy_string(".");
    if (folder == NULL)
        return ls_fail_memory(error, prefix);
    DIR *directory = opendir(folder);
    int status = 0;
    if (directory == NULL && errno != ENOENT)
        status =
            ls_fail_errno(error,
                          errno == EMFILE || errno == ENFILE || errno == ENOMEM ? LOCKSTEP_RESOURCE
                                                                                : LOCKSTEP_WEIGHTS,
                          folder, "cannot look for snapshots in it");
    ls_free(folder);
    if (directory == NULL)
        return status;
    for (struct dirent *file; status == 0 && (file = readdir(directory)) != NULL;) {
        int64_t iteration = parse_name(file->d_name, prefix + length);
        if (iteration >= 0)
            status = add_entry(catalog, prefix, iteration, error);
    }
    closedir(directory);
    if (status != 0)
        ls_catalog_free(catalog);
    else if (catalog->count > 1)
        qsort(catalog->entries, catalog->count, sizeof *catalog->entries, compare_entries);
    return status;
}

/* Opens a snapshot if it is whole. */
static int open_entry(const struct ls_catalog_entry *entry, struct ls_archive *archive,
                      struct ls_error *error)
{
    LS_TRY(ls_archive_read(entry->path, LS_ARCHIVE_CHECK, archive, error));
    int64_t iteration = -1;
    int status = 0;
    if (!archive->ours)
        status = ls_fail(error, LOCKSTEP_WEIGHTS, entry->path, NULL,
                         "was not written by Lockstep, or its checksum is missing");
    else
        status = ls_archive_take_integer(archive, LS_NOTE_ITERATION, &iteration, error);
    if (status == 0 && iteration != entry->iteration)
        status = ls_fail(error, LOCKSTEP_WEIGHTS, entry->path, NULL,
                         "is a snapshot of iteration %" PRId64 ", not of the one in its name",
                         iteration);
    if (status != 0)
        ls_archive_free(archive);
    return status;
}

static void collect(struct ls_error *list, int status, const struct ls_error *reason)
{
    ls_fail(list, status, reason->problems[0].place, reason->problems[0].hint, "%s",
            reason->problems[0].message);
}

int ls_catalog_newest(const char *prefix, const struct ls_catalog_question *question,
                      struct ls_archive *archive, char **path, struct ls_error *skipped,
                      struct ls_error *others, struct ls_error *error)
{
    *archive = (struct ls_archive){0};
    *path = NULL;
    struct ls_catalog catalog;
    LS_TRY(ls_catalog_list(prefix, &catalog, error));
    int status = 0;
    for (size_t i = catalog.count; i-- > 0 && *path == NULL;) {
        struct ls_error reason = {0};
        status = open_entry(&catalog.entries[i], archive, &reason);
        if (status == LOCKSTEP_RESOURCE) { /* no memory: says nothing about the file */
            ls_fail_memory(error, catalog.entries[i].path);
            break;
        }
        if (status != 0) {
            collect(skipped, status, &reason);
        } else if (question != NULL &&
                   (status = question->fits(question->user, archive, &reason)) != 0) {
            ls_archive_free(archive);
            collect(others, status, &reason);
        } else {
            *path = catalog.entries[i].path;
            catalog.entries[i].path = NULL;
        }
        status = 0;
    }
    ls_catalog_free(&catalog);
    return status;
}

int ls_catalog_any(const char *prefix, char **path, struct ls_error *error)
{
    struct ls_catalog catalog;
    *path = NULL;
    LS_TRY(ls_catalog_list(prefix, &catalog, error));
    if (catalog.count > 0) {
        *path = catalog.entries[catalog.count - 1].path;
        catalog.entries[catalog.count - 1].path = NULL;
    } else if ((*path = ls_catalog_best_path(prefix)) == NULL) {
        ls_fail_memory(error, prefix);
    } else if (!ls_file_exists(*path)) {
        ls_free(*path);
        *path = NULL;
    }
    ls_catalog_free(&catalog);
    return 0;
}

/* Whether a file has the notes of our snapshots. Damage elsewhere does not matter here. */
static int is_ours(const char *path, bool *ours, struct ls_error *error)
{
    struct ls_archive archive;
    struct ls_error reason = {0};
    int status = ls_archive_read(path, LS_ARCHIVE_HEADER, &archive, &reason);
    *ours = status == 0 && archive.ours;
    ls_archive_free(&archive);
    /* Without memory nothing is known about the file. */
    return status == LOCKSTEP_RESOURCE ? ls_fail_memory(error, path) : 0;
}

/* Removes a file if it is there. */
static int remove_file(const char *path, struct ls_error *error)
{
    if (unlink(path) == 0 || errno == ENOENT)
        return 0;
    return ls_fail_errno(error, LOCKSTEP_RESOURCE, path, "cannot remove");
}

static int remove_snapshot(const char *prefix, const struct ls_catalog_entry *entry,
                           struct ls_error *error)
{
    LS_TRY(remove_file(entry->path, error));
    int status = 0;
    for (int i = 0; i < 4 && status == 0; i++) {
        char *path = i < 2 ? ls_catalog_caffemodel_path(prefix, entry->iteration, i % 2 == 1)
                           : ls_catalog_solverstate_path(prefix, entry->iteration, i % 2 == 1);
        status = path != NULL ? remove_file(path, error) : ls_fail_memory(error, prefix);
        ls_free(path);
    }
    return status;
}

int ls_catalog_prune(const char *prefix, int64_t iteration, int keep, struct ls_error *error)
{
    if (keep <= 0)
        return 0;
    struct ls_catalog catalog;
    LS_TRY(ls_catalog_list(prefix, &catalog, error));
    int status = 0, kept = 0;
    for (size_t i = catalog.count; i-- > 0 && status == 0;) {
        const struct ls_catalog_entry *entry = &catalog.entries[i];
        bool ours = false;
        if (entry->iteration <= iteration)
            status = is_ours(entry->path, &ours, error);
        if (!ours)
            continue;
        if (kept < keep)
            kept++;
        else
            status = remove_snapshot(prefix, entry, error);
    }
    ls_catalog_free(&catalog);
    return status;
}

/* Copies a file where the file system has no hard links. */
static int copy_file(const char *from, const char *to, struct ls_error *error)
{
    struct ls_mapping file;
    LS_TRY(ls_file_map(from, LOCKSTEP_WEIGHTS, &file, error));
    int status = ls_atomic_replace(to, file.data, file.size, error);
    if (status == 0)
        status = ls_file_lost(&file, from, LOCKSTEP_WEIGHTS, error);
    ls_file_unmap(&file);
    return status;
}

/* Makes `to` another name of the file `from`, atomically. False (and errno) if that cannot be. */
static bool link_file(const char *from, const char *to, const char *temporary)
{
    if (unlink(temporary) != 0 && errno != ENOENT)
        return false;
    if (link(from, temporary) != 0)
        return false;
    bool renamed = rename(temporary, to) == 0;
    int reason = errno;
    /* A rename between two names of one file does nothing at all and leaves the first. */
    unlink(temporary);
    errno = reason;
    return renamed;
}

/* Makes the names in the prefix's folder durable. Best effort: both names lead to whole files. */
static void sync_folder(const char *prefix)
{
    size_t length = folder_length(prefix);
    char *folder = length > 0 ? ls_copy_bytes(prefix, length) : ls_copy_string(".");
    int fd = folder != NULL ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    ls_free(folder);
    if (fd < 0)
        return;
    fsync(fd);
    close(fd);
}

int ls_catalog_mark_best(const char *prefix, int64_t iteration, struct ls_error *error)
{
    char *from = ls_catalog_path(prefix, iteration);
    char *to = ls_catalog_best_path(prefix);
    struct ls_text temporary = {0};
    ls_text_format(&temporary, "%.*s.%s_best.%ld.tmp", (int)folder_length(prefix), prefix,
                   prefix + folder_length(prefix), (long)getpid());
    int status = 0;
    if (from == NULL || to == NULL || temporary.failed)
        status = ls_fail_memory(error, prefix);
    else if (!ls_file_exists(from))
        status = ls_fail(error, LOCKSTEP_INTERNAL, from, NULL, "there is no such snapshot");
    else if (link_file(from, to, temporary.data))
        sync_folder(prefix);
    else
        status = copy_file(from, to, error);
    ls_free(from);
    ls_free(to);
    ls_text_free(&temporary);
    return status;
}
