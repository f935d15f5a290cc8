/* Gradients and weights between ranks. See engine/reducer.h.
 *
 * A bucket's sums are exchanged in chunks, each a stretch of every rank's part, so that the buffers
 * for packed and received sums stay small.
 *
 * Messages are sent from the host's memory. Where the device has memory of its own the progress
 * thread copies what leaves, and what has arrived.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/reducer.h"

#include "base/memory.h"
#include "base/mutant.h"
#include "base/thread.h"
#include "engine/reducer_factors.h"
#include "transport/failure_detector.h"
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
        struct ls_reducer *reducer;
        struct reduction *reduction;
        size_t begin, count; /* of each rank's part: elements [begin, begin + count), if so many */
        struct staging *staging;
    } * chunks;
    size_t chunk_count;
    struct ls_collective weights;
    _Atomic int left;         /* parameters that are incomplete here */
    struct ls_event **events; /* by worker: its last contribution */
};

struct ls_reducer {
    struct ls_store *store;
    struct ls_comm *comm;
    int workers;
    float *flat, *weights;        /* the store's weights, and where the host has them */
    int64_t *sums;                /* where the host has the sums */
    struct reduction *reductions; /* by bucket */
    size_t reduction_count;
    struct ls_reducer_factors *factors;
    _Atomic int *left; /* by parameter: contributions still expected here */
    _Atomic bool open; /* `left` is UNKNOWN until ls_reducer_expect */
    struct staging staging[LS_COLLECTIVES_UNDER_WAY]; /* more chunks are never under way */
    struct ls_collective **order; /* gradients and factors, in order of completion */
    size_t order_count;
    int64_t iteration;
    bool wide;
    int wide_left;              /* updates that `wide` lasts */
    _Atomic bool too_large;     /* a sum did not fit 48 bits */
    _Atomic bool not_converted; /* a view of weights that have arrived */
    _Atomic bool surplus;       /* a contribution came after its bucket was sent */
    _Atomic int device_status;  /* of the device, where the progress thread used it */
    struct note *notes;         /* of this rank, then of all */
    size_t *blocks;             /* the progress thread's: [4 * ranks] */
};

/* ---- Sums ------------------------------------------------------------------------------------ */

/* The elements of rank r's part that belong to a chunk. */
static void reducer_stretch(const struct chunk *chunk, int rank, size_t *begin, size_t *count)
{
    const size_t *cut = chunk->reduction->bucket->cut;
    size_t part = cut[rank + 1] - cut[rank];
    size_t first = chunk->begin < part ? chunk->begin : part, left = part - first;
    *begin = cut[rank] + first;
    *count = left < chunk->count ? left : chunk->count;
}

/* Keeps the status of a device's call, which the next wait reports. */
static void reducer_note_device(struct ls_reducer *reducer, int status)
{
    if (status != 0)
        atomic_store(&reducer->device_status, status);
}

static int reducer_check_device(const struct ls_reducer *reducer, struct ls_error *error)
{
    int status = atomic_load(&reducer->device_status);
    if (status == 0)
        status = ls_reducer_factors_status(reducer->factors);
    return status == 0 ? 0
                       : ls_fail(error, status, NULL, NULL,
                                 "the %s failed while gradients and weights were exchanged",
                                 reducer->store->device->name);
}

/* Copies to the host, where the device has memory of its own; the next one copies back. */
static void reducer_bring(struct ls_reducer *reducer, void *host, const void *device, size_t bytes)
{
    const struct ls_device_memory *memory = reducer->store->device->memory;
    if (!memory->host_memory && bytes > 0)
        reducer_note_device(reducer, memory->read(NULL, host, device, bytes, NULL));
}

static void reducer_take_back(struct ls_reducer *reducer, void *device, const void *host,
                              size_t bytes)
{
    const struct ls_device_memory *memory = reducer->store->device->memory;
    if (!memory->host_memory && bytes > 0)
        reducer_note_device(reducer, memory->write(NULL, device, host, bytes, NULL));
}

