/* LevelDB's logs, read record by record: those of writes, and the manifest. See
 * data/leveldb_index.c for what they are like.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_LEVELDB_LOG_H
#define LS_DATA_LEVELDB_LOG_H

#include "data/leveldb_bytes.h"
#include "data/leveldb_index.h"

/* A log and what has been read of it; free `record`. */
struct ls_leveldb_log {
    const char *path;
    const uint8_t *bytes;
    uint64_t size, place; /* of the next part */
    struct ls_text record;
    uint64_t start; /* where the record's first byte lies */
    bool cut;       /* at the end: the log ends within a record */
};

/* The next record is in log->record; *found false: there is none. */
int ls_leveldb_log_next(struct ls_leveldb_log *log, bool *found, struct ls_error *error);
/* The bytes of the record that ls_leveldb_log_next has found. */
struct ls_leveldb_bytes ls_leveldb_log_record(const struct ls_leveldb_log *log);

#endif
