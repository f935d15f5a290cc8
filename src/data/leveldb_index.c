/* LevelDB's files, as its versions since 2011 write them.
 *
 *   CURRENT   the name of the manifest that holds
 *   manifest  a log whose records are changes of the list of files: fields of a tag and its values.
 *             It must be whole, since a part of it names other files: what LevelDB refuses is
 *             refused
 *   table     .ldb or .sst: blocks, each with a byte of type (1: Snappy) and a checksum behind it;
 *             the last 48 bytes say where the block is that lists the others
 *   block     entries: how many bytes of the key before are this one's too, how many follow, and
 *             the size of the value; then a list of places that is not needed here. Keys end in
 *             eight bytes: the write's number, and whether it deleted the key
 *   log       writes that are in no table yet, in batches; a log's records are cut at blocks of
 *             32 KiB into parts with a checksum, a size and a type (whole, first, middle, last)
 *
 * Numbers are little-endian, or seven bits a byte, the lowest first.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/leveldb_index.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"
#include "data/leveldb_block.h"
#include "data/leveldb_log.h"

enum {
    BATCH_HEAD = 12,
    SUFFIX = 8, /* behind each key in a table */
};
static const uint64_t MAGIC = 0xdb4775248b80fb57U;
/* Checksums of a larger database are looked at when its records are read, if at all: to find the
 * records only their heads are needed. */
static const uint64_t CHECK_LIMIT = (uint64_t)1 << 30;
static const size_t CURRENT_LIMIT = 4096;

/* ---- Opening --------------------------------------------------------------------------------- */

/* The work on a database. */
struct opening {
    struct ls_leveldb *db;
    uint64_t log_number, earlier_log;
    bool has_log, has_next, has_sequence; /* what every manifest says */
    bool log_is_there;                    /* the file of log_number */
    uint64_t *gone;                       /* tables that the manifest takes away */
    size_t gone_count, gone_capacity;
    size_t lost; /* records that only tables have that the manifest does not name */
    bool checks; /* checksums */
    struct ls_buffer scratch, index; /* blocks that were compressed */
    struct ls_text key;              /* of the entry at hand, of a table */
    struct ls_error *error;
};

static int no_memory(const struct opening *o)
{
    return ls_fail_memory(o->error, "the index of a database");
}

static char *path_in(const char *folder, const char *name)
{
    struct ls_text path = {0};
    ls_text_format(&path, "%s/%s", folder, name);
    return path.failed ? NULL : path.data;
}

static int add_entry(struct opening *o, const struct ls_leveldb_bytes *key, uint64_t tag,
                     struct ls_leveldb_entry *entry)
{
    struct ls_leveldb *db = o->db;
    if (!LS_GROW(db->entry, db->count, db->capacity))
        return no_memory(o);
    entry->key = db->keys.length;
    entry->key_size = (uint32_t)(key->end - key->at);
    entry->sequence = tag >> 8;
    entry->deleted = (tag & 255) == 0;
    ls_text_add_bytes(&db->keys, key->at, entry->key_size);
    if (db->keys.failed)
        return no_memory(o);
    db->entry[db->count++] = *entry;
    return 0;
}

/* ---- Logs ------------------------------------------------------------------------------------ */

/* A batch of writes. */
static int read_batch(struct opening *o, const struct ls_leveldb_log *log, uint32_t file)
{
    struct ls_leveldb_bytes in = ls_leveldb_log_record(log);
    const uint8_t *begin = in.at;
    if (in.end - in.at < BATCH_HEAD)
        return ls_leveldb_damaged(log->path, log->start, "a batch is too short", o->error);
    uint64_t sequence = ls_leveldb_fixed(in.at, 8);
    in.at += BATCH_HEAD;
    for (; in.at < in.end; sequence++) {
        struct ls_leveldb_bytes key, value = {NULL, NULL};
        uint8_t tag = *in.at++;
        if (tag > 1 || !ls_leveldb_take_bytes(&in, &key) ||
            (tag == 1 && !ls_leveldb_take_bytes(&in, &value)))
            return ls_leveldb_damaged(log->path, log->start, "a batch is damaged", o->error);
        struct ls_leveldb_entry entry = {.file = file, .size = (uint32_t)(value.end - value.at)};
        if (tag == 1)
            entry.place = ls_leveldb_ahead(log->start, (uint64_t)(value.at - begin));
        LS_TRY(add_entry(o, &key, sequence << 8 | tag, &entry));
    }
    return 0;
}