static struct staging *reducer_take_staging(struct ls_reducer *reducer,
                                            const struct ls_collective *collective)
{
    struct staging *staging = reducer->staging;
    while (staging->user != NULL) /* one is free: at most as many chunks are under way */
        staging++;
    staging->user = collective;
    return staging;
}

static int reducer_start_sums(struct ls_collective *collective, struct ls_transport *transport,
                              struct ls_transport_op **op)
{
    struct chunk *chunk = collective->user;
    struct ls_reducer *reducer = chunk->reducer;
    const struct ls_shards *shards = reducer->store->shards;
    const struct ls_bucket *bucket = chunk->reduction->bucket;
    int64_t *sums = reducer->sums;
    const int64_t *device_sums = ls_sums_all(reducer->store->sums);
    size_t ranks = (size_t)reducer->comm->size, *bytes = reducer->blocks,
           *offset = bytes + 2 * ranks;
    size_t at = 0, own, count;
    for (int w = 0; w < reducer->workers && chunk->begin == 0; w++)
        reducer_note_device(reducer, reducer->store->device->streams->event_wait(
                                         chunk->reduction->events[w], NULL));
    for (size_t i = bucket->first; i <= bucket->last && chunk->begin == 0; i++)
        reducer_note_device(reducer,
                            ls_sums_clear_rest(reducer->store->sums, shards->order[i], NULL));
    chunk->staging = reducer_take_staging(reducer, collective);
    reducer_stretch(chunk, reducer->comm->rank, &own, &count);
    for (int r = 0; r < reducer->comm->size; r++) {
        size_t begin, n;
        bool mine = r == reducer->comm->rank;
        reducer_stretch(chunk, r, &begin, &n);
        bytes[r] = mine ? 0 : ls_wire_bytes(n, reducer->wide);
        offset[r] = at;
        at += bytes[r];
        if (!mine)
            reducer_bring(reducer, sums + begin, device_sums + begin, n * sizeof *sums);
        if (!mine && !ls_wire_pack(chunk->staging->out + offset[r], sums + begin, n, reducer->wide))
            atomic_store(&reducer->too_large, true);
        size_t each = ls_wire_bytes(count, reducer->wide);
        bytes[ranks + (size_t)r] = mine ? 0 : each;
        offset[ranks + (size_t)r] = (size_t)(r - (r > reducer->comm->rank)) * each;
    }
    atomic_fetch_add_explicit(&reducer->comm->sent[LS_TRAFFIC_SUMS], at, memory_order_relaxed);
    const struct ls_transport_blocks out = {bytes, offset}, in = {bytes + ranks, offset + ranks};
    return transport->calls->exchange(transport, LS_CHANNEL_BULK, chunk->staging->out, &out,
                                      chunk->staging->in, &in, op);
}

static void reducer_finish_sums(struct ls_collective *collective)
{
    struct chunk *chunk = collective->user;
    struct ls_reducer *reducer = chunk->reducer;
    int64_t *sums = reducer->sums, *device_sums = ls_sums_all(reducer->store->sums);
    size_t own, count;
    reducer_stretch(chunk, reducer->comm->rank, &own, &count);
    reducer_bring(reducer, sums + own, device_sums + own, count * sizeof *sums);
    size_t each = ls_wire_bytes(count, reducer->wide);
    int others = reducer->comm->size - 1;
    if (LS_MUTANT(DEAF)) /* a rank misses the last rank's sums */
        others -= reducer->comm->rank == 0;
    for (int from = 0; from < others; from++)
        ls_wire_add(sums + own, chunk->staging->in + (size_t)from * each, count, reducer->wide);
    reducer_take_back(reducer, device_sums + own, sums + own, count * sizeof *sums);
    chunk->staging->user = NULL;
}

static void reducer_reduction_is_ready(struct ls_reducer *reducer, struct reduction *reduction)
{
    for (size_t i = 0; i < reduction->chunk_count; i++)
        ls_progress_thread_ready(reducer->comm->progress_thread, &reduction->chunks[i].collective);
}

