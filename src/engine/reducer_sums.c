/* Gradient sums between ranks. See engine/reducer_sums.h.
 *
 * A bucket's sums are exchanged in chunks, each a stretch of every rank's part, so that the buffers
 * for packed and received sums stay small.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/reducer_sums.h"

#include "base/memory.h"
#include "base/mutant.h"
#include "transport/comm.h"
#include "transport/wire.h"

enum {
    CHUNK = 1 << 18, /* elements that are exchanged at a time */
    STAY_WIDE = 100, /* updates with 64 bits after an overflow */
    UNKNOWN = LS_SUMS_CONTRIBUTIONS_MAX + 1
};

/* Send and receive buffers of a chunk under way. */
struct staging {
    unsigned char *out, *in;
    const struct ls_collective *user; /* NULL: free */
};

struct reduction {
    const struct ls_bucket *bucket;
    struct chunk {
        struct ls_collective collective;
        struct ls_reducer_sums *sums;
        struct reduction *reduction;
        size_t begin, count; /* of each rank's part: elements [begin, begin + count), if so many */
        struct staging *staging;
    } * chunks;
    size_t chunk_count;
    _Atomic int left;         /* parameters that are incomplete here */
    struct ls_event **events; /* by worker: its last contribution */
};

struct ls_reducer_sums {
    const struct ls_store *store;
    struct ls_comm *comm;
    int workers;
    struct ls_mirror all;                /* the store's sums, which messages are packed from */
    struct ls_device_exchange *exchange; /* NULL: messages of the hosts; the reducer's */
    struct reduction *reductions;        /* by bucket */
    size_t reduction_count;
    _Atomic int *left; /* by parameter: contributions still expected here */
    _Atomic bool open; /* `left` is UNKNOWN until ls_reducer_sums_expect */
    struct staging staging[LS_COLLECTIVES_UNDER_WAY]; /* more chunks are never under way */
    bool wide;
    int wide_left;          /* updates that `wide` lasts */
    _Atomic bool too_large; /* a sum did not fit 48 bits */
    _Atomic bool surplus;   /* a contribution came after its bucket was sent */
    _Atomic int status;     /* of the device */
    size_t *blocks;         /* [4 * ranks]: of the collective that is started */
};

/* ---- Collectives ----------------------------------------------------------------------------- */

/* The elements of rank r's part that belong to a chunk. */
static void reducer_sums_stretch(const struct chunk *chunk, int rank, size_t *begin, size_t *count)
{
    const size_t *cut = chunk->reduction->bucket->cut;
    size_t part = cut[rank + 1] - cut[rank];
    size_t first = chunk->begin < part ? chunk->begin : part, left = part - first;
    *begin = cut[rank] + first;
    *count = left < chunk->count ? left : chunk->count;
}

static struct staging *reducer_sums_take_staging(struct ls_reducer_sums *sums,
                                                 const struct ls_collective *collective)
{
    struct staging *staging = sums->staging;
    while (staging->user != NULL) /* one is free: at most as many chunks are under way */
        staging++;
    staging->user = collective;
    return staging;
}

static void reducer_sums_note(struct ls_reducer_sums *sums, int status)
{
    if (status != 0)
        atomic_store(&sums->status, status);
}

/* Before the first chunk of a bucket leaves: waits until the device has added what was contributed,
 * and clears what got no contribution. */
static void reducer_sums_complete(struct ls_reducer_sums *sums, const struct reduction *reduction)
{
    const struct ls_store *store = sums->store;
    for (int w = 0; w < sums->workers; w++)
        reducer_sums_note(sums, store->device->streams->event_wait(reduction->events[w], NULL));
    for (size_t i = reduction->bucket->first; i <= reduction->bucket->last; i++)
        reducer_sums_note(sums, ls_sums_clear_rest(store->sums, store->shards->order[i], NULL));
}

/* Packs every other rank's stretch of the chunk; sends it, and receives this rank's of all others.
 */
