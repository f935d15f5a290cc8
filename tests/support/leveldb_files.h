/* Small LevelDB databases for tests, made with its library.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_LEVELDB_FILES_H
#define LS_TESTS_LEVELDB_FILES_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <leveldb/c.h>

#include "support/support.h"

/* A database that is written; `packed`: its blocks are compressed. */
struct leveldb_writer {
    leveldb_t *db;
    leveldb_options_t *options;
    leveldb_writeoptions_t *write;
    leveldb_writebatch_t *batch;
    int pending;
};

static inline void leveldb_check(char *problem)
{
    if (problem != NULL)
        fail_msg("LevelDB: %s", problem);
}

/* `buffer`: bytes of writes that are kept in the log before a table is made of them. */
static inline void leveldb_begin(struct leveldb_writer *w, const char *path, bool packed,
                                 size_t buffer)
{
    char *problem = NULL;
    w->options = leveldb_options_create();
    leveldb_options_set_create_if_missing(w->options, 1);
    leveldb_options_set_compression(w->options,
                                    packed ? leveldb_snappy_compression : leveldb_no_compression);
    leveldb_options_set_write_buffer_size(w->options, buffer);
    leveldb_options_set_block_size(w->options, 65536);
    w->db = leveldb_open(w->options, path, &problem);
    leveldb_check(problem);
    w->write = leveldb_writeoptions_create();
    w->batch = leveldb_writebatch_create();
    w->pending = 0;
}

static inline void leveldb_commit(struct leveldb_writer *w)
{
    char *problem = NULL;
    leveldb_write(w->db, w->write, w->batch, &problem);
    leveldb_check(problem);
    leveldb_writebatch_clear(w->batch);
    w->pending = 0;
}

/* Adds a record, or with `value` NULL takes one away; Caffe's tools write 1000 at once. */
static inline void leveldb_add(struct leveldb_writer *w, const char *key, const void *value,
                               size_t size)
{
    if (value != NULL)
        leveldb_writebatch_put(w->batch, key, strlen(key), value, size);
    else
        leveldb_writebatch_delete(w->batch, key, strlen(key));
    if (++w->pending == 1000)
        leveldb_commit(w);
}

static inline void leveldb_end(struct leveldb_writer *w)
{
    leveldb_commit(w);
    leveldb_close(w->db);
    leveldb_writebatch_destroy(w->batch);
    leveldb_writeoptions_destroy(w->write);
    leveldb_options_destroy(w->options);
}

#endif