int ls_reducer_contributed(struct ls_reducer *reducer, int parameter,
                           const struct ls_context *context, struct ls_error *error)
{
    struct reduction *reduction = &reducer->reductions[reducer->store->shards->bucket[parameter]];
    LS_TRY(reducer->store->device->streams->event_record(reduction->events[context->worker],
                                                         context->stream, error));
    int before = atomic_fetch_sub(&reducer->left[parameter], 1);
    if (before <= 0)
        atomic_store(&reducer->surplus, true);
    if (before == 1 && atomic_fetch_sub(&reduction->left, 1) == 1)
        reducer_reduction_is_ready(reducer, reduction);
    return 0;
}

int ls_reducer_recorded(struct ls_reducer *reducer, const struct ls_record_attr *record,
                        const struct ls_context *context, struct ls_error *error)
{
    return ls_reducer_factors_recorded(reducer->factors, record, context, error);
}

/* ---- Weights --------------------------------------------------------------------------------- */

static int reducer_start_weights(struct ls_collective *collective, struct ls_transport *transport,
                                 struct ls_transport_op **op)
{
    struct ls_reducer *reducer = collective->user;
    const size_t *cut = reducer->reductions[collective->index].bucket->cut;
    float *bucket = reducer->weights + cut[0]; /* offsets from here fit transports' ints */
    size_t ranks = (size_t)reducer->comm->size, *bytes = reducer->blocks,
           *offset = bytes + 2 * ranks;
    for (size_t r = 0; r < ranks; r++) {
        bytes[r] = (cut[r + 1] - cut[r]) * sizeof *bucket;
        offset[r] = (cut[r] - cut[0]) * sizeof *bucket;
    }
    size_t rank = (size_t)reducer->comm->rank;
    atomic_fetch_add_explicit(&reducer->comm->sent[LS_TRAFFIC_WEIGHTS], bytes[rank] * (ranks - 1),
                              memory_order_relaxed);
    reducer_bring(reducer, reducer->weights + cut[rank], reducer->flat + cut[rank], bytes[rank]);
    const struct ls_transport_blocks blocks = {bytes, offset};
    return transport->calls->gather(transport, LS_CHANNEL_BULK, reducer->weights + cut[rank],
                                    bucket, &blocks, op);
}

static void reducer_finish_weights(struct ls_collective *collective)
{
    struct ls_reducer *reducer = collective->user;
    const size_t *cut = reducer->reductions[collective->index].bucket->cut;
    reducer_take_back(reducer, reducer->flat + cut[0], reducer->weights + cut[0],
                      (cut[reducer->comm->size] - cut[0]) * sizeof *reducer->flat);
    if (!ls_store_convert_bucket(reducer->store, (int)collective->index))
        atomic_store(&reducer->not_converted, true);
}

int ls_reducer_send_weights(struct ls_reducer *reducer, struct ls_error *error)
{
    if (reducer == NULL)
        return 0;
    LS_TRY(ls_reducer_wait_all(reducer, error));
    for (size_t i = reducer->reduction_count; i-- > 0;) { /* in the order of the forward pass */
        ls_progress_thread_queue(reducer->comm->progress_thread, &reducer->reductions[i].weights);
        ls_progress_thread_ready(reducer->comm->progress_thread, &reducer->reductions[i].weights);
    }
    return 0;
}

void ls_reducer_wait_buckets(struct ls_reducer *reducer, int first, int last)
{
    for (int b = last; b >= first; b--) {
        if (ls_collective_done(&reducer->reductions[b].weights))
            continue;
        uint64_t start = ls_nanoseconds();
        (void)ls_progress_thread_wait(reducer->comm->progress_thread,
                                      &reducer->reductions[b].weights, NULL);
        reducer->comm->waited[LS_WAIT_WEIGHTS] += ls_nanoseconds() - start;
    }
}

