/* One update of the weights. See engine/step.h.
 *
 * Everything here runs on the thread of worker 0. Workers run in ls_run_pass and ls_optimizer_run,
 * which return when all of them are done; the progress thread moves what goes between ranks
 * (engine/reducer.h).
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/step.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>

#include "base/mutant.h"
#include "engine/audit.h"
#include "engine/averages.h"
#include "engine/engine.h"
#include "engine/exponents.h"
#include "engine/gather.h"
#include "engine/normalizers.h"
#include "engine/not_finite.h"
#include "engine/plans.h"
#include "engine/rankings.h"
#include "engine/read.h"
#include "engine/reducer.h"
#include "engine/run.h"
#include "engine/sample_states.h"
#include "engine/store_views.h"
#include "engine/work_queue.h"
#include "ir/layer.h"
#include "transport/comm.h"

enum { REPEATS_MAX = 8 /* of an update; one that needs more is an internal error */ };

/* ---- Creation -------------------------------------------------------------------------------- */

static int step_create_parts(struct ls_pass *pass, struct ls_error *error)
{
    const struct ls_net *net = pass->net;
    struct ls_engine *engine = pass->engine;
    const struct ls_exchange_options options = {.graph = ls_net_graph(net),
                                                .device = engine->device,
                                                .workers = engine->workers,
                                                .units = (int64_t)pass->unit_capacity,
                                                .largest = ls_batching_largest(&net->batching),
                                                .batch = net->batching.batch,
                                                .batches = ls_pass_batches(net),
                                                .local = ls_plans_local,
                                                .user = net};
    if (engine->comm->dynamic && engine->work_queue == NULL)
        LS_TRY(ls_work_queue_create(engine->comm, &engine->work_queue, error));
    LS_TRY(ls_exchange_create(&options, &pass->exchange, error));
    LS_TRY(ls_read_create(pass, error));
    LS_TRY(ls_averages_create(pass, error));
    LS_TRY(ls_normalizers_create(pass, error));
    LS_TRY(ls_sample_states_create(pass, error));
    LS_TRY(ls_rankings_create(pass, error));
    if (!net->options.training || !(engine->audited_part > 0))
        return 0;
    return ls_audit_create(pass, engine->audited_part, engine->audit_seed, &pass->audit, error);
}

int ls_step_create(struct ls_engine *engine, struct ls_net *net, struct ls_pass **out,
                   struct ls_error *error)
{
    LS_TRY(ls_pass_create(engine, net, out, error));
    int status = step_create_parts(*out, error);
    if (status != 0) {
        ls_step_free(*out);
        *out = NULL;
    }
    return status;
}

void ls_step_free(struct ls_pass *pass)
{
    if (pass == NULL)
        return;
    ls_audit_free(pass->audit);
    ls_rankings_free(pass->rankings);
    ls_sample_states_free(pass->states);
    ls_normalizers_free(pass);
    ls_averages_free(pass);
    ls_read_free(pass);
    ls_exchange_free(pass->exchange);
    ls_pass_free(pass);
}

/* ---- Prepare --------------------------------------------------------------------------------- */

/* Lists the micro-batches of the update, makes room for their plans, for gathered products and for
 * factors, and finds what losses are divided by. */
static int step_prepare(struct ls_pass *pass, int64_t update, int64_t *samples,
                        struct ls_error *error)
{
    int count = ls_batching_update(&pass->net->batching, update, pass->batches);
    ls_pass_clear(pass);
    for (int i = 0, index = 0; i < count; i++) {
        LS_TRY(ls_pass_add_batch(pass, &pass->batches[i], update, &index, error));
        *samples += pass->batches[i].count;
    }
    /* Where labels are counted on the way, all batches go through the net together, because the
     * count is that of the update. */
    if (pass->net->counts_on_the_way) {
        pass->waves[0].end = pass->unit_count;
        pass->wave_count = 1;
    }
    LS_TRY(ls_pass_make_ready(pass, error));
    LS_TRY(ls_gather_reserve(pass, error));
    for (size_t i = 0; i < pass->unit_count; i++)
        pass->graphs[i] = pass->units[i].plan->plan->graph;
    LS_TRY(ls_factors_place(pass->engine->store->factors, pass->graphs, pass->unit_count, error));
    return ls_normalizers_find(pass, error);
}

