/* Caches of decoded records. See data/cache.h.
 *
 * A cache has an entry for each record of its source: where its numbers go, its label, the hashes
 * of what was read, its state:
 *
 *   EMPTY -> FILLING -> READY        (the thread that changes EMPTY to FILLING writes)
 *                    -> REFUSED      (the record does not have the stated shape)
 *
 * READY is written after the numbers and read before them (release, acquire). Entries without
 * memory belong to records that are not wanted or do not fit. A data set that joins brings one
 * block of memory for the records that it adds, before any of its readers exists.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/cache.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "ir/dtype.h"

enum state { EMPTY, FILLING, READY, REFUSED };

struct entry {
    unsigned char *numbers; /* and behind them, aligned to 2, the map; NULL: not kept */
    uint64_t data_hash, label_hash;
    int32_t label;
    _Atomic unsigned char state;
};

struct ls_cache {
    struct ls_cache *next;
    char *key;
    size_t limit;
    int users;
    bool floats, maps;
    bool full; /* something did not fit */
    int64_t count, kept;
    size_t bytes; /* of blocks */
    struct entry *entries;
    void **blocks;
    size_t block_count, block_capacity;
};

/* All caches of the process; they are few. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ls_cache *first;

static size_t default_limit(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? (size_t)pages / 2 * (size_t)size : SIZE_MAX / 2;
}

/* Bytes of a record's numbers, and of these with its map. Shapes have been checked: no overflow. */
static size_t numbers_size(const struct ls_cache *cache, const int64_t shape[3])
{
    return (size_t)ls_record_size(shape) * ls_dtype_size(cache->floats ? LS_F32 : LS_U8);
}

static size_t map_offset(const struct ls_cache *cache, const int64_t shape[3])
{
    return (numbers_size(cache, shape) + 1) & ~(size_t)1;
}

static size_t map_size(const struct ls_cache *cache, const int64_t shape[3])
{
    return cache->maps ? (size_t)(shape[1] * shape[2]) * sizeof(uint16_t) : 0;
}

/* Room for a record, so that the next one is aligned for floats. */
static size_t room_for(const struct ls_cache *cache, const struct ls_source *source, int64_t index)
{
    int64_t shape[3];
    ls_source_shape_of(source, index, shape);
    return (map_offset(cache, shape) + map_size(cache, shape) + 15) & ~(size_t)15;
}

/* ---- Joining and leaving ---- */

static struct ls_cache *make(const struct ls_cache_options *options, size_t limit)
{
    struct ls_cache *cache = ls_alloc(1, sizeof *cache);
    if (cache == NULL)
        return NULL;
    cache->key = ls_copy_string(options->key);
    cache->limit = limit;
    cache->floats = options->floats;
    cache->maps = options->source->has_maps;
    cache->count = options->source->count;
    /* Mapped from the kernel where it is large, so that it is zeros without being touched. */
    cache->entries = ls_alloc_aligned((size_t)cache->count * sizeof *cache->entries);
    if (cache->key == NULL || cache->entries == NULL) {
        ls_free(cache->key);
        ls_free_aligned(cache->entries);
        ls_free(cache);
        return NULL;
    }
    return cache;
}

static void destroy(struct ls_cache *cache)
{
    for (size_t i = 0; i < cache->block_count; i++)
        ls_free_aligned(cache->blocks[i]);
    ls_free((void *)cache->blocks);
    ls_free_aligned(cache->entries);
    ls_free(cache->key);
    ls_free(cache);
}

static int64_t wanted(const struct ls_cache_options *options, int64_t i)
{
    return options->records != NULL ? (int64_t)options->records[i] : i;
}

/* How many of the wanted records, from the first on, fit with what is there; *bytes: of those that
 * are new. */
static int64_t how_many_fit(struct ls_cache *cache, const struct ls_cache_options *options,
                            size_t *bytes)
{
    *bytes = 0;
    for (int64_t i = 0; i < options->count; i++) {
        int64_t index = wanted(options, i);
        if (cache->entries[index].numbers != NULL)
            continue;
        size_t room = room_for(cache, options->source, index);
        if (cache->full || room > cache->limit - cache->bytes - *bytes) {
            cache->full = true;
            return i;
        }
        *bytes += room;
    }
    return options->count;
}

