/* Gradients and weights between ranks. See engine/reducer.h.
 *
 * Here is the all-gather of weights, and what the three kinds of exchanges have in common: their
 * order, a pass, and what ranks agree on at its end. Sums are in engine/reducer_sums.c, factors in
 * engine/reducer_factors.c.
 *
 * Messages are sent from the host's memory. Where the device has memory of its own the progress
 * thread copies what leaves, and what has arrived.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/reducer.h"

#include "base/memory.h"
#include "base/thread.h"
#include "engine/device_exchange.h"
#include "engine/reducer_factors.h"
#include "engine/reducer_sums.h"
#include "engine/store_views.h"
#include "transport/failure_detector.h"

struct ls_reducer {
    struct ls_store *store;
    struct ls_comm *comm;
    struct ls_device_exchange *exchange; /* between devices; NULL: over the hosts' memory */
    struct ls_reducer_sums *sums;
    struct ls_reducer_factors *factors;
    struct ls_collective **order; /* gradients and factors, in order of completion */
    size_t order_count;
    struct ls_mirror flat;         /* the store's weights, which messages are sent from */
    struct ls_collective *weights; /* by bucket */
    size_t bucket_count;
    size_t *blocks;     /* [2 * ranks]: of the collective of weights that is started */
    _Atomic int status; /* of the device, where the progress thread moved or converted weights */
    struct note *notes; /* of this rank, then of all */
    int64_t iteration;
};

/* ---- Weights --------------------------------------------------------------------------------- */

/* Keeps the status of a device's call, which the next wait reports. */
static void reducer_note_device(struct ls_reducer *reducer, int status)
{
    if (status != 0)
        atomic_store(&reducer->status, status);
}

static int reducer_check_device(const struct ls_reducer *reducer, struct ls_error *error)
{
    int status = atomic_load(&reducer->status);
    if (status == 0)
        status = ls_reducer_sums_status(reducer->sums);
    if (status == 0)
        status = ls_reducer_factors_status(reducer->factors);
    return status == 0 ? 0
                       : ls_fail(error, status, NULL, NULL,
                                 "the %s failed while gradients and weights were exchanged",
                                 reducer->store->device->name);
}

static int reducer_start_weights(struct ls_collective *collective, struct ls_transport *transport,
                                 struct ls_transport_op **op)
{
    struct ls_reducer *reducer = collective->user;
    const size_t *cut = reducer->store->shards->buckets[collective->index].cut;
    float *flat = reducer->flat.host, *bucket = flat + cut[0]; /* offsets from here fit ints */
    size_t ranks = (size_t)reducer->comm->size, rank = (size_t)reducer->comm->rank;
    size_t *bytes = reducer->blocks, *offset = bytes + ranks;
    for (size_t r = 0; r < ranks; r++) {
        bytes[r] = (cut[r + 1] - cut[r]) * sizeof *bucket;
        offset[r] = (cut[r] - cut[0]) * sizeof *bucket;
    }
    atomic_fetch_add_explicit(&reducer->comm->sent[LS_TRAFFIC_WEIGHTS], bytes[rank] * (ranks - 1),
                              memory_order_relaxed);
    reducer_note_device(
        reducer, ls_mirror_read(&reducer->flat, cut[rank] * sizeof *flat, bytes[rank], NULL));
    const struct ls_transport_blocks blocks = {bytes, offset};
    return transport->calls->gather(transport, LS_CHANNEL_BULK, flat + cut[rank], bucket, &blocks,
                                    op);
}

static void reducer_finish_weights(struct ls_collective *collective)
{
    struct ls_reducer *reducer = collective->user;
    const size_t *cut = reducer->store->shards->buckets[collective->index].cut;
    const size_t size = ls_dtype_size(LS_F32);
    const size_t begin = cut[0] * size, end = cut[reducer->comm->size] * size;
    reducer_note_device(reducer, ls_mirror_write(&reducer->flat, begin, end - begin, NULL));
    reducer_note_device(reducer,
                        ls_store_convert_bucket(reducer->store, (int)collective->index, NULL));
}

/* ---- Weights, between devices ---------------------------------------------------------------- */

static int reducer_start_weights_there(struct ls_collective *collective,
                                       struct ls_transport *transport, struct ls_transport_op **op)
{
    struct ls_reducer *reducer = collective->user;
    const size_t *cut = reducer->store->shards->buckets[collective->index].cut;
    const size_t ranks = (size_t)reducer->comm->size, rank = (size_t)reducer->comm->rank;
    (void)op;
    atomic_fetch_add_explicit(&reducer->comm->sent[LS_TRAFFIC_WEIGHTS],
                              (cut[rank + 1] - cut[rank]) * sizeof(uint32_t) * (ranks - 1),
                              memory_order_relaxed);
    return ls_device_exchange_gather(reducer->exchange, collective->lane, reducer->flat.device, cut,
                                     transport);
}