/* Calls `visit` for each record of a log; *cut: it ends within one. */
static int read_log(struct opening *o, const char *path, uint32_t file,
                    int (*visit)(struct opening *o, const struct ls_leveldb_log *log,
                                 uint32_t file),
                    bool *cut)
{
    struct ls_mapping mapping;
    LS_TRY(ls_file_map(path, LOCKSTEP_DATA, &mapping, o->error));
    struct ls_leveldb_log log = {.path = path, .bytes = mapping.data, .size = mapping.size};
    bool found = true;
    int status = 0;
    while (status == 0 && found) {
        status = ls_leveldb_log_next(&log, &found, o->error);
        if (status == 0 && found)
            status = visit(o, &log, file);
    }
    ls_text_free(&log.record);
    *cut = log.cut;
    int lost = ls_file_lost(&mapping, path, LOCKSTEP_DATA, o->error);
    ls_file_unmap(&mapping);
    return status != 0 ? status : lost;
}

/* ---- The manifest ---------------------------------------------------------------------------- */

static int add_file(struct opening *o, uint64_t number, uint64_t size, bool table)
{
    struct ls_leveldb *db = o->db;
    if (!LS_GROW(db->file, db->files, db->file_capacity))
        return no_memory(o);
    db->file[db->files++] =
        (struct ls_leveldb_file){.number = number, .size = size, .table = table};
    return 0;
}

static int remove_file(struct opening *o, uint64_t number)
{
    struct ls_leveldb *db = o->db;
    if (!LS_GROW(o->gone, o->gone_count, o->gone_capacity))
        return no_memory(o);
    o->gone[o->gone_count++] = number;
    for (size_t i = 0; i < db->files; i++)
        if (db->file[i].number == number) {
            db->file[i] = db->file[--db->files];
            break;
        }
    return 0;
}

/* One field of a change; false: damaged. */
static bool read_field(struct opening *o, struct ls_leveldb_bytes *in, int *status)
{
    static const char ours[] = "leveldb.BytewiseComparator";
    uint64_t tag, level, number, size;
    struct ls_leveldb_bytes part;
    if (!ls_leveldb_take_number(in, &tag))
        return false;
    switch (tag) {
    case 1: /* how keys are compared */
        if (!ls_leveldb_take_bytes(in, &part))
            return false;
        if ((size_t)(part.end - part.at) != sizeof ours - 1 ||
            memcmp(part.at, ours, sizeof ours - 1) != 0)
            *status = ls_fail(o->error, LOCKSTEP_DATA, o->db->folder, NULL,
                              "its keys are in an order of another program");
        return true;
    case 2:
        o->has_log = true;
        return ls_leveldb_take_number(in, &o->log_number);
    case 9:
        return ls_leveldb_take_number(in, &o->earlier_log);
    case 3:
        o->has_next = true;
        return ls_leveldb_take_number(in, &number);
    case 4:
        o->has_sequence = true;
        return ls_leveldb_take_number(in, &number);
    case 5: /* where a level was compacted last */
        return ls_leveldb_take_number(in, &number) && ls_leveldb_take_bytes(in, &part);
    case 6: /* a file that is gone */
        if (!ls_leveldb_take_number(in, &level) || !ls_leveldb_take_number(in, &number))
            return false;
        *status = remove_file(o, number);
        return true;
    case 7: /* a file that is new: level, number, size, first and last key */
        if (!ls_leveldb_take_number(in, &level) || !ls_leveldb_take_number(in, &number) ||
            !ls_leveldb_take_number(in, &size) || !ls_leveldb_take_bytes(in, &part) ||
            !ls_leveldb_take_bytes(in, &part))
            return false;
        *status = add_file(o, number, size, true);
        return true;
    default:
        return false;
    }
}

