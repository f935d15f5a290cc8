/* Reading records of a LevelDB database; see data/leveldb_index.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "base/align.h"
#include "base/crc32c.h"
#include "base/file.h"
#include "base/memory.h"
#include "data/leveldb_index.h"
#include "data/snappy.h"

int ls_leveldb_damaged(const char *path, uint64_t place, const char *what, struct ls_error *error)
{
    return ls_fail(error, LOCKSTEP_DATA, path,
                   "the database is damaged or incomplete; make it again", "LevelDB, byte %llu: %s",
                   (unsigned long long)place, what);
}

uint64_t ls_leveldb_ahead(uint64_t place, uint64_t ahead)
{
    for (;;) {
        const uint64_t room = LS_LEVELDB_LOG_BLOCK - place % LS_LEVELDB_LOG_BLOCK;
        if (ahead < room)
            return place + ahead;
        ahead -= room;
        place += room + LS_LEVELDB_LOG_HEAD;
    }
}

/* Over `size` bytes and the one that says their type. */
uint32_t ls_leveldb_checksum(const uint8_t *bytes, size_t size, uint8_t type)
{
    return ls_crc32c_masked(ls_crc32c(ls_crc32c(0, bytes, size), &type, 1));
}

/* In front of a block that is kept. */
struct kept {
    uint64_t place;
    size_t size; /* 0: there is none */
    uint32_t file;
};

static uint32_t u32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* Reads a compressed block and keeps it. */
static int read_packed(const struct ls_leveldb *db, const struct ls_leveldb_entry *entry,
                       const struct ls_file *file, struct ls_buffer *value, struct ls_buffer *block,
                       struct ls_error *error)
{
    const char *path = db->file[entry->file].path;
    const size_t stored = entry->block, head = ls_align(sizeof(struct kept));
    size_t size;
    uint8_t *bytes = ls_buffer_reserve(value, stored + LS_LEVELDB_TRAILER, 1);
    if (bytes == NULL)
        return ls_fail_memory(error, "a record");
    LS_TRY(ls_file_read_at(file, path, entry->place, bytes, stored + LS_LEVELDB_TRAILER,
                           LOCKSTEP_DATA, error));
    if (u32(bytes + stored + 1) != ls_leveldb_checksum(bytes, stored, bytes[stored]) ||
        bytes[stored] != 1 || !ls_snappy_size(bytes, stored, &size))
        return ls_leveldb_damaged(path, entry->place, "a block is damaged", error);
    struct kept *kept = ls_buffer_reserve(block, head + size, 1);
    if (kept == NULL)
        return ls_fail_memory(error, "a record");
    kept->size = 0;
    if (!ls_snappy_read(bytes, stored, (uint8_t *)kept + head, size))
        return ls_leveldb_damaged(path, entry->place, "a block is damaged", error);
    *kept = (struct kept){entry->place, size, entry->file};
    return 0;
}

/* A value in a log, part by part. */
static int read_log(const struct ls_leveldb *db, const struct ls_leveldb_entry *entry,
                    const struct ls_file *file, uint8_t *out, struct ls_error *error)
{
    const char *path = db->file[entry->file].path;
    for (uint64_t done = 0; done < entry->size;) {
        uint64_t place = ls_leveldb_ahead(entry->place, done);
        uint64_t room = LS_LEVELDB_LOG_BLOCK - place % LS_LEVELDB_LOG_BLOCK;
        uint64_t part = entry->size - done < room ? entry->size - done : room;
        LS_TRY(ls_file_read_at(file, path, place, out + done, part, LOCKSTEP_DATA, error));
        done += part;
    }
    return 0;
}

static int read_from(const struct ls_leveldb *db, const struct ls_leveldb_entry *entry,
                     const struct ls_file *file, struct ls_buffer *value, struct ls_buffer *block,
                     struct ls_error *error)
{
    if (entry->packed)
        return read_packed(db, entry, file, value, block, error);
    uint8_t *out = ls_buffer_reserve(value, entry->size, 1);
    if (out == NULL)
        return ls_fail_memory(error, "a record");
    if (entry->block == 0)
        return read_log(db, entry, file, out, error);
    return ls_file_read_at(file, db->file[entry->file].path, entry->place + entry->at, out,
                           entry->size, LOCKSTEP_DATA, error);
}

static bool is_kept(const struct ls_buffer *block, const struct ls_leveldb_entry *entry)
{
    const struct kept *kept = block->data;
    return entry->packed && kept != NULL && kept->size > 0 && kept->place == entry->place &&
           kept->file == entry->file;
}

int ls_leveldb_read(const struct ls_leveldb *db, size_t index, struct ls_buffer *value,
                    struct ls_buffer *block, const uint8_t **bytes, size_t *size,
                    struct ls_error *error)
{
    const struct ls_leveldb_entry *entry = &db->entry[index];
    const char *path = db->file[entry->file].path;
    if (!is_kept(block, entry)) {
        struct ls_file file;
        LS_TRY(ls_file_open(path, LOCKSTEP_DATA, &file, error));
        int status = read_from(db, entry, &file, value, block, error);
        ls_file_close(&file);
        LS_TRY(status);
    }
    *size = entry->size;
    *bytes = value->data;
    if (!entry->packed)
        return 0;
    const struct kept *kept = block->data;
    if (entry->at > kept->size || entry->size > kept->size - entry->at)
        return ls_leveldb_damaged(path, entry->place, "a block is another than it was", error);
    *bytes = (const uint8_t *)kept + ls_align(sizeof *kept) + entry->at;
    return 0;
}
