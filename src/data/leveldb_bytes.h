/* Numbers in LevelDB's files: little-endian, or seven bits a byte, the lowest first.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_LEVELDB_BYTES_H
#define LS_DATA_LEVELDB_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes that are still to be read. */
struct ls_leveldb_bytes {
    const uint8_t *at, *end;
};

/* The number in `count` bytes. */
uint64_t ls_leveldb_fixed(const uint8_t *p, int count);
/* These take something from the front; false: it is not there. Numbers have seven bits a byte; a
 * small one fits in 32. */
bool ls_leveldb_take_number(struct ls_leveldb_bytes *in, uint64_t *number);
bool ls_leveldb_take_small(struct ls_leveldb_bytes *in, uint32_t *number);
/* A small number and as many bytes. */
bool ls_leveldb_take_bytes(struct ls_leveldb_bytes *in, struct ls_leveldb_bytes *part);

#endif
