/* Running micro-batches on all workers.
 *
 * Where no micro-batch waits for another, workers take them one by one as they get free, each
 * forward and backward in one go. Else the micro-batches of a batch go through the net
 * together, as a wave: each worker has its own of them (every W-th) and takes all through a
 * segment; then all workers run_meet, share the work of merging what was left there, and meet
 * again. The same way they share the work of gathered steps.
 *
 * All of this is about the micro-batches of this rank; at sync points the ranks of a job wait for
 * each other. Micro-batches are shared out to ranks, or they take them as they get free
 * (engine/work_queue.h); in a wave, as far as the first segment.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/mutant.h"
#include "engine/audit.h"
#include "engine/gather.h"
#include "engine/pass.h"
#include "engine/profiler.h"
#include "engine/work_queue.h"
#include "engine/reducer.h"
#include "transport/comm.h"
#ifdef LS_FAULTY_CORE
#include LS_FAULTY_CORE
#endif

/* For a mutant: the ordinal of the sample that a run began with, which may be a resume. */
static int64_t begun;

static inline void run_note_beginning(const struct ls_pass *pass)
{
    int64_t run = 0;
    for (int w = 0; w < pass->engine->workers; w++)
        run += pass->engine->micro_batches[w];
    begun = run == 0 ? pass->units[0].range.ordinal : begun;
}

struct ls_context ls_pass_context(struct ls_pass *pass, int worker, size_t unit,
                                  struct ls_gradients *gradients)
{
    const struct ls_batch *range = &pass->units[unit].range;
    const struct ls_store *store = pass->engine->store;
    *gradients = (struct ls_gradients){
        .contributor = {.sums = store->sums, .worker = worker, .micro_batch = (int)unit},
        .recorder = {.factors = store->factors, .micro_batch = (int)unit}};
    struct ls_context context = {.stream = pass->engine->streams[worker],
                                 .first_ordinal = range->ordinal - (LS_MUTANT(ORDINAL) ? begun : 0),
                                 .samples = range->count,
                                 .normalizers = pass->normalizers,
                                 .partials = ls_pass_record(pass, unit),
                                 .contribute = pass->training ? ls_sums_contribute : NULL,
                                 .sums = &gradients->contributor,
                                 .record = pass->training ? ls_factors_record : NULL,
                                 .recorder = &gradients->recorder};
    ls_exchange_context(pass->exchange, worker, unit, NULL, &context);
    return context;
}

int ls_pass_compute(const struct ls_pass *pass, int worker, const struct ls_net_plan *plan,
                    int slot, int segment, float *const *inputs, const struct ls_context *context,
                    struct ls_error *error)
{
#ifdef LS_FAULTY_CORE /* cmake/mutants.cmake: one core computes wrongly now and then */
    struct ls_fault fault;
    ls_fault_begin(&fault, pass->engine->comm->rank, worker, segment, context);
    int status = ls_net_run(plan, slot, segment, inputs, &fault.context, error);
    ls_fault_end(&fault);
    return status;
#else
    (void)pass, (void)worker;
    return ls_net_run(plan, slot, segment, inputs, context, error);
#endif
}

/* Waits for the unit's data. Bad data are told when all units have run (engine/read.c). */
static bool run_take_item(struct ls_pass *pass, int worker, size_t unit)
{
    struct ls_error *error = ls_pass_error();
    struct ls_engine *engine = pass->engine;
    const struct ls_unit *what = &pass->units[unit];
    if (engine->before_micro_batch != NULL)
        engine->before_micro_batch(engine->user, worker, (int)unit);
    pass->items[unit] = NULL;
    struct ls_profiler *profiler = ls_thread_pool_profiler(engine->pool);
    uint64_t start = ls_profiler_start(profiler);
    int status =
        ls_prefetcher_take(pass->prefetcher, what->update, what->index, &pass->items[unit], error);
    if (profiler != NULL)
        profiler->worker[worker].data += ls_nanoseconds() - start;
    if (status != 0)
        return ls_pass_note_bad_data(pass, unit, error);
    ls_pass_note_read(pass, unit, pass->items[unit]);
    return true;
}

