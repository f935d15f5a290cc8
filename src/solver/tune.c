/* Tuning: points are measured in turns, each turn with all points, every second one in the other
 * direction; a point's figure is the median of its turns. Each time a point gets a trainer of its
 * own, so that only one is in memory and none has the better place in it for ever.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver/tune.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cgroup.h"
#include "base/memory.h"
#include "base/thread.h"
#include "layers/source.h"
#include "schema/arena.h"
#include "schema/data_layers.h"
#include "solver/events.h"

enum { TURNS = 5, WARM_UP = 2, ARENA = 64 << 20 };
static const double default_seconds = 2.5;

/* A definition with another batch and micro-batch: the same messages but for those that say so. */
struct variant {
    struct ls_solver_definition definition;
    Lockstep__SolverParameter solver;
    struct ls_arena *arena;
};

struct tuning {
    const struct ls_solver_definition *definition;
    const struct lockstep_tune_options *options;
    struct lockstep_tune_point *points;
    size_t count;
    double (*rates)[TURNS]; /* by point: samples a second */
};

/* ---- Another batch --------------------------------------------------------------------------- */

static void *copy(struct ls_arena *arena, const void *what, size_t count, size_t size)
{
    void *memory = ls_arena_alloc(arena, count > 0 ? count : 1, size);
    if (memory != NULL && count > 0)
        memcpy(memory, what, count * size);
    return memory;
}

/* Another batch of a net: rows of a source become `to` for each `from` of them. */
struct batches {
    struct ls_arena *arena;
    int64_t from, to;
};

/* The rows that a source brings for the other batch, a whole number (check_rows). */
static int64_t scaled(const struct batches *batches, int64_t rows)
{
    return rows * batches->to / batches->from;
}

static bool set_data(const struct batches *batches, Lockstep__LayerParameter *layer)
{
    Lockstep__DataParameter *data = copy(batches->arena, layer->data_param, 1, sizeof *data);
    if (data == NULL)
        return false;
    data->has_batch_size = 1;
    data->batch_size = (uint32_t)scaled(batches, data->batch_size);
    layer->data_param = data;
    return true;
}

static Lockstep__BlobShape *shape_of(const struct batches *batches,
                                     const Lockstep__BlobShape *shape)
{
    Lockstep__BlobShape *mine = copy(batches->arena, shape, 1, sizeof *mine);
    if (mine == NULL ||
        (mine->dim = copy(batches->arena, shape->dim, shape->n_dim, sizeof *mine->dim)) == NULL)
        return NULL;
    if (mine->n_dim > 0)
        mine->dim[0] = scaled(batches, mine->dim[0]);
    return mine;
}

static bool set_dummy(const struct batches *batches, Lockstep__LayerParameter *layer)
{
    struct ls_arena *arena = batches->arena;
    Lockstep__DummyDataParameter *dummy = copy(arena, layer->dummy_data_param, 1, sizeof *dummy);
    if (dummy == NULL)
        return false;
    dummy->num = copy(arena, dummy->num, dummy->n_num, sizeof *dummy->num);
    dummy->shape = copy(arena, dummy->shape, dummy->n_shape, sizeof *dummy->shape);
    if (dummy->num == NULL || dummy->shape == NULL)
        return false;
    for (size_t i = 0; i < dummy->n_num; i++)
        dummy->num[i] = (uint32_t)scaled(batches, dummy->num[i]);
    for (size_t i = 0; i < dummy->n_shape; i++)
        if ((dummy->shape[i] = shape_of(batches, dummy->shape[i])) == NULL)
            return false;
    layer->dummy_data_param = dummy;
    return true;
}

/* Gives the sources of the train net another batch. */
static bool set_batch(struct variant *variant, const struct batches *batches)
{
    struct ls_arena *arena = batches->arena;
    Lockstep__NetParameter *net = copy(arena, variant->definition.train.net, 1, sizeof *net);
    if (net == NULL ||
        (net->layer = copy(arena, net->layer, net->n_layer, sizeof *net->layer)) == NULL)
        return false;
    variant->definition.train.net = net;
    for (size_t i = 0; i < net->n_layer; i++) {
        bool data = net->layer[i]->data_param != NULL, done;
        if (!data && net->layer[i]->dummy_data_param == NULL)
            continue;
        Lockstep__LayerParameter *layer = copy(arena, net->layer[i], 1, sizeof *layer);
        done = layer != NULL && (data ? set_data(batches, layer) : set_dummy(batches, layer));
        if (!done)
            return false;
        net->layer[i] = layer;
    }
    return true;
}