int ls_reducer_wait_all(struct ls_reducer *reducer, struct ls_error *error)
{
    for (size_t i = 0; reducer != NULL && i < reducer->reduction_count; i++)
        LS_TRY(ls_progress_thread_wait(reducer->comm->progress_thread,
                                       &reducer->reductions[i].weights, error));
    if (reducer == NULL)
        return 0;
    LS_TRY(reducer_check_device(reducer, error));
    if (!atomic_load(&reducer->not_converted))
        return 0;
    return ls_fail(error, LOCKSTEP_INTERNAL, NULL, NULL,
                   "cannot convert the weights to the layouts of the kernels");
}

/* For the store: see ls_store_send_from. */
static int reducer_wait_for_store(void *user, int bucket, struct ls_error *error)
{
    struct ls_reducer *reducer = user;
    if (bucket == LS_BUCKETS_ALL)
        return ls_reducer_wait_all(reducer, error);
    return ls_progress_thread_wait(reducer->comm->progress_thread,
                                   &reducer->reductions[bucket].weights, error);
}

/* ---- Progress notes for the failure detector ------------------------------------------------- */

void ls_reducer_iteration(struct ls_reducer *reducer, int64_t iteration)
{
    if (reducer == NULL)
        return;
    reducer->iteration = iteration;
    ls_detector_note(reducer->comm->detector, iteration, NULL);
}

void ls_reducer_note_layer(struct ls_reducer *reducer, const char *layer)
{
    ls_detector_note(reducer->comm->detector, reducer->iteration, layer);
}

/* ---- A pass ---------------------------------------------------------------------------------- */

int ls_reducer_begin(struct ls_reducer *reducer, const int *owner, size_t units,
                     struct ls_error *error)
{
    if (reducer == NULL)
        return 0;
    const struct ls_shards *shards = reducer->store->shards;
    int own = 0;
    atomic_store(&reducer->open, owner == NULL);
    for (size_t u = 0; u < units && owner != NULL; u++)
        own += owner[u] == reducer->comm->rank;
    LS_TRY(ls_reducer_factors_begin(reducer->factors, owner, units, own, error));
    for (size_t i = 0; i < reducer->order_count; i++)
        ls_progress_thread_queue(reducer->comm->progress_thread, reducer->order[i]);
    for (size_t b = 0; b < reducer->reduction_count; b++) {
        struct reduction *reduction = &reducer->reductions[b];
        int open = 0;
        for (size_t i = reduction->bucket->first; i <= reduction->bucket->last; i++) {
            int uses = reducer->store->slots[shards->order[i]].parameter->uses;
            int left = owner != NULL ? uses * own : UNKNOWN;
            atomic_store(&reducer->left[shards->order[i]], left);
            open += left > 0;
        }
        atomic_store(&reduction->left, open);
        if (open == 0)
            reducer_reduction_is_ready(reducer, reduction);
    }
    if (own == 0 && owner != NULL)
        ls_reducer_factors_ready(reducer->factors);
    return 0;
}

void ls_reducer_expect(struct ls_reducer *reducer, int own)
{
    if (reducer == NULL || !atomic_exchange(&reducer->open, false))
        return;
    const struct ls_store *store = reducer->store;
    for (size_t b = 0; b < reducer->reduction_count; b++) {
        struct reduction *reduction = &reducer->reductions[b];
        for (size_t i = reduction->bucket->first; i <= reduction->bucket->last; i++) {
            int parameter = store->shards->order[i];
            int surplus = UNKNOWN - store->slots[parameter].parameter->uses * own;
            if (atomic_fetch_sub(&reducer->left[parameter], surplus) == surplus &&
                atomic_fetch_sub(&reduction->left, 1) == 1)
                reducer_reduction_is_ready(reducer, reduction);
        }
    }
}

