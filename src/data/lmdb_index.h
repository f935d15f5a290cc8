/* The records of an LMDB database, found by reading its pages ourselves: read-only, without a lock
 * file, and with every number checked before it is used. (The LMDB library trusts its files:
 * a damaged page can crash it.) The database must not be written while it is open here.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_LMDB_INDEX_H
#define LS_DATA_LMDB_INDEX_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Where a record lies in the file; checked to be inside it. */
struct ls_lmdb_entry {
    uint64_t key, value; /* offsets */
    uint32_t value_size;
    uint16_t key_size;
};

/* Finds all records of the main database in the order of its keys. `name` is for messages. *entries
 * is freed with ls_free; it is NULL if there are none. A failure is LOCKSTEP_DATA. */
int ls_lmdb_index(const char *name, const uint8_t *bytes, size_t size,
                  struct ls_lmdb_entry **entries, size_t *count, struct ls_error *error);

#endif