/* The batch of a net as engine/sources.c finds it: that of its first data layer, else of its first
 * source; 0: it has none. */
static int64_t batch_of(const Lockstep__NetParameter *net)
{
    int64_t batch = 0;
    for (size_t i = 0; i < net->n_layer; i++) {
        if (ls_data_layer_reads(net->layer[i]))
            return ls_source_batch(net->layer[i]);
        batch = batch > 0 ? batch : ls_source_batch(net->layer[i]);
    }
    return batch;
}

static bool scales(const struct batches *batches, int64_t rows)
{
    int64_t all;
    return ls_multiply(rows, batches->to, &all) && all % batches->from == 0 &&
           all / batches->from <= INT32_MAX;
}

/* That each source of a net has a whole number of rows for the other batch. */
static int check_rows(const Lockstep__NetParameter *net, const struct batches *batches,
                      struct ls_error *error)
{
    for (size_t i = 0; i < net->n_layer; i++) {
        const Lockstep__LayerParameter *layer = net->layer[i];
        const Lockstep__DummyDataParameter *dummy = layer->dummy_data_param;
        int64_t rows = ls_source_batch(layer);
        bool fit = scales(batches, rows);
        for (size_t k = 0; dummy != NULL && k < dummy->n_num; k++)
            fit = fit && scales(batches, dummy->num[k]);
        for (size_t k = 0; dummy != NULL && k < dummy->n_shape; k++)
            fit = fit && (dummy->shape[k]->n_dim == 0 || scales(batches, dummy->shape[k]->dim[0]));
        if (!fit)
            return ls_fail(error, LOCKSTEP_DEFINITION, NULL, NULL,
                           "a batch of %lld instead of %lld is no whole number of rows of layer "
                           "'%.100s'",
                           (long long)batches->to, (long long)batches->from,
                           layer->name != NULL ? layer->name : "(unnamed)");
    }
    return 0;
}

static int make_variant(const struct ls_solver_definition *definition,
                        const struct lockstep_tune_point *point, struct variant *variant,
                        struct ls_error *error)
{
    variant->definition = *definition;
    variant->solver = *definition->solver;
    variant->definition.solver = &variant->solver;
    variant->arena = ls_arena_new(ARENA);
    if (point->micro_batch > 0) {
        variant->solver.has_micro_batch = 1;
        variant->solver.micro_batch = (uint32_t)point->micro_batch;
    }
    const struct batches batches = {variant->arena, batch_of(definition->train.net), point->batch};
    const bool other = point->batch > 0 && batches.from > 0 && batches.from != point->batch;
    if (other)
        LS_TRY(check_rows(definition->train.net, &batches, error));
    if (variant->arena != NULL && (!other || set_batch(variant, &batches)))
        return 0;
    return ls_fail_memory(error, "another batch");
}

/* ---- Memory ---------------------------------------------------------------------------------- */

/* What can be had without the system taking it from others; 0: unknown. */
static double available_memory(void)
{
    FILE *file = fopen("/proc/meminfo", "r");
    char line[200];
    double kib = 0;
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "MemAvailable:", 13) == 0)
            kib = strtod(line + 13, NULL);
    if (file != NULL)
        fclose(file);
    double limit = ls_memory_limit();
    return limit > 0 && (kib <= 0 || limit < kib * 1024) ? limit : kib * 1024;
}

/* A point that would drive the machine into its swap is not tried. */
static int check_memory(const struct lockstep_tune_point *point, struct ls_error *error)
{
    double available = available_memory();
    if (available <= 0 || (double)point->memory <= available)
        return 0;
    return ls_fail(error, LOCKSTEP_RESOURCE, NULL, NULL,
                   "takes %.0f MiB, and %.0f MiB are available", (double)point->memory / 1048576,
                   available / 1048576);
}

/* ---- Measuring ------------------------------------------------------------------------------- */

/* Some policies of the learning rate have no rate behind max_iter. */
static bool goes_on(const struct ls_trainer *trainer)
{
    return trainer->schedule.max_iter <= 0 || trainer->iteration < trainer->schedule.max_iter;
}

