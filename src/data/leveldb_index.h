/* The records of a LevelDB database, found by reading its files ourselves: read-only, without its
 * lock, so that any number of programs may read it, and with every number checked before it is
 * used. The database must not be written while it is open here.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_LEVELDB_INDEX_H
#define LS_DATA_LEVELDB_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "data/source.h"

/* Where a record lies; checked to be inside the file. */
struct ls_leveldb_entry {
    uint64_t key;      /* in `keys` */
    uint64_t sequence; /* of two writes of a key the later one holds */
    uint64_t place;    /* of its block in a table; of the value itself in a log */
    uint32_t key_size;
    uint32_t file;
    uint32_t block; /* bytes of the block as it is stored; 0: a log has the value */
    uint32_t at;    /* of the value in the block */
    uint32_t size;  /* of the value */
    bool packed;    /* the block is compressed */
    bool deleted;
};

struct ls_leveldb_file {
    uint64_t number, size;
    bool table;   /* else a log */
    bool unnamed; /* the manifest does not name it */
    char *path;
};

struct ls_leveldb {
    char *folder;
    struct ls_leveldb_file *file;
    size_t files, file_capacity;
    struct ls_leveldb_entry *entry; /* in the order of the keys' bytes */
    size_t count, capacity;
    struct ls_text keys;
    uint64_t size, stamp;   /* of all files */
    struct ls_text warning; /* about what may be missing; empty: nothing */
};

/* Finds all records. Free also after a failure, which is LOCKSTEP_DATA. */
int ls_leveldb_open(const char *folder, struct ls_leveldb *db, struct ls_error *error);
void ls_leveldb_free(struct ls_leveldb *db);

/* Reads the value of a record; it is in one of the buffers. A compressed block stays in `block`,
 * for the records that follow. */
int ls_leveldb_read(const struct ls_leveldb *db, size_t index, struct ls_buffer *value,
                    struct ls_buffer *block, const uint8_t **bytes, size_t *size,
                    struct ls_error *error);

/* ---- For the files of this reader ------------------------------------------------------------ */

/* A log is in blocks of this many bytes; parts of records have a head of their own in each. */
enum { LS_LEVELDB_LOG_BLOCK = 32768, LS_LEVELDB_LOG_HEAD = 7, LS_LEVELDB_TRAILER = 5 };
/* Where the byte lies that comes `ahead` bytes after the one at `place` in a log's record. */
uint64_t ls_leveldb_ahead(uint64_t place, uint64_t ahead);
/* The checksum of a block and of a part of a log, as it is stored. */
uint32_t ls_leveldb_checksum(const uint8_t *bytes, size_t size, uint8_t type);
int ls_leveldb_damaged(const char *path, uint64_t place, const char *what, struct ls_error *error);

#endif