static enum ls_transport_result reducer_test_weights_there(struct ls_collective *collective,
                                                           struct ls_transport *transport)
{
    const struct ls_reducer *reducer = collective->user;
    return ls_device_exchange_test(reducer->exchange, collective->lane, transport);
}

static void reducer_finish_weights_there(struct ls_collective *collective)
{
    struct ls_reducer *reducer = collective->user;
    reducer_note_device(reducer,
                        ls_store_convert_bucket(reducer->store, (int)collective->index, NULL));
}

/* ---- Sending and waiting --------------------------------------------------------------------- */

int ls_reducer_send_weights(struct ls_reducer *reducer, struct ls_error *error)
{
    if (reducer == NULL)
        return 0;
    LS_TRY(ls_reducer_wait_all(reducer, error));
    for (size_t i = reducer->bucket_count; i-- > 0;) { /* in the order of the forward pass */
        ls_progress_thread_queue(reducer->comm->progress_thread, &reducer->weights[i]);
        ls_progress_thread_ready(reducer->comm->progress_thread, &reducer->weights[i]);
    }
    return 0;
}

void ls_reducer_wait_buckets(struct ls_reducer *reducer, int first, int last)
{
    for (int b = last; b >= first; b--) {
        if (ls_collective_done(&reducer->weights[b]))
            continue;
        uint64_t start = ls_nanoseconds();
        (void)ls_progress_thread_wait(reducer->comm->progress_thread, &reducer->weights[b], NULL);
        reducer->comm->waited[LS_WAIT_WEIGHTS] += ls_nanoseconds() - start;
    }
}

int ls_reducer_wait_all(struct ls_reducer *reducer, struct ls_error *error)
{
    for (size_t i = 0; reducer != NULL && i < reducer->bucket_count; i++)
        LS_TRY(
            ls_progress_thread_wait(reducer->comm->progress_thread, &reducer->weights[i], error));
    if (reducer == NULL)
        return 0;
    return reducer_check_device(reducer, error);
}

/* For the store: see ls_store_send_from. */
static int reducer_wait_for_store(void *user, int bucket, struct ls_error *error)
{
    struct ls_reducer *reducer = user;
    if (bucket == LS_BUCKETS_ALL)
        return ls_reducer_wait_all(reducer, error);
    return ls_progress_thread_wait(reducer->comm->progress_thread, &reducer->weights[bucket],
                                   error);
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
    int own = owner != NULL ? 0 : -1;
    for (size_t u = 0; u < units && owner != NULL; u++)
        own += owner[u] == reducer->comm->rank;
    LS_TRY(ls_reducer_factors_begin(reducer->factors, owner, units, own, error));
    for (size_t i = 0; i < reducer->order_count; i++)
        ls_progress_thread_queue(reducer->comm->progress_thread, reducer->order[i]);
    ls_reducer_sums_begin(reducer->sums, own);
    if (own == 0)
        ls_reducer_factors_ready(reducer->factors);
    return 0;
}

void ls_reducer_expect(struct ls_reducer *reducer, int own)
{
    if (reducer != NULL)
        ls_reducer_sums_expect(reducer->sums, own);
}

int ls_reducer_contributed(struct ls_reducer *reducer, int parameter,
                           const struct ls_context *context, struct ls_error *error)
{
    return ls_reducer_sums_contributed(reducer->sums, parameter, context, error);
}

int ls_reducer_recorded(struct ls_reducer *reducer, const struct ls_record_attr *record,
                        const struct ls_context *context, struct ls_error *error)
{
    return ls_reducer_factors_recorded(reducer->factors, record, context, error);
}

int ls_reducer_wait_gradients(struct ls_reducer *reducer, const int *owner, size_t units,
                              struct ls_error *error)
{
    if (reducer == NULL)
        return 0;
    LS_TRY(ls_reducer_factors_end(reducer->factors, owner, units, error));
    ls_reducer_sums_ready(reducer->sums);
    uint64_t start = ls_nanoseconds();
    for (size_t i = 0; i < reducer->order_count; i++)
        LS_TRY(ls_progress_thread_wait(reducer->comm->progress_thread, reducer->order[i], error));
    reducer->comm->waited[LS_WAIT_SUMS] += ls_nanoseconds() - start;
    LS_TRY(reducer_check_device(reducer, error));
    return ls_reducer_sums_check(reducer->sums, error);
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
        (struct note){reducer->comm->requests, ls_reducer_sums_overflowed(reducer->sums)};
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
    ls_reducer_sums_widen(reducer->sums, *again);
    return 0;
}

/* ---- Creation -------------------------------------------------------------------------------- */

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
    for (size_t f = factors; f-- > 0 || bucket < reducer->bucket_count;) {
        bool more = f < factors; /* else f has wrapped around */
        int weight = more ? ls_factors_weight(reducer->store->factors, f)->index : -1;
        for (; bucket < reducer->bucket_count; bucket++) {
            if (shards->order[shards->buckets[bucket].last] < weight)
                break;
            for (size_t i = 0; i < ls_reducer_sums_count(reducer->sums, bucket); i++)
                *next++ = ls_reducer_sums_collective(reducer->sums, bucket, i);
        }
        if (!more)
            break;
        *next++ = ls_reducer_factors_collective(reducer->factors, f, LS_FACTOR_OUTPUT);
    }
    reducer->order_count = (size_t)(next - reducer->order);
}