static int read_change(struct opening *o, const struct ls_leveldb_log *log, uint32_t file)
{
    struct ls_leveldb_bytes in = ls_leveldb_log_record(log);
    int status = 0;
    (void)file;
    while (in.at < in.end && status == 0)
        if (!read_field(o, &in, &status))
            return ls_leveldb_damaged(log->path, log->start, "the manifest is damaged", o->error);
    return status;
}

/* What CURRENT names; owned by the caller. */
static int find_manifest(struct opening *o, char **manifest)
{
    char *current = path_in(o->db->folder, "CURRENT"), *name = NULL;
    size_t size = 0;
    if (current == NULL)
        return no_memory(o);
    int status = ls_file_read(current, CURRENT_LIMIT, LOCKSTEP_DATA, &name, &size, o->error);
    if (status == 0 && (size == 0 || strcspn(name, "\n") != size - 1 ||
                        strncmp(name, "MANIFEST-", 9) != 0 || strchr(name, '/') != NULL))
        status = ls_fail(o->error, LOCKSTEP_DATA, current, NULL,
                         "does not name a manifest: this is no LevelDB database, or a damaged one");
    if (status == 0) {
        name[size - 1] = '\0';
        *manifest = path_in(o->db->folder, name);
        status = *manifest != NULL ? 0 : no_memory(o);
    }
    ls_free(name);
    ls_free(current);
    return status;
}

static int read_manifest(struct opening *o)
{
    char *path = NULL;
    bool cut = false;
    LS_TRY(find_manifest(o, &path));
    int status = read_log(o, path, 0, read_change, &cut);
    if (status == 0 && (cut || !o->has_log || !o->has_next || !o->has_sequence))
        status = ls_fail(o->error, LOCKSTEP_DATA, path,
                         "copy the database again, or repair it with LevelDB's own RepairDB",
                         "the manifest is cut off: which files the database has is not known");
    ls_free(path);
    return status;
}

/* ---- Tables ---------------------------------------------------------------------------------- */

/* The records of a block. */
static int read_block(struct opening *o, uint32_t number, const uint8_t *bytes,
                      struct ls_leveldb_block *block)
{
    const struct ls_leveldb_file *file = &o->db->file[number];
    LS_TRY(ls_leveldb_open_block(file, bytes, o->checks, &o->scratch, block, o->error));
    struct ls_leveldb_bytes in = block->content, value;
    o->key.length = 0;
    while (in.at < in.end) {
        bool good = ls_leveldb_next_entry(&in, &o->key, &value);
        if (o->key.failed)
            return no_memory(o);
        if (!good || o->key.length < SUFFIX)
            return ls_leveldb_damaged(file->path, block->place, "an entry is damaged", o->error);
        const uint8_t *key = (const uint8_t *)o->key.data;
        const struct ls_leveldb_bytes user = {key, key + o->key.length - SUFFIX};
        struct ls_leveldb_entry entry = {.file = number,
                                         .place = block->place,
                                         .block = (uint32_t)block->stored,
                                         .at = (uint32_t)(value.at - block->content.at),
                                         .size = (uint32_t)(value.end - value.at),
                                         .packed = block->packed};
        LS_TRY(add_entry(o, &user, ls_leveldb_fixed(user.end, SUFFIX), &entry));
    }
    return 0;
}

