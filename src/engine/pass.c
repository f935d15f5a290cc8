/* Passes: the micro-batches of an update, or of a test, run by all workers.
 *
 * An update is one list of micro-batches over all its batches. A test goes in groups of batches, so
 * that the records of a large data set need not be kept: within a batch they are merged along the
 * tree, batches are added up in order.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "engine/engine.h"
#include "engine/labels.h"
#include "ir/layer.h"

enum {
    RECORDS_AT_ONCE = 1 << 20, /* doubles in the records of a test's job */
    BATCHES_AT_ONCE = 16,      /* batches of a test's job */
    REPEATS_MAX = 8            /* of an update, before its sums are taken for a mistake of ours */
};

/* A micro-batch of the job at hand. */
struct unit {
    int64_t update; /* the feed's: which update (a test: which batch) */
    int index;      /* the feed's: which micro-batch of it */
    struct ls_batch range;
};

struct ls_pass {
    struct ls_engine *engine;
    struct ls_net *net;
    struct ls_batch *batches; /* of an update */
    struct unit *units;
    size_t unit_count, unit_capacity;
    double *records; /* by unit */
    size_t record_size;
    double *total;
    double *normalizers;
    struct ls_reader **readers; /* [worker][data set]: for what runs before the pass */
    float **before_inputs;      /* [worker][input]; NULL: not looked at before the pass */

    /* The job at hand. */
    struct ls_feed *feed;
    bool training;
    _Atomic size_t next;
    pthread_mutex_t lock; /* guards the two below */
    size_t failed_unit;   /* the first unit that failed, SIZE_MAX: none */
    struct ls_error failure;
};

/* Forward micro-batches per job of a test. */
static int64_t group_of_batches(const struct ls_pass *pass)
{
    int64_t n = ls_micro_batch_count(pass->net->batching.batch, pass->net->batching.micro_batch);
    int64_t doubles = n * (int64_t)(pass->record_size + 1);
    int64_t batches = RECORDS_AT_ONCE / (doubles > 0 ? doubles : 1);
    return batches < 1 ? 1 : batches > BATCHES_AT_ONCE ? BATCHES_AT_ONCE : batches;
}

int64_t ls_engine_update_micro_batches(const struct ls_net *net)
{
    return net->batching.iter_size *
           ls_micro_batch_count(net->batching.batch, net->batching.micro_batch);
}

/* ---- Creation -------------------------------------------------------------------------------- */

static int create_before(struct ls_pass *pass, struct ls_error *error)
{
    const struct ls_net *net = pass->net;
    bool needed = false;
    for (size_t i = 0; i < net->plan_count; i++)
        needed |= net->plans[i].plan->has_before;
    if (!needed || !net->options.training)
        return 0;
    size_t workers = (size_t)pass->engine->workers;
    pass->readers = ls_alloc(workers * (size_t)(net->dataset_count + 1), sizeof *pass->readers);
    pass->before_inputs = ls_alloc(workers * (size_t)net->input_count, sizeof(float *));
    if (pass->readers == NULL || pass->before_inputs == NULL)
        return ls_fail_memory(error, "a pass");
    for (size_t w = 0; w < workers; w++) {
        for (int d = 0; d < net->dataset_count; d++)
            LS_TRY(ls_reader_open(net->datasets[d],
                                  &pass->readers[w * (size_t)net->dataset_count + (size_t)d],
                                  error));
        for (int i = 0; i < net->input_count; i++) {
            if (!ls_net_reads_before(net, i))
                continue;
            const struct ls_value *value = ls_net_graph(net)->inputs[i].value;
            size_t per_sample = (size_t)(ls_shape_size(&value->shape) / value->shape.dim[0]);
            size_t bytes = per_sample * (size_t)net->batching.micro_batch * sizeof(float);
            float **slot = &pass->before_inputs[w * (size_t)net->input_count + (size_t)i];
            if ((*slot = ls_alloc_aligned(bytes)) == NULL)
                return ls_fail_memory(error, "a pass");
        }
    }
    return 0;
}

