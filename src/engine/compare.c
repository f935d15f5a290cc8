/* Whether the ranks of a job have the same weights. They must have: a difference comes from faulty
 * memory, a faulty processor, different programs, or a mistake of ours, and would otherwise remain
 * unnoticed while the ranks drift apart.
 *
 * All workers hash blocks of the weights, as fast as these can be read. One number goes to all
 * ranks; only where it differs more are sent, to find the parameter and the ranks.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/compare.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "engine/engine.h"
#include "engine/pass.h"
#include "engine/sample_states.h"
#include "transport/comm.h"

enum {
    BLOCK = 1 << 16, /* elements that a worker takes at a time */
    RANKS_NAMED = 4  /* in a message */
};

struct comparison {
    const struct ls_store *store;
    float *const *weights; /* by parameter */
    uint64_t *block;       /* hashes of all blocks, parameter by parameter */
    uint64_t *parameter;   /* and of each parameter */
    size_t blocks;
    _Atomic size_t next;              /* the next block to hash */
    struct ls_worker_failure failure; /* of a block that could not be read */
};

static size_t compare_blocks_of(const struct ls_parameter_state *slot)
{
    return (slot->elements + BLOCK - 1) / BLOCK;
}

static int compare_hash_block(struct comparison *comparison, size_t index, struct ls_error *error)
{
    const struct ls_store *store = comparison->store;
    size_t parameter = 0, block = index;
    while (block >= compare_blocks_of(&store->slots[parameter]))
        block -= compare_blocks_of(&store->slots[parameter++]);
    const float *weights = comparison->weights[parameter];
    size_t begin = block * BLOCK, left = store->slots[parameter].elements - begin;
    return store->device->memory->hash(weights + begin,
                                       (left < BLOCK ? left : BLOCK) * sizeof *weights, index,
                                       &comparison->block[index], error);
}

static void compare_hash_some(void *argument, int worker)
{
    (void)worker;
    struct comparison *comparison = argument;
    struct ls_error *error = ls_worker_error();
    size_t index;
    int status = 0;
    while (status == 0 && (index = atomic_fetch_add_explicit(
                               &comparison->next, 1, memory_order_relaxed)) < comparison->blocks)
        status = compare_hash_block(comparison, index, error);
    ls_worker_failure_note(&comparison->failure, status, error);
}

/* Of all weights; those of each parameter stay there. */
static int compare_hash_weights(struct ls_engine *engine, struct comparison *comparison,
                                uint64_t *hash, struct ls_error *error)
{
    size_t count = engine->store->set->count;
    const uint64_t *block = comparison->block;
    comparison->failure.error = error;
    ls_thread_pool_run(engine->pool, compare_hash_some, comparison);
    LS_TRY(atomic_load(&comparison->failure.status));
    for (size_t i = 0; i < count; i++) {
        size_t blocks = compare_blocks_of(&engine->store->slots[i]);
        comparison->parameter[i] = ls_hash(block, blocks * sizeof *block, i);
        block += blocks;
    }
    *hash = ls_hash(comparison->parameter, count * sizeof *comparison->parameter, 0);
    return 0;
}

size_t ls_compare_hashes(const struct ls_store *store)
{
    size_t hashes = store->set->count + (size_t)store->shards->ranks;
    for (size_t i = 0; i < store->set->count; i++)
        hashes += compare_blocks_of(&store->slots[i]);
    return hashes;
}

/* engine->hashes holds those of parameters, of blocks, and one of each rank. */
static int compare_begin(const struct ls_engine *engine, struct comparison *comparison,
                         struct ls_error *error)
{
    const struct ls_store *store = engine->store;
    *comparison = (struct comparison){.store = store, .parameter = engine->hashes};
    comparison->block = engine->hashes + store->set->count;
    for (size_t i = 0; i < store->set->count; i++)
        comparison->blocks += compare_blocks_of(&store->slots[i]);
    return ls_store_all_weights(store, &comparison->weights, error);
}

int ls_compare_hash(struct ls_engine *engine, uint64_t *hash, struct ls_error *error)
{
    struct comparison comparison;
    LS_TRY(compare_begin(engine, &comparison, error));
    return compare_hash_weights(engine, &comparison, hash, error);
}

/* ---- Which ranks differ ---------------------------------------------------------------------- */

/* Hashes of one thing by rank lie `stride` apart. */
static bool compare_all_same(const uint64_t *hashes, int ranks, size_t stride)
{
    for (int r = 1; r < ranks; r++)
        if (hashes[(size_t)r * stride] != hashes[0])
            return false;
    return true;
}

/* The hash that most ranks have; of several such, that of the lowest rank. */
static uint64_t compare_usual(const uint64_t *hashes, int ranks, size_t stride)
{
    int most = 0;
    uint64_t found = 0;
    for (int r = 0; r < ranks; r++) {
        int same = 0;
        for (int other = 0; other < ranks; other++)
            same += hashes[(size_t)other * stride] == hashes[(size_t)r * stride];
        if (same > most) {
            most = same;
            found = hashes[(size_t)r * stride];
        }
    }
    return found;
}

/* "rank 2 (node7), rank 5 (node9) and 3 more" */
static void compare_name_ranks(const uint64_t *hashes, int ranks, size_t stride,
                               const char (*hosts)[64], char *text, size_t size)
{
    uint64_t right = compare_usual(hashes, ranks, stride);
    int named = 0, more = 0;
    size_t length = 0;
    text[0] = '\0';
    for (int r = 0; r < ranks; r++) {
        if (hashes[(size_t)r * stride] == right)
            continue;
        if (named++ >= RANKS_NAMED || length >= size)
            more++;
        else
            length += (size_t)snprintf(text + length, size - length, "%srank %d (%.63s)",
                                       named > 1 ? ", " : "", r, hosts[r]);
    }
    if (more > 0 && length < size)
        snprintf(text + length, size - length, " and %d more", more);
}

