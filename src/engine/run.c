/* Running micro-batches on all workers. See engine/run.h.
 *
 * Where no micro-batch waits for another, workers take them one by one as they get free, each
 * forward and backward in one go. Else the micro-batches of a batch go through the net
 * together, as a wave: each worker has its own of them (every W-th) and takes all through a
 * segment; then all workers meet, share the work of merging what was left there, and meet
 * again. The same way they share the work of gathered steps. The scheduler decides which worker
 * runs which micro-batch (engine/scheduler.h).
 *
 * All of this is about the micro-batches of this rank; at sync points the ranks of a job wait for
 * each other. With a work queue, ranks take the micro-batches of a wave as they get free, and each
 * keeps those that it took for all segments.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/run.h"

#include "base/mutant.h"
#include "base/thread.h"
#include "engine/audit.h"
#include "engine/gather.h"
#include "engine/micro_batch.h"
#include "engine/normalizers.h"
#include "engine/plans.h"
#include "engine/profiler.h"
#include "engine/read.h"
#include "engine/records.h"
#include "engine/reducer.h"
#include "engine/work_queue.h"
#include "transport/comm.h"

/* For a mutant: figures of tests added up as micro-batches are done, all in the last one's. */
static inline void run_add_on_arrival(struct ls_pass *pass, size_t unit)
{
    static size_t last;
    pthread_mutex_lock(&pass->lock);
    double *from = ls_pass_record(pass, last), *to = ls_pass_record(pass, unit);
    for (size_t i = 0; last < pass->unit_count && last != unit && i < pass->record_size; i++) {
        to[i] += from[i];
        from[i] = 0;
    }
    last = unit;
    pthread_mutex_unlock(&pass->lock);
}

/* Runs a segment (or all: LS_RUN_ALL) of a unit's plan in the memory of a slot. A unit whose kernel
 * failed still goes through all segments, for its worker must reach the same barriers as the
 * others, but no more of it is computed. */
static void run_unit(struct ls_pass *pass, int worker, size_t unit, int slot, int segment)
{
    struct ls_audit_listener listener;
    struct ls_run run = ls_micro_batch_prepare(pass, worker, unit);
    run.inputs = ls_read_inputs(pass, unit);
    run.making = ls_read_making(pass, unit);
    if (pass->audit != NULL)
        ls_audit_listen(pass->audit, worker, unit, &listener, &run);
    if (LS_MUTANT(FORGETFUL) && worker != 0 && pass->engine->micro_batches[worker] % 3 == 0)
        return; /* workers lose a micro-batch now and then */
    struct ls_error *error = ls_worker_error();
    struct ls_unit *what = &pass->units[unit];
    if (pass->engine->uploaders != NULL && pass->engine->uploaders[worker].unit == SIZE_MAX)
        pass->engine->uploaders[worker].unit = unit;
    what->kept = run.record != NULL;
    if (!what->broken &&
        ls_micro_batch_compute(pass, what->plan, slot, segment, &run, error) != 0) {
        what->broken = true;
        ls_pass_note_broken(pass, unit, error);
    }
    if (LS_MUTANT(ARRIVAL) && !pass->training)
        run_add_on_arrival(pass, unit);
}

/* ---- Freely ---------------------------------------------------------------------------------- */

static void run_freely(void *argument, int worker)
{
    struct ls_pass *pass = argument;
    size_t unit;
    while ((unit = ls_scheduler_take(&pass->scheduler)) != SIZE_MAX) {
        if (ls_micro_batch_take(pass, worker, unit))
            run_unit(pass, worker, unit, worker, LS_RUN_ALL);
        ls_micro_batch_let_go(pass, worker, unit);
    }
    ls_micro_batch_wait(pass, worker);
}

/* ---- Rounds of the work queue ---------------------------------------------------------------- */

static void run_want(void *user, size_t unit, bool next_update)
{
    const struct ls_pass *pass = user;
    if (next_update)
        ls_prefetcher_request(pass->prefetcher, pass->units[0].update + 1, (int)unit);
    else
        ls_prefetcher_request(pass->prefetcher, pass->units[unit].update, pass->units[unit].index);
}

/* Once all units are known that this rank runs, gradients can leave with the last of them. */
static void run_all_known(void *user)
{
    const struct ls_pass *pass = user;
    if (pass->training && pass->scheduler.round_end == pass->unit_count)
        ls_reducer_expect(pass->engine->reducer, pass->scheduler.granted);
}

