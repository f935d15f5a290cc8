/* Gathered steps: rows to one place, tiles, rows back. See engine/gather.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/gather.h"

#include <string.h>

#include "base/memory.h"
#include "base/thread.h"
#include "engine/binding.h"
#include "engine/pass.h"
#include "engine/read.h"
#include "engine/reducer.h"
#include "engine/room.h"

enum {
    TILES = 4,       /* tiles per worker, where the matrix is large enough */
    COLUMNS_MIN = 64 /* a tile is not narrower than some cache lines */
};

/* ---- Memory ---------------------------------------------------------------------------------- */

/* Bytes that the gathered steps of so many micro-batches read and write at most. */
static void gather_measure(const struct ls_plan *plan, size_t units, size_t *in, size_t *out)
{
    for (size_t s = 0; s < plan->step_count && ls_plan_gathers(plan); s++) {
        if (!plan->steps[s].gathered)
            continue;
        struct ls_gathered row = ls_plan_gathered(&plan->steps[s]);
        *in = ls_room_larger(*in, (size_t)row.rows * row.in_bytes * units);
        *out = ls_room_larger(*out, (size_t)row.rows * row.out_bytes * units);
    }
}

static int gather_reserve(const struct ls_device_memory *memory, unsigned char **rows, size_t *size,
                          size_t wanted, struct ls_error *error)
{
    if (wanted <= *size)
        return 0;
    memory->free(*rows);
    *size = 0;
    if ((*rows = memory->create(wanted)) == NULL)
        return ls_fail_memory(error, "rows of inner products");
    *size = wanted;
    return 0;
}

int ls_gather_reserve(struct ls_pass *pass, struct ls_error *error)
{
    size_t in = 0, out = 0;
    atomic_store(&pass->engine->gather.failed, false);
    for (size_t i = 0; i < pass->wave_count; i++) {
        const struct ls_wave *wave = &pass->waves[i];
        size_t units = 0;
        for (size_t unit = wave->begin; unit < wave->end; unit++)
            units += ls_pass_may_run(pass, unit);
        for (size_t unit = wave->begin; unit < wave->end; unit++)
            gather_measure(pass->units[unit].plan->plan, units, &in, &out);
    }
    struct ls_gather *gather = &pass->engine->gather;
    const struct ls_device_memory *memory = pass->engine->device->memory;
    LS_TRY(gather_reserve(memory, &gather->in, &gather->in_size, in, error));
    return gather_reserve(memory, &gather->out, &gather->out_size, out, error);
}

void ls_gather_free(struct ls_gather *gather, const struct ls_device_memory *memory)
{
    memory->free(gather->in);
    memory->free(gather->out);
}

/* ---- Running --------------------------------------------------------------------------------- */

/* The gathered step of a segment, as the units of a wave have it. */
struct work {
    struct ls_pass *pass;
    const struct ls_wave *wave;
    int segment, worker;
};

bool ls_gather_is(const struct ls_plan *plan, int segment)
{
    size_t step = plan->segment[segment];
    return step < plan->step_count && plan->steps[step].gathered;
}

static const struct ls_step *gather_step_of(const struct work *work, size_t unit)
{
    const struct ls_plan *plan = work->pass->units[unit].plan->plan;
    return &plan->steps[plan->segment[work->segment]];
}

/* Pointers to the inputs of a unit's step; its output follows. Those that change with each
 * micro-batch are set only for the worker whose unit it is (`own`). */
static void *const *gather_pointers_of(const struct work *work, size_t unit, bool own)
{
    const struct ls_net_plan *plan = work->pass->units[unit].plan;
    return ls_binding_step_pointers(plan, work->pass->units[unit].slot,
                                    plan->plan->segment[work->segment],
                                    own ? ls_read_inputs(work->pass, unit) : NULL);
}

/* What came of a worker's part; all know it after the next barrier. */
static void gather_note(const struct work *work, size_t unit, int status,
                        const struct ls_error *error)
{
    if (status == 0)
        return;
    ls_pass_note_broken(work->pass, unit, error);
    atomic_store(&work->pass->engine->gather.failed, true);
}

/* Brings the inputs of a unit whose first step is gathered. */
static int gather_begin(const struct ls_pass *pass, size_t unit, struct ls_stream *stream,
                        struct ls_error *error)
{
    const struct ls_inputs inputs = {.at = ls_read_inputs(pass, unit),
                                     .making = ls_read_making(pass, unit)};
    return ls_binding_begin(pass->units[unit].plan, pass->units[unit].slot, &inputs, stream, error);
}

/* Copies the rows of the worker's own units, to one place or (back) from there. Units whose rows
 * could not be computed are not computed any further. */
