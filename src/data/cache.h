/* The cache: decoded records of a source that are kept in memory.
 *
 * Records are kept as they are before any transformation, in the types that the source has (bytes
 * mostly), so that nothing which depends on phase or epoch is in it: data sets of one source share
 * one cache, whichever phases and splits they are for. Its memory is allocated when a data set
 * joins and is written record by record, by whichever thread decodes one first; nothing is written
 * twice and nothing is allocated on the way. What does not fit is decoded each time: a cache never
 * changes a number.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_CACHE_H
#define LS_DATA_CACHE_H

#include "data/source.h"

struct ls_cache;

struct ls_cache_options {
    const struct ls_source *source;
    const char *key; /* equal for sources that have the same records, decoded in the same way */
    size_t limit;    /* bytes of records at most; 0: half of the machine's memory */
    const uint32_t *records; /* those that are wanted, ascending; NULL: all */
    int64_t count;           /* how many are wanted */
};
/* Joins the cache with this key and limit, or makes it. */
int ls_cache_join(const struct ls_cache_options *options, struct ls_cache **cache,
                  struct ls_error *error);
/* The last one to leave frees it. NULL does nothing. */
void ls_cache_leave(struct ls_cache *cache);

/* Gives a record that is there; it stays as long as the cache. Any thread may call. */
bool ls_cache_find(const struct ls_cache *cache, const struct ls_source *source, int64_t index,
                   struct ls_record *record);
/* Keeps a copy of a record, if it is wanted, has room and is not there yet. Any thread may call. */
void ls_cache_keep(struct ls_cache *cache, const struct ls_source *source, int64_t index,
                   const struct ls_record *record);

/* What it takes once everything that it has room for is decoded. */
size_t ls_cache_bytes(const struct ls_cache *cache);
/* How many records it has room for. */
int64_t ls_cache_records(const struct ls_cache *cache);
/* Whether some that were wanted had no room. */
bool ls_cache_full(const struct ls_cache *cache);

#endif
