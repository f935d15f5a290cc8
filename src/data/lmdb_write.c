/* Databases of records, for LMDB. See data/lmdb_write.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/lmdb_write.h"

#include <errno.h>
#include <fcntl.h>
#include <lmdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/atomic_file.h"
#include "base/memory.h"
#include "data/class_names.h"

enum { COMMIT_EVERY = 1000 };
static const size_t FIRST_MAP = (size_t)16 << 20;

struct writer {
    const struct ls_lmdb_records *records;
    const char *folder; /* the temporary one */
    MDB_env *environment;
    MDB_dbi database;
    size_t map;
    struct ls_text key;
    struct ls_error *error;
};

/* MDB_MAP_FULL is left to the caller, which grows the map. LMDB reports a write that a full disk
 * has cut short as EIO. */
static int lmdb_failed(const struct writer *writer, int code, const char *doing)
{
    struct statvfs disk;
    if (code == EIO && statvfs(writer->folder, &disk) == 0 && disk.f_bavail == 0)
        code = ENOSPC;
    return ls_fail(writer->error, LOCKSTEP_RESOURCE, writer->folder,
                   code == ENOSPC ? "free some space on the disk" : NULL, "cannot %s: %s", doing,
                   mdb_strerror(code));
}

/* Puts a record into a transaction; *full when the map has no room for it. */
static int put_record(struct writer *writer, MDB_txn *transaction, int64_t i, bool *full)
{
    const uint8_t *bytes = NULL;
    size_t size = 0;
    writer->key.length = 0;
    LS_TRY(writer->records->make(writer->records->user, i, &writer->key, &bytes, &size,
                                 writer->error));
    if (writer->key.failed)
        return ls_fail_memory(writer->error, "a key");
    MDB_val key = {.mv_size = writer->key.length, .mv_data = writer->key.data};
    MDB_val value = {.mv_size = size, .mv_data = (void *)(uintptr_t)bytes};
    /* Keys come in order: appending packs pages full. */
    int code = mdb_put(transaction, writer->database, &key, &value, MDB_APPEND);
    *full = code == MDB_MAP_FULL;
    return code == 0 || *full ? 0 : lmdb_failed(writer, code, "add a record");
}

/* One transaction of the records [from, to). */
static int write_run(struct writer *writer, int64_t from, int64_t to, bool *full)
{
    MDB_txn *transaction;
    *full = false;
    int code = mdb_txn_begin(writer->environment, NULL, 0, &transaction);
    if (code != 0)
        return lmdb_failed(writer, code, "begin a transaction");
    code = mdb_dbi_open(transaction, NULL, 0, &writer->database);
    int status = code == 0 ? 0 : lmdb_failed(writer, code, "open the database");
    for (int64_t i = from; i < to && status == 0 && !*full; i++)
        status = put_record(writer, transaction, i, full);
    if (status != 0 || *full) {
        mdb_txn_abort(transaction);
        return status;
    }
    code = mdb_txn_commit(transaction);
    *full = code == MDB_MAP_FULL;
    return code == 0 || *full ? 0 : lmdb_failed(writer, code, "write");
}

static int grow_map(struct writer *writer)
{
    if (writer->map > SIZE_MAX / 4)
        return lmdb_failed(writer, MDB_MAP_FULL, "grow the database");
    writer->map *= 2;
    int code = mdb_env_set_mapsize(writer->environment, writer->map);
    return code == 0 ? 0 : lmdb_failed(writer, code, "grow the database");
}

static int write_records(struct writer *writer)
{
    const int64_t count = writer->records->count;
    for (int64_t from = 0; from < count;) {
        int64_t to = count - from > COMMIT_EVERY ? from + COMMIT_EVERY : count;
        bool full;
        LS_TRY(write_run(writer, from, to, &full));
        if (full) {
            LS_TRY(grow_map(writer));
            continue;
        }
        from = to;
        LS_TRY(writer->records->progress(writer->records->user, from, writer->error));
    }
    int code = mdb_env_sync(writer->environment, 1);
    return code == 0 ? 0 : lmdb_failed(writer, code, "write");
}

static int fill_folder(const struct ls_lmdb_records *records, const char *folder,
                       struct ls_error *error)
{
    struct writer writer = {.records = records, .folder = folder, .map = FIRST_MAP, .error = error};
    int code = mdb_env_create(&writer.environment);
    if (code != 0)
        return lmdb_failed(&writer, code, "make a database");
    code = mdb_env_set_mapsize(writer.environment, writer.map);
    if (code == 0) /* synced once, at the end: until then it has no reader and needs no lock */
        code = mdb_env_open(writer.environment, folder, MDB_NOSYNC | MDB_NOTLS | MDB_NOLOCK, 0664);
    int status = code == 0 ? write_records(&writer) : lmdb_failed(&writer, code, "make a database");
    mdb_env_close(writer.environment);
    ls_text_free(&writer.key);
    return status;
}