static void run_open_round(struct ls_pass *pass, const struct ls_wave *round)
{
    const struct ls_scheduler_listener listener = {run_want, run_all_known, pass};
    struct ls_error *error = ls_worker_error();
    if (ls_scheduler_open_round(&pass->scheduler, round, &listener, error) != 0)
        ls_pass_note_failure(pass, round->begin, error);
}

/* After the last unit, if nothing failed: all ranks learn which rank ran which unit. */
static void run_end_round(struct ls_pass *pass, size_t begin)
{
    struct ls_error *error = ls_worker_error();
    if (pass->failed_unit == SIZE_MAX &&
        ls_work_queue_end(pass->engine->work_queue, pass->owners, error) != 0)
        ls_pass_note_failure(pass, begin, error);
}

/* Whether every update is one round: what it has of the first units is known beforehand then. */
static bool run_has_one_round(const struct ls_pass *pass)
{
    bool by_wave = pass->units[0].plan->plan->segments > 1 || pass->net->may_gather;
    return !by_wave || pass->net->counts_on_the_way || pass->net->batching.iter_size == 1;
}

/* The next unit of a round, and its data; SIZE_MAX: there are none left, or some failed. */
static size_t run_take_granted(struct ls_pass *pass, int worker)
{
    struct ls_error *error = ls_worker_error();
    struct ls_wave next = {pass->scheduler.round_end, pass->scheduler.round_end};
    size_t unit;
    if (ls_scheduler_take_granted(&pass->scheduler, &unit, error) != 0) {
        ls_pass_note_failure(pass, next.begin - 1, error);
        return SIZE_MAX;
    }
    if (unit != SIZE_MAX)
        return ls_micro_batch_take(pass, worker, unit) ? unit : SIZE_MAX;
    for (size_t i = 0; i < pass->wave_count; i++)
        if (pass->waves[i].begin == next.begin)
            next.end = pass->waves[i].end;
    bool last = next.begin == pass->unit_count;
    ls_scheduler_look_ahead(&pass->scheduler, &next,
                            last && pass->training && run_has_one_round(pass));
    return SIZE_MAX;
}

static void run_by_queue(void *argument, int worker)
{
    struct ls_pass *pass = argument;
    size_t unit;
    while ((unit = run_take_granted(pass, worker)) != SIZE_MAX) {
        run_unit(pass, worker, unit, worker, LS_RUN_ALL);
        ls_micro_batch_let_go(pass, worker, unit);
    }
    ls_micro_batch_wait(pass, worker);
}

/* All units in one round. But where products may be gathered, a round for each batch: whether that
 * pays depends on a rank's memory and workers, a rank that gathers runs batch by batch, and all
 * ranks must begin and end the same rounds. */
static void run_rounds(struct ls_pass *pass)
{
    const struct ls_wave all = {.begin = 0, .end = pass->unit_count};
    const struct ls_wave *rounds = pass->net->may_gather ? pass->waves : &all;
    size_t count = pass->net->may_gather ? pass->wave_count : 1;
    for (size_t i = 0; i < count && pass->failed_unit == SIZE_MAX; i++) {
        run_open_round(pass, &rounds[i]);
        if (pass->scheduler.open)
            ls_thread_pool_run(pass->engine->pool, run_by_queue, pass);
        run_end_round(pass, rounds[i].begin);
    }
}

/* ---- Waves ----------------------------------------------------------------------------------- */

/* Whether all that meets at a sync point is in one stream of a device, whose order is enough. */
static bool run_is_one_stream(const struct ls_pass *pass, int sync)
{
    return pass->engine->uploaders != NULL && pass->engine->workers == 1 &&
           pass->engine->comm->size == 1 &&
           ls_net_graph(pass->net)->syncs[sync].kind != LS_SYNC_COUNT;
}

/* Waits for what a worker has given to its stream, and brings the host what it needs of that. */
static void run_await_segment(struct ls_pass *pass, const struct ls_wave *wave, int sync,
                              int worker)
{
    const bool counts = ls_net_graph(pass->net)->syncs[sync].kind == LS_SYNC_COUNT;
    if (pass->engine->uploaders == NULL || run_is_one_stream(pass, sync))
        return;
    if (!LS_MUTANT(IMPATIENT))
        ls_micro_batch_wait(pass, worker);
    for (size_t unit = ls_scheduler_next(&pass->scheduler, wave, wave->begin, worker);
         counts && unit < wave->end;
         unit = ls_scheduler_next(&pass->scheduler, wave, unit + 1, worker)) {
        struct ls_error *error = ls_worker_error();
        if (ls_records_fetch_unit(pass, unit, error) != 0)
            ls_pass_note_broken(pass, unit, error);
    }
}

