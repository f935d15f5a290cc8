/* The engine: workers take micro-batches of an update (or of a test), run plans on them, and leave
 * exact sums of gradients and records of metrics.
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
#include "engine/thread_pool.h"

struct ls_comm;
struct ls_range;
struct ls_reducer;
struct ls_work_queue;

struct ls_engine {
    const struct ls_device *device;
    struct ls_comm *comm; /* the ranks of the job, the owner's */
    struct ls_work_queue
        *work_queue; /* where ranks take micro-batches as they get free; else NULL */
    struct ls_thread_pool *pool;
    struct ls_store *store;     /* NULL until ls_engine_create_store */
    struct ls_reducer *reducer; /* NULL: nothing is exchanged (ls_reducer_create) */
    struct ls_range *parts;     /* by rank: of an array that is being copied (engine/copies.c) */
    int workers;
    struct ls_stream **streams; /* by worker: what its kernels run in */
    void **arenas;  /* by worker: its memory, which train and test nets share (engine/room.h) */
    void **stashed; /* by slot: what a micro-batch keeps across sync points, a part of that */
    struct ls_room room;     /* what this memory is large enough for */
    struct ls_gather gather; /* what all workers multiply together */
    int generation;          /* of this memory: bindings to an earlier one are stale */
    int64_t *micro_batches;  /* by worker: how many it has run */
    /* Made by the first update (engine/update.c). */
    struct ls_update_memory *update;
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

/* What came of the micro-batches of one or many batches. */
struct ls_totals {
    double *record;      /* merged; graph->record_size doubles */
    double *normalizers; /* by index: the divisors that were used */
    int64_t samples;
};

/* How many micro-batches an update has at most. */
int64_t ls_engine_update_micro_batches(const struct ls_net *net);

/* Batches whose micro-batches are one job: those of an update, or some of a test. */
int64_t ls_engine_batches_at_once(const struct ls_net *net);

/* Memory for the records of a net's passes; one per net, reused. */
struct ls_pass;
int ls_pass_create(struct ls_engine *engine, struct ls_net *net, struct ls_pass **pass,
                   struct ls_error *error);
void ls_pass_free(struct ls_pass *pass);

/* Forward and backward of update `update`: afterwards the store's sums hold the gradient of the
 * loss over the whole update. An update whose sums did not fit is repeated; *repeated says how
 * often. A loss or gradient that is not finite is LOCKSTEP_DIVERGED, naming layer and samples
 * (`iteration` is for that message). Data that cannot be read are LOCKSTEP_DATA, on all ranks: the
 * weights and all that belongs to them are those of the update before. */
int ls_engine_update(struct ls_engine *engine, struct ls_pass *pass,
                     struct ls_prefetcher *prefetcher, int64_t update, int64_t iteration,
                     struct ls_totals *totals, int *repeated, struct ls_error *error);

/* What the micro-batches of the update have read of a data set: digests of records (data/digest.h)
 * at ordinals [begin, end), by a rank of the job. In their order they are all ordinals. */
struct ls_read {
    int64_t begin, end;
    int rank;
    struct ls_digests digests;
};
/* Doubles for that behind the record of each micro-batch, which ranks exchange with it. */
size_t ls_pass_read_size(const struct ls_net *net);
size_t ls_pass_units(const struct ls_pass *pass);
void ls_pass_read(const struct ls_pass *pass, size_t unit, int dataset, struct ls_read *read);
/* What the last test has read of a data set in all, and of how many samples of all data sets it has
 * skipped the records, as they are bad. */
const struct ls_digest *ls_pass_tested(const struct ls_pass *pass, int dataset);
int64_t ls_pass_skipped(const struct ls_pass *pass);

/* After the weights of that update have changed: the moving averages of its batch statistics
 * change, too. */
int ls_engine_advance_averages(struct ls_pass *pass, struct ls_error *error);

/* Forward of batches [0, batches) of a test net, beginning with its first sample. `stop` is asked
 * between groups of batches and ends the test early with LOCKSTEP_STOPPED. */
int ls_engine_test(struct ls_pass *pass, struct ls_prefetcher *prefetcher, int64_t batches,
                   int (*stop)(void *user), void *user, struct ls_totals *totals,
                   struct ls_error *error);

/* Figure `i` of a metric. */
double ls_metric_figure(const struct ls_metric *metric, const double *record, int i);
/* The weighted sum of all losses of a net. */
double ls_totals_loss(const struct ls_graph *graph, const double *record);

/* One update of the weights from the sums (engine/update.c). */
struct ls_update_rule;
struct ls_update_request {
    /* The rule for a parameter (rates and decays differ). */
    void (*rule)(void *user, const struct ls_parameter *parameter, struct ls_update_rule *rule);
    void *user;
};
int ls_engine_apply_update(struct ls_engine *engine, const struct ls_update_request *request,
                           int *not_finite, struct ls_error *error);
/* Frees what updates have made. */
void ls_engine_free_update(struct ls_engine *engine);
/* The L2 norm of the gradient over all trained parameters; the same on any number of workers. */
int ls_engine_gradient_norm(struct ls_engine *engine, double *norm, struct ls_error *error);
/* Sum over trained parameters of factor(parameter) x (sum of w^2, or of |w|). */
int ls_engine_penalty(struct ls_engine *engine, bool l1,
                      double (*factor)(void *user, const struct ls_parameter *parameter),
                      void *user, double *penalty, struct ls_error *error);

/* In place of an iteration: the weights that a training begins with. */
enum { LS_WEIGHTS_BEGIN = -1 };
/* A hash of all weights and averages, the same on any number of workers and ranks
 * (engine/compare.c). Nothing is allocated. */
int ls_engine_hash_weights(struct ls_engine *engine, uint64_t *hash, struct ls_error *error);
size_t ls_engine_hash_count(const struct ls_store *store); /* of engine->hashes, uint64_t */
/* Whether all ranks of the job have the same weights; LOCKSTEP_DIFFERENT names the first parameter
 * that is not the same, and ranks. All call it (engine/compare.c); alone there is nothing to do. */
int ls_engine_compare_weights(struct ls_engine *engine, int64_t iteration, struct ls_error *error);

#endif