/* ---- Run ------------------------------------------------------------------------------------- */

/* Computes all listed micro-batches. A calibration pass measures gradients, and sums nothing: so
 * ranks reduce nothing then. */
static int step_run(struct ls_pass *pass, struct ls_prefetcher *prefetcher, bool calibrate,
                    struct ls_error *error)
{
    const struct ls_engine *engine = pass->engine;
    ls_pass_begin(pass, prefetcher, true);
    if (pass->audit != NULL)
        ls_audit_begin(pass->audit);
    pass->reduces = !calibrate && engine->reducer != NULL;
    LS_TRY(ls_sums_begin(engine->store->sums, calibrate, error));
    LS_TRY(ls_factors_begin(engine->store->factors, error));
    if (!calibrate) /* buckets are sent while workers compute */
        LS_TRY(ls_reducer_begin(engine->reducer, engine->work_queue == NULL ? pass->owners : NULL,
                                pass->unit_count, error));
    ls_run_pass(pass);
    return ls_pass_finish(pass, error);
}

/* ---- Reduce ---------------------------------------------------------------------------------- */

/* What may help. Rates have a part in it once weights have changed. */
static const char *step_hint(const struct ls_pass *pass, const struct ls_not_finite *found)
{
    if (found->hint[0] != '\0')
        return found->hint;
    if (!pass->updated)
        return "no update has changed a weight yet: it comes from the data, from a layer or from "
               "how weights are filled";
    return found->learned ? "a lower base_lr, warm-up or clip_gradients may help"
                          : "it does not depend on what is learned: look at the data and the layer";
}

static int step_diverged(struct ls_pass *pass, size_t unit, int64_t iteration, const char *place,
                         const char *what, struct ls_error *error)
{
    const struct ls_batch *range = &pass->units[unit].range;
    struct ls_not_finite found;
    pass->diverged = unit;
    ls_not_finite_find(pass, unit, &found);
    int status = ls_fail(
        error, LOCKSTEP_DIVERGED, place, step_hint(pass, &found),
        "iteration %lld: %s is not finite, first in the micro-batch of samples %lld to %lld%s%s",
        (long long)iteration, what, (long long)range->ordinal,
        (long long)(range->ordinal + range->count - 1), found.text[0] != '\0' ? ": " : "",
        found.text);
    return ls_comm_common(pass->engine->comm, status);
}

/* Fails for the first unit whose loss is not finite: the weights have not changed yet. */
static int step_check_losses(struct ls_pass *pass, int64_t iteration, struct ls_error *error)
{
    const struct ls_graph *graph = ls_net_graph(pass->net);
    for (size_t unit = 0; unit < pass->unit_count; unit++)
        for (size_t m = 0; m < graph->metric_count; m++) {
            const struct ls_metric *metric = &graph->metrics[m];
            if (metric->loss_weight == 0 || isfinite(ls_pass_record(pass, unit)[metric->offset]))
                continue;
            char place[LS_PLACE_SIZE], what[200];
            LS_TRY(ls_pass_find_bad_label(pass, &pass->units[unit].range, error));
            ls_layer_place(metric->layer, NULL, NULL, place);
            snprintf(what, sizeof what, "the loss '%s' of layer '%s'", metric->name,
                     metric->layer->name);
            return step_diverged(pass, unit, iteration, place, what, error);
        }
    return 0;
}

/* Whether the sums and factors are good. Where gradients are not finite, the first micro-batch that
 * has one is reported. */