int ls_reducer_wait_gradients(struct ls_reducer *reducer, const int *owner, size_t units,
                              struct ls_error *error)
{
    if (reducer == NULL)
        return 0;
    LS_TRY(ls_reducer_factors_end(reducer->factors, owner, units, error));
    for (size_t b = 0; b < reducer->reduction_count; b++)
        reducer_reduction_is_ready(reducer, &reducer->reductions[b]);
    uint64_t start = ls_nanoseconds();
    for (size_t i = 0; i < reducer->order_count; i++)
        LS_TRY(ls_progress_thread_wait(reducer->comm->progress_thread, reducer->order[i], error));
    reducer->comm->waited[LS_WAIT_SUMS] += ls_nanoseconds() - start;
    LS_TRY(reducer_check_device(reducer, error));
    if (atomic_load(&reducer->surplus))
        return ls_fail(error, LOCKSTEP_INTERNAL, NULL, NULL,
                       "a gradient was sent to other ranks before it was complete");
    return 0;
}

/* ---- Agreement on a pass --------------------------------------------------------------------- */

/* A rank's note: this struct, then notes of sums, then notes of factors. */
struct note {
    uint32_t requests, too_large;
};

size_t ls_reducer_note_bytes(size_t parameters, size_t rows, size_t factors)
{
    return sizeof(struct note) + ls_sums_note_bytes(parameters, rows) +
           factors * sizeof(struct ls_factor_note);
}

static size_t reducer_note_bytes(const struct ls_reducer *reducer)
{
    return ls_reducer_note_bytes(reducer->store->set->count, ls_sums_all_rows(reducer->store->sums),
                                 ls_factors_count(reducer->store->factors));
}

int ls_reducer_agree(struct ls_reducer *reducer, bool *again, struct ls_error *error)
{
    *again = false;
    if (reducer == NULL)
        return 0;
    struct ls_store *store = reducer->store;
    size_t bytes = reducer_note_bytes(reducer), sums = sizeof(struct note);
    size_t factors = sums + ls_sums_note_bytes(store->set->count, ls_sums_all_rows(store->sums));
    unsigned char *mine = (unsigned char *)reducer->notes, *all = mine + bytes;
    *reducer->notes =
        (struct note){reducer->comm->requests, atomic_exchange(&reducer->too_large, false)};
    ls_sums_note(store->sums, mine + sums);
    ls_factors_note(store->factors, (struct ls_factor_note *)(void *)(mine + factors));
    LS_TRY(ls_comm_all_gather(reducer->comm, mine, bytes, all, error));
    reducer->comm->requests = 0;
    for (int r = 0; r < reducer->comm->size; r++, all += bytes) {
        const struct note *note = (const struct note *)(void *)all;
        reducer->comm->agreed |= note->requests;
        *again |= note->too_large != 0;
        ls_sums_hear(store->sums, all + sums);
        ls_factors_hear(store->factors, (const struct ls_factor_note *)(void *)(all + factors));
    }
    reducer->wide_left = *again ? STAY_WIDE : reducer->wide_left - reducer->wide;
    reducer->wide = reducer->wide_left > 0;
    return 0;
}

/* ---- Creation -------------------------------------------------------------------------------- */

/* Elements of the largest part of a bucket. */
static size_t reducer_largest_part(const struct ls_shards *shards, size_t bucket)
{
    const size_t *cut = shards->buckets[bucket].cut;
    size_t largest = 0;
    for (int r = 0; r < shards->ranks; r++)
        largest = cut[r + 1] - cut[r] > largest ? cut[r + 1] - cut[r] : largest;
    return largest;
}

/* Elements of each part in one chunk. */
static size_t reducer_chunk_elements(const struct ls_shards *shards)
{
    size_t each = CHUNK / (size_t)shards->ranks / 16 * 16, largest = 0;
    for (size_t b = 0; b < shards->bucket_count; b++) {
        size_t part = reducer_largest_part(shards, b);
        largest = part > largest ? part : largest;
    }
    each = each < 1024 ? 1024 : each;
    return largest < each ? largest : each;
}

size_t ls_reducer_chunks(const struct ls_shards *shards, size_t bucket)
{
    size_t part = reducer_largest_part(shards, bucket), each = reducer_chunk_elements(shards);
    return each > 0 ? (part + each - 1) / each : 0;
}