/* Exchanges the partial results of a sync point with the other ranks. */
static void run_share(struct ls_pass *pass, const struct ls_wave *wave, int sync)
{
    struct ls_error *error = ls_worker_error();
    struct ls_comm *comm = pass->engine->comm;
    const struct ls_sync *what = &ls_net_graph(pass->net)->syncs[sync];
    int status = what->kind != LS_SYNC_COUNT
                     ? ls_exchange_share(pass->exchange, comm, sync, wave->begin, wave->end,
                                         pass->owners, error)
                     : ls_normalizers_share_count(pass, sync, error);
    if (status != 0)
        ls_pass_note_failure(pass, wave->begin, error);
}

/* Merges the partial results of a sync point: a worker's part of the channels, or the count. */
static void run_merge(struct ls_pass *pass, const struct ls_wave *wave, int sync, int worker)
{
    struct ls_profiler *profiler = ls_thread_pool_profiler(pass->engine->pool);
    uint64_t start = ls_profiler_start(profiler);
    if (ls_net_graph(pass->net)->syncs[sync].kind != LS_SYNC_COUNT) {
        struct ls_error *error = ls_worker_error();
        struct ls_stream *stream =
            run_is_one_stream(pass, sync) ? pass->engine->streams[worker] : NULL;
        if (ls_exchange_merge(pass->exchange, stream, sync, wave->begin, wave->end, worker,
                              error) != 0)
            ls_pass_note_broken(pass, wave->begin, error);
    } else if (worker == 0) {
        ls_normalizers_merge_count(pass, sync);
    }
    if (profiler != NULL)
        profiler->worker[worker].merging += ls_nanoseconds() - start;
}

/* All workers of all ranks wait for each other at the sync point behind a segment, and merge what
 * it is for; false: the exchange with other ranks failed. */
static bool run_meet(struct ls_pass *pass, const struct ls_wave *wave, int segment, int worker)
{
    struct ls_thread_pool *pool = pass->engine->pool;
    const struct ls_plan *plan = pass->units[wave->begin].plan->plan;
    int sync = plan->steps[plan->segment[segment + 1] - 1].prepared.op->attr.sync;
    run_await_segment(pass, wave, sync, worker);
    ls_thread_pool_barrier(pool);
    if (pass->engine->comm->size > 1) { /* else one barrier does */
        if (worker == 0)
            run_share(pass, wave, sync);
        ls_thread_pool_barrier(pool);
        if (pass->failed_unit != SIZE_MAX)
            return false;
    }
    run_merge(pass, wave, sync, worker);
    ls_thread_pool_barrier(pool);
    return true;
}

/* Takes a worker's units through a segment, forwards and backwards by turns: what the last of them
 * has left is still in the caches when the next segment begins with it. */
static void run_segment(struct ls_pass *pass, const struct ls_wave *wave, int segment, int worker)
{
    const struct ls_scheduler *scheduler = &pass->scheduler;
    const bool back = segment % 2 == 1;
    for (size_t unit = back ? ls_scheduler_before(scheduler, wave, wave->end, worker)
                            : ls_scheduler_next(scheduler, wave, wave->begin, worker);
         unit < wave->end; unit = back ? ls_scheduler_before(scheduler, wave, unit, worker)
                                       : ls_scheduler_next(scheduler, wave, unit + 1, worker))
        run_unit(pass, worker, unit, pass->units[unit].slot, segment);
}

/* Whether a wave is one micro-batch whose sync points concern no other, on a device that is not to
 * be waited for between them: all of it is run in one go, which a recording can hold. What is
 * merged of one part is the same either way. */
static bool run_is_alone(const struct ls_pass *pass, const struct ls_wave *wave)
{
    const struct ls_engine *engine = pass->engine;
    const struct ls_plan *plan = pass->units[wave->begin].plan->plan;
    bool alone = engine->device->recordings != NULL && wave->end - wave->begin == 1 &&
                 engine->comm->size == 1 && engine->work_queue == NULL && pass->audit == NULL &&
                 !pass->net->counts_on_the_way;
    for (int segment = 0; alone && segment < (int)plan->segments; segment++)
        alone = !ls_gather_is(plan, segment);
    return alone;
}