static int reducer_sums_start(struct ls_collective *collective, struct ls_transport *transport,
                              struct ls_transport_op **op)
{
    struct chunk *chunk = collective->user;
    struct ls_reducer_sums *sums = chunk->sums;
    int64_t *all = sums->all.host;
    size_t ranks = (size_t)sums->comm->size, *bytes = sums->blocks, *offset = bytes + 2 * ranks;
    size_t at = 0, own, count;
    if (chunk->begin == 0)
        reducer_sums_complete(sums, chunk->reduction);
    chunk->staging = reducer_sums_take_staging(sums, collective);
    reducer_sums_stretch(chunk, sums->comm->rank, &own, &count);
    size_t each = ls_wire_bytes(count, sums->wide);
    for (int r = 0; r < sums->comm->size; r++) {
        size_t begin, n;
        bool mine = r == sums->comm->rank;
        reducer_sums_stretch(chunk, r, &begin, &n);
        bytes[r] = mine ? 0 : ls_wire_bytes(n, sums->wide);
        offset[r] = at;
        at += bytes[r];
        if (!mine)
            reducer_sums_note(
                sums, ls_mirror_read(&sums->all, begin * sizeof *all, n * sizeof *all, NULL));
        if (!mine && !ls_wire_pack(chunk->staging->out + offset[r], all + begin, n, sums->wide))
            atomic_store(&sums->too_large, true);
        bytes[ranks + (size_t)r] = mine ? 0 : each;
        offset[ranks + (size_t)r] = (size_t)(r - (r > sums->comm->rank)) * each;
    }
    atomic_fetch_add_explicit(&sums->comm->sent[LS_TRAFFIC_SUMS], at, memory_order_relaxed);
    const struct ls_transport_blocks out = {bytes, offset}, in = {bytes + ranks, offset + ranks};
    return transport->calls->exchange(transport, LS_CHANNEL_BULK, chunk->staging->out, &out,
                                      chunk->staging->in, &in, op);
}

/* Adds what the other ranks have sent. */
static void reducer_sums_finish(struct ls_collective *collective)
{
    struct chunk *chunk = collective->user;
    struct ls_reducer_sums *sums = chunk->sums;
    int64_t *all = sums->all.host;
    size_t own, count;
    reducer_sums_stretch(chunk, sums->comm->rank, &own, &count);
    const size_t begin = own * sizeof *all, size = count * sizeof *all;
    reducer_sums_note(sums, ls_mirror_read(&sums->all, begin, size, NULL));
    size_t each = ls_wire_bytes(count, sums->wide);
    int others = sums->comm->size - 1;
    if (LS_MUTANT(DEAF)) /* a rank misses the last rank's sums */
        others -= sums->comm->rank == 0;
    for (int from = 0; from < others; from++)
        ls_wire_add(all + own, chunk->staging->in + (size_t)from * each, count, sums->wide);
    reducer_sums_note(sums, ls_mirror_write(&sums->all, begin, size, NULL));
    chunk->staging->user = NULL;
}

/* A whole bucket, between devices: 64 bits each. */
static int reducer_sums_start_there(struct ls_collective *collective,
                                    struct ls_transport *transport, struct ls_transport_op **op)
{
    struct chunk *chunk = collective->user;
    struct ls_reducer_sums *sums = chunk->sums;
    const struct reduction *reduction = chunk->reduction;
    const size_t *cut = reduction->bucket->cut;
    const int rank = sums->comm->rank, size = sums->comm->size;
    const size_t others = cut[size] - cut[0] - (cut[rank + 1] - cut[rank]);
    (void)op;
    atomic_fetch_add_explicit(&sums->comm->sent[LS_TRAFFIC_SUMS], others * sizeof(int64_t),
                              memory_order_relaxed);
    return ls_device_exchange_reduce(sums->exchange, collective->lane, sums->all.device, cut,
                                     reduction->events, sums->workers, transport);
}