/* The blocks that the table's list names. */
static int read_blocks(struct opening *o, uint32_t number, const uint8_t *bytes)
{
    const struct ls_leveldb_file *file = &o->db->file[number];
    struct ls_leveldb_bytes footer = {bytes + file->size - LS_LEVELDB_FOOTER, bytes + file->size};
    struct ls_leveldb_block list = {0};
    uint64_t skipped;
    if (ls_leveldb_fixed(footer.end - 8, 8) != MAGIC ||
        !ls_leveldb_take_number(&footer, &skipped) || !ls_leveldb_take_number(&footer, &skipped) ||
        !ls_leveldb_take_number(&footer, &list.place) ||
        !ls_leveldb_take_number(&footer, &list.stored))
        return ls_leveldb_damaged(file->path, file->size, "the end of a table is damaged",
                                  o->error);
    LS_TRY(ls_leveldb_open_block(file, bytes, o->checks, &o->index, &list, o->error));
    struct ls_leveldb_bytes in = list.content, value;
    struct ls_text last = {0}; /* key of the list */
    uint64_t end = 0;          /* of the block before: they follow each other */
    int status = 0;
    while (in.at < in.end && status == 0) {
        struct ls_leveldb_block block = {0};
        bool good = ls_leveldb_next_entry(&in, &last, &value);
        if (last.failed)
            status = no_memory(o);
        else if (!good || !ls_leveldb_take_number(&value, &block.place) ||
                 !ls_leveldb_take_number(&value, &block.stored))
            status = ls_leveldb_damaged(file->path, list.place, "the list of blocks is damaged",
                                        o->error);
        else if (block.place < end)
            status = ls_leveldb_damaged(file->path, block.place,
                                        "a block lies over the one before it", o->error);
        else
            status = read_block(o, number, bytes, &block);
        end = block.place + block.stored;
    }
    ls_text_free(&last);
    return status;
}

static int read_table(struct opening *o, uint32_t number)
{
    struct ls_leveldb_file *file = &o->db->file[number];
    struct ls_mapping mapping;
    LS_TRY(ls_file_map(file->path, LOCKSTEP_DATA, &mapping, o->error));
    int status = 0;
    if (mapping.size != file->size || mapping.size < LS_LEVELDB_FOOTER)
        status = ls_leveldb_damaged(file->path, mapping.size,
                                    "a table has another size than the manifest says", o->error);
    else
        status = read_blocks(o, number, mapping.data);
    int lost = ls_file_lost(&mapping, file->path, LOCKSTEP_DATA, o->error);
    ls_file_unmap(&mapping);
    return status != 0 ? status : lost;
}

/* ---- All files ------------------------------------------------------------------------------- */

/* Whether the manifest says something of a table. Those that it takes away may stay for a while. */
static bool is_known(const struct opening *o, uint64_t number)
{
    for (size_t i = 0; i < o->db->files; i++)
        if (o->db->file[i].table && o->db->file[i].number == number)
            return true;
    for (size_t i = 0; i < o->gone_count; i++)
        if (o->gone[i] == number)
            return true;
    return false;
}

/* Adds the logs that are not in tables yet, and tables of which the manifest says nothing. */
static int find_logs(struct opening *o)
{
    DIR *dir = opendir(o->db->folder);
    if (dir == NULL)
        return ls_fail_errno(o->error, LOCKSTEP_DATA, o->db->folder, "cannot open the folder");
    int status = 0;
    for (const struct dirent *entry; status == 0 && (entry = readdir(dir)) != NULL;) {
        char *end;
        unsigned long long number = strtoull(entry->d_name, &end, 10);
        if (end == entry->d_name)
            continue;
        if ((strcmp(end, ".ldb") == 0 || strcmp(end, ".sst") == 0) && !is_known(o, number)) {
            status = add_file(o, number, 0, true);
            if (status == 0)
                o->db->file[o->db->files - 1].unnamed = true;
        }
        if (strcmp(end, ".log") != 0)
            continue;
        o->log_is_there = o->log_is_there || number == o->log_number;
        if (number >= o->log_number || (o->earlier_log != 0 && number == o->earlier_log))
            status = add_file(o, number, 0, false);
    }
    closedir(dir);
    return status;
}