int ls_pass_create(struct ls_engine *engine, struct ls_net *net, struct ls_pass **out,
                   struct ls_error *error)
{
    *out = NULL;
    struct ls_pass *pass = ls_alloc(1, sizeof *pass);
    if (pass == NULL)
        return ls_fail_memory(error, "a pass");
    const struct ls_graph *graph = ls_net_graph(net);
    pass->engine = engine;
    pass->net = net;
    pass->record_size = (size_t)graph->record_size;
    pthread_mutex_init(&pass->lock, NULL);
    size_t units = (size_t)ls_engine_update_micro_batches(net);
    if (!net->options.training)
        units *= (size_t)group_of_batches(pass);
    pass->unit_capacity = units;
    pass->batches = ls_alloc((size_t)net->batching.iter_size, sizeof *pass->batches);
    pass->units = ls_alloc(units, sizeof *pass->units);
    pass->records = ls_alloc(units * (pass->record_size + 1), sizeof *pass->records);
    pass->total = ls_alloc(pass->record_size + 1, sizeof *pass->total);
    pass->normalizers = ls_alloc(graph->normalizer_count + 1, sizeof *pass->normalizers);
    bool ready = pass->batches != NULL && pass->units != NULL && pass->records != NULL &&
                 pass->total != NULL && pass->normalizers != NULL;
    int status = ready ? create_before(pass, error) : ls_fail_memory(error, "a pass");
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
    size_t workers = (size_t)pass->engine->workers;
    for (size_t i = 0; pass->readers != NULL && i < workers * (size_t)pass->net->dataset_count; i++)
        ls_reader_close(pass->readers[i]);
    for (size_t i = 0; pass->before_inputs != NULL && i < workers * (size_t)pass->net->input_count;
         i++)
        ls_free_aligned(pass->before_inputs[i]);
    pthread_mutex_destroy(&pass->lock);
    ls_free(pass->readers);
    ls_free(pass->before_inputs);
    ls_free(pass->batches);
    ls_free(pass->units);
    ls_free(pass->records);
    ls_free(pass->total);
    ls_free(pass->normalizers);
    ls_free(pass);
}

/* ---- Jobs ------------------------------------------------------------------------------------ */

/* Adds the micro-batches of a batch to the list. `index` is that of its first in the feed. */
static int add_units(struct ls_pass *pass, const struct ls_batch *batch, int64_t update, int index)
{
    int64_t n = ls_micro_batch_count(batch->count, pass->net->batching.micro_batch);
    for (int64_t i = 0; i < n; i++)
        pass->units[pass->unit_count++] = (struct unit){
            .update = update, .index = index + (int)i, .range = ls_micro_batch(batch, n, i)};
    return index + (int)n;
}

static void note_failure(struct ls_pass *pass, size_t unit, const struct ls_error *error)
{
    pthread_mutex_lock(&pass->lock);
    if (unit < pass->failed_unit) { /* the first in order is reported, on any number of workers */
        pass->failed_unit = unit;
        pass->failure = *error;
    }
    pthread_mutex_unlock(&pass->lock);
}

static double *record_of(const struct ls_pass *pass, size_t unit)
{
    return pass->records + unit * pass->record_size;
}

static void run_unit(struct ls_pass *pass, int worker, size_t unit, struct ls_error *error)
{
    struct ls_engine *engine = pass->engine;
    const struct unit *what = &pass->units[unit];
    const struct ls_feed_item *item = NULL;
    if (engine->before_micro_batch != NULL)
        engine->before_micro_batch(engine->user, worker, (int)unit);
    if (ls_feed_take(pass->feed, what->update, what->index, &item, error) != 0) {
        note_failure(pass, unit, error);
        return;
    }
    struct ls_contributor contributor = {
        .sums = engine->store->sums, .worker = worker, .micro_batch = (int)unit};
    struct ls_context context = {.first_ordinal = what->range.ordinal,
                                 .samples = what->range.count,
                                 .normalizers = pass->normalizers,
                                 .partials = record_of(pass, unit),
                                 .contribute = pass->training ? ls_sums_contribute : NULL,
                                 .sums = &contributor};
#ifdef LS_MUTANT_FORGETFUL /* cmake/mutants.cmake: workers lose a micro-batch now and then */
    if (worker == 0 || engine->micro_batches[worker] % 3 != 0)
#endif
        ls_net_run(ls_net_plan_for(pass->net, what->range.count), worker, item->input, &context,
                   false);
    ls_feed_release(pass->feed, item);
    engine->micro_batches[worker]++;
}

