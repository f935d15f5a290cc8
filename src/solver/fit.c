/* Fitting a training into a limit on memory.
 *
 * Parameters and optimizer state have a fixed size. Activations get the rest; if that is too
 * little, the planner recomputes some of them in the backward pass, which changes no bit. If the
 * smallest plan is too large, the message says what would fit: fewer workers, or a smaller
 * micro_batch, which is another training. The batch size does not matter: batches are cut.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver/fit.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>

#include "base/cgroup.h"
#include "base/memory.h"
#include "base/text.h"
#include "engine/audit.h"
#include "engine/plans.h"
#include "engine/residents.h"
#include "engine/sample_states.h"
#include "solver/training_plan.h"
#include "transport/comm.h"

enum {
    ROUNDS = 5, /* of plans for less and less */
    TRIALS = 32 /* of plans among which the smallest is looked for */
};

int ls_fit_forecast(const struct ls_fit *fit, struct ls_forecast *forecast, struct ls_error *error)
{
    LS_TRY(ls_forecast_nets(fit->nets, fit->count, fit->set, fit->views, &fit->store, forecast,
                            error));
    if (fit->snapshots)
        ls_forecast_add_snapshot(forecast, fit->set, &fit->store);
    if (fit->audits)
        forecast->statistics += ls_audit_bytes(fit->nets[0], fit->store.workers);
    forecast->statistics += fit->trace;
    if (fit->measures)
        forecast->statistics += ls_statistics_bytes(fit->set, &fit->store);
    return 0;
}

int ls_fit_limit(const struct ls_fit *fit, size_t activations, struct ls_forecast *forecast,
                 struct ls_error *error)
{
    fit->views->count = 0; /* those that only the plans before asked for are not needed */
    for (size_t i = 0; i < fit->count; i++) {
        fit->nets[i]->options.workers = fit->store.workers;
        LS_TRY(ls_plans_limit(fit->nets[i], activations, error));
    }
    return ls_fit_forecast(fit, forecast, error);
}

/* The plans that take least in all, whatever the limit is. Those with the least activations do most
 * steps again, and steps take memory, too, so that others may be smaller: plans are tried from the
 * most that their activations could be downwards. */
static int find_least(const struct ls_fit *fit, struct ls_forecast *least, struct ls_error *error)
{
    struct ls_forecast other;
    LS_TRY(ls_fit_limit(fit, 0, &other, error));
    LS_TRY(ls_fit_limit(fit, 1, least, error));
    size_t total = ls_forecast_total(least), smallest = ls_forecast_activations(least), best = 1;
    size_t fixed = ls_forecast_total(&other) - ls_forecast_activations(&other);
    size_t bound = total > fixed ? total - fixed : 0;
    for (int trial = 0; trial < TRIALS && bound > smallest; trial++) {
        bound--;
        LS_TRY(ls_fit_limit(fit, bound, &other, error));
        size_t found = ls_forecast_activations(&other);
        if (ls_forecast_total(&other) < total) {
            total = ls_forecast_total(&other);
            best = bound;
        }
        bound = found < bound ? found : bound - bound / 64;
    }
    return ls_fit_limit(fit, best, least, error);
}

/* Plans for `memory`, if that can be; else the smallest plans. */
static int fit_into(const struct ls_fit *fit, size_t memory, struct ls_forecast *forecast,
                    struct ls_error *error)
{
    LS_TRY(ls_fit_forecast(fit, forecast, error));
    size_t total = ls_forecast_total(forecast);
    if (memory == LS_MEMORY_LEAST)
        return ls_fit_limit(fit, 1, forecast, error);
    if (memory == 0 || total <= memory)
        return 0;
    size_t activations = SIZE_MAX;
    for (int round = 0; round < ROUNDS; round++) {
        size_t fixed = total - ls_forecast_activations(forecast), over = total - memory;
        if (fixed >= memory)
            break;
        /* Recomputations are steps, which take memory, too. And one net or micro-batch may have the
         * larger arena where another one holds more: then each must do with less. */
        if (memory - fixed < activations)
            activations = memory - fixed;
        else if (over < activations)
            activations -= over;
        else
            break;
        LS_TRY(ls_fit_limit(fit, activations, forecast, error));
        total = ls_forecast_total(forecast);
        if (total <= memory)
            return 0;
    }
    return find_least(fit, forecast, error);
}

/* The least with one worker. */
static int least_alone(const struct ls_fit *fit, size_t *bytes, struct ls_error *error)
{
    struct ls_fit alone = *fit;
    struct ls_forecast forecast;
    alone.store.workers = 1;
    LS_TRY(find_least(&alone, &forecast, error));
    *bytes = ls_forecast_total(&forecast);
    return 0;
}