size_t ls_reducer_bytes(const struct ls_shards *shards)
{
    size_t ranks = shards->ranks > 1 ? (size_t)shards->ranks : 0;
    return 2 * LS_COLLECTIVES_UNDER_WAY *
           ls_wire_bytes(reducer_chunk_elements(shards) * ranks, false);
}

static int reducer_create_reduction(struct ls_reducer *reducer, size_t index,
                                    struct ls_error *error)
{
    struct reduction *reduction = &reducer->reductions[index];
    reduction->bucket = &reducer->store->shards->buckets[index];
    reduction->weights = (struct ls_collective){.start = reducer_start_weights,
                                                .finish = reducer_finish_weights,
                                                .user = reducer,
                                                .index = index};
    size_t each = reducer_chunk_elements(reducer->store->shards);
    reduction->chunk_count = ls_reducer_chunks(reducer->store->shards, index);
    reduction->chunks = ls_alloc(reduction->chunk_count + 1, sizeof *reduction->chunks);
    if (reduction->chunks == NULL)
        return ls_fail_memory(error, "an exchange between ranks");
    for (size_t i = 0; i < reduction->chunk_count; i++) {
        struct chunk *chunk = &reduction->chunks[i];
        chunk->reducer = reducer;
        chunk->reduction = reduction;
        chunk->begin = i * each;
        chunk->count = each;
        chunk->collective.start = reducer_start_sums;
        chunk->collective.finish = reducer_finish_sums;
        chunk->collective.user = chunk;
    }
    return 0;
}

/* The order in which all ranks queue their collectives: the inputs of inner products as the forward
 * pass records them, then the other factors and the buckets as the backward pass completes them. */
static void reducer_put_in_order(struct ls_reducer *reducer)
{
    const struct ls_shards *shards = reducer->store->shards;
    struct ls_collective **next = reducer->order;
    size_t factors = ls_factors_count(reducer->store->factors);
    for (size_t f = 0; f < factors; f++)
        *next++ = ls_reducer_factors_collective(reducer->factors, f, LS_FACTOR_INPUT);
    size_t bucket = 0;
    for (size_t f = factors; f-- > 0 || bucket < reducer->reduction_count;) {
        bool more = f < factors; /* else f has wrapped around */
        int weight = more ? ls_factors_weight(reducer->store->factors, f)->index : -1;
        for (; bucket < reducer->reduction_count; bucket++) {
            const struct reduction *reduction = &reducer->reductions[bucket];
            if (shards->order[reduction->bucket->last] < weight)
                break;
            for (size_t i = 0; i < reduction->chunk_count; i++)
                *next++ = &reducer->reductions[bucket].chunks[i].collective;
        }
        if (!more)
            break;
        *next++ = ls_reducer_factors_collective(reducer->factors, f, LS_FACTOR_OUTPUT);
    }
    reducer->order_count = (size_t)(next - reducer->order);
}

/* Where the host has sums and weights: where the device has them, if that is the host's memory. */
static int reducer_create_copies(struct ls_reducer *reducer, struct ls_error *error)
{
    const struct ls_store *store = reducer->store;
    const size_t elements = store->shards->elements;
    reducer->weights = reducer->flat;
    reducer->sums = ls_sums_all(store->sums);
    if (store->device->memory->host_memory)
        return 0;
    reducer->weights = ls_alloc_aligned(elements * sizeof *reducer->weights);
    reducer->sums = ls_alloc_aligned(elements * sizeof *reducer->sums);
    return reducer->weights != NULL && reducer->sums != NULL
               ? 0
               : ls_fail_memory(error, "an exchange between ranks");
}

static int reducer_create_events(const struct ls_reducer *reducer, struct reduction *reduction,
                                 struct ls_error *error)
{
    reduction->events = ls_alloc((size_t)reducer->workers + 1, sizeof(struct ls_event *));
    if (reduction->events == NULL)
        return ls_fail_memory(error, "an exchange between ranks");
    for (int w = 0; w < reducer->workers; w++)
        LS_TRY(reducer->store->device->streams->event_create(&reduction->events[w], error));
    return 0;
}

