/* One micro-batch of a pass. See engine/micro_batch.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/micro_batch.h"

#include "base/mutant.h"
#include "base/thread.h"
#include "base/timeline.h"
#include "data/reader.h"
#include "engine/binding.h"
#include "engine/profiler.h"
#include "engine/read.h"
#include "engine/records.h"
#include "engine/reducer.h"
#include "transport/comm.h"
#ifdef LS_FAULTY_CORE
#include LS_FAULTY_CORE
#endif

/* ---- Data ------------------------------------------------------------------------------------ */

bool ls_micro_batch_take(struct ls_pass *pass, int worker, size_t unit)
{
    struct ls_error *error = ls_worker_error();
    struct ls_engine *engine = pass->engine;
    const struct ls_unit *what = &pass->units[unit];
    if (engine->before_micro_batch != NULL)
        engine->before_micro_batch(engine->user, worker, (int)unit);
    pass->items[unit] = NULL;
    struct ls_profiler *profiler = ls_thread_pool_profiler(engine->pool);
    uint64_t start = ls_profiler_start(profiler), waiting = ls_timeline_start();
    int status =
        ls_prefetcher_take(pass->prefetcher, what->update, what->index, &pass->items[unit], error);
    if (profiler != NULL)
        profiler->worker[worker].data += ls_nanoseconds() - start;
    ls_timeline_add(LS_TIMELINE_DATA, NULL, 0, waiting);
    if (status != 0)
        return ls_read_note_bad(pass, unit, error);
    ls_read_note(pass, unit, pass->items[unit]);
    return true;
}

void ls_micro_batch_release(struct ls_pass *pass, int worker, size_t unit)
{
    if (pass->items[unit] == NULL)
        return;
    ls_prefetcher_release(pass->prefetcher, pass->items[unit]);
    pass->items[unit] = NULL;
    pass->engine->micro_batches[worker]++;
}

void ls_micro_batch_let_go(struct ls_pass *pass, int worker, size_t unit)
{
    struct ls_uploader *uploader =
        pass->engine->uploaders != NULL ? &pass->engine->uploaders[worker] : NULL;
    const struct ls_prefetch_item *item = pass->items[unit];
    struct ls_error *error = ls_worker_error();
    if (uploader == NULL || item == NULL) {
        ls_micro_batch_release(pass, worker, unit);
        return;
    }
    if (pass->units[unit].broken) { /* its event may not have been recorded */
        (void)ls_uploader_give_up(uploader, pass->prefetcher, error);
        ls_micro_batch_release(pass, worker, unit);
        return;
    }
    pass->items[unit] = NULL;
    pass->engine->micro_batches[worker]++;
    if (ls_uploader_hold(uploader, pass->prefetcher, item, error) != 0)
        ls_pass_note_broken(pass, unit, error);
}

void ls_micro_batch_wait(struct ls_pass *pass, int worker)
{
    if (pass->engine->uploaders == NULL)
        return;
    struct ls_uploader *uploader = &pass->engine->uploaders[worker];
    const struct ls_device_streams *streams = pass->engine->device->streams;
    struct ls_error *error = ls_worker_error();
    const size_t unit = uploader->unit;
    uploader->unit = SIZE_MAX;
    int status = 0;
    if (!LS_MUTANT(LEAVES) || worker == 0)
        status = streams->wait(pass->engine->streams[worker], error);
    if (status == 0)
        status = ls_uploader_empty(uploader, pass->prefetcher, error);
    else
        (void)ls_uploader_give_up(uploader, pass->prefetcher, NULL);
    if (status != 0 && unit != SIZE_MAX)
        ls_pass_note_broken(pass, unit, error);
}

int ls_micro_batch_fetch(const struct ls_pass *pass, struct ls_reader *const *readers, size_t which,
                         void *const *inputs, struct ls_error *error)
{
    const struct ls_net *net = pass->net;
    const struct ls_unit *unit = &pass->units[which];
    const struct ls_graph *graph = unit->plan->plan->graph;
    for (int i = 0; i < net->input_count; i++) {
        if (inputs[i] == NULL)
            continue;
        const struct ls_value *value = graph->inputs[i].value;
        struct ls_reader *reader = readers[net->inputs[i][0]];
        struct ls_sample_place place[LS_RECORD_TENSORS] = {{0}};
        struct ls_batch its;
        ls_batching_of(&net->batching, net->inputs[i][0], &unit->range, &its);
        place[net->inputs[i][1]] =
            (struct ls_sample_place){.tensor = inputs[i],
                                     .bytes = ls_value_bytes(value) / (size_t)its.count,
                                     .runs = net->runs[i],
                                     .rounded = net->rounded[i]};
        for (int64_t s = 0; s < its.count; s++)
            LS_TRY(ls_reader_fetch_to(reader, its.ordinal + s, place, s, its.count, error));
    }
    return 0;
}