/* Runs all segments of a worker's units; false: an exchange with other ranks failed. With a work
 * queue the first segment has been run. */
static bool run_segments(struct ls_pass *pass, const struct ls_wave *wave, int worker)
{
    const struct ls_plan *plan = pass->units[wave->begin].plan->plan;
    int segments = (int)plan->segments;
    for (int segment = 0; segment < segments; segment++) {
        if (ls_gather_is(plan, segment)) {
            ls_gather_run(pass, wave, segment, worker);
            continue;
        }
        bool done = segment == 0 && pass->engine->work_queue != NULL;
        if (!done)
            run_segment(pass, wave, segment, worker);
        bool cut = segment + 1 < segments && plan->steps[plan->segment[segment + 1] - 1].cut;
        if (cut && !run_meet(pass, wave, segment, worker))
            return false;
    }
    return true;
}

/* With a work queue: takes units, one for each slot of the worker as long as there are any (the
 * slots are enough for a rank that gets all units), and runs their first segment. */
static void run_take_wave(struct ls_pass *pass, const struct ls_wave *wave, int worker)
{
    struct ls_thread_pool *pool = pass->engine->pool;
    int workers = pass->engine->workers, slots = ls_plans_slots(pass->net, workers);
    bool run = !ls_gather_is(pass->units[wave->begin].plan->plan, 0);
    if (worker == 0) {
        for (size_t unit = wave->begin; unit < wave->end; unit++)
            pass->units[unit].slot = -1;
        run_open_round(pass, wave);
    }
    ls_thread_pool_barrier(pool);
    for (int slot = worker; slot < slots && pass->scheduler.open; slot += workers) {
        size_t unit = run_take_granted(pass, worker);
        if (unit == SIZE_MAX)
            break;
        pass->units[unit].slot = slot;
        if (run)
            run_unit(pass, worker, unit, slot, 0);
    }
    ls_thread_pool_barrier(pool);
    if (worker == 0)
        run_end_round(pass, wave->begin);
}

/* A worker's part of a wave; false: data could not be read, or an exchange with other ranks failed.
 * All workers read `failed_unit` behind one barrier, and it is not set between that and the next
 * one (what a kernel could not compute is noted elsewhere): so they take the same way. */
static bool run_wave(struct ls_pass *pass, const struct ls_wave *wave, int worker)
{
    struct ls_thread_pool *pool = pass->engine->pool;
    if (pass->engine->work_queue != NULL)
        run_take_wave(pass, wave, worker);
    else
        for (size_t unit = ls_scheduler_next(&pass->scheduler, wave, wave->begin, worker);
             unit < wave->end; unit = ls_scheduler_next(&pass->scheduler, wave, unit + 1, worker))
            ls_micro_batch_take(pass, worker, unit);
    ls_thread_pool_barrier(pool);
    bool done = pass->failed_unit == SIZE_MAX;
    if (done && run_is_alone(pass, wave))
        run_segment(pass, wave, LS_RUN_ALL, worker);
    else if (done)
        done = run_segments(pass, wave, worker);
    ls_micro_batch_wait(pass, worker);
    for (size_t unit = ls_scheduler_next(&pass->scheduler, wave, wave->begin, worker);
         unit < wave->end; unit = ls_scheduler_next(&pass->scheduler, wave, unit + 1, worker))
        ls_micro_batch_release(pass, worker, unit);
    /* The next wave overwrites what was merged; all have read it now. */
    ls_thread_pool_barrier(pool);
    return done;
}

static void run_waves(void *argument, int worker)
{
    struct ls_pass *pass = argument;
    for (size_t i = 0; i < pass->wave_count; i++)
        if (!run_wave(pass, &pass->waves[i], worker))
            return;
}

void ls_run_pass(struct ls_pass *pass)
{
    bool together = pass->unit_count > 0 && pass->units[0].plan->plan->segments > 1;
    if (together || pass->engine->work_queue == NULL)
        ls_thread_pool_run(pass->engine->pool, together ? run_waves : run_freely, pass);
    else
        run_rounds(pass);
    struct ls_error *error = ls_worker_error();
    if (ls_records_fetch(pass, error) != 0)
        ls_pass_note_broken(pass, 0, error);
}