/* The largest micro_batch below the net's, halved and halved again, that fits; 0: none does. */
static int find_micro_batch(const struct ls_fit *fit, size_t memory, int64_t *found,
                            struct ls_error *error)
{
    int64_t micro_batch = ls_batching_largest(&fit->nets[0]->batching);
    for (*found = 0; micro_batch > 1 && fit->open != NULL;) {
        struct ls_forecast forecast;
        void *trial = NULL;
        struct ls_fit other;
        micro_batch /= 2;
        if (fit->open(fit->user, micro_batch, &trial, &other, NULL) != 0)
            return 0; /* too many micro-batches, for one */
        int status = fit_into(&other, memory, &forecast, error);
        fit->close(trial);
        LS_TRY(status);
        if (ls_forecast_total(&forecast) <= memory) {
            *found = micro_batch;
            return 0;
        }
    }
    return 0;
}

static double mebibytes(size_t bytes)
{
    return (double)bytes / 1048576;
}

/* Tenths, as messages show them, rounded up: with a limit of what is said to be needed it works. */
static double needed(size_t bytes)
{
    return ceil(mebibytes(bytes) * 10) / 10;
}

/* And rounded down: what there is. */
static double allowed(size_t bytes)
{
    return floor(mebibytes(bytes) * 10) / 10;
}

static int does_not_fit(const struct ls_fit *fit, size_t memory, const struct ls_forecast *least,
                        struct ls_error *error)
{
    char alone[80] = "", hint[400];
    const char *limit =
        memory == fit->there ? "the memory limit of this container leaves it" : "the limit is";
    size_t bytes = ls_forecast_total(least), one = bytes;
    int64_t micro_batch = 0;
    if (fit->store.workers > 1) {
        LS_TRY(least_alone(fit, &one, error));
        snprintf(alone, sizeof alone, ", %.1f MiB with 1", needed(one));
    }
    LS_TRY(find_micro_batch(fit, memory, &micro_batch, error));
    const char *fewer = one <= memory ? "use --workers 1, which changes no bits; " : "";
    if (micro_batch > 0)
        snprintf(hint, sizeof hint,
                 "%smicro_batch: %lld would fit, but changes the bits (it is another training); "
                 "the batch need not shrink",
                 fewer, (long long)micro_batch);
    else if (least->stashed > 0)
        snprintf(hint, sizeof hint,
                 "%sno smaller micro_batch would fit; what is held across sync points grows with "
                 "the batch: a group within micro-batches (follow_groups) or a smaller batch "
                 "need less memory, but change the training",
                 fewer);
    else
        snprintf(hint, sizeof hint,
                 "%sno smaller micro_batch would fit, and no smaller batch: %.1f MiB are not "
                 "activations",
                 fewer, mebibytes(bytes - ls_forecast_activations(least)));
    return ls_fail(error, LOCKSTEP_RESOURCE, NULL, hint,
                   "%s needs at least %.1f MiB%s with %d worker%s%s; %s %.1f MiB", fit->what,
                   needed(bytes), least->apart ? " of the device's memory" : "", fit->store.workers,
                   fit->store.workers > 1 ? "s" : "", alone, limit, allowed(memory));
}

/* A copy of what snapshots hold has what is left: nothing is computed again for its sake. */
static void add_copy(const struct ls_fit *fit, size_t memory, struct ls_forecast *forecast)
{
    size_t copy = fit->copies ? ls_forecast_copy(fit->set, &fit->store) : 0;
    if (copy > 0)
        copy += ls_sample_states_snapshot_bytes(fit->nets[0]);
    const bool room =
        memory == 0 || forecast->apart || ls_forecast_total(forecast) + copy <= memory;
    forecast->copies = copy > 0 && room;
    if (forecast->copies)
        forecast->snapshot += copy;
}

size_t ls_fit_there(int processes)
{
    /* The pages of the program, its libraries and the kernel's tables are counted there, too: with
     * less than this, they are read again and again. */
    const double others = 10 << 20;
    const double limit = ls_memory_limit() / processes;
    if (limit <= 0 || limit >= 0x1p62)
        return 0;
    return limit > others + 1 ? (size_t)(limit - others) : 1;
}

/* A device with memory of its own has no more than is left there, whatever the limit is. */
static int find_limit(const struct ls_fit *fit, size_t *memory, struct ls_error *error)
{
    const struct ls_device *device = fit->count > 0 ? fit->nets[0]->options.device : NULL;
    size_t left = 0;
    if (device == NULL || *memory == LS_MEMORY_LEAST)
        return 0;
    if (device->memory->left != NULL)
        LS_TRY(device->memory->left(&left, error));
    else if (!device->memory->host_memory || fit->there == 0)
        return 0;
    else
        left = fit->there;
    if (*memory == 0 || left < *memory)
        *memory = left > 0 ? left : 1;
    return 0;
}

