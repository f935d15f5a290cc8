/* The list of micro-batches of a pass, how it begins, fails and ends. See engine/pass.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/pass.h"

#include <string.h>

#include "base/memory.h"
#include "engine/labels.h"
#include "engine/plans.h"
#include "engine/records.h"
#include "transport/comm.h"

enum {
    RECORDS_AT_ONCE = 1 << 20, /* doubles in the records of a pass of a test */
    BATCHES_AT_ONCE = 16       /* and batches */
};

int64_t ls_pass_batches(const struct ls_net *net)
{
    const struct ls_batching *batching = &net->batching;
    if (net->options.training)
        return batching->iter_size;
    if (ls_net_graph(net)->sample_state_count > 0)
        return 1; /* the next batch reads what this one leaves */
    int64_t n = ls_batching_most(batching, batching->batch);
    int64_t doubles = n * (int64_t)((size_t)ls_net_graph(net)->record_size +
                                    ls_pass_list_size(net) + ls_pass_read_size(net));
    int64_t batches = RECORDS_AT_ONCE / (doubles > 0 ? doubles : 1);
    return batches < 1 ? 1 : batches > BATCHES_AT_ONCE ? BATCHES_AT_ONCE : batches;
}

int64_t ls_pass_update_micro_batches(const struct ls_net *net)
{
    return net->batching.iter_size * ls_batching_most(&net->batching, net->batching.batch);
}

/* ---- Creation -------------------------------------------------------------------------------- */

static int pass_create(struct ls_pass *pass, struct ls_error *error)
{
    const struct ls_net *net = pass->net;
    const struct ls_graph *graph = ls_net_graph(net);
    size_t batches = (size_t)ls_pass_batches(net);
    size_t most = (size_t)ls_batching_most(&net->batching, net->batching.batch);
    size_t units = batches * most;
    pass->record_size = (size_t)graph->record_size;
    pass->list_size = ls_pass_list_size(net);
    pass->record_stride = pass->record_size + pass->list_size + ls_pass_read_size(net);
    pass->unit_capacity = units;
    pass->batches = ls_alloc(batches, sizeof *pass->batches);
    pass->micro = ls_alloc(most, sizeof *pass->micro);
    pass->units = ls_alloc(units, sizeof *pass->units);
    pass->items = ls_alloc(units, sizeof *pass->items);
    pass->graphs = ls_alloc(units, sizeof *pass->graphs);
    pass->owners = ls_alloc(units, sizeof *pass->owners);
    pass->waves = ls_alloc(batches, sizeof *pass->waves);
    pass->records = ls_alloc(units * pass->record_stride, sizeof *pass->records);
    pass->total = ls_alloc(pass->record_size + 1, sizeof *pass->total);
    pass->normalizers = ls_alloc(graph->normalizer_count + 1, sizeof *pass->normalizers);
    if (pass->batches == NULL || pass->micro == NULL || pass->units == NULL ||
        pass->items == NULL || pass->graphs == NULL || pass->owners == NULL ||
        pass->waves == NULL || pass->records == NULL || pass->total == NULL ||
        pass->normalizers == NULL)
        return ls_fail_memory(error, "a pass");
    LS_TRY(ls_records_create(pass, error));
    return ls_scheduler_create(&pass->scheduler, pass->engine->comm->rank, pass->engine->workers,
                               units, error);
}

int ls_pass_create(struct ls_engine *engine, struct ls_net *net, struct ls_pass **out,
                   struct ls_error *error)
{
    *out = NULL;
    struct ls_pass *pass = ls_alloc(1, sizeof *pass);
    if (pass == NULL)
        return ls_fail_memory(error, "a pass");
    pass->engine = engine;
    pass->net = net;
    pthread_mutex_init(&pass->lock, NULL);
    int status = pass_create(pass, error);
    if (status != 0)
        ls_pass_free(pass);
    else
        *out = pass;
    return status;
}

void ls_pass_free(struct ls_pass *pass)
{
    if (pass == NULL)
        return;
    ls_scheduler_free(&pass->scheduler);
    pthread_mutex_destroy(&pass->lock);
    ls_free(pass->batches);
    ls_free(pass->micro);
    ls_free(pass->units);
    ls_free((void *)pass->items);
    ls_free((void *)pass->graphs);
    ls_free(pass->owners);
    ls_free(pass->waves);
    ls_free(pass->records);
    ls_records_free(pass);
    ls_free(pass->total);
    ls_free(pass->normalizers);
    ls_free(pass);
}

/* ---- The list -------------------------------------------------------------------------------- */

void ls_pass_clear(struct ls_pass *pass)
{
    pass->unit_count = pass->wave_count = 0;
    ls_plans_begin_pass(pass->net);
    ls_exchange_begin(pass->exchange);
}