static void run_release_item(struct ls_pass *pass, int worker, size_t unit)
{
    if (pass->items[unit] == NULL)
        return;
    ls_prefetcher_release(pass->prefetcher, pass->items[unit]);
    pass->items[unit] = NULL;
    pass->engine->micro_batches[worker]++;
}

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
 * failed comes to all meetings, but is computed no further. */
static void run_unit(struct ls_pass *pass, int worker, size_t unit, int slot, int segment)
{
    struct ls_gradients gradients;
    struct ls_audit_listener listener;
    struct ls_context context = ls_pass_context(pass, worker, unit, &gradients);
    if (pass->audit != NULL)
        ls_audit_listen(pass->audit, worker, unit, &listener, &context);
    if (LS_MUTANT(FORGETFUL) && worker != 0 && pass->engine->micro_batches[worker] % 3 == 0)
        return; /* workers lose a micro-batch now and then */
    struct ls_error *error = ls_pass_error();
    struct ls_unit *what = &pass->units[unit];
    if (!what->broken && ls_pass_compute(pass, worker, what->plan, slot, segment,
                                         ls_pass_inputs(pass, unit), &context, error) != 0) {
        what->broken = true;
        ls_pass_note_broken(pass, unit, error);
    }
    if (LS_MUTANT(ARRIVAL) && !pass->training)
        run_add_on_arrival(pass, unit);
}

/* The unit that is taken as number `turn` of this rank's. Micro-batches of a batch differ by a
 * sample; in the order 12, 13, 12, 13 ... one of two workers would have all the larger ones. So of
 * each run of units, two for every worker, those with the most samples come first. (Short runs,
 * because data are decoded in order.) */
static size_t run_unit_of(const struct ls_pass *pass, size_t turn)
{
    size_t run = 2 * (size_t)pass->engine->workers, begin = turn / run * run, left = turn - begin;
    size_t end = begin + run < pass->own_count ? begin + run : pass->own_count;
    int64_t most = 0;
    for (size_t i = begin; i < end; i++) {
        int64_t samples = pass->units[pass->own[i]].range.count;
        most = samples > most ? samples : most;
    }
    for (int larger = 1; larger >= 0; larger--)
        for (size_t i = begin; i < end; i++)
            if ((pass->units[pass->own[i]].range.count == most) == larger && left-- == 0)
                return pass->own[i];
    return pass->own[turn];
}

static void run_freely(void *argument, int worker)
{
    struct ls_pass *pass = argument;
    for (;;) {
        size_t turn = atomic_fetch_add_explicit(&pass->next, 1, memory_order_relaxed);
        if (turn >= pass->own_count)
            return;
        size_t unit = run_unit_of(pass, turn);
        if (run_take_item(pass, worker, unit))
            run_unit(pass, worker, unit, worker, LS_RUN_ALL);
        run_release_item(pass, worker, unit);
    }
}

/* ---- The work queue -------------------------------------------------------------------------- */

static void run_want(const struct ls_pass *pass, size_t unit)
{
    ls_prefetcher_request(pass->prefetcher, pass->units[unit].update, pass->units[unit].index);
}

/* Once all units are known that this rank runs, gradients can leave with the last of them. */
static void run_granted(void *user, size_t unit)
{
    struct ls_pass *pass = user;
    if (unit != SIZE_MAX) {
        pass->granted++;
        run_want(pass, unit);
    } else if (pass->training && pass->round_end == pass->unit_count) {
        ls_reducer_expect(pass->engine->reducer, pass->granted);
    }
}

/* Whether every update is one round: what it has of the first units is known beforehand then. */
static bool run_has_one_round(const struct ls_pass *pass)
{
    bool by_wave = pass->units[0].plan->plan->segments > 1 || pass->net->may_gather;
    return !by_wave || pass->net->counts_on_the_way || pass->net->batching.iter_size == 1;
}

/* What this rank will be given in the next round, which begins with this unit, or in the next
 * update, is decoded from now on; nothing else, for what is not taken stays in its memory. */