/* All ranks know that something differs: which parameter first, and whose. */
static int compare_explain(const struct ls_engine *engine, const uint64_t *parameter,
                           int64_t iteration, uint64_t *all, char (*hosts)[64],
                           struct ls_error *error)
{
    struct ls_comm *comm = engine->comm;
    size_t count = engine->store->set->count, which = 0;
    char who[RANKS_NAMED * 100 + 40];
    LS_TRY(ls_comm_all_gather(comm, parameter, count * sizeof *parameter, all, error));
    LS_TRY(ls_comm_all_gather(comm, comm->transport->host, sizeof *hosts, hosts, error));
    ls_comm_common(comm, LOCKSTEP_DIFFERENT);
    while (which + 1 < count && compare_all_same(all + which, comm->size, count))
        which++;
    compare_name_ranks(all + which, comm->size, count, (const char(*)[64])hosts, who, sizeof who);
    if (iteration == LS_WEIGHTS_BEGIN)
        return ls_fail(
            error, LOCKSTEP_DIFFERENT, engine->store->set->items[which]->name,
            "each rank fills its weights by itself, and gets from rank 0 what comes from "
            "a file: the program or a library may be another one there, or its memory "
            "or a processor faulty",
            "before the first update: weights differ between ranks; most ranks disagree "
            "with %s",
            who);
    return ls_fail(error, LOCKSTEP_DIFFERENT, engine->store->set->items[which]->name,
                   "memory or a processor may be faulty there; go on from a snapshot, which was "
                   "compared before it was written",
                   "iteration %lld: weights differ between ranks; most ranks disagree with %s",
                   (long long)iteration, who);
}

int ls_compare_weights(struct ls_engine *engine, int64_t iteration, struct ls_error *error)
{
    struct ls_comm *comm = engine->comm;
    if (comm->size == 1) /* nothing to compare with */
        return 0;
    struct comparison comparison;
    LS_TRY(compare_begin(engine, &comparison, error));
    uint64_t mine, *all = comparison.block + comparison.blocks;
    LS_TRY(compare_hash_weights(engine, &comparison, &mine, error));
    LS_TRY(ls_comm_all_gather(comm, &mine, sizeof mine, all, error));
    if (compare_all_same(all, comm->size, 1))
        return 0;
    size_t count = engine->store->set->count, ranks = (size_t)comm->size;
    uint64_t *more = ls_alloc(ranks * count, sizeof *more);
    char(*hosts)[64] = ls_alloc(ranks, sizeof *hosts);
    int status = more == NULL || hosts == NULL ? ls_fail_memory(error, "a comparison") : 0;
    status = ls_comm_agree(comm, status, error);
    if (status == 0 && more != NULL && hosts != NULL)
        status = compare_explain(engine, comparison.parameter, iteration, more, hosts, error);
    ls_free(more);
    ls_free(hosts);
    return status;
}

/* ---- State per sample ------------------------------------------------------------------------ */

/* Hashes bytes [offset, offset + bytes) of what the next pass reads; *same: on all ranks, whose
 * hashes go to `all`. */
static int compare_state(const struct ls_sample_states *states, size_t offset, size_t bytes,
                         uint64_t *all, bool *same, struct ls_error *error)
{
    const unsigned char *old = states->copy[states->old];
    uint64_t mine;
    LS_TRY(states->memory->hash(old + offset, bytes, 0, &mine, error));
    LS_TRY(ls_comm_all_gather(states->comm, &mine, sizeof mine, all, error));
    *same = compare_all_same(all, states->comm->size, 1);
    return 0;
}

/* All ranks know that some state differs: which first, and whose. */
static int compare_explain_state(const struct ls_sample_states *states, int64_t iteration,
                                 uint64_t *all, char (*hosts)[64], struct ls_error *error)
{
    struct ls_comm *comm = states->comm;
    const struct ls_state_tensor *tensor = states->tensors;
    char who[RANKS_NAMED * 100 + 40];
    for (bool same;; tensor++) {
        LS_TRY(compare_state(states, tensor->offset, tensor->bytes, all, &same, error));
        if (!same || tensor + 1 == states->tensors + states->count)
            break;
    }
    LS_TRY(ls_comm_all_gather(comm, comm->transport->host, sizeof *hosts, hosts, error));
    compare_name_ranks(all, comm->size, 1, (const char(*)[64])hosts, who, sizeof who);
    return ls_comm_common(
        comm, ls_fail(error, LOCKSTEP_DIFFERENT, tensor->name,
                      "memory or a processor may be faulty there; go on from a snapshot, which was "
                      "compared before it was written",
                      "iteration %lld: the state per sample differs between ranks; most ranks "
                      "disagree with %s",
                      (long long)iteration, who));
}

int ls_compare_states(const struct ls_pass *pass, int64_t iteration, struct ls_error *error)
{
    const struct ls_sample_states *states = pass->states;
    const struct ls_engine *engine = pass->engine;
    struct ls_comm *comm = engine->comm;
    bool same;
    if (states == NULL || comm->size == 1)
        return 0;
    uint64_t *all = engine->hashes + ls_compare_hashes(engine->store) - comm->size;
    LS_TRY(compare_state(states, 0, states->bytes, all, &same, error));
    if (same)
        return 0;
    char(*hosts)[64] = ls_alloc((size_t)comm->size, sizeof *hosts);
    int status = hosts == NULL ? ls_fail_memory(error, "a comparison") : 0;
    status = ls_comm_agree(comm, status, error);
    if (status == 0 && hosts != NULL)
        status = compare_explain_state(states, iteration, all, hosts, error);
    ls_free(hosts);
    return status;
}