/* The collectives of weights, and where they are sent from: the store's array, if that is the
 * host's memory, or a copy. */
static int reducer_create_weights(struct ls_reducer *reducer, struct ls_error *error)
{
    const struct ls_store *store = reducer->store;
    reducer->weights = ls_alloc(store->shards->bucket_count + 1, sizeof *reducer->weights);
    reducer->blocks = ls_alloc(2 * (size_t)reducer->comm->size, sizeof *reducer->blocks);
    if (reducer->weights == NULL || reducer->blocks == NULL)
        return ls_fail_memory(error, "an exchange between ranks");
    reducer->bucket_count = store->shards->bucket_count;
    for (size_t b = 0; b < reducer->bucket_count; b++)
        reducer->weights[b] = (struct ls_collective){.start = reducer_start_weights,
                                                     .finish = reducer_finish_weights,
                                                     .user = reducer,
                                                     .index = b};
    float *flat = ls_store_send_from(reducer->store, reducer_wait_for_store, reducer);
    reducer->flat =
        (struct ls_mirror){.memory = store->device->memory, .device = flat, .host = flat};
    if (!store->device->memory->host_memory)
        reducer->flat.host = ls_alloc_aligned(store->shards->elements * sizeof *flat);
    return reducer->flat.host != NULL ? 0 : ls_fail_memory(error, "an exchange between ranks");
}

static int reducer_create(struct ls_reducer *reducer, struct ls_error *error)
{
    struct ls_store *store = reducer->store;
    size_t collectives = 2 * ls_factors_count(store->factors);
    LS_TRY(ls_reducer_sums_create(store, reducer->comm, &reducer->sums, error));
    LS_TRY(ls_reducer_factors_create(store, reducer->comm, &reducer->factors, error));
    LS_TRY(reducer_create_weights(reducer, error));
    for (size_t b = 0; b < reducer->bucket_count; b++)
        collectives += ls_reducer_sums_chunks(store->shards, b);
    reducer->order = ls_alloc(collectives + 1, sizeof *reducer->order);
    reducer->notes = ls_alloc((size_t)reducer->comm->size + 1, reducer_note_bytes(reducer));
    if (reducer->order == NULL || reducer->notes == NULL)
        return ls_fail_memory(error, "an exchange between ranks");
    reducer_put_in_order(reducer);
    return 0;
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
    int status = reducer_create(reducer, error);
    if (status != 0)
        ls_reducer_free(reducer);
    else
        *out = reducer;
    return status;
}

int ls_reducer_connect(struct ls_reducer *reducer, struct ls_error *error)
{
    if (reducer == NULL)
        return 0;
    LS_TRY(ls_device_exchange_create(reducer->store->device, reducer->comm, &reducer->exchange,
                                     error));
    if (reducer->exchange == NULL)
        return 0;
    LS_TRY(ls_reducer_wait_all(reducer, error));
    ls_reducer_sums_connect(reducer->sums, reducer->exchange);
    for (size_t b = 0; b < reducer->bucket_count; b++) {
        reducer->weights[b].start = reducer_start_weights_there;
        reducer->weights[b].test = reducer_test_weights_there;
        reducer->weights[b].finish = reducer_finish_weights_there;
    }
    if (!reducer->store->device->memory->host_memory)
        ls_free_aligned(reducer->flat.host);
    reducer->flat.host = NULL;
    reducer_put_in_order(reducer);
    return 0;
}

/* Whether nothing is queued or under way. */
static bool reducer_is_idle(const struct ls_reducer *reducer)
{
    for (size_t i = 0; i < reducer->order_count; i++)
        if (!ls_collective_done(reducer->order[i]))
            return false;
    for (size_t i = 0; i < reducer->bucket_count; i++)
        if (!ls_collective_done(&reducer->weights[i]))
            return false;
    return true;
}

void ls_reducer_free(struct ls_reducer *reducer)
{
    if (reducer == NULL)
        return;
    (void)ls_reducer_wait_all(reducer, NULL);
    if (!reducer_is_idle(reducer))
        ls_progress_thread_give_up(reducer->comm->progress_thread);
    ls_device_exchange_free(reducer->exchange);
    ls_reducer_sums_free(reducer->sums);
    ls_reducer_factors_free(reducer->factors);
    if (!reducer->store->device->memory->host_memory)
        ls_free_aligned(reducer->flat.host);
    ls_free(reducer->weights);
    ls_free(reducer->blocks);
    ls_free((void *)reducer->order);
    ls_free(reducer->notes);
    ls_free(reducer);
}
