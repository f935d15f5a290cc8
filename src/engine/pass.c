/* Passes: the micro-batches of an update, or of a test, run by all workers.
 *
 * An update is one list of micro-batches over all its batches. A test goes in groups of batches, so
 * that the records of a large data set need not be kept: within a batch they are merged along the
 * tree, batches are added up in order.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/mutant.h"
#include "engine/audit.h"
#include "engine/gather.h"
#include "engine/labels.h"
#include "engine/pass.h"
#include "engine/work_queue.h"
#include "engine/reducer.h"
#include "ir/layer.h"
#include "transport/comm.h"

enum {
    RECORDS_AT_ONCE = 1 << 20, /* doubles in the records of a test's job */
    BATCHES_AT_ONCE = 16,      /* batches of a test's job */
    REPEATS_MAX = 8            /* of an update, before its sums are taken for a mistake of ours */
};

int64_t ls_engine_batches_at_once(const struct ls_net *net)
{
    const struct ls_batching *batching = &net->batching;
    if (net->options.training)
        return batching->iter_size;
    int64_t n = ls_batching_most(batching, batching->batch);
    int64_t doubles =
        n * (int64_t)((size_t)ls_net_graph(net)->record_size + ls_pass_read_size(net));
    int64_t batches = RECORDS_AT_ONCE / (doubles > 0 ? doubles : 1);
    return batches < 1 ? 1 : batches > BATCHES_AT_ONCE ? BATCHES_AT_ONCE : batches;
}

int64_t ls_engine_update_micro_batches(const struct ls_net *net)
{
    return net->batching.iter_size * ls_batching_most(&net->batching, net->batching.batch);
}

/* ---- Creation -------------------------------------------------------------------------------- */

static int pass_create_exchange(struct ls_pass *pass, int64_t batches, struct ls_error *error)
{
    const struct ls_net *net = pass->net;
    struct ls_exchange_options options = {.graph = ls_net_graph(net),
                                          .device = pass->engine->device,
                                          .workers = pass->engine->workers,
                                          .units = (int64_t)pass->unit_capacity,
                                          .largest = ls_batching_largest(&net->batching),
                                          .batch = net->batching.batch,
                                          .batches = batches,
                                          .local = ls_net_local,
                                          .user = net};
    return ls_exchange_create(&options, &pass->exchange, error);
}

static int pass_create(struct ls_pass *pass, struct ls_error *error)
{
    const struct ls_net *net = pass->net;
    const struct ls_graph *graph = ls_net_graph(net);
    size_t batches = (size_t)ls_engine_batches_at_once(net);
    size_t most = (size_t)ls_batching_most(&net->batching, net->batching.batch);
    size_t units = batches * most;
    pass->record_size = (size_t)graph->record_size;
    pass->record_stride = pass->record_size + ls_pass_read_size(net);
    pass->unit_capacity = units;
    pass->batches = ls_alloc(batches, sizeof *pass->batches);
    pass->micro = ls_alloc(most, sizeof *pass->micro);
    pass->units = ls_alloc(units, sizeof *pass->units);
    pass->items = ls_alloc(units, sizeof *pass->items);
    pass->graphs = ls_alloc(units, sizeof *pass->graphs);
    pass->owners = ls_alloc(units, sizeof *pass->owners);
    pass->own = ls_alloc(units, sizeof *pass->own);
    pass->waves = ls_alloc(batches, sizeof *pass->waves);
    pass->records = ls_alloc(units * pass->record_stride, sizeof *pass->records);
    pass->total = ls_alloc(pass->record_size + 1, sizeof *pass->total);
    pass->normalizers = ls_alloc(graph->normalizer_count + 1, sizeof *pass->normalizers);
    if (pass->batches == NULL || pass->micro == NULL || pass->units == NULL ||
        pass->items == NULL || pass->graphs == NULL || pass->owners == NULL || pass->own == NULL ||
        pass->waves == NULL || pass->records == NULL || pass->total == NULL ||
        pass->normalizers == NULL)
        return ls_fail_memory(error, "a pass");
    struct ls_engine *engine = pass->engine;
    if (engine->comm->dynamic && engine->work_queue == NULL)
        LS_TRY(ls_work_queue_create(engine->comm, &engine->work_queue, error));
    LS_TRY(pass_create_exchange(pass, (int64_t)batches, error));
    LS_TRY(ls_pass_create_read(pass, error));
    LS_TRY(ls_pass_create_averages(pass, error));
    LS_TRY(ls_pass_create_normalizers(pass, error));
    if (!net->options.training || !(engine->audited_part > 0))
        return 0;
    return ls_audit_create(pass, engine->audited_part, engine->audit_seed, &pass->audit, error);
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
    ls_audit_free(pass->audit);
    ls_pass_free_normalizers(pass);
    ls_pass_free_averages(pass);
    ls_pass_free_read(pass);
    ls_exchange_free(pass->exchange);
    pthread_mutex_destroy(&pass->lock);
    ls_free(pass->batches);
    ls_free(pass->micro);
    ls_free(pass->units);
    ls_free((void *)pass->items);
    ls_free((void *)pass->graphs);
    ls_free(pass->owners);
    ls_free(pass->own);
    ls_free(pass->waves);
    ls_free(pass->records);
    ls_free(pass->total);
    ls_free(pass->normalizers);
    ls_free(pass);
}

