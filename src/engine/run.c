/* Running micro-batches on all workers.
 *
 * Where no micro-batch waits for another, workers take them one by one as they get free, each
 * forward and backward in one go. Else the micro-batches of a batch go through the net
 * together, as a wave: each worker has its own of them (every W-th) and takes all through a
 * segment; then all workers meet, share the work of merging what was left there, and meet again.
 * The same way they share the work of gathered steps.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/gather.h"
#include "engine/pass.h"
#include "engine/stopwatch.h"

/* Where the gradients of a micro-batch go. */
struct gradients {
    struct ls_contributor contributor;
    struct ls_recorder recorder;
};

static struct ls_context context_of(struct ls_pass *pass, int worker, size_t unit,
                                    struct gradients *gradients)
{
    const struct ls_batch *range = &pass->units[unit].range;
    const struct ls_store *store = pass->engine->store;
    *gradients = (struct gradients){
        .contributor = {.sums = store->sums, .worker = worker, .micro_batch = (int)unit},
        .recorder = {.factors = store->factors, .micro_batch = (int)unit}};
    struct ls_context context = {.first_ordinal = range->ordinal,
                                 .samples = range->count,
                                 .normalizers = pass->normalizers,
                                 .partials = ls_pass_record(pass, unit),
                                 .contribute = pass->training ? ls_sums_contribute : NULL,
                                 .sums = &gradients->contributor,
                                 .record = pass->training ? ls_factors_record : NULL,
                                 .recorder = &gradients->recorder};
    ls_exchange_context(pass->exchange, worker, unit, &context);
    return context;
}

/* Waits for the unit's data. */
static bool take_item(struct ls_pass *pass, int worker, size_t unit)
{
    static _Thread_local struct ls_error error; /* large: not on the stack of every call */
    struct ls_engine *engine = pass->engine;
    const struct ls_unit *what = &pass->units[unit];
    if (engine->before_micro_batch != NULL)
        engine->before_micro_batch(engine->user, worker, (int)unit);
    ls_error_clear(&error);
    pass->items[unit] = NULL;
    struct ls_stopwatch *watch = ls_team_stopwatch(engine->team);
    uint64_t start = ls_stopwatch_start(watch);
    int status = ls_feed_take(pass->feed, what->update, what->index, &pass->items[unit], &error);
    if (watch != NULL)
        watch->worker[worker].data += ls_nanoseconds() - start;
    if (status == 0)
        return true;
    ls_pass_note_failure(pass, unit, &error);
    return false;
}

static void release_item(struct ls_pass *pass, int worker, size_t unit)
{
    if (pass->items[unit] == NULL)
        return;
    ls_feed_release(pass->feed, pass->items[unit]);
    pass->items[unit] = NULL;
    pass->engine->micro_batches[worker]++;
}

/* Runs a segment (or all: LS_RUN_ALL) of a unit's plan in the memory of a slot. */
static void run_unit(struct ls_pass *pass, int worker, size_t unit, int slot, int segment)
{
    struct gradients gradients;
    struct ls_context context = context_of(pass, worker, unit, &gradients);
#ifdef LS_MUTANT_FORGETFUL /* cmake/mutants.cmake: workers lose a micro-batch now and then */
    if (worker != 0 && pass->engine->micro_batches[worker] % 3 == 0)
        return;
#endif
    ls_net_run(pass->units[unit].plan, slot, segment, pass->items[unit]->input, &context);
}

/* The unit that is taken as number `turn`. Micro-batches of a batch differ by a sample; in the
 * order 12, 13, 12, 13 ... one of two workers would have all the larger ones. So of each run of
 * units, two for every worker, those with the most samples come first. (Short runs, because data
 * are decoded in order.) */
static size_t unit_of(const struct ls_pass *pass, size_t turn)
{
    size_t run = 2 * (size_t)pass->engine->workers, begin = turn / run * run, left = turn - begin;
    size_t end = begin + run < pass->unit_count ? begin + run : pass->unit_count;
    int64_t most = 0;
    for (size_t i = begin; i < end; i++)
        most = pass->units[i].range.count > most ? pass->units[i].range.count : most;
    for (int larger = 1; larger >= 0; larger--)
        for (size_t i = begin; i < end; i++)
            if ((pass->units[i].range.count == most) == larger && left-- == 0)
                return i;
    return turn;
}

static void run_freely(void *argument, int worker)
{
    struct ls_pass *pass = argument;
    for (;;) {
        size_t turn = atomic_fetch_add_explicit(&pass->next, 1, memory_order_relaxed);
        if (turn >= pass->unit_count)
            return;
        size_t unit = unit_of(pass, turn);
        if (take_item(pass, worker, unit))
            run_unit(pass, worker, unit, worker, LS_RUN_ALL);
        release_item(pass, worker, unit);
    }
}

/* Merges what the sync point behind segment `segment` is for. */
static void merge(struct ls_pass *pass, const struct ls_wave *wave, int segment, int worker)
{
    const struct ls_plan *plan = pass->units[wave->begin].plan->plan;
    const struct ls_op *op = plan->steps[plan->segment[segment + 1] - 1].prepared.op;
    struct ls_stopwatch *watch = ls_team_stopwatch(pass->engine->team);
    uint64_t start = ls_stopwatch_start(watch);
    if (plan->graph->syncs[op->attr.sync].kind != LS_SYNC_COUNT)
        ls_exchange_merge(pass->exchange, op->attr.sync, wave->begin, wave->end, worker);
    else if (worker == 0)
        ls_pass_merge_count(pass, op->attr.sync);
    if (watch != NULL)
        watch->worker[worker].merging += ls_nanoseconds() - start;
}

/* A worker's part of a wave; false: some data could not be had. Nothing can fail once all have
 * their data, so that nobody is waited for in vain. */
static bool run_wave(struct ls_pass *pass, const struct ls_wave *wave, int worker)
{
    struct ls_team *team = pass->engine->team;
    size_t workers = (size_t)pass->engine->workers;
    int segments = (int)pass->units[wave->begin].plan->plan->segments;
    for (size_t unit = wave->begin + (size_t)worker; unit < wave->end; unit += workers)
        take_item(pass, worker, unit);
    ls_team_meet(team);
    bool ready = pass->failed_unit == SIZE_MAX; /* the same for all: nobody takes any more */
    const struct ls_plan *plan = pass->units[wave->begin].plan->plan;
    for (int segment = 0; segment < segments && ready; segment++) {
        if (ls_gather_is(plan, segment)) {
            ls_gather_run(pass, wave, segment, worker);
            continue;
        }
        for (size_t unit = wave->begin + (size_t)worker; unit < wave->end; unit += workers)
            run_unit(pass, worker, unit, (int)(unit - wave->begin), segment);
        if (segment + 1 == segments || !plan->steps[plan->segment[segment + 1] - 1].cut)
            continue;
        ls_team_meet(team);
        merge(pass, wave, segment, worker);
        ls_team_meet(team);
    }
    for (size_t unit = wave->begin + (size_t)worker; unit < wave->end; unit += workers)
        release_item(pass, worker, unit);
    ls_team_meet(team); /* what was merged is read to the end before the next wave writes it */
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
    ls_team_run(pass->engine->team, together ? run_waves : run_freely, pass);
}