static void run_units(void *argument, int worker)
{
    struct ls_pass *pass = argument;
    static _Thread_local struct ls_error error; /* large: not on the stack of every call */
    for (;;) {
        size_t unit = atomic_fetch_add_explicit(&pass->next, 1, memory_order_relaxed);
        if (unit >= pass->unit_count)
            return;
        ls_error_clear(&error);
        run_unit(pass, worker, unit, &error);
    }
}

/* Merges the records of units [begin, end) along the binary tree; the result is in the first. */
static void merge_records(struct ls_pass *pass, size_t begin, size_t end)
{
    size_t n = end - begin;
    for (size_t step = 1; step < n; step *= 2)
        for (size_t i = 0; i + step < n; i += 2 * step) {
            double *into = record_of(pass, begin + i);
            const double *from = record_of(pass, begin + i + step);
            for (size_t k = 0; k < pass->record_size; k++)
                into[k] += from[k];
        }
}

static void start_job(struct ls_pass *pass, struct ls_feed *feed, bool training)
{
    pass->feed = feed;
    pass->training = training;
    pass->failed_unit = SIZE_MAX;
    atomic_store(&pass->next, 0);
    memset(pass->records, 0, pass->unit_count * pass->record_size * sizeof *pass->records);
}

static int finish_job(struct ls_pass *pass, struct ls_error *error)
{
    if (pass->failed_unit == SIZE_MAX)
        return 0;
    if (error != NULL)
        *error = pass->failure;
    return pass->failure.status;
}

/* ---- Before the pass: counts of labels ------------------------------------------------------- */

static int fetch_for_before(struct ls_pass *pass, int worker, const struct unit *unit,
                            float **inputs, struct ls_error *error)
{
    const struct ls_net *net = pass->net;
    for (int i = 0; i < net->input_count; i++) {
        if (inputs[i] == NULL)
            continue;
        const struct ls_value *value = ls_net_graph(net)->inputs[i].value;
        int64_t per_sample = ls_shape_size(&value->shape) / value->shape.dim[0];
        struct ls_reader *reader =
            pass->readers[(size_t)worker * (size_t)net->dataset_count + (size_t)net->inputs[i][0]];
        bool label = net->inputs[i][1] == 1;
        for (int64_t s = 0; s < unit->range.count; s++) {
            float *target = inputs[i] + s * per_sample;
            LS_TRY(ls_reader_fetch(reader, unit->range.ordinal + s, label ? NULL : target,
                                   label ? target : NULL, error));
        }
    }
    return 0;
}

static void count_units(void *argument, int worker)
{
    struct ls_pass *pass = argument;
    float **inputs = pass->before_inputs + (size_t)worker * (size_t)pass->net->input_count;
    static _Thread_local struct ls_error error;
    for (;;) {
        size_t unit = atomic_fetch_add_explicit(&pass->next, 1, memory_order_relaxed);
        if (unit >= pass->unit_count)
            return;
        const struct unit *what = &pass->units[unit];
        ls_error_clear(&error);
        if (fetch_for_before(pass, worker, what, inputs, &error) != 0) {
            note_failure(pass, unit, &error);
            continue;
        }
        struct ls_context context = {.first_ordinal = what->range.ordinal,
                                     .samples = what->range.count,
                                     .normalizers = pass->normalizers,
                                     .partials = record_of(pass, unit)};
        ls_net_run(ls_net_plan_for(pass->net, what->range.count), worker, inputs, &context, true);
    }
}