static int step_judge_gradients(struct ls_pass *pass, int64_t iteration, bool calibrate,
                                enum ls_sums_result *result, struct ls_error *error)
{
    const struct ls_store *store = pass->engine->store;
    int parameter = 0, micro_batch = INT_MAX, which = 0, first = INT_MAX;
    *result = ls_sums_end(store->sums, &parameter, &micro_batch);
    LS_TRY(ls_factors_find_not_finite(store->factors, !calibrate, &which, &first, error));
    if (first != INT_MAX && (*result != LS_SUMS_NOT_FINITE || first < micro_batch)) {
        *result = LS_SUMS_NOT_FINITE;
        parameter = which;
        micro_batch = first;
    }
    if (*result != LS_SUMS_NOT_FINITE)
        return 0;
    char what[200];
    const char *name = store->set->items[parameter]->name;
    snprintf(what, sizeof what, "the gradient of '%s'", name);
    if (micro_batch < 0 || (size_t)micro_batch >= pass->unit_count)
        return ls_fail(error, LOCKSTEP_INTERNAL, name, NULL,
                       "another rank reports a gradient of micro-batch %d, of %zu that there are",
                       micro_batch, pass->unit_count);
    return step_diverged(pass, (size_t)micro_batch, iteration, name, what, error);
}

/* Waits until the gradients of all ranks are there, and judges the pass: LS_SUMS_REPEAT means that
 * it must be run again. The result is the same on all ranks. */
static int step_reduce(struct ls_pass *pass, int64_t iteration, bool calibrate,
                       enum ls_sums_result *result, struct ls_error *error)
{
    struct ls_reducer *reducer = pass->engine->reducer;
    bool overflowed = false;
    *result = LS_SUMS_REPEAT;
    if (!calibrate)
        LS_TRY(ls_reducer_wait_gradients(reducer, pass->owners, pass->unit_count, error));
    LS_TRY(ls_sums_collect(pass->engine->store->sums, error));
    LS_TRY(ls_factors_collect(pass->engine->store->factors, error));
    LS_TRY(ls_reducer_agree(reducer, &overflowed, error));
    LS_TRY(ls_read_check(pass, error));
    pass->wrong = pass->resent = false;
    if (pass->audit != NULL)
        LS_TRY(ls_audit_check(pass->audit, iteration, &pass->wrong, error));
    if (pass->wrong)
        return 0;
    LS_TRY(step_check_losses(pass, iteration, error));
    LS_TRY(step_judge_gradients(pass, iteration, calibrate, result, error));
    pass->resent = *result == LS_SUMS_GOOD && overflowed;
    if (pass->resent)
        *result = LS_SUMS_REPEAT;
    return 0;
}

/* ---- The gradient of an update --------------------------------------------------------------- */

/* Runs the pass, and reduces. With audits, a number that is not finite may come from a core that
 * computes wrongly: the pass is repeated once before that is reported as divergence. */
static int step_attempt(struct ls_pass *pass, struct ls_prefetcher *prefetcher, int64_t iteration,
                        bool calibrate, enum ls_sums_result *result, struct ls_error *error)
{
    int problems = error != NULL ? error->count : 0;
    int status = step_run(pass, prefetcher, calibrate, error);
    if (status == 0)
        status = step_reduce(pass, iteration, calibrate, result, error);
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
    return ls_comm_common(pass->engine->comm, 0); /* no failure, until it is confirmed */
}

/* The calibration pass. Before the very first update nothing is known of the magnitudes of
 * gradients: micro-batch 0 is run once to measure them, or all of the first wave, where
 * micro-batches exchange partial results. */
static int step_calibrate(struct ls_pass *pass, struct ls_prefetcher *prefetcher, int64_t update,
                          int64_t iteration, struct ls_error *error)
{
    enum ls_sums_result result;
    size_t units = pass->unit_count, waves = pass->wave_count;
    bool together = pass->units[0].plan->plan->sync_cuts > 0;
    size_t end = pass->waves[0].end;
    pass->unit_count = pass->waves[0].end = together ? end : 1;
    pass->wave_count = 1;
    int status = step_attempt(pass, prefetcher, iteration, true, &result, error);
    while (status == 0 && pass->wrong) {
        ls_prefetcher_seek(prefetcher, update);
        status = step_attempt(pass, prefetcher, iteration, true, &result, error);
    }
    pass->unit_count = units;
    pass->waves[0].end = end;
    pass->wave_count = waves;
    ls_prefetcher_seek(prefetcher, update);
    return status;
}