int ls_pass_add_batch(struct ls_pass *pass, const struct ls_batch *batch, int64_t update,
                      int *index, struct ls_error *error)
{
    int64_t n = 0;
    size_t first = pass->unit_count;
    int64_t row = (int64_t)pass->wave_count * pass->net->batching.batch;
    const struct ls_comm *comm = pass->engine->comm;
    LS_TRY(ls_batching_cut(&pass->net->batching, batch, pass->micro, &n, error));
    for (int64_t i = 0; i < n; i++) {
        struct ls_unit *unit = &pass->units[pass->unit_count++];
        *unit = (struct ls_unit){
            .update = update,
            .index = (*index)++,
            .rank = ls_comm_owner(comm, i, n),
            .row = row + pass->micro[i].ordinal - batch->ordinal,
            .range = {.ordinal = pass->micro[i].ordinal, .count = pass->micro[i].count}};
        LS_TRY(ls_plans_require(pass->net, &pass->micro[i], &unit->plan, error));
    }
    ls_exchange_add(pass->exchange, batch, pass->micro, n, first);
    pass->waves[pass->wave_count++] = (struct ls_wave){.begin = first, .end = pass->unit_count};
    return 0;
}

/* Whether this rank computes a unit, for the update or to audit it. */
static bool pass_may_compute(const struct ls_pass *pass, size_t unit)
{
    return pass->audit != NULL || ls_pass_may_run(pass, unit);
}

int ls_pass_make_ready(struct ls_pass *pass, struct ls_error *error)
{
    ls_scheduler_assign(pass->engine->comm->rank, pass->units, pass->waves, pass->wave_count);
    for (size_t i = 0; i < pass->unit_count; i++)
        if (pass_may_compute(pass, i))
            LS_TRY(ls_engine_make_room(pass->engine, pass->net, pass->units[i].plan->plan, error));
    for (size_t i = 0; i < pass->unit_count; i++)
        if (pass_may_compute(pass, i))
            LS_TRY(ls_engine_bind_plan(pass->engine, pass->net, pass->units[i].plan, error));
    return 0;
}

/* ---- Running --------------------------------------------------------------------------------- */

void ls_pass_note_failure(struct ls_pass *pass, size_t unit, const struct ls_error *error)
{
    pthread_mutex_lock(&pass->lock);
    if (unit < pass->failed_unit) { /* the first in order is reported, on any number of workers */
        pass->failed_unit = unit;
        pass->failure = *error;
    }
    pthread_mutex_unlock(&pass->lock);
}

void ls_pass_note_broken(struct ls_pass *pass, size_t unit, const struct ls_error *error)
{
    pthread_mutex_lock(&pass->lock);
    if (unit < pass->broken_unit) {
        pass->broken_unit = unit;
        pass->broken = *error;
    }
    pthread_mutex_unlock(&pass->lock);
}

void ls_pass_merge_records(struct ls_pass *pass, size_t begin, size_t end)
{
    size_t n = end - begin;
    for (size_t step = 1; step < n; step *= 2)
        for (size_t i = 0; i + step < n; i += 2 * step) {
            double *into = ls_pass_record(pass, begin + i);
            const double *from = ls_pass_record(pass, begin + i + step);
            for (size_t k = 0; k < pass->record_size; k++)
                into[k] += from[k];
        }
}

void ls_pass_begin(struct ls_pass *pass, struct ls_prefetcher *prefetcher, bool training)
{
    pass->prefetcher = prefetcher;
    pass->training = training;
    pass->failed_unit = pass->bad_unit = pass->broken_unit = SIZE_MAX;
    for (size_t unit = 0; unit < pass->unit_count; unit++) {
        pass->owners[unit] = pass->units[unit].rank;
        pass->units[unit].broken = pass->units[unit].kept = false;
    }
    pass->scheduler.queue = pass->engine->work_queue;
    ls_scheduler_begin(&pass->scheduler, pass->units, pass->unit_count);
    memset(pass->records, 0, pass->unit_count * pass->record_stride * sizeof *pass->records);
}

int ls_pass_finish(struct ls_pass *pass, struct ls_error *error)
{
    if (pass->failed_unit == SIZE_MAX && pass->broken_unit != SIZE_MAX)
        ls_pass_note_failure(pass, pass->broken_unit, &pass->broken);
    if (pass->failed_unit != SIZE_MAX) {
        if (error != NULL)
            *error = pass->failure;
        return pass->failure.status;
    }
    size_t bytes = pass->record_stride * sizeof *pass->records;
    return ls_comm_all_gather_items(pass->engine->comm, pass->records, bytes, bytes, pass->owners,
                                    pass->unit_count, error);
}

int ls_pass_find_bad_label(const struct ls_pass *pass, const struct ls_batch *range,
                           struct ls_error *error)
{
    int status = ls_labels_find_bad(pass->net, range, error);
    return ls_comm_agree(pass->engine->comm, status, error);
}

size_t ls_pass_units(const struct ls_pass *pass)
{
    return pass->unit_count;
}