/* The divisors of the update's losses: from its number of samples, or by counting labels. */
static int find_normalizers(struct ls_pass *pass, int64_t samples, struct ls_error *error)
{
    const struct ls_graph *graph = ls_net_graph(pass->net);
    if (pass->readers != NULL) {
        start_job(pass, NULL, false);
        ls_team_run(pass->engine->team, count_units, pass);
        LS_TRY(finish_job(pass, error));
        merge_records(pass, 0, pass->unit_count);
    }
    for (size_t i = 0; i < graph->normalizer_count; i++) {
        const struct ls_normalizer *normalizer = &graph->normalizers[i];
        double count = (double)normalizer->per_sample * (double)samples;
        if (normalizer->record_offset >= 0)
            count = pass->records[normalizer->record_offset];
        pass->normalizers[i] = normalizer->none || count < 1 ? 1 : count;
    }
    return 0;
}

/* ---- Updates --------------------------------------------------------------------------------- */

static int diverged(const struct ls_pass *pass, size_t unit, int64_t iteration, const char *layer,
                    const char *what, struct ls_error *error)
{
    const struct ls_batch *range = &pass->units[unit].range;
    return ls_fail(error, LOCKSTEP_DIVERGED, layer,
                   "a lower base_lr, warm-up or clip_gradients may help; the weights are those of "
                   "the iteration before",
                   "iteration %lld: %s is not finite, first in the micro-batch of samples %lld to "
                   "%lld",
                   (long long)iteration, what, (long long)range->ordinal,
                   (long long)(range->ordinal + range->count - 1));
}

/* The first unit whose loss is not finite ends the run before the weights change. */
static int check_losses(const struct ls_pass *pass, int64_t iteration, struct ls_error *error)
{
    const struct ls_graph *graph = ls_net_graph(pass->net);
    for (size_t unit = 0; unit < pass->unit_count; unit++)
        for (size_t m = 0; m < graph->metric_count; m++) {
            const struct ls_metric *metric = &graph->metrics[m];
            if (metric->loss_weight == 0 || isfinite(record_of(pass, unit)[metric->offset]))
                continue;
            char place[LS_PLACE_SIZE], what[200];
            const struct ls_batch *range = &pass->units[unit].range;
            LS_TRY(ls_net_find_bad_label(pass->net, range->ordinal, range->count, error));
            ls_layer_place(metric->layer, NULL, NULL, place);
            snprintf(what, sizeof what, "the loss '%s' of layer '%s'", metric->name,
                     metric->layer->name);
            return diverged(pass, unit, iteration, place, what, error);
        }
    return 0;
}

static int run_update(struct ls_pass *pass, struct ls_feed *feed, int64_t iteration, bool gauge,
                      enum ls_sums_result *result, struct ls_error *error)
{
    struct ls_sums *sums = pass->engine->store->sums;
    int parameter = 0, micro_batch = 0;
    start_job(pass, feed, true);
    ls_sums_begin(sums, gauge);
    ls_team_run(pass->engine->team, run_units, pass);
    LS_TRY(finish_job(pass, error));
    LS_TRY(check_losses(pass, iteration, error));
    *result = ls_sums_end(sums, &parameter, &micro_batch);
    if (*result != LS_SUMS_NOT_FINITE)
        return 0;
    char what[200];
    const char *name = pass->engine->store->set->items[parameter]->name;
    snprintf(what, sizeof what, "the gradient of '%s'", name);
    return diverged(pass, (size_t)micro_batch, iteration, name, what, error);
}

/* Before the very first update nothing is known of the gradients: micro-batch 0 is run once to
 * measure them. */
static int gauge_sums(struct ls_pass *pass, struct ls_feed *feed, int64_t update, int64_t iteration,
                      struct ls_error *error)
{
    enum ls_sums_result result;
    size_t units = pass->unit_count;
    pass->unit_count = 1;
    int status = run_update(pass, feed, iteration, true, &result, error);
    pass->unit_count = units;
    ls_feed_seek(feed, update);
    return status;
}

