/* Any source to an LMDB database.
 *
 * The database is made in a folder beside the target, which gets its name only when all is written
 * and synced: a reader never sees half a database, and a failure or a kill leaves the target
 * untouched. Transactions are committed every 1000 records; when the map is full it is doubled and
 * the transaction made again from its records, which are read again.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/convert.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <lmdb.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "data/datum.h"
#include "data/picture_write.h"
#include "data/selection.h"

enum {
    COMMIT_EVERY = 1000,
    KEY_MAX = 511,          /* LMDB's limit */
    RECORDS_MAX = 100000000 /* beyond, keys of eight digits would be out of order */
};
static const size_t FIRST_MAP = (size_t)16 << 20, FILE_MAX = (size_t)1 << 30;

struct writer {
    struct ls_selection *selection;
    const struct lockstep_source_options *options;
    const char *folder; /* the temporary one */
    MDB_env *environment;
    MDB_dbi database;
    size_t map;
    struct ls_buffer datum;
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

/* "%08d_name"; of a name that is too long the end is kept, because it differs between records. */
static int make_key(struct writer *writer, int64_t i, MDB_val *key)
{
    const struct ls_source *source = writer->selection->source;
    struct ls_text name = {0};
    if (source->type->name_record != NULL)
        source->type->name_record(source, ls_selection_index(writer->selection, i), &name);
    size_t skip = name.length > KEY_MAX - 16 ? name.length - (KEY_MAX - 16) : 0;
    writer->key.length = 0;
    ls_text_format(&writer->key, "%08" PRId64, i);
    if (name.length > 0)
        ls_text_format(&writer->key, "_%s", name.data + skip);
    bool failed = name.failed || writer->key.failed;
    ls_text_free(&name);
    if (failed)
        return ls_fail_memory(writer->error, "a key");
    *key = (MDB_val){.mv_size = writer->key.length, .mv_data = writer->key.data};
    return 0;
}

/* Whether a file can be taken as it is: it has the type that is wanted, by its name. */
static bool is_wanted_file(const struct lockstep_source_options *options, const char *path)
{
    const char *dot = strrchr(path, '.'), *wanted = options->encode_type;
    if (options->resize_height > 0 || options->resize_width > 0 || options->gray)
        return false;
    if (wanted == NULL)
        return true;
    if (dot == NULL)
        return false;
    const bool jpeg = strcasecmp(wanted, "jpg") == 0 || strcasecmp(wanted, "jpeg") == 0;
    return strcasecmp(dot + 1, wanted) == 0 ||
           (jpeg && (strcasecmp(dot + 1, "jpg") == 0 || strcasecmp(dot + 1, "jpeg") == 0));
}

/* A record that holds a picture file: the source's own, or one that is made of the pixels. */
static int make_encoded(struct writer *writer, int64_t i, const uint8_t **datum, size_t *size)
{
    const struct ls_source *source = writer->selection->source;
    const struct lockstep_source_options *options = writer->options;
    const int64_t index = ls_selection_index(writer->selection, i);
    const char *path =
        source->type->record_file != NULL ? source->type->record_file(source, index) : NULL;
    struct ls_record record;
    uint8_t *file = NULL;
    size_t file_size = 0;
    /* Read in any case: a picture that cannot be decoded is found now. */
    LS_TRY(ls_selection_read(writer->selection, i, &record, writer->error));
    const int32_t label = *(const int32_t *)record.tensor[1].data;
    if (path != NULL && is_wanted_file(options, path))
        LS_TRY(
            ls_file_read(path, FILE_MAX, LOCKSTEP_DATA, (char **)&file, &file_size, writer->error));
    else if (record.tensor[0].type != LS_U8)
        return ls_fail(writer->error, LOCKSTEP_DATA, source->type->name, NULL,
                       "its records are no pictures of bytes, which a file could hold");
    else
        LS_TRY(ls_picture_encode(record.tensor[0].data, record.tensor[0].shape.dim,
                                 options->encode_type != NULL ? options->encode_type : "png", &file,
                                 &file_size, writer->error));
    *datum = ls_datum_write_file(file, file_size, label, &writer->datum, size);
    ls_free(file);
    return *datum != NULL ? 0 : ls_fail_memory(writer->error, "a record");
}

static int make_raw(struct writer *writer, int64_t i, const uint8_t **datum, size_t *size)
{
    struct ls_record record;
    LS_TRY(ls_selection_read(writer->selection, i, &record, writer->error));
    *datum = ls_datum_write(&record, true, &writer->datum, size);
    return *datum != NULL ? 0 : ls_fail_memory(writer->error, "a record");
}

/* Puts a record into a transaction; *full when the map has no room for it. */
static int put_record(struct writer *writer, MDB_txn *transaction, int64_t i, bool *full)
{
    MDB_val key, value;
    const uint8_t *bytes;
    size_t size;
    LS_TRY(writer->options->encoded ? make_encoded(writer, i, &bytes, &size)
                                    : make_raw(writer, i, &bytes, &size));
    LS_TRY(make_key(writer, i, &key));
    value = (MDB_val){.mv_size = size, .mv_data = (void *)(uintptr_t)bytes};
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
    int64_t count = writer->selection->count;
    for (int64_t from = 0; from < count;) {
        int64_t to = count - from > COMMIT_EVERY ? from + COMMIT_EVERY : count;
        bool full;
        LS_TRY(write_run(writer, from, to, &full));
        if (full) {
            LS_TRY(grow_map(writer));
            continue;
        }
        from = to;
        LS_TRY(ls_selection_progress(writer->selection, from, writer->error));
    }
    int code = mdb_env_sync(writer->environment, 1);
    return code == 0 ? 0 : lmdb_failed(writer, code, "write");
}

static int fill_folder(struct ls_selection *selection,
                       const struct lockstep_source_options *options, const char *folder,
                       struct ls_error *error)
{
    struct writer writer = {.selection = selection,
                            .options = options,
                            .folder = folder,
                            .map = FIRST_MAP,
                            .error = error};
    int code = mdb_env_create(&writer.environment);
    if (code != 0)
        return lmdb_failed(&writer, code, "make a database");
    code = mdb_env_set_mapsize(writer.environment, writer.map);
    if (code == 0) /* synced once, at the end: until then it has no reader and needs no lock */
        code = mdb_env_open(writer.environment, folder, MDB_NOSYNC | MDB_NOTLS | MDB_NOLOCK, 0664);
    int status = code == 0 ? write_records(&writer) : lmdb_failed(&writer, code, "make a database");
    mdb_env_close(writer.environment);
    ls_buffer_free(&writer.datum);
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
    rmdir(folder);
}

static void sync_folder(const char *folder)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    (void)fsync(fd); /* some file systems cannot sync folders */
    close(fd);
}