/* ---- Running --------------------------------------------------------------------------------- */

/* For a mutant: the ordinal of the sample that a run began with, which may be a resume. */
static int64_t micro_batch_beginning(const struct ls_pass *pass)
{
    static int64_t begun;
    int64_t run = 0;
    for (int w = 0; w < pass->engine->workers; w++)
        run += pass->engine->micro_batches[w];
    begun = run == 0 ? pass->units[0].range.ordinal : begun;
    return begun;
}

/* A contribution, or one side of factors, was given to the worker's stream. */
static int micro_batch_handed_over(void *user, const struct ls_op *op,
                                   const struct ls_context *context, struct ls_error *error)
{
    struct ls_reducer *reducer = user;
    if (op->kind == LS_OP_KEEP)
        return 0;
    return op->kind == LS_OP_RECORD
               ? ls_reducer_recorded(reducer, &op->attr.record, context, error)
               : ls_reducer_contributed(reducer, op->attr.parameter->index, context, error);
}

struct ls_run ls_micro_batch_prepare(struct ls_pass *pass, int worker, size_t unit)
{
    const struct ls_batch *range = &pass->units[unit].range;
    const struct ls_engine *engine = pass->engine;
    struct ls_run run = {.context = {.stream = engine->streams[worker],
                                     .worker = worker,
                                     .micro_batch = (int)unit,
                                     .first_ordinal = range->ordinal,
                                     .samples = range->count,
                                     .normalizers = pass->normalizers,
                                     .partials = ls_pass_record(pass, unit)},
                         .rows = {pass->states, pass->units[unit].row, true}};
    if (pass->training) {
        run.context.accumulator = ls_sums_accumulator(engine->store->sums);
        run.factors = engine->store->factors;
        if (pass->watch != NULL)
            run.watch = *pass->watch;
    }
    if (pass->training && pass->reduces)
        run.observer =
            (struct ls_observer){.after = micro_batch_handed_over, .user = engine->reducer};
    if (LS_MUTANT(ORDINAL))
        run.context.first_ordinal -= micro_batch_beginning(pass);
    ls_exchange_context(pass->exchange, worker, unit, NULL, &run.context);
    if (engine->uploaders != NULL) {
        run.copying = ls_uploader_copying(&engine->uploaders[worker]);
        run.record = ls_records_place(pass, unit);
    }
    return run;
}

struct ls_run ls_micro_batch_prepare_apart(struct ls_pass *pass, int worker, size_t unit,
                                           void *const *inputs, double *partials)
{
    struct ls_run run = ls_micro_batch_prepare(pass, worker, unit);
    run.inputs = inputs;
    run.context.partials = partials;
    run.context.accumulator = NULL;
    run.factors = NULL;
    run.rows.keep = false;
    run.record = NULL;
    run.copying = (struct ls_copying){NULL, NULL};
    run.observer = (struct ls_observer){0};
    run.watch = (struct ls_watch){0};
    return run;
}

int ls_micro_batch_compute(const struct ls_pass *pass, const struct ls_net_plan *plan, int slot,
                           int segment, const struct ls_run *run, struct ls_error *error)
{
#ifdef LS_FAULTY_CORE /* cmake/mutants.cmake: one core computes wrongly now and then */
    struct ls_fault fault;
    ls_fault_begin(&fault, pass->engine->comm->rank, segment, run);
    int status = ls_binding_run(plan, slot, segment, &fault.run, error);
    ls_fault_end(&fault);
    return status;
#else
    (void)pass;
    uint64_t start = ls_timeline_start();
    int status = run->record != NULL ? ls_binding_give(plan, slot, segment, run, error)
                                     : ls_binding_run(plan, slot, segment, run, error);
    ls_timeline_add(LS_TIMELINE_MICRO_BATCH, NULL, (uint32_t)run->context.micro_batch, start);
    return status;
#endif
}