static void warn(struct opening *o, const char *format, uint64_t number)
{
    struct ls_text *text = &o->db->warning;
    if (text->length > 0)
        ls_text_add(text, "; ");
    else
        ls_text_format(text, "%s: ", o->db->folder);
    ls_text_format(text, format, number);
}

/* What makes it likely that records are missing, though LevelDB would open the database. */
static int check_files(struct opening *o)
{
    const bool no_log = o->log_number != 0 && !o->log_is_there;
    if (no_log && o->lost > 0)
        return ls_fail(o->error, LOCKSTEP_DATA, o->db->folder,
                       "copy the database again, or repair it with LevelDB's own RepairDB",
                       "the manifest names a log, %06" PRIu64 ".log, that is not there, and does "
                       "not name tables that are: it is damaged",
                       o->log_number);
    if (no_log)
        warn(o, "its log %06" PRIu64 ".log is not there: records in it are missing", o->log_number);
    if (o->lost > 0)
        warn(o, "%" PRIu64 " records are not read, as the manifest does not name their tables",
             o->lost);
    return o->db->warning.failed ? no_memory(o) : 0;
}

static int by_number(const void *a, const void *b)
{
    const struct ls_leveldb_file *x = a, *y = b;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* The path of a file, and its size. */
static int find_file(struct opening *o, struct ls_leveldb_file *file)
{
    static const char *const endings[] = {".ldb", ".sst", ".log"};
    struct ls_leveldb *db = o->db;
    for (int i = file->table ? 0 : 2; i < (file->table ? 2 : 3); i++) {
        char name[40];
        snprintf(name, sizeof name, "%06" PRIu64 "%s", file->number, endings[i]);
        ls_free(file->path);
        file->path = path_in(db->folder, name);
        if (file->path == NULL)
            return no_memory(o);
        if (ls_file_exists(file->path))
            break;
    }
    struct ls_file opened;
    LS_TRY(ls_file_open(file->path, LOCKSTEP_DATA, &opened, o->error));
    if (!file->table || file->unnamed)
        file->size = opened.size;
    ls_file_close(&opened);
    if (file->unnamed)
        return 0;
    db->size += file->size;
    db->stamp = ls_mix(db->stamp) + ls_file_stamp(file->path);
    return 0;
}

/* Reads a table that the manifest does not name, to know whether the others have what is in it: a
 * compaction that was stopped leaves such tables, whole or not. */
static int read_unnamed(struct opening *o, uint32_t number)
{
    struct ls_leveldb *db = o->db;
    const size_t count = db->count, length = db->keys.length;
    struct ls_error *error = o->error;
    o->error = NULL;
    const int status = read_table(o, number);
    o->error = error;
    if (status == LOCKSTEP_RESOURCE)
        return no_memory(o);
    if (status != 0) {
        db->count = count;
        db->keys.length = length;
    }
    return 0;
}

static int read_file(struct opening *o, uint32_t number)
{
    const struct ls_leveldb_file *file = &o->db->file[number];
    bool cut = false;
    if (file->table)
        return file->unnamed ? read_unnamed(o, number) : read_table(o, number);
    LS_TRY(read_log(o, file->path, number, read_batch, &cut));
    if (cut)
        warn(o, "its log %06" PRIu64 ".log ends within a write: what was in it is missing",
             file->number);
    return 0;
}

static int read_files(struct opening *o)
{
    struct ls_leveldb *db = o->db;
    if (db->files > UINT32_MAX)
        return ls_fail(o->error, LOCKSTEP_DATA, db->folder, NULL, "has too many files");
    if (db->files > 0)
        qsort(db->file, db->files, sizeof *db->file, by_number);
    for (size_t i = 0; i < db->files; i++)
        LS_TRY(find_file(o, &db->file[i]));
    o->checks = db->size <= CHECK_LIMIT;
    for (size_t i = 0; i < db->files; i++)
        LS_TRY(read_file(o, (uint32_t)i));
    return 0;
}

/* By the bytes of their keys; of one key the last write first. Two writes of one number, which no
 * sound database has, are in the order in which they were found, on any C library. */
static int by_key(const void *a, const void *b, void *user)
{
    const struct ls_leveldb_entry *x = a, *y = b;
    const char *keys = user;
    const uint32_t common = x->key_size < y->key_size ? x->key_size : y->key_size;
    int order = common > 0 ? memcmp(keys + x->key, keys + y->key, common) : 0;
    if (order != 0)
        return order;
    if (x->key_size != y->key_size)
        return x->key_size < y->key_size ? -1 : 1;
    if (x->sequence != y->sequence)
        return x->sequence > y->sequence ? -1 : 1;
    return x->key < y->key ? -1 : x->key > y->key;
}

static bool same_key(const struct ls_leveldb *db, const struct ls_leveldb_entry *a,
                     const struct ls_leveldb_entry *b)
{
    return a->key_size == b->key_size &&
           (a->key_size == 0 ||
            memcmp(db->keys.data + a->key, db->keys.data + b->key, a->key_size) == 0);
}

/* Takes out what tables have that the manifest does not name; what no other file has is counted.
 * The writes of a key with one number lie side by side. */
static void drop_unnamed(struct opening *o)
{
    struct ls_leveldb *db = o->db;
    size_t kept = 0;
    for (size_t i = 0, next; i < db->count; i = next) {
        const struct ls_leveldb_entry first = db->entry[i];
        const size_t before = kept;
        for (next = i; next < db->count && db->entry[next].sequence == first.sequence &&
                       same_key(db, &db->entry[next], &first);
             next++)
            if (!db->file[db->entry[next].file].unnamed)
                db->entry[kept++] = db->entry[next];
        o->lost += kept == before && !first.deleted;
    }
    db->count = kept;
}

/* Keeps the last write of each key, unless it deleted it. */
static void sort_entries(struct opening *o)
{
    struct ls_leveldb *db = o->db;
    if (db->count > 0)
        qsort_r(db->entry, db->count, sizeof *db->entry, by_key, db->keys.data);
    drop_unnamed(o);
    size_t kept = 0;
    struct ls_leveldb_entry last = {0};
    for (size_t i = 0; i < db->count; i++) {
        const struct ls_leveldb_entry entry = db->entry[i];
        bool again = i > 0 && same_key(db, &entry, &last);
        last = entry;
        if (!again && !entry.deleted)
            db->entry[kept++] = entry;
    }
    db->count = kept;
}

int ls_leveldb_open(const char *folder, struct ls_leveldb *db, struct ls_error *error)
{
    *db = (struct ls_leveldb){.folder = ls_copy_string(folder)};
    struct opening o = {.db = db, .error = error};
    if (db->folder == NULL)
        return no_memory(&o);
    int status = read_manifest(&o);
    if (status == 0)
        status = find_logs(&o);
    if (status == 0)
        status = read_files(&o);
    if (status == 0) {
        sort_entries(&o);
        status = check_files(&o);
    }
    ls_buffer_free(&o.scratch);
    ls_buffer_free(&o.index);
    ls_text_free(&o.key);
    ls_free(o.gone);
    return status;
}

void ls_leveldb_free(struct ls_leveldb *db)
{
    for (size_t i = 0; i < db->files; i++)
        ls_free(db->file[i].path);
    ls_free(db->file);
    ls_free(db->entry);
    ls_free(db->folder);
    ls_text_free(&db->keys);
    ls_text_free(&db->warning);
    *db = (struct ls_leveldb){0};
}