static void run_look_ahead(struct ls_pass *pass, size_t begin)
{
    size_t first, count, end = begin;
    ls_work_queue_given(pass->engine->work_queue, &first, &count);
    for (size_t i = 0; i < pass->wave_count; i++)
        if (pass->waves[i].begin == begin)
            end = pass->waves[i].end;
    for (size_t i = first; i < first + count; i++)
        if (begin + i < end)
            run_want(pass, begin + i);
        else if (begin == pass->unit_count && pass->training && run_has_one_round(pass))
            ls_prefetcher_request(pass->prefetcher, pass->units[0].update + 1, (int)i);
}

static void run_begin_round(struct ls_pass *pass, size_t begin, size_t end)
{
    struct ls_error *error = ls_pass_error();
    pass->round_end = end;
    pass->round =
        ls_work_queue_begin(pass->engine->work_queue, begin, end, run_granted, pass, error) == 0;
    if (!pass->round)
        ls_pass_note_failure(pass, begin, error);
}

/* After the last unit, if all went well. */
static void run_end_round(struct ls_pass *pass, size_t begin)
{
    struct ls_error *error = ls_pass_error();
    if (pass->failed_unit == SIZE_MAX &&
        ls_work_queue_end(pass->engine->work_queue, pass->owners, error) != 0)
        ls_pass_note_failure(pass, begin, error);
}

/* The next unit of a round up to unit `end`, and its data; SIZE_MAX: there are none left, or some
 * failed. */
static size_t run_take_granted(struct ls_pass *pass, size_t end, int worker)
{
    struct ls_error *error = ls_pass_error();
    size_t unit;
    if (ls_work_queue_take(pass->engine->work_queue, &unit, error) != 0) {
        ls_pass_note_failure(pass, end - 1, error);
        return SIZE_MAX;
    }
    if (unit == SIZE_MAX) {
        run_look_ahead(pass, end);
        return SIZE_MAX;
    }
    return run_take_item(pass, worker, unit) ? unit : SIZE_MAX;
}

static void run_by_queue(void *argument, int worker)
{
    struct ls_pass *pass = argument;
    size_t unit;
    while ((unit = run_take_granted(pass, pass->round_end, worker)) != SIZE_MAX) {
        run_unit(pass, worker, unit, worker, LS_RUN_ALL);
        run_release_item(pass, worker, unit);
    }
}

/* All units in one round; or, where another rank may gather products and so go through the net
 * batch by batch, in a round for each batch as there: ranks must begin and end the same rounds,
 * and what pays for one depends on its memory and its workers. */
static void run_rounds(struct ls_pass *pass)
{
    const struct ls_wave all = {.begin = 0, .end = pass->unit_count};
    const struct ls_wave *rounds = pass->net->may_gather ? pass->waves : &all;
    size_t count = pass->net->may_gather ? pass->wave_count : 1;
    for (size_t i = 0; i < count && pass->failed_unit == SIZE_MAX; i++) {
        run_begin_round(pass, rounds[i].begin, rounds[i].end);
        if (pass->round)
            ls_thread_pool_run(pass->engine->pool, run_by_queue, pass);
        run_end_round(pass, rounds[i].begin);
    }
}

/* ---- Waves ----------------------------------------------------------------------------------- */

/* Gets what other ranks have left at a sync point. */
static void run_share(struct ls_pass *pass, const struct ls_wave *wave, int sync)
{
    struct ls_error *error = ls_pass_error();
    struct ls_comm *comm = pass->engine->comm;
    const struct ls_sync *what = &ls_net_graph(pass->net)->syncs[sync];
    int status = what->kind != LS_SYNC_COUNT
                     ? ls_exchange_share(pass->exchange, comm, sync, wave->begin, wave->end,
                                         pass->owners, error)
                     : ls_pass_share_count(pass, sync, error);
    if (status != 0)
        ls_pass_note_failure(pass, wave->begin, error);
}

/* Merges what the sync point is for. */
static void run_merge(struct ls_pass *pass, const struct ls_wave *wave, int sync, int worker)
{
    struct ls_profiler *profiler = ls_thread_pool_profiler(pass->engine->pool);
    uint64_t start = ls_profiler_start(profiler);
    if (ls_net_graph(pass->net)->syncs[sync].kind != LS_SYNC_COUNT)
        ls_exchange_merge(pass->exchange, sync, wave->begin, wave->end, worker);
    else if (worker == 0)
        ls_pass_merge_count(pass, sync);
    if (profiler != NULL)
        profiler->worker[worker].merging += ls_nanoseconds() - start;
}