static enum ls_transport_result reducer_sums_test_there(struct ls_collective *collective,
                                                        struct ls_transport *transport)
{
    const struct chunk *chunk = collective->user;
    return ls_device_exchange_test(chunk->sums->exchange, collective->lane, transport);
}

void ls_reducer_sums_connect(struct ls_reducer_sums *sums, struct ls_device_exchange *exchange)
{
    sums->exchange = exchange;
    for (size_t b = 0; b < sums->reduction_count; b++) {
        struct reduction *reduction = &sums->reductions[b];
        reduction->chunk_count = reduction->chunk_count > 0;
        for (size_t i = 0; i < reduction->chunk_count; i++) {
            struct ls_collective *collective = &reduction->chunks[i].collective;
            collective->start = reducer_sums_start_there;
            collective->test = reducer_sums_test_there;
            collective->finish = NULL;
        }
    }
    if (!sums->store->device->memory->host_memory)
        ls_free_aligned(sums->all.host);
    sums->all.host = NULL;
    for (int i = 0; i < LS_COLLECTIVES_UNDER_WAY; i++) {
        ls_free_aligned(sums->staging[i].out);
        ls_free_aligned(sums->staging[i].in);
        sums->staging[i] = (struct staging){0};
    }
}

size_t ls_reducer_sums_count(const struct ls_reducer_sums *sums, size_t bucket)
{
    return sums->reductions[bucket].chunk_count;
}

struct ls_collective *ls_reducer_sums_collective(struct ls_reducer_sums *sums, size_t bucket,
                                                 size_t chunk)
{
    return &sums->reductions[bucket].chunks[chunk].collective;
}

/* ---- A pass ---------------------------------------------------------------------------------- */

static void reducer_sums_mark_ready(struct ls_reducer_sums *sums, struct reduction *reduction)
{
    for (size_t i = 0; i < reduction->chunk_count; i++)
        ls_progress_thread_ready(sums->comm->progress_thread, &reduction->chunks[i].collective);
}

int ls_reducer_sums_contributed(struct ls_reducer_sums *sums, int parameter,
                                const struct ls_context *context, struct ls_error *error)
{
    struct reduction *reduction = &sums->reductions[sums->store->shards->bucket[parameter]];
    if (!LS_MUTANT(UNMARKED))
        LS_TRY(sums->store->device->streams->event_record(reduction->events[context->worker],
                                                          context->stream, error));
    int before = atomic_fetch_sub(&sums->left[parameter], 1);
    if (before <= 0)
        atomic_store(&sums->surplus, true);
    if (before == 1 && atomic_fetch_sub(&reduction->left, 1) == 1)
        reducer_sums_mark_ready(sums, reduction);
    return 0;
}

void ls_reducer_sums_begin(struct ls_reducer_sums *sums, int own)
{
    const struct ls_store *store = sums->store;
    atomic_store(&sums->open, own < 0);
    for (size_t b = 0; b < sums->reduction_count; b++) {
        struct reduction *reduction = &sums->reductions[b];
        int open = 0;
        for (size_t i = reduction->bucket->first; i <= reduction->bucket->last; i++) {
            int parameter = store->shards->order[i];
            int left = own < 0 ? UNKNOWN : store->slots[parameter].parameter->uses * own;
            atomic_store(&sums->left[parameter], left);
            open += left > 0;
        }
        atomic_store(&reduction->left, open);
        if (open == 0)
            reducer_sums_mark_ready(sums, reduction);
    }
}

void ls_reducer_sums_expect(struct ls_reducer_sums *sums, int own)
{
    if (!atomic_exchange(&sums->open, false))
        return;
    const struct ls_store *store = sums->store;
    for (size_t b = 0; b < sums->reduction_count; b++) {
        struct reduction *reduction = &sums->reductions[b];
        for (size_t i = reduction->bucket->first; i <= reduction->bucket->last; i++) {
            int parameter = store->shards->order[i];
            int surplus = UNKNOWN - store->slots[parameter].parameter->uses * own;
            if (atomic_fetch_sub(&sums->left[parameter], surplus) == surplus &&
                atomic_fetch_sub(&reduction->left, 1) == 1)
                reducer_sums_mark_ready(sums, reduction);
        }
    }
}

