/* Blocks of LevelDB's tables, opened for their entries. See data/leveldb_index.c for what they are
 * like.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_LEVELDB_BLOCK_H
#define LS_DATA_LEVELDB_BLOCK_H

#include "data/leveldb_bytes.h"
#include "data/leveldb_index.h"

enum { LS_LEVELDB_FOOTER = 48 }; /* bytes at the end of a table, which are in no block */

struct ls_leveldb_block {
    uint64_t place, stored;
    bool packed;
    struct ls_leveldb_bytes content; /* without the list of places */
};

/* Opens the block at block->place of a table, whose bytes these are, with its checksum if `checks`.
 * What was compressed is then in `plain`. */
int ls_leveldb_open_block(const struct ls_leveldb_file *file, const uint8_t *bytes, bool checks,
                          struct ls_buffer *plain, struct ls_leveldb_block *block,
                          struct ls_error *error);
/* The next entry of a block, whose key begins as the one before; false: damaged. */
bool ls_leveldb_next_entry(struct ls_leveldb_bytes *in, struct ls_text *key,
                           struct ls_leveldb_bytes *value);

#endif
