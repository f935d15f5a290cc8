/* Databases of records, for LMDB.
 *
 * A database is made in a folder beside the target, which gets its name only when all is written
 * and synced: a reader never sees half a database, and a failure or a kill leaves the target
 * untouched. Transactions are committed every 1000 records; when the map is full it is doubled and
 * the transaction made again from its records, which are asked for again.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_LMDB_WRITE_H
#define LS_DATA_LMDB_WRITE_H

#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

enum { LS_LMDB_KEY_MAX = 511 /* LMDB's limit */ };

/* What is to be written: records whose keys come in ascending order. */
struct ls_lmdb_records {
    int64_t count;
    /* Appends the key of record `i` to `key`, and sets its bytes, which are valid until the next
     * call. A record may be asked for again. */
    int (*make)(void *user, int64_t i, struct ls_text *key, const uint8_t **bytes, size_t *size,
                struct ls_error *error);
    /* After `done` records; may stop the work. */
    int (*progress)(void *user, int64_t done, struct ls_error *error);
    const char *names; /* of the classes, a line each, for a file beside the records; NULL: none */
    void *user;
};

/* Writes the folder `path`, which must not exist. After a failure nothing is left there. */
int ls_lmdb_write(const char *path, const struct ls_lmdb_records *records, struct ls_error *error);

#endif