static int reducer_create(struct ls_reducer *reducer, struct ls_error *error)
{
    struct ls_store *store = reducer->store;
    size_t ranks = (size_t)reducer->comm->size, collectives = 2 * ls_factors_count(store->factors);
    reducer->reductions = ls_alloc(store->shards->bucket_count + 1, sizeof *reducer->reductions);
    reducer->reduction_count = reducer->reductions != NULL ? store->shards->bucket_count : 0;
    reducer->left = ls_alloc(store->set->count + 1, sizeof *reducer->left);
    reducer->blocks = ls_alloc(4 * ranks, sizeof *reducer->blocks);
    reducer->notes = ls_alloc(ranks + 1, reducer_note_bytes(reducer));
    if (reducer->reductions == NULL || reducer->left == NULL || reducer->blocks == NULL ||
        reducer->notes == NULL)
        return ls_fail_memory(error, "an exchange between ranks");
    for (size_t b = 0; b < reducer->reduction_count; b++) {
        LS_TRY(reducer_create_reduction(reducer, b, error));
        LS_TRY(reducer_create_events(reducer, &reducer->reductions[b], error));
        collectives += reducer->reductions[b].chunk_count;
    }
    size_t bytes = ls_wire_bytes(reducer_chunk_elements(store->shards) * ranks, true);
    for (int i = 0; i < LS_COLLECTIVES_UNDER_WAY && reducer->reduction_count > 0; i++) {
        reducer->staging[i].out = ls_alloc_aligned(bytes);
        reducer->staging[i].in = ls_alloc_aligned(bytes);
        if (reducer->staging[i].out == NULL || reducer->staging[i].in == NULL)
            return ls_fail_memory(error, "an exchange between ranks");
    }
    LS_TRY(ls_reducer_factors_create(store, reducer->comm, &reducer->factors, error));
    reducer->order = ls_alloc(collectives + 1, sizeof *reducer->order);
    if (reducer->order == NULL)
        return ls_fail_memory(error, "an exchange between ranks");
    reducer_put_in_order(reducer);
    reducer->flat = ls_store_send_from(store, reducer_wait_for_store, reducer);
    return reducer_create_copies(reducer, error);
}

int ls_reducer_create(struct ls_store *store, struct ls_comm *comm, struct ls_reducer **out,
                      struct ls_error *error)
{
    *out = NULL;
    if (comm->size == 1 || store->sums == NULL)
        return 0;
    struct ls_reducer *reducer = ls_alloc(1, sizeof *reducer);
    if (reducer == NULL)
        return ls_fail_memory(error, "an exchange between ranks");
    reducer->store = store;
    reducer->comm = comm;
    reducer->workers = comm->workers;
    int status = reducer_create(reducer, error);
    if (status != 0)
        ls_reducer_free(reducer);
    else
        *out = reducer;
    return status;
}

void ls_reducer_free(struct ls_reducer *reducer)
{
    if (reducer == NULL)
        return;
    (void)ls_reducer_wait_all(reducer, NULL);
    for (size_t b = 0; b < reducer->reduction_count && reducer->reductions != NULL; b++) {
        struct reduction *reduction = &reducer->reductions[b];
        for (int w = 0; reduction->events != NULL && w < reducer->workers; w++)
            if (reduction->events[w] != NULL)
                reducer->store->device->streams->event_free(reduction->events[w]);
        ls_free((void *)reduction->events);
        ls_free(reduction->chunks);
    }
    if (!reducer->store->device->memory->host_memory) {
        ls_free_aligned(reducer->weights);
        ls_free_aligned(reducer->sums);
    }
    for (int i = 0; i < LS_COLLECTIVES_UNDER_WAY; i++) {
        ls_free_aligned(reducer->staging[i].out);
        ls_free_aligned(reducer->staging[i].in);
    }
    ls_reducer_factors_free(reducer->factors);
    ls_free(reducer->reductions);
    ls_free((void *)reducer->left);
    ls_free((void *)reducer->order);
    ls_free(reducer->notes);
    ls_free(reducer->blocks);
    ls_free(reducer);
}