/* Gives the finished folder its name. rename would replace an empty folder; the check before and
 * the temporary name make that a race between two runs at most. */
static int publish(const char *folder, const char *path, struct ls_error *error)
{
    remove_file(folder, "lock.mdb"); /* made anew when it is opened */
    sync_folder(folder);
    if (rename(folder, path) != 0)
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

static int convert_into(struct ls_selection *selection,
                        const struct lockstep_source_options *options, const char *path,
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
    int status;
    if (mkdir(folder.data, 0775) != 0) {
        status = ls_fail_errno(error, LOCKSTEP_RESOURCE, folder.data, "cannot make the folder");
    } else {
        status = fill_folder(selection, options, folder.data, error);
        if (status == 0)
            status = publish(folder.data, target, error);
        if (status != 0)
            remove_folder(folder.data);
    }
    ls_text_free(&folder);
    ls_free(target);
    return status;
}

int ls_convert(const struct lockstep_source_options *source, const char *path, int64_t *records,
               struct ls_error *error)
{
    if (path[0] == '\0')
        return ls_fail(error, LOCKSTEP_USAGE, NULL, NULL, "the database needs a name");
    struct stat info;
    if (lstat(path, &info) == 0)
        return ls_fail(error, LOCKSTEP_USAGE, path, "remove it, or take another name",
                       "exists already; a database is never written over something else");
    struct ls_selection selection;
    int status = ls_selection_open(source, &selection, error);
    if (status == 0 && selection.count > RECORDS_MAX)
        status = ls_fail(error, LOCKSTEP_DATA, source->backend, NULL,
                         "has more than %d records, which Caffe's keys of eight digits cannot "
                         "number",
                         RECORDS_MAX);
    if (status == 0)
        status = convert_into(&selection, source, path, error);
    if (status == 0 && records != NULL)
        *records = selection.count;
    ls_selection_close(&selection);
    return status;
}