/* What limit plans were made for: that of the container, where they would have been others without.
 */
static void note_limit(const struct ls_fit *fit, size_t asked, size_t memory, size_t wanted,
                       struct ls_forecast *forecast)
{
    forecast->contained = !forecast->apart && fit->there > 0 && memory == fit->there &&
                          memory != asked && wanted > memory;
    forecast->limit = forecast->contained ? memory : asked == LS_MEMORY_LEAST ? 0 : asked;
}

/* Data sets lie in the device's memory where no plan must be smaller for it. */
static int choose_residents(const struct ls_fit *fit, size_t memory, struct ls_error *error)
{
    struct ls_forecast forecast;
    if (fit->count == 0 || fit->nets[0]->options.device->make_samples == NULL)
        return 0;
    if (memory == LS_MEMORY_LEAST)
        memory = 0;
    LS_TRY(ls_residents_choose(fit->nets, fit->count, memory, error));
    LS_TRY(ls_fit_forecast(fit, &forecast, error));
    return ls_forecast_total(&forecast) > memory && memory > 0
               ? ls_residents_choose(fit->nets, fit->count, 0, error)
               : 0;
}

int ls_fit(const struct ls_fit *fit, size_t memory, struct ls_forecast *forecast,
           struct ls_error *error)
{
    const size_t asked = memory;
    LS_TRY(find_limit(fit, &memory, error));
    LS_TRY(choose_residents(fit, memory, error));
    LS_TRY(ls_fit_forecast(fit, forecast, error));
    const size_t wanted = ls_forecast_total(forecast);
    LS_TRY(fit_into(fit, memory, forecast, error));
    note_limit(fit, asked, memory, wanted, forecast);
    if (asked == LS_MEMORY_LEAST && fit->there > 0 && !forecast->apart)
        memory = fit->there;
    if (memory == 0 || ls_forecast_total(forecast) <= memory) {
        add_copy(fit, memory, forecast);
        return 0;
    }
    return does_not_fit(fit, memory, forecast, error);
}

/* ---- Trainers -------------------------------------------------------------------------------- */

bool ls_fit_takes_snapshots(const struct ls_trainer *trainer)
{
    const Lockstep__SolverParameter *solver = trainer->solver;
    return solver->snapshot > 0 || solver->snapshot_epoch > 0 || solver->snapshot_best != NULL;
}

static int open_trial(void *user, int64_t micro_batch, void **trial, struct ls_fit *fit,
                      struct ls_error *error)
{
    const struct ls_trainer *trainer = user;
    struct ls_trainer *made;
    LS_TRY(ls_training_plan_create(trainer->definition, trainer->device, trainer->workers,
                                   micro_batch, &made, error));
    made->audited_part = trainer->audited_part;
    made->measures = trainer->measures;
    made->trace_bytes = trainer->trace_bytes;
    made->elsewhere = trainer->elsewhere;
    int status = ls_fit_of_trainer(made, fit, error);
    if (status != 0)
        ls_training_plan_free(made);
    else
        *trial = made;
    return status;
}

static void close_trial(void *trial)
{
    struct ls_trainer *trainer = trial;
    ls_training_plan_free(trainer);
}

int ls_fit_of_trainer(struct ls_trainer *trainer, struct ls_fit *fit, struct ls_error *error)
{
    if (trainer->nets == NULL)
        trainer->nets = ls_alloc(trainer->test_count + 1, sizeof(struct ls_net *));
    if (trainer->nets == NULL)
        return ls_fail_memory(error, "nets");
    trainer->nets[0] = trainer->train;
    for (size_t i = 0; i < trainer->test_count; i++)
        trainer->nets[i + 1] = trainer->tests[i].net;
    *fit = (struct ls_fit){.what = "training",
                           .nets = trainer->nets,
                           .count = trainer->test_count + 1,
                           .set = trainer->parameters,
                           .views = &trainer->views,
                           .store = ls_training_plan_store_options(trainer),
                           .snapshots = true,
                           .audits = trainer->audited_part > 0,
                           .measures = trainer->measures,
                           .trace = trainer->trace_bytes,
                           .there =
                               trainer->elsewhere ? 0 : ls_fit_there(trainer->comm->machine_ranks),
                           .copies = ls_fit_takes_snapshots(trainer),
                           .open = open_trial,
                           .close = close_trial,
                           .user = trainer};
    return 0;
}

int ls_fit_trainer(struct ls_trainer *trainer, size_t memory, struct ls_error *error)
{
    struct ls_fit fit;
    trainer->memory = memory == LS_MEMORY_LEAST ? 0 : memory;
    LS_TRY(ls_fit_of_trainer(trainer, &fit, error));
    return ls_fit(&fit, memory, &trainer->forecast, error);
}