static int gather_copy_rows(const struct work *work, bool back, struct ls_error *error)
{
    const struct ls_pass *pass = work->pass;
    const struct ls_gather *gather = &pass->engine->gather;
    const struct ls_device *device = pass->engine->device;
    struct ls_stream *stream = pass->engine->streams[work->worker];
    int64_t first = 0;
    for (size_t unit =
             ls_scheduler_next(&pass->scheduler, work->wave, work->wave->begin, LS_ANY_WORKER);
         unit < work->wave->end;
         unit = ls_scheduler_next(&pass->scheduler, work->wave, unit + 1, LS_ANY_WORKER)) {
        const struct ls_step *step = gather_step_of(work, unit);
        struct ls_gathered row = ls_plan_gathered(step);
        if (pass->units[unit].slot % pass->engine->workers == work->worker) {
            if (!back && work->segment == 0)
                LS_TRY(gather_begin(pass, unit, stream, error));
            void *const *in = gather_pointers_of(work, unit, true);
            if (back && atomic_load(&gather->failed))
                pass->units[unit].broken = true;
            else if (back)
                LS_TRY(device->memory->copy(stream, in[step->prepared.op->inputs],
                                            gather->out + (size_t)first * row.out_bytes,
                                            (size_t)row.rows * row.out_bytes, error));
            else
                LS_TRY(device->memory->copy(stream, gather->in + (size_t)first * row.in_bytes,
                                            in[0], (size_t)row.rows * row.in_bytes, error));
        }
        first += row.rows;
    }
    return device->streams->wait(stream, error);
}

static int64_t gather_rows_of(const struct work *work)
{
    int64_t rows = 0;
    for (size_t unit = ls_scheduler_next(&work->pass->scheduler, work->wave, work->wave->begin,
                                         LS_ANY_WORKER);
         unit < work->wave->end;
         unit = ls_scheduler_next(&work->pass->scheduler, work->wave, unit + 1, LS_ANY_WORKER))
        rows += ls_plan_gathered(gather_step_of(work, unit)).rows;
    return rows;
}

/* Columns that a worker takes at a time. */
static int64_t gather_tile_columns(const struct ls_gathered *row, int workers)
{
    int64_t columns = row->out / (TILES * (int64_t)workers) / COLUMNS_MIN * COLUMNS_MIN;
    return columns < COLUMNS_MIN           ? COLUMNS_MIN
           : columns > LS_TILE_COLUMNS_MAX ? LS_TILE_COLUMNS_MAX
                                           : columns;
}

static void gather_run_tiles(const struct work *work)
{
    struct ls_gather *gather = &work->pass->engine->gather;
    size_t unit =
        ls_scheduler_next(&work->pass->scheduler, work->wave, work->wave->begin, LS_ANY_WORKER);
    const struct ls_prepared *prepared = &gather_step_of(work, unit)->prepared;
    struct ls_gathered row = ls_plan_gathered(gather_step_of(work, unit));
    const struct ls_device *device = work->pass->units[unit].plan->plan->device;
    void *const *in = gather_pointers_of(work, unit, false);
    const struct ls_net_plan *plan = work->pass->units[unit].plan;
    int64_t columns = gather_tile_columns(&row, work->pass->engine->workers);
    struct ls_product_tile tile = {.stream = work->pass->engine->streams[work->worker],
                                   .rows = gather->in,
                                   .count = gather_rows_of(work),
                                   .out = gather->out,
                                   .scratch = plan->bindings[work->worker].arena +
                                              gather_step_of(work, unit)->scratch_offset};
    struct ls_error *error = ls_worker_error();
    for (;;) {
        tile.begin = columns * atomic_fetch_add_explicit(&gather->next, 1, memory_order_relaxed);
        if (tile.begin >= row.out)
            break;
        tile.end = row.out - tile.begin < columns ? row.out : tile.begin + columns;
        int status = prepared->kernel->tile(prepared, in, &tile, error);
        if (status != 0) {
            if (error->status == 0)
                ls_kernel_fail(prepared->op, error, status, device->name);
            gather_note(work, unit, status, error);
            break;
        }
    }
    gather_note(work, unit, device->streams->wait(tile.stream, error), error);
}

void ls_gather_run(struct ls_pass *pass, const struct ls_wave *wave, int segment, int worker)
{
    const struct work work = {.pass = pass, .wave = wave, .segment = segment, .worker = worker};
    size_t first = ls_scheduler_next(&pass->scheduler, wave, wave->begin, LS_ANY_WORKER);
    if (first == wave->end)
        return; /* all are other ranks' */
    struct ls_error *error = ls_worker_error();
    gather_note(&work, first, gather_copy_rows(&work, false, error), error);
    if (worker == 0)
        atomic_store_explicit(&pass->engine->gather.next, 0, memory_order_relaxed);
    ls_thread_pool_barrier(pass->engine->pool);
    const struct ls_net_plan *plan = pass->units[first].plan;
    if (plan->reducer != NULL) {
        const struct ls_wait wait = plan->wait[plan->plan->segment[segment]];
        if (wait.first >= 0)
            ls_reducer_wait_buckets(plan->reducer, wait.first, wait.last);
    }
    uint64_t *nanoseconds = plan->bindings[worker].nanoseconds; /* there are as many slots */
    uint64_t start = nanoseconds != NULL ? ls_nanoseconds() : 0;
    gather_run_tiles(&work);
    if (nanoseconds != NULL)
        nanoseconds[plan->plan->segment[segment]] += ls_nanoseconds() - start;
    ls_thread_pool_barrier(pass->engine->pool);
    gather_note(&work, first, gather_copy_rows(&work, true, error), error);
}