/* Memory for the records that a data set adds. */
static bool extend(struct ls_cache *cache, const struct ls_cache_options *options)
{
    size_t bytes;
    int64_t fit = how_many_fit(cache, options, &bytes);
    if (bytes == 0)
        return true;
    unsigned char *block = NULL;
    if (!LS_GROW(cache->blocks, cache->block_count, cache->block_capacity) ||
        (block = ls_alloc_aligned(bytes)) == NULL)
        return false;
    cache->blocks[cache->block_count++] = block;
    cache->bytes += bytes;
    for (int64_t i = 0; i < fit; i++) {
        int64_t index = wanted(options, i);
        struct entry *entry = &cache->entries[index];
        if (entry->numbers != NULL)
            continue;
        entry->numbers = block;
        block += room_for(cache, options->source, index);
        cache->kept++;
    }
    return true;
}

int ls_cache_join(const struct ls_cache_options *options, struct ls_cache **out,
                  struct ls_error *error)
{
    size_t limit = options->limit > 0 ? options->limit : default_limit();
    pthread_mutex_lock(&lock);
    struct ls_cache *cache = first;
    while (cache != NULL && (strcmp(cache->key, options->key) != 0 || cache->limit != limit ||
                             cache->count != options->source->count))
        cache = cache->next;
    bool ready = cache != NULL;
    if (!ready && (cache = make(options, limit)) != NULL) {
        cache->next = first;
        first = cache;
    }
    if (cache != NULL)
        cache->users++;
    ready = cache != NULL && extend(cache, options);
    pthread_mutex_unlock(&lock);
    if (!ready) {
        ls_cache_leave(cache);
        return ls_fail(error, LOCKSTEP_RESOURCE, NULL, "cache_mb says how much it may take",
                       "out of memory: the cache of a data set");
    }
    *out = cache;
    return 0;
}

void ls_cache_leave(struct ls_cache *cache)
{
    if (cache == NULL)
        return;
    pthread_mutex_lock(&lock);
    bool last = --cache->users == 0;
    struct ls_cache **link = &first;
    while (last && *link != cache)
        link = &(*link)->next;
    if (last)
        *link = cache->next;
    pthread_mutex_unlock(&lock);
    if (last)
        destroy(cache);
}

/* ---- Records ---- */

bool ls_cache_find(const struct ls_cache *cache, const struct ls_source *source, int64_t index,
                   struct ls_record *record)
{
    const struct entry *entry = &cache->entries[index];
    if (atomic_load_explicit(&entry->state, memory_order_acquire) != READY)
        return false;
    *record = (struct ls_record){
        .label = entry->label, .data_hash = entry->data_hash, .label_hash = entry->label_hash};
    ls_source_shape_of(source, index, record->shape);
    if (cache->floats)
        record->floats = (const float *)(const void *)entry->numbers;
    else
        record->bytes = entry->numbers;
    if (cache->maps)
        record->map =
            (const uint16_t *)(const void *)(entry->numbers + map_offset(cache, record->shape));
    return true;
}

/* Whether a record is what was known of it when room was made for it. */
static bool suits(const struct ls_cache *cache, const struct ls_source *source, int64_t index,
                  const struct ls_record *record)
{
    int64_t shape[3];
    ls_source_shape_of(source, index, shape);
    return memcmp(shape, record->shape, sizeof shape) == 0 &&
           (cache->floats ? record->bytes == NULL : record->bytes != NULL) &&
           cache->maps == (record->map != NULL);
}

void ls_cache_keep(struct ls_cache *cache, const struct ls_source *source, int64_t index,
                   const struct ls_record *record)
{
    struct entry *entry = &cache->entries[index];
    unsigned char empty = EMPTY;
    if (entry->numbers == NULL ||
        !atomic_compare_exchange_strong_explicit(&entry->state, &empty, (unsigned char)FILLING,
                                                 memory_order_relaxed, memory_order_relaxed))
        return;
    bool good = suits(cache, source, index, record);
    if (good) {
        const void *numbers = cache->floats ? (const void *)record->floats : record->bytes;
        memcpy(entry->numbers, numbers, numbers_size(cache, record->shape));
        if (cache->maps)
            memcpy(entry->numbers + map_offset(cache, record->shape), record->map,
                   map_size(cache, record->shape));
        entry->label = record->label;
        entry->data_hash = record->data_hash;
        entry->label_hash = record->label_hash;
    }
    atomic_store_explicit(&entry->state, (unsigned char)(good ? READY : REFUSED),
                          memory_order_release);
}

size_t ls_cache_bytes(const struct ls_cache *cache)
{
    return cache->bytes + (size_t)cache->count * sizeof *cache->entries;
}

int64_t ls_cache_records(const struct ls_cache *cache)
{
    return cache->kept;
}

bool ls_cache_full(const struct ls_cache *cache)
{
    return cache->full;
}