/* ---- Jobs ------------------------------------------------------------------------------------ */

static void pass_forget_units(struct ls_pass *pass)
{
    pass->unit_count = pass->wave_count = 0;
    ls_net_begin_job(pass->net);
    ls_exchange_begin(pass->exchange);
}

/* Adds the micro-batches of a batch to the list, with plans that are ready to run. *index is the
 * number in the prefetcher of its first one, and becomes that behind its last. */
static int pass_add_batch(struct ls_pass *pass, const struct ls_batch *batch, int64_t update,
                          int *index, struct ls_error *error)
{
    int64_t n = 0;
    size_t first = pass->unit_count;
    const struct ls_comm *comm = pass->engine->comm;
    LS_TRY(ls_batching_cut(&pass->net->batching, batch, pass->micro, &n, error));
    for (int64_t i = 0; i < n; i++) {
        struct ls_unit *unit = &pass->units[pass->unit_count++];
        *unit = (struct ls_unit){
            .update = update,
            .index = (*index)++,
            .rank = ls_comm_owner(comm, i, n),
            .range = {.ordinal = pass->micro[i].ordinal, .count = pass->micro[i].count}};
        LS_TRY(ls_net_require(pass->net, &pass->micro[i], &unit->plan, error));
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

/* Makes room for the plans of all units that are, or may be, this rank's. */
static int pass_make_ready(struct ls_pass *pass, struct ls_error *error)
{
    ls_pass_partition(pass);
    for (size_t i = 0; i < pass->unit_count; i++)
        if (pass_may_compute(pass, i))
            LS_TRY(ls_engine_make_room(pass->engine, pass->net, pass->units[i].plan->plan, error));
    for (size_t i = 0; i < pass->unit_count; i++)
        if (pass_may_compute(pass, i))
            LS_TRY(ls_engine_bind_plan(pass->engine, pass->net, pass->units[i].plan, error));
    return ls_gather_reserve(pass, error);
}

/* ---- Updates --------------------------------------------------------------------------------- */

static int pass_diverged(struct ls_pass *pass, size_t unit, int64_t iteration, const char *layer,
                         const char *what, struct ls_error *error)
{
    const struct ls_batch *range = &pass->units[unit].range;
    pass->diverged = unit;
    int status =
        ls_fail(error, LOCKSTEP_DIVERGED, layer,
                "a lower base_lr, warm-up or clip_gradients may help; the weights are those of "
                "the iteration before",
                "iteration %lld: %s is not finite, first in the micro-batch of samples %lld to "
                "%lld",
                (long long)iteration, what, (long long)range->ordinal,
                (long long)(range->ordinal + range->count - 1));
    return ls_comm_common(pass->engine->comm, status);
}

/* Whether a label is to blame: all ranks look, since all have all figures; data may not be readable
 * on one of them. */
static int pass_find_bad_label(const struct ls_pass *pass, const struct ls_batch *range,
                               struct ls_error *error)
{
    int status = ls_net_find_bad_label(pass->net, range->ordinal, range->count, error);
    return ls_comm_agree(pass->engine->comm, status, error);
}

/* The first unit whose loss is not finite ends the run before the weights change. */
static int pass_check_losses(struct ls_pass *pass, int64_t iteration, struct ls_error *error)
{
    const struct ls_graph *graph = ls_net_graph(pass->net);
    for (size_t unit = 0; unit < pass->unit_count; unit++)
        for (size_t m = 0; m < graph->metric_count; m++) {
            const struct ls_metric *metric = &graph->metrics[m];
            if (metric->loss_weight == 0 || isfinite(ls_pass_record(pass, unit)[metric->offset]))
                continue;
            char place[LS_PLACE_SIZE], what[200];
            const struct ls_batch *range = &pass->units[unit].range;
            LS_TRY(pass_find_bad_label(pass, range, error));
            ls_layer_place(metric->layer, NULL, NULL, place);
            snprintf(what, sizeof what, "the loss '%s' of layer '%s'", metric->name,
                     metric->layer->name);
            return pass_diverged(pass, unit, iteration, place, what, error);
        }
    return 0;
}

/* What came of sums and factors: the first micro-batch with something that is not finite counts. */
static enum ls_sums_result pass_end_gradients(const struct ls_store *store, bool calibrate,
                                              int *parameter, int *micro_batch)
{
    int which = 0, first = INT_MAX;
    enum ls_sums_result result = ls_sums_end(store->sums, parameter, micro_batch);
    if (ls_factors_finite(store->factors, !calibrate, &which, &first))
        return result;
    if (result != LS_SUMS_NOT_FINITE || first < *micro_batch) {
        *parameter = which;
        *micro_batch = first;
    }
    return LS_SUMS_NOT_FINITE;
}

static int pass_run_once(struct ls_pass *pass, struct ls_prefetcher *prefetcher, int64_t iteration,
                         bool calibrate, enum ls_sums_result *result, struct ls_error *error)
{
    const struct ls_store *store = pass->engine->store;
    int parameter = 0, micro_batch = INT_MAX;
    bool reduces = !calibrate, again = false;
    ls_pass_start(pass, prefetcher, true);
    if (pass->audit != NULL)
        ls_audit_begin(pass->audit);
    ls_sums_begin(store->sums, calibrate);
    ls_factors_begin(store->factors);
    if (reduces)
        LS_TRY(ls_reducer_begin(pass->engine->reducer,
                                pass->engine->work_queue == NULL ? pass->owners : NULL,
                                pass->unit_count, error));
    ls_pass_run(pass);
    LS_TRY(ls_pass_finish(pass, error));
    if (reduces)
        LS_TRY(ls_reducer_wait_gradients(pass->engine->reducer, pass->owners, pass->unit_count,
                                         error));
    LS_TRY(ls_reducer_agree(pass->engine->reducer, &again, error));
    LS_TRY(ls_pass_check_data(pass, error));
    pass->wrong = pass->resent = false;
    if (pass->audit != NULL)
        LS_TRY(ls_audit_check(pass->audit, iteration, &pass->wrong, error));
    *result = LS_SUMS_REPEAT;
    if (pass->wrong)
        return 0;
    LS_TRY(pass_check_losses(pass, iteration, error));
    *result = pass_end_gradients(store, calibrate, &parameter, &micro_batch);
    pass->resent = *result == LS_SUMS_GOOD && again;
    if (pass->resent)
        *result = LS_SUMS_REPEAT;
    if (*result != LS_SUMS_NOT_FINITE)
        return 0;
    char what[200];
    const char *name = pass->engine->store->set->items[parameter]->name;
    snprintf(what, sizeof what, "the gradient of '%s'", name);
    if (micro_batch < 0 || (size_t)micro_batch >= pass->unit_count)
        return ls_fail(error, LOCKSTEP_INTERNAL, name, NULL,
                       "another rank reports a gradient of micro-batch %d, of %zu that there are",
                       micro_batch, pass->unit_count);
    return pass_diverged(pass, (size_t)micro_batch, iteration, name, what, error);
}

/* Runs the pass of an update. Where audits are wanted, what is not finite may be a core's mistake:
 * it is computed anew once before it is divergence. */
static int pass_run_update(struct ls_pass *pass, struct ls_prefetcher *prefetcher,
                           int64_t iteration, bool calibrate, enum ls_sums_result *result,
                           struct ls_error *error)
{
    int problems = error != NULL ? error->count : 0;
    int status = pass_run_once(pass, prefetcher, iteration, calibrate, result, error);
    if (pass->audit == NULL)
        return status;
    if (status == 0)
        return pass->wrong ? 0 : ls_audit_clear(pass->audit, error);
    if (status != LOCKSTEP_DIVERGED || !ls_audit_doubt(pass->audit, pass->diverged))
        return status;
    if (error != NULL)
        error->count = problems;
    pass->wrong = true;
    *result = LS_SUMS_REPEAT;
    return 0;
}

/* Before the very first update nothing is known of the gradients: micro-batch 0 is run once to
 * measure them, with all that it goes through the net together with. */
static int pass_calibrate_sums(struct ls_pass *pass, struct ls_prefetcher *prefetcher,
                               int64_t update, int64_t iteration, struct ls_error *error)
{
    enum ls_sums_result result;
    size_t units = pass->unit_count, waves = pass->wave_count;
    bool together = pass->units[0].plan->plan->sync_cuts > 0;
    size_t end = pass->waves[0].end;
    pass->unit_count = pass->waves[0].end = together ? end : 1;
    pass->wave_count = 1;
    int status = pass_run_update(pass, prefetcher, iteration, true, &result, error);
    while (status == 0 && pass->wrong) {
        ls_prefetcher_seek(prefetcher, update);
        status = pass_run_update(pass, prefetcher, iteration, true, &result, error);
    }
    pass->unit_count = units;
    pass->waves[0].end = end;
    pass->wave_count = waves;
    ls_prefetcher_seek(prefetcher, update);
    return status;
}

/* The micro-batches of an update. Where labels are counted on the way all of its batches go through
 * the net together, because the count is that of the update. */
static int pass_add_update(struct ls_pass *pass, int64_t update, int64_t *samples,
                           struct ls_error *error)
{
    int count = ls_batching_update(&pass->net->batching, update, pass->batches);
    pass_forget_units(pass);
    for (int i = 0, index = 0; i < count; i++) {
        LS_TRY(pass_add_batch(pass, &pass->batches[i], update, &index, error));
        *samples += pass->batches[i].count;
    }
    if (pass->net->counts_on_the_way) {
        pass->waves[0].end = pass->unit_count;
        pass->wave_count = 1;
    }
    LS_TRY(pass_make_ready(pass, error));
    for (size_t i = 0; i < pass->unit_count; i++)
        pass->graphs[i] = pass->units[i].plan->plan->graph;
    return ls_factors_place(pass->engine->store->factors, pass->graphs, pass->unit_count, error);
}

int ls_engine_update(struct ls_engine *engine, struct ls_pass *pass,
                     struct ls_prefetcher *prefetcher, int64_t update, int64_t iteration,
                     struct ls_totals *totals, int *repeated, struct ls_error *error)
{
    int64_t samples = 0;
    if (pass->audit != NULL)
        ls_audit_begin_update(pass->audit);
    ls_reducer_iteration(engine->reducer, iteration);
    LS_TRY(pass_add_update(pass, update, &samples, error));
    *repeated = 0;
    LS_TRY(ls_pass_find_normalizers(pass, error));
    if (!ls_sums_measured(engine->store->sums))
        LS_TRY(pass_calibrate_sums(pass, prefetcher, update, iteration, error));
    for (enum ls_sums_result result = LS_SUMS_REPEAT;;) {
        LS_TRY(pass_run_update(pass, prefetcher, iteration, false, &result, error));
        if (result == LS_SUMS_GOOD)
            break;
        if (LS_MUTANT(TWICE)) { /* a pass that is repeated advances the averages, too */
            LS_TRY(ls_pass_find_averages(pass, iteration, error));
            LS_TRY(ls_engine_advance_averages(pass, error));
        }
        *repeated += !pass->resent && !pass->wrong;
        if (*repeated > REPEATS_MAX)
            return ls_comm_common(engine->comm,
                                  ls_fail(error, LOCKSTEP_INTERNAL, NULL, NULL,
                                          "iteration %lld: no exponent fits the gradients",
                                          (long long)iteration));
        ls_prefetcher_seek(prefetcher, update);
    }
    if (pass->averages != NULL)
        LS_TRY(ls_exchange_share_kept(pass->exchange, engine->comm, pass->unit_count, pass->owners,
                                      error));
    LS_TRY(ls_pass_find_averages(pass, iteration, error));
    ls_pass_merge_records(pass, 0, pass->unit_count);
    *totals = (struct ls_totals){
        .record = pass->records, .normalizers = pass->normalizers, .samples = samples};
    return 0;
}

/* ---- Tests ----------------------------------------------------------------------------------- */

/* Figures of a test that are no numbers are shown as they are, unless labels are to blame. */
static int pass_check_figures(const struct ls_pass *pass, struct ls_error *error)
{
    const struct ls_graph *graph = ls_net_graph(pass->net);
    for (size_t unit = 0; unit < pass->unit_count; unit++)
        for (size_t m = 0; m < graph->metric_count; m++)
            if (isnan(ls_pass_record(pass, unit)[graph->metrics[m].offset])) {
                const struct ls_batch *range = &pass->units[unit].range;
                LS_TRY(pass_find_bad_label(pass, range, error));
                break;
            }
    return 0;
}

/* The micro-batches of batches [begin, end). */
static int pass_add_batches(struct ls_pass *pass, int64_t begin, int64_t end, int64_t *samples,
                            struct ls_error *error)
{
    pass_forget_units(pass);
    for (int64_t b = begin; b < end; b++) {
        struct ls_batch batch;
        int index = 0;
        ls_batching_update(&pass->net->batching, b, &batch);
        LS_TRY(pass_add_batch(pass, &batch, b, &index, error));
        *samples += batch.count;
    }
    return pass_make_ready(pass, error);
}

/* All that the units have read. */
static void pass_add_tested(struct ls_pass *pass)
{
    struct ls_read read;
    for (size_t unit = 0; unit < pass->unit_count; unit++)
        for (int d = 0; d < pass->net->dataset_count; d++) {
            ls_pass_read(pass, unit, d, &read);
            ls_digest_add(&pass->tested[d], &read.digests.first);
            ls_digest_add(&pass->tested[d], &read.digests.middle);
            ls_digest_add(&pass->tested[d], &read.digests.last);
            pass->skipped += read.digests.skipped;
        }
}

int ls_engine_test(struct ls_pass *pass, struct ls_prefetcher *prefetcher, int64_t batches,
                   int (*stop)(void *user), void *user, struct ls_totals *totals,
                   struct ls_error *error)
{
    int64_t at_once = ls_engine_batches_at_once(pass->net);
    int64_t samples = 0;
    pass->skipped = 0;
    memset(pass->total, 0, pass->record_size * sizeof *pass->total);
    memset(pass->tested, 0, (size_t)pass->net->dataset_count * sizeof *pass->tested);
    for (size_t i = 0; i < ls_net_graph(pass->net)->normalizer_count; i++)
        pass->normalizers[i] = 1; /* nothing is divided in a test phase before its end */
    for (int64_t begin = 0; begin < batches; begin += at_once) {
        if (stop != NULL && stop(user))
            return LOCKSTEP_STOPPED;
        int64_t end = begin + at_once < batches ? begin + at_once : batches;
        LS_TRY(pass_add_batches(pass, begin, end, &samples, error));
        ls_pass_start(pass, prefetcher, false);
        ls_pass_run(pass);
        LS_TRY(ls_pass_finish(pass, error));
        LS_TRY(ls_pass_check_data(pass, error));
        LS_TRY(pass_check_figures(pass, error));
        pass_add_tested(pass);
        for (size_t i = 0; i < pass->wave_count; i++) {
            const struct ls_wave *batch = &pass->waves[i];
            ls_pass_merge_records(pass, batch->begin, batch->end);
            for (size_t k = 0; k < pass->record_size; k++)
                pass->total[k] += ls_pass_record(pass, batch->begin)[k];
        }
    }
    *totals = (struct ls_totals){
        .record = pass->total, .normalizers = pass->normalizers, .samples = samples};
    return 0;
}