/* All workers, of all ranks, meet at the sync point behind a segment; false: other ranks are lost.
 */
static bool run_meet(struct ls_pass *pass, const struct ls_wave *wave, int segment, int worker)
{
    struct ls_thread_pool *pool = pass->engine->pool;
    const struct ls_plan *plan = pass->units[wave->begin].plan->plan;
    int sync = plan->steps[plan->segment[segment + 1] - 1].prepared.op->attr.sync;
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

/* The worker's next unit of a wave, `unit` itself or a later one. */
static size_t run_own_unit(const struct ls_pass *pass, const struct ls_wave *wave, size_t unit,
                           int worker)
{
    int workers = pass->engine->workers;
    while (unit < wave->end &&
           (pass->units[unit].slot < 0 || pass->units[unit].slot % workers != worker))
        unit++;
    return unit;
}

/* A worker's units through all segments; false: other ranks are lost. With a work queue they are
 * through the first one. */
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
        for (size_t unit = run_own_unit(pass, wave, wave->begin, worker); unit < wave->end && !done;
             unit = run_own_unit(pass, wave, unit + 1, worker))
            run_unit(pass, worker, unit, pass->units[unit].slot, segment);
        bool cut = segment + 1 < segments && plan->steps[plan->segment[segment + 1] - 1].cut;
        if (cut && !run_meet(pass, wave, segment, worker))
            return false;
    }
    return true;
}

/* Takes units as they come, in the slots of the worker (there are enough for all units on this rank
 * alone), and through the first segment. */
static void run_take_wave(struct ls_pass *pass, const struct ls_wave *wave, int worker)
{
    struct ls_thread_pool *pool = pass->engine->pool;
    int workers = pass->engine->workers, slots = ls_net_slots(pass->net, workers);
    bool run = !ls_gather_is(pass->units[wave->begin].plan->plan, 0);
    if (worker == 0) {
        for (size_t unit = wave->begin; unit < wave->end; unit++)
            pass->units[unit].slot = -1;
        run_begin_round(pass, wave->begin, wave->end);
    }
    ls_thread_pool_barrier(pool);
    for (int slot = worker; slot < slots && pass->round; slot += workers) {
        size_t unit = run_take_granted(pass, wave->end, worker);
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

/* A worker's part of a wave; false: some data could not be had, or other ranks are lost. No
 * failure is noted between the look and the next meeting (ls_pass_note_broken is none), so that all
 * workers come to the same meetings. */
static bool run_wave(struct ls_pass *pass, const struct ls_wave *wave, int worker)
{
    struct ls_thread_pool *pool = pass->engine->pool;
    if (pass->engine->work_queue != NULL)
        run_take_wave(pass, wave, worker);
    else
        for (size_t unit = run_own_unit(pass, wave, wave->begin, worker); unit < wave->end;
             unit = run_own_unit(pass, wave, unit + 1, worker))
            run_take_item(pass, worker, unit);
    ls_thread_pool_barrier(pool);
    bool ready = pass->failed_unit == SIZE_MAX; /* the same for all workers */
    ready = ready && run_segments(pass, wave, worker);
    for (size_t unit = run_own_unit(pass, wave, wave->begin, worker); unit < wave->end;
         unit = run_own_unit(pass, wave, unit + 1, worker))
        run_release_item(pass, worker, unit);
    ls_thread_pool_barrier(
        pool); /* what was merged is read to the end before the next wave writes it */
    return ready;
}

static void run_waves(void *argument, int worker)
{
    struct ls_pass *pass = argument;
    for (size_t i = 0; i < pass->wave_count; i++)
        if (!run_wave(pass, &pass->waves[i], worker))
            return;
}

void ls_pass_run(struct ls_pass *pass)
{
    bool together = pass->unit_count > 0 && pass->units[0].plan->plan->segments > 1;
    pass->granted = 0;
    if (LS_MUTANT(ORDINAL))
        run_note_beginning(pass);
    if (together || pass->engine->work_queue == NULL)
        ls_thread_pool_run(pass->engine->pool, together ? run_waves : run_freely, pass);
    else
        run_rounds(pass);
}
