/* Caches of decoded records. See data/cache.h.
 *
 * A cache has an entry for each record of its source: where its tensors go, one behind the other,
 * and its state; and beside that the hashes of what was read:
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

#include "base/cgroup.h"
#include "base/memory.h"
#include "ir/dtype.h"

enum state { EMPTY, FILLING, READY, REFUSED };

struct entry {
    unsigned char *numbers; /* NULL: not kept */
    _Atomic unsigned char state;
};

struct ls_cache {
    struct ls_cache *next;
    char *key;
    size_t limit;
    int users;
    int tensors; /* of a record */
    bool full;   /* something did not fit */
    int64_t count, kept;
    size_t bytes; /* of blocks */
    struct entry *entries;
    uint64_t *hashes; /* by record and tensor */
    void **blocks;
    size_t block_count, block_capacity;
};

/* All caches of the process; they are few. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ls_cache *first;

static size_t default_limit(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    double limit = ls_memory_limit();
    size_t half = pages > 0 && size > 0 ? (size_t)pages / 2 * (size_t)size : SIZE_MAX / 2;
    return limit > 0 && limit / 2 < (double)half ? (size_t)(limit / 2) : half;
}

/* Where a tensor begins whose type has elements of `size` bytes. */
static size_t aligned(size_t offset, size_t size)
{
    return (offset + size - 1) / size * size;
}

/* Room for a record, so that its tensors and those of the next one are aligned for their types.
 * Shapes have been checked: no overflow. */
static size_t room_for(const struct ls_source *source, int64_t index)
{
    size_t room = 0, largest = 1;
    for (int k = 0; k < source->tensors; k++) {
        struct ls_shape shape;
        size_t size = ls_dtype_size(source->tensor[k].type);
        ls_source_tensor_shape(source, index, k, &shape);
        room = aligned(room, size) + (size_t)ls_shape_size(&shape) * size;
        largest = size > largest ? size : largest;
    }
    return aligned(room, largest);
}

/* ---- Joining and leaving ---- */

static struct ls_cache *make(const struct ls_cache_options *options, size_t limit)
{
    struct ls_cache *cache = ls_alloc(1, sizeof *cache);
    if (cache == NULL)
        return NULL;
    cache->key = ls_copy_string(options->key);
    cache->limit = limit;
    cache->tensors = options->source->tensors;
    cache->count = options->source->count;
    /* Mapped from the kernel where it is large, so that it is zeros without being touched. */
    cache->entries = ls_alloc_aligned((size_t)cache->count * sizeof *cache->entries);
    cache->hashes =
        ls_alloc_aligned((size_t)cache->count * (size_t)cache->tensors * sizeof *cache->hashes);
    if (cache->key == NULL || cache->entries == NULL || cache->hashes == NULL) {
        ls_free(cache->key);
        ls_free_aligned(cache->hashes);
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
    ls_free_aligned(cache->hashes);
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
        size_t room = room_for(options->source, index);
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
        block += room_for(options->source, index);
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
    const uint64_t *hash = &cache->hashes[index * cache->tensors];
    size_t offset = 0;
    record->count = cache->tensors;
    for (int k = 0; k < cache->tensors; k++) {
        struct ls_record_tensor *tensor = &record->tensor[k];
        tensor->type = source->tensor[k].type;
        ls_source_tensor_shape(source, index, k, &tensor->shape);
        offset = aligned(offset, ls_dtype_size(tensor->type));
        tensor->data = entry->numbers + offset;
        tensor->hash = hash[k];
        offset += ls_tensor_bytes(tensor);
    }
    return true;
}

/* Whether a record is what was known of it when room was made for it. */
static bool suits(const struct ls_source *source, int64_t index, const struct ls_record *record)
{
    bool same = true;
    for (int k = 0; k < source->tensors && same; k++) {
        const struct ls_record_tensor *tensor = &record->tensor[k];
        struct ls_shape shape;
        ls_source_tensor_shape(source, index, k, &shape);
        same = tensor->data != NULL && tensor->type == source->tensor[k].type &&
               ls_shape_equal(&shape, &tensor->shape);
    }
    return same;
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
    bool good = suits(source, index, record);
    size_t offset = 0;
    for (int k = 0; k < cache->tensors && good; k++) {
        const struct ls_record_tensor *tensor = &record->tensor[k];
        size_t bytes = ls_tensor_bytes(tensor);
        offset = aligned(offset, ls_dtype_size(tensor->type));
        memcpy(entry->numbers + offset, tensor->data, bytes);
        cache->hashes[index * cache->tensors + k] = tensor->hash;
        offset += bytes;
    }
    atomic_store_explicit(&entry->state, (unsigned char)(good ? READY : REFUSED),
                          memory_order_release);
}

size_t ls_cache_bytes(const struct ls_cache *cache)
{
    size_t hashes = (size_t)cache->tensors * sizeof *cache->hashes;
    return cache->bytes + (size_t)cache->count * (sizeof *cache->entries + hashes);
}

int64_t ls_cache_records(const struct ls_cache *cache)
{
    return cache->kept;
}

bool ls_cache_full(const struct ls_cache *cache)
{
    return cache->full;
}