/* Updates for so many seconds, at least one. */
static int run_turn(struct ls_trainer *trainer, double seconds, double *rate,
                    struct ls_error *error)
{
    for (int i = 0; i < WARM_UP && trainer->iteration + 1 < trainer->schedule.max_iter; i++)
        LS_TRY(ls_trainer_update(trainer, error));
    int64_t samples = 0;
    double start = ls_clock(), taken = 0;
    do {
        LS_TRY(ls_trainer_update(trainer, error));
        samples += trainer->figures.totals.samples;
        taken = ls_clock() - start;
    } while (taken < seconds && goes_on(trainer));
    *rate = (double)samples / taken;
    return 0;
}

static int measure(struct tuning *tuning, size_t index, int turn, struct ls_error *error)
{
    struct lockstep_tune_point *point = &tuning->points[index];
    struct variant variant = {.arena = NULL};
    struct ls_trainer *trainer = NULL;
    struct lockstep_train_options train = {.struct_size = sizeof train,
                                           .workers = point->workers,
                                           .device = tuning->options->device,
                                           .callbacks = tuning->options->callbacks};
    double seconds = tuning->options->seconds > 0 ? tuning->options->seconds : default_seconds;
    int status = make_variant(tuning->definition, point, &variant, error);
    if (status == 0)
        status = ls_trainer_create(&variant.definition, &train, &trainer, error);
    if (status == 0) {
        point->workers = trainer->workers;
        point->batch = trainer->train->batching.batch;
        point->micro_batch = ls_batching_largest(&trainer->train->batching);
        point->memory = ls_forecast_total(&trainer->forecast);
        status = check_memory(point, error);
    }
    if (status == 0)
        status = run_turn(trainer, seconds / TURNS, &tuning->rates[index][turn], error);
    if (status == 0)
        ls_events_say(trainer, LOCKSTEP_EVENT_NOTICE,
                      "Turn %d of %d: workers %d, batch %lld, micro_batch %lld: %.6g samples/s",
                      turn + 1, TURNS, point->workers, (long long)point->batch,
                      (long long)point->micro_batch, tuning->rates[index][turn]);
    ls_trainer_free(trainer);
    ls_arena_free(variant.arena);
    return status;
}

/* A point that cannot be is left out from now on; the first one is what is asked for. */
static int note_failure(struct tuning *tuning, size_t index, int status,
                        const struct ls_error *failure, struct ls_error *error)
{
    struct lockstep_tune_point *point = &tuning->points[index];
    if (index == 0) {
        if (error != NULL)
            *error = *failure;
        return status;
    }
    point->status = status;
    const struct ls_problem *problem = &failure->problems[0];
    if (failure->count > 0)
        snprintf(point->reason, sizeof point->reason, "%.300s%s%.700s", problem->place,
                 problem->place[0] != '\0' ? ": " : "", problem->message);
    return 0;
}

static int run_turns(struct tuning *tuning, struct ls_error *error)
{
    const struct lockstep_callbacks *callbacks = &tuning->options->callbacks;
    struct ls_error *failure = ls_alloc(1, sizeof *failure); /* large */
    if (failure == NULL)
        return ls_fail_memory(error, "tuning");
    int status = 0;
    for (int turn = 0; turn < TURNS && status == 0; turn++)
        for (size_t i = 0; i < tuning->count && status == 0; i++) {
            size_t index = turn % 2 == 0 ? i : tuning->count - 1 - i;
            if (tuning->points[index].status != 0)
                continue;
            if (callbacks->poll != NULL &&
                callbacks->poll(callbacks->user) == LOCKSTEP_SNAPSHOT_AND_STOP) {
                status = LOCKSTEP_STOPPED;
                break;
            }
            ls_error_clear(failure);
            int result = measure(tuning, index, turn, failure);
            if (result != 0)
                status = note_failure(tuning, index, result, failure, error);
        }
    ls_free(failure);
    return status;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int ls_tune(const struct ls_solver_definition *definition,
            const struct lockstep_tune_options *options, struct lockstep_tune_point *points,
            size_t count, struct ls_error *error)
{
    struct tuning tuning = {
        .definition = definition, .options = options, .points = points, .count = count};
    tuning.rates = ls_alloc(count, sizeof *tuning.rates);
    int status = tuning.rates == NULL ? ls_fail_memory(error, "tuning") : 0;
    if (status == 0)
        status = run_turns(&tuning, error);
    for (size_t i = 0; i < count && status == 0; i++) {
        double *rates = tuning.rates[i];
        if (points[i].status != 0)
            continue;
        qsort(rates, TURNS, sizeof *rates, compare_doubles);
        points[i].slowest = rates[0];
        points[i].median = rates[TURNS / 2];
        points[i].fastest = rates[TURNS - 1];
    }
    ls_free(tuning.rates);
    return status;
}