int ls_engine_update(struct ls_engine *engine, struct ls_pass *pass, struct ls_feed *feed,
                     int64_t update, int64_t iteration, struct ls_totals *totals, int *repeated,
                     struct ls_error *error)
{
    int count = ls_batching_update(&pass->net->batching, update, pass->batches);
    pass->unit_count = 0;
    int64_t samples = 0;
    for (int i = 0, index = 0; i < count; i++) {
        index = add_units(pass, &pass->batches[i], update, index);
        samples += pass->batches[i].count;
    }
    *repeated = 0;
    LS_TRY(find_normalizers(pass, samples, error));
    if (!ls_sums_measured(engine->store->sums))
        LS_TRY(gauge_sums(pass, feed, update, iteration, error));
    for (enum ls_sums_result result = LS_SUMS_REPEAT;;) {
        LS_TRY(run_update(pass, feed, iteration, false, &result, error));
        if (result == LS_SUMS_GOOD)
            break;
        if (++*repeated > REPEATS_MAX)
            return ls_fail(error, LOCKSTEP_INTERNAL, NULL, NULL,
                           "iteration %lld: no exponent fits the gradients", (long long)iteration);
        ls_feed_seek(feed, update);
    }
    merge_records(pass, 0, pass->unit_count);
    *totals = (struct ls_totals){
        .record = pass->records, .normalizers = pass->normalizers, .samples = samples};
    return 0;
}

/* ---- Tests ----------------------------------------------------------------------------------- */

/* Figures of a test that are no numbers are shown as they are, unless labels are to blame. */
static int check_figures(const struct ls_pass *pass, struct ls_error *error)
{
    const struct ls_graph *graph = ls_net_graph(pass->net);
    for (size_t unit = 0; unit < pass->unit_count; unit++)
        for (size_t m = 0; m < graph->metric_count; m++)
            if (isnan(record_of(pass, unit)[graph->metrics[m].offset])) {
                const struct ls_batch *range = &pass->units[unit].range;
                LS_TRY(ls_net_find_bad_label(pass->net, range->ordinal, range->count, error));
                break;
            }
    return 0;
}

int ls_engine_test(struct ls_engine *engine, struct ls_pass *pass, struct ls_feed *feed,
                   int64_t batches, int (*stop)(void *user), void *user, struct ls_totals *totals,
                   struct ls_error *error)
{
    int64_t group = group_of_batches(pass);
    int64_t samples = 0;
    memset(pass->total, 0, pass->record_size * sizeof *pass->total);
    for (size_t i = 0; i < ls_net_graph(pass->net)->normalizer_count; i++)
        pass->normalizers[i] = 1; /* nothing is divided in a test phase before its end */
    for (int64_t begin = 0; begin < batches; begin += group) {
        if (stop != NULL && stop(user))
            return LOCKSTEP_STOPPED;
        size_t starts[BATCHES_AT_ONCE + 1];
        int taken = 0;
        pass->unit_count = 0;
        for (int64_t b = begin; b < batches && b < begin + group; b++) {
            struct ls_batch batch;
            ls_batching_update(&pass->net->batching, b, &batch);
            starts[taken++] = pass->unit_count;
            add_units(pass, &batch, b, 0);
            samples += batch.count;
        }
        starts[taken] = pass->unit_count;
        start_job(pass, feed, false);
        ls_team_run(engine->team, run_units, pass);
        LS_TRY(finish_job(pass, error));
        LS_TRY(check_figures(pass, error));
        for (int i = 0; i < taken; i++) {
            merge_records(pass, starts[i], starts[i + 1]);
            for (size_t k = 0; k < pass->record_size; k++)
                pass->total[k] += record_of(pass, starts[i])[k];
        }
    }
    *totals = (struct ls_totals){
        .record = pass->total, .normalizers = pass->normalizers, .samples = samples};
    return 0;
}
