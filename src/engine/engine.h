/* The engine: what the workers of a process share. They take micro-batches of an update
 * (engine/step.h) or of a test (engine/evaluation.h), run plans on them, and leave exact sums of
 * gradients and records of metrics.
 *
 * Workers take micro-batches as they get free; which worker ran what changes nothing, because
 * gradients are summed as integers and records are merged along a fixed tree over the numbers of
 * the micro-batches. Where a net has sync points the micro-batches of a batch go through it
 * together (engine/run.c).
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_ENGINE_H
#define LS_ENGINE_ENGINE_H

#include <stdint.h>

#include "device/device.h"
#include "engine/gather.h"
#include "engine/net.h"
#include "engine/store.h"
#include "engine/uploader.h"
#include "engine/thread_pool.h"

struct ls_comm;
struct ls_norms;
struct ls_optimizer;
struct ls_pages;
struct ls_range;
struct ls_reducer;
struct ls_work_queue;

struct ls_engine {
    const struct ls_device *device;
    struct ls_comm *comm; /* the ranks of the job, the owner's */
    struct ls_work_queue
        *work_queue; /* where ranks take micro-batches as they get free; else NULL */
    struct ls_thread_pool *pool;
    struct ls_pages *pages;     /* NULL: nothing is made ready ahead */
    struct ls_store *store;     /* NULL until ls_engine_create_store */
    struct ls_reducer *reducer; /* NULL: nothing is exchanged (ls_reducer_create) */
    struct ls_range *parts;     /* by rank: of an array that is being copied (engine/copies.c) */
    int workers;
    struct ls_stream **streams;    /* by worker: what its kernels run in */
    struct ls_uploader *uploaders; /* by worker; NULL: the device's memory is the host's */
    void **arenas;  /* by worker: its memory, which train and test nets share (engine/room.h) */
    void **stashed; /* by slot: what a micro-batch keeps across sync points, a part of that */
    struct ls_room room;            /* what this memory is large enough for */
    struct ls_gather gather;        /* what all workers multiply together */
    int generation;                 /* of this memory: bindings to an earlier one are stale */
    int64_t *micro_batches;         /* by worker: how many it has run */
    struct ls_optimizer *optimizer; /* NULL without training; so are norms */
    struct ls_norms *norms;
    /* (optional, for tests) Called by a worker before each micro-batch. */
    void (*before_micro_batch)(void *user, int worker, int micro_batch);
    void *user;
    /* Of the micro-batches of updates, the part that is audited (engine/audit.h), and the seed that
     * these are drawn by; before passes are made. */
    double audited_part;
    uint64_t audit_seed;
    uint64_t *hashes; /* of weights (engine/compare.c) */
};

/* Starts a pool of workers. `comm` outlives the engine. */
int ls_engine_create(const struct ls_device *device, struct ls_comm *comm, int workers,
                     struct ls_engine **engine, struct ls_error *error);
/* Gives up what is exchanged with other ranks, of which one may be lost. Before memory of the
 * device is freed: cards wait for their work then, which may wait for that rank for ever. */
void ls_engine_end_exchanges(struct ls_engine *engine);
void ls_engine_free(struct ls_engine *engine);
/* Makes the engine's store (see ls_store_create), and its reducer. */
int ls_engine_create_store(struct ls_engine *engine, struct ls_parameter_set *set,
                           struct ls_view_set *views, const struct ls_store_options *options,
                           struct ls_error *error);
/* Allocates arenas for the nets (only once) and binds them to the store. */
int ls_engine_bind(struct ls_engine *engine, struct ls_net *const *nets, size_t count,
                   struct ls_error *error);

/* Makes the engine's memory large enough for a plan, and binds it to the memory that there is then
 * (nothing to do where it is). Not while workers run. */
int ls_engine_make_room(struct ls_engine *engine, const struct ls_net *net,
                        const struct ls_plan *plan, struct ls_error *error);
int ls_engine_bind_plan(struct ls_engine *engine, struct ls_net *net, struct ls_net_plan *plan,
                        struct ls_error *error);

#endif