int ls_step_gradients(struct ls_pass *pass, struct ls_prefetcher *prefetcher, int64_t update,
                      int64_t iteration, struct ls_totals *totals, int *repeated,
                      struct ls_error *error)
{
    struct ls_engine *engine = pass->engine;
    int64_t samples = 0;
    *repeated = 0;
    if (pass->audit != NULL)
        ls_audit_begin_update(pass->audit);
    ls_reducer_iteration(engine->reducer, iteration);
    LS_TRY(step_prepare(pass, update, &samples, error));
    if (!ls_sums_measured(engine->store->sums))
        LS_TRY(step_calibrate(pass, prefetcher, update, iteration, error));
    for (enum ls_sums_result result = LS_SUMS_REPEAT;;) {
        LS_TRY(step_attempt(pass, prefetcher, iteration, false, &result, error));
        if (result == LS_SUMS_GOOD)
            break;
        if (LS_MUTANT(TWICE)) { /* a pass that is repeated advances the averages, too */
            LS_TRY(ls_averages_find(pass, iteration, error));
            LS_TRY(ls_averages_publish(pass, error));
        }
        *repeated += !pass->resent && !pass->wrong;
        if (*repeated > REPEATS_MAX)
            return ls_comm_common(engine->comm, ls_fail(error, LOCKSTEP_INTERNAL, NULL, NULL,
                                                        "iteration %lld: no exponent fits the "
                                                        "gradients",
                                                        (long long)iteration));
        ls_prefetcher_seek(prefetcher, update);
    }
    LS_TRY(ls_averages_find(pass, iteration, error));
    ls_pass_merge_records(pass, 0, pass->unit_count);
    *totals = (struct ls_totals){
        .record = pass->records, .normalizers = pass->normalizers, .samples = samples};
    return 0;
}

/* ---- Update and publish ---------------------------------------------------------------------- */

/* Sends the weights that this rank has changed to the others, under the next forward pass; moves
 * the exponents of sums after the gradients that all ranks have seen; and refreshes the views of
 * weights that are not exchanged. (Views of the others are refreshed when their weights arrive.)
 * *not_finite: a parameter with a weight that is not finite, or -1. */
static int step_publish(struct ls_engine *engine, int *not_finite, struct ls_error *error)
{
    struct ls_store *store = engine->store;
    LS_TRY(ls_reducer_send_weights(engine->reducer, error));
    LS_TRY(ls_optimizer_share_seen(engine, error));
    *not_finite = -1;
    for (int i = (int)store->set->count; i-- > 0;) {
        if (!store->set->items[i]->trained)
            continue;
        if (!ls_store_has_factors(store, i))
            ls_sums_next(store->sums, i, ls_optimizer_gradient(engine->optimizer, i));
        if (ls_optimizer_weight(engine->optimizer, i) >= LS_NOT_FINITE)
            *not_finite = i;
    }
    return ls_store_refresh_own_views(store, engine->pool, error);
}

int ls_step_apply(struct ls_pass *pass, const struct ls_update_request *request, int64_t iteration,
                  struct ls_error *error)
{
    struct ls_engine *engine = pass->engine;
    int not_finite;
    LS_TRY(ls_optimizer_run(engine, request, error));
    LS_TRY(step_publish(engine, &not_finite, error));
    if (not_finite >= 0) {
        int status = ls_fail(error, LOCKSTEP_DIVERGED, engine->store->set->items[not_finite]->name,
                             "a lower base_lr, warm-up or clip_gradients may help; go on from an "
                             "older snapshot, if there is one",
                             "iteration %lld: the update made a weight that is not finite",
                             (long long)iteration);
        return ls_comm_common(engine->comm, status);
    }
    LS_TRY(ls_averages_publish(pass, error));
    return ls_sample_states_publish(pass, error);
}
