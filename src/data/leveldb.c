/* Source LEVELDB: databases of Datum records, as Caffe's tools write them by default.
 *
 * `source` is the folder of the database. Records come in the order of their keys, as Caffe's
 * cursor reads them, and have numbers from 0. To find them their heads are read when the database
 * is opened, as it has no list of its own.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/memory.h"
#include "data/datum_store.h"
#include "data/leveldb_index.h"
#include "lockstep.pb-c.h"

static const struct ls_option options_table[] = {LS_DATUM_OPTIONS("the folder of the database")};

struct database {
    struct ls_datum_store store;
    struct ls_leveldb leveldb;
    struct ls_buffer value, block; /* while it is opened */
};

static int value_of(const struct ls_source *source, struct ls_source_reader *reader, int64_t index,
                    const uint8_t **bytes, size_t *size, struct ls_error *error)
{
    struct database *db = source->state;
    return ls_leveldb_read(&db->leveldb, (size_t)index, reader != NULL ? &reader->file : &db->value,
                           reader != NULL ? &reader->map : &db->block, bytes, size, error);
}

static const char *key_of(const struct ls_source *source, int64_t index, size_t *size)
{
    const struct database *db = source->state;
    *size = db->leveldb.entry[index].key_size;
    return db->leveldb.keys.data + db->leveldb.entry[index].key;
}

static int open_database(const struct ls_source_options *options, struct ls_source *source,
                         struct ls_error *error)
{
    const struct ls_datum_options *own = options->own;
    struct database *db = source->state = ls_alloc(1, sizeof *db);
    if (db == NULL)
        return ls_fail_memory(error, "a database");
    db->store.value = value_of;
    db->store.key = key_of;
    LS_TRY(ls_datum_store_begin(options, source, error));
    LS_TRY(ls_datum_store_check_kind(own->folder.item[0], "CURRENT", "data.mdb", "LMDB", error));
    LS_TRY(ls_leveldb_open(own->folder.item[0], &db->leveldb, error));
    if (db->leveldb.warning.length > 0) {
        source->warning = ls_copy_string(db->leveldb.warning.data);
        if (source->warning == NULL)
            return ls_fail_memory(error, "a database");
    }
    db->store.file = db->leveldb.folder;
    db->store.size = db->leveldb.size;
    db->store.stamp = db->leveldb.stamp;
    source->count = (int64_t)db->leveldb.count;
    int status = source->count > 0 ? ls_datum_store_inspect(source, options, error) : 0;
    ls_buffer_free(&db->value);
    ls_buffer_free(&db->block);
    return status;
}

static void close_database(struct ls_source *source)
{
    struct database *db = source->state;
    if (db == NULL)
        return;
    ls_leveldb_free(&db->leveldb);
    ls_buffer_free(&db->value);
    ls_buffer_free(&db->block);
    ls_free(db);
}

const struct ls_source_type ls_source_leveldb = {
    .name = "LEVELDB",
    .backend = LOCKSTEP__DATA_PARAMETER__DB__LEVELDB,
    .bgr = true,
    .summary = "a LevelDB database of Datum records, what a data_param without backend means",
    .options = options_table,
    .options_size = sizeof(struct ls_datum_options),
    .open = open_database,
    .close = close_database,
    .read = ls_datum_store_read,
    .stamp = ls_datum_store_stamp,
    .name_record = ls_datum_store_name,
};