static void remove_file(const char *folder, const char *name)
{
    struct ls_text path = {0};
    ls_text_format(&path, "%s/%s", folder, name);
    if (!path.failed)
        unlink(path.data);
    ls_text_free(&path);
}

static void remove_folder(const char *folder)
{
    remove_file(folder, "data.mdb");
    remove_file(folder, "lock.mdb");
    remove_file(folder, LS_CLASS_NAMES_FILE);
    rmdir(folder);
}

static int write_names(const char *names, const char *folder, struct ls_error *error)
{
    struct ls_text path = {0};
    ls_text_format(&path, "%s/" LS_CLASS_NAMES_FILE, folder);
    int status = path.failed ? ls_fail_memory(error, "a path")
                             : ls_atomic_replace(path.data, names, strlen(names), error);
    ls_text_free(&path);
    return status;
}

static void sync_folder(const char *folder)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    (void)fsync(fd); /* some file systems cannot sync folders */
    close(fd);
}

/* Makes a folder that no other user can enter while it is filled, as links could be laid in it;
 * *mode: what it would have been without that. */
static int make_private(const char *folder, mode_t *mode, struct ls_error *error)
{
    struct ls_text probe = {0};
    struct stat info;
    if (mkdir(folder, 0700) != 0)
        return ls_fail_errno(error, LOCKSTEP_RESOURCE, folder, "cannot make the folder");
    ls_text_format(&probe, "%s/mode", folder);
    *mode = 0700;
    if (!probe.failed && mkdir(probe.data, 0775) == 0) {
        if (stat(probe.data, &info) == 0)
            *mode = info.st_mode & 07777;
        rmdir(probe.data);
    }
    ls_text_free(&probe);
    return 0;
}

/* Gives the finished folder its name. rename would replace an empty folder; the check before and
 * the temporary name make that a race between two runs at most. */
static int publish(const char *folder, mode_t mode, const char *path, struct ls_error *error)
{
    remove_file(folder, "lock.mdb"); /* made anew when it is opened */
    sync_folder(folder);
    if (chmod(folder, mode) != 0 || rename(folder, path) != 0)
        return ls_fail_errno(error, LOCKSTEP_RESOURCE, path, "cannot give the database its name");
    char *parent = ls_copy_string(path);
    char *slash = parent != NULL ? strrchr(parent, '/') : NULL;
    if (slash != NULL)
        *slash = '\0';
    if (parent != NULL)
        sync_folder(slash != NULL && parent[0] != '\0' ? parent : slash != NULL ? "/" : ".");
    ls_free(parent);
    return 0;
}

static int write_into(const struct ls_lmdb_records *records, const char *path,
                      struct ls_error *error)
{
    struct ls_text folder = {0};
    ls_text_add(&folder, path);
    while (!folder.failed && folder.length > 1 && folder.data[folder.length - 1] == '/')
        folder.data[--folder.length] = '\0';
    char *target = folder.failed ? NULL : ls_copy_string(folder.data);
    ls_text_format(&folder, ".part-%ld", (long)getpid());
    if (folder.failed || target == NULL) {
        ls_text_free(&folder);
        ls_free(target);
        return ls_fail_memory(error, "a path");
    }
    mode_t mode = 0700;
    int status = make_private(folder.data, &mode, error);
    if (status == 0) {
        status = fill_folder(records, folder.data, error);
        if (status == 0 && records->names != NULL)
            status = write_names(records->names, folder.data, error);
        if (status == 0)
            status = publish(folder.data, mode, target, error);
        if (status != 0)
            remove_folder(folder.data);
    }
    ls_text_free(&folder);
    ls_free(target);
    return status;
}

int ls_lmdb_write(const char *path, const struct ls_lmdb_records *records, struct ls_error *error)
{
    struct stat info;
    if (path[0] == '\0')
        return ls_fail(error, LOCKSTEP_USAGE, NULL, NULL, "the database needs a name");
    if (lstat(path, &info) == 0)
        return ls_fail(error, LOCKSTEP_USAGE, path, "remove it, or take another name",
                       "exists already; a database is never written over something else");
    return write_into(records, path, error);
}