void ls_reducer_sums_ready(struct ls_reducer_sums *sums)
{
    for (size_t b = 0; b < sums->reduction_count; b++)
        reducer_sums_mark_ready(sums, &sums->reductions[b]);
}

int ls_reducer_sums_check(const struct ls_reducer_sums *sums, struct ls_error *error)
{
    return atomic_load(&sums->surplus)
               ? ls_fail(error, LOCKSTEP_INTERNAL, NULL, NULL,
                         "a gradient was sent to other ranks before it was complete")
               : 0;
}

int ls_reducer_sums_status(const struct ls_reducer_sums *sums)
{
    return sums != NULL ? atomic_load(&sums->status) : 0;
}

bool ls_reducer_sums_overflowed(struct ls_reducer_sums *sums)
{
    return atomic_exchange(&sums->too_large, false);
}

void ls_reducer_sums_widen(struct ls_reducer_sums *sums, bool overflowed)
{
    sums->wide_left = overflowed ? STAY_WIDE : sums->wide_left - sums->wide;
    sums->wide = sums->wide_left > 0;
}

/* ---- Creation -------------------------------------------------------------------------------- */

/* Elements of the largest part of a bucket. */
static size_t reducer_sums_largest_part(const struct ls_shards *shards, size_t bucket)
{
    const size_t *cut = shards->buckets[bucket].cut;
    size_t largest = 0;
    for (int r = 0; r < shards->ranks; r++)
        largest = cut[r + 1] - cut[r] > largest ? cut[r + 1] - cut[r] : largest;
    return largest;
}

/* Elements of each part in one chunk. */
static size_t reducer_sums_chunk_elements(const struct ls_shards *shards)
{
    size_t each = CHUNK / (size_t)shards->ranks / 16 * 16, largest = 0;
    for (size_t b = 0; b < shards->bucket_count; b++) {
        size_t part = reducer_sums_largest_part(shards, b);
        largest = part > largest ? part : largest;
    }
    each = each < 1024 ? 1024 : each;
    return largest < each ? largest : each;
}

size_t ls_reducer_sums_chunks(const struct ls_shards *shards, size_t bucket)
{
    size_t part = reducer_sums_largest_part(shards, bucket),
           each = reducer_sums_chunk_elements(shards);
    return each > 0 ? (part + each - 1) / each : 0;
}

size_t ls_reducer_sums_bytes(const struct ls_shards *shards)
{
    size_t ranks = shards->ranks > 1 ? (size_t)shards->ranks : 0;
    return 2 * LS_COLLECTIVES_UNDER_WAY *
           ls_wire_bytes(reducer_sums_chunk_elements(shards) * ranks, false);
}

static int reducer_sums_create_reduction(struct ls_reducer_sums *sums, size_t index,
                                         struct ls_error *error)
{
    const struct ls_shards *shards = sums->store->shards;
    struct reduction *reduction = &sums->reductions[index];
    size_t each = reducer_sums_chunk_elements(shards);
    reduction->bucket = &shards->buckets[index];
    reduction->chunk_count = ls_reducer_sums_chunks(shards, index);
    reduction->chunks = ls_alloc(reduction->chunk_count + 1, sizeof *reduction->chunks);
    reduction->events = ls_alloc((size_t)sums->workers + 1, sizeof(struct ls_event *));
    if (reduction->chunks == NULL || reduction->events == NULL)
        return ls_fail_memory(error, "an exchange between ranks");
    for (size_t i = 0; i < reduction->chunk_count; i++) {
        struct chunk *chunk = &reduction->chunks[i];
        chunk->sums = sums;
        chunk->reduction = reduction;
        chunk->begin = i * each;
        chunk->count = each;
        chunk->collective.name = "sums of gradients";
        chunk->collective.start = reducer_sums_start;
        chunk->collective.finish = reducer_sums_finish;
        chunk->collective.user = chunk;
    }
    for (int w = 0; w < sums->workers; w++)
        LS_TRY(sums->store->device->streams->event_create(&reduction->events[w], error));
    return 0;
}

