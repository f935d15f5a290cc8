/* Source LMDB: databases of Datum records, as Caffe's tools write them and `lockstep convert` does.
 *
 * `source` is the folder of the database (with data.mdb in it), or the file itself. Records come in
 * the order of their keys, as Caffe's cursor reads them, and have numbers from 0. Encoded records
 * are decoded (JPEG, PNG) to BGR or grey. A view of the file serves to open it and to name records;
 * records themselves are read, so that a file which changes is no more than a bad record.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/file.h"
#include "base/memory.h"
#include "data/class_names.h"
#include "data/datum_store.h"
#include "data/lmdb_index.h"
#include "lockstep.pb-c.h"

static const struct ls_option options_table[] = {
    LS_DATUM_OPTIONS("the folder of the database, or its data.mdb")};

struct database {
    struct ls_datum_store store;
    char *file; /* the path of data.mdb */
    struct ls_mapping mapping;
    struct ls_file reading;
    struct ls_lmdb_entry *entry;
};

static int value_of(const struct ls_source *source, struct ls_source_reader *reader, int64_t index,
                    const uint8_t **bytes, size_t *size, struct ls_error *error)
{
    const struct database *db = source->state;
    const struct ls_lmdb_entry *entry = &db->entry[index];
    *size = entry->value_size;
    if (reader == NULL) {
        *bytes = db->mapping.data + entry->value;
        return 0;
    }
    uint8_t *value = ls_buffer_reserve(&reader->file, entry->value_size, 1);
    *bytes = value;
    if (value == NULL)
        return ls_fail_memory(error, "a record");
    return ls_file_read_at(&db->reading, db->file, entry->value, value, entry->value_size,
                           LOCKSTEP_DATA, error);
}

static const char *key_of(const struct ls_source *source, int64_t index, size_t *size)
{
    const struct database *db = source->state;
    *size = db->entry[index].key_size;
    return (const char *)db->mapping.data + db->entry[index].key;
}

static int open_database(const struct ls_source_options *options, struct ls_source *source,
                         struct ls_error *error)
{
    const struct ls_datum_options *own = options->own;
    const char *path = own->folder.item[0];
    struct database *db = source->state = ls_alloc(1, sizeof *db);
    if (db == NULL)
        return ls_fail_memory(error, "a database");
    db->reading.fd = -1;
    db->store.value = value_of;
    db->store.key = key_of;
    LS_TRY(ls_datum_store_begin(options, source, error));
    LS_TRY(ls_datum_store_check_kind(path, "data.mdb", "CURRENT", "LEVELDB", error));
    if (!ls_source_has_boxes(source) && ls_is_directory(path)) {
        struct ls_class_list names;
        LS_TRY(ls_class_list_beside(path, &names, error));
        source->class_name = names.name;
        source->class_count = names.count;
    }
    struct ls_text file = {0};
    ls_text_add(&file, path);
    if (ls_is_directory(path))
        ls_text_add(&file, "/data.mdb");
    db->store.file = db->file = file.data;
    if (file.failed)
        return ls_fail_memory(error, "a path");
    db->store.stamp = ls_file_stamp(db->file);
    LS_TRY(ls_file_open(db->file, LOCKSTEP_DATA, &db->reading, error));
    LS_TRY(ls_file_map(db->file, LOCKSTEP_DATA, &db->mapping, error));
    db->store.size = db->mapping.size;
    size_t count = 0;
    int status =
        ls_lmdb_index(db->file, db->mapping.data, db->mapping.size, &db->entry, &count, error);
    source->count = (int64_t)count;
    if (status == 0 && count > 0)
        status = ls_datum_store_inspect(source, options, error);
    int lost = ls_file_lost(&db->mapping, db->file, LOCKSTEP_DATA, error);
    return status != 0 ? status : lost;
}

static void close_database(struct ls_source *source)
{
    struct database *db = source->state;
    if (db == NULL)
        return;
    ls_file_unmap(&db->mapping);
    if (db->file != NULL)
        ls_file_close(&db->reading);
    ls_free(db->entry);
    ls_free(db->file);
    ls_free(db);
}

const struct ls_source_type ls_source_lmdb = {
    .name = "LMDB",
    .backend = LOCKSTEP__DATA_PARAMETER__DB__LMDB,
    .bgr = true,
    .summary = "a database of Datum records, as Caffe's tools and lockstep convert write it",
    .options = options_table,
    .options_size = sizeof(struct ls_datum_options),
    .open = open_database,
    .close = close_database,
    .read = ls_datum_store_read,
    .stamp = ls_datum_store_stamp,
    .name_record = ls_datum_store_name,
};