/* Where messages are packed from: the store's array, if that is the host's memory, or a copy. */
static int reducer_sums_create_mirror(struct ls_reducer_sums *sums, struct ls_error *error)
{
    const struct ls_store *store = sums->store;
    int64_t *all = ls_sums_all(store->sums);
    sums->all = (struct ls_mirror){.memory = store->device->memory, .device = all, .host = all};
    if (!store->device->memory->host_memory)
        sums->all.host = ls_alloc_aligned(store->shards->elements * sizeof *all);
    return sums->all.host != NULL ? 0 : ls_fail_memory(error, "an exchange between ranks");
}

static int reducer_sums_create(struct ls_reducer_sums *sums, struct ls_error *error)
{
    const struct ls_store *store = sums->store;
    size_t ranks = (size_t)sums->comm->size;
    sums->reductions = ls_alloc(store->shards->bucket_count + 1, sizeof *sums->reductions);
    sums->reduction_count = sums->reductions != NULL ? store->shards->bucket_count : 0;
    sums->left = ls_alloc(store->set->count + 1, sizeof *sums->left);
    sums->blocks = ls_alloc(4 * ranks, sizeof *sums->blocks);
    if (sums->reductions == NULL || sums->left == NULL || sums->blocks == NULL)
        return ls_fail_memory(error, "an exchange between ranks");
    for (size_t b = 0; b < sums->reduction_count; b++)
        LS_TRY(reducer_sums_create_reduction(sums, b, error));
    size_t bytes = ls_wire_bytes(reducer_sums_chunk_elements(store->shards) * ranks, true);
    for (int i = 0; i < LS_COLLECTIVES_UNDER_WAY && sums->reduction_count > 0; i++) {
        sums->staging[i].out = ls_alloc_aligned(bytes);
        sums->staging[i].in = ls_alloc_aligned(bytes);
        if (sums->staging[i].out == NULL || sums->staging[i].in == NULL)
            return ls_fail_memory(error, "an exchange between ranks");
    }
    return reducer_sums_create_mirror(sums, error);
}

int ls_reducer_sums_create(struct ls_store *store, struct ls_comm *comm,
                           struct ls_reducer_sums **out, struct ls_error *error)
{
    *out = NULL;
    struct ls_reducer_sums *sums = ls_alloc(1, sizeof *sums);
    if (sums == NULL)
        return ls_fail_memory(error, "an exchange between ranks");
    sums->store = store;
    sums->comm = comm;
    sums->workers = comm->workers;
    int status = reducer_sums_create(sums, error);
    if (status != 0)
        ls_reducer_sums_free(sums);
    else
        *out = sums;
    return status;
}

void ls_reducer_sums_free(struct ls_reducer_sums *sums)
{
    if (sums == NULL)
        return;
    const struct ls_device *device = sums->store->device;
    for (size_t b = 0; b < sums->reduction_count; b++) {
        struct reduction *reduction = &sums->reductions[b];
        for (int w = 0; reduction->events != NULL && w < sums->workers; w++)
            if (reduction->events[w] != NULL)
                device->streams->event_free(reduction->events[w]);
        ls_free((void *)reduction->events);
        ls_free(reduction->chunks);
    }
    if (!device->memory->host_memory)
        ls_free_aligned(sums->all.host);
    for (int i = 0; i < LS_COLLECTIVES_UNDER_WAY; i++) {
        ls_free_aligned(sums->staging[i].out);
        ls_free_aligned(sums->staging[i].in);
    }
    ls_free(sums->reductions);
    ls_free((void *)sums->left);
    ls_free(sums->blocks);
    ls_free(sums);
}
