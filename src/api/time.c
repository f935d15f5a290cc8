/* The public interface: where the time goes.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdint.h>
#include <stdio.h>

#include "api/api.h"
#include "api/cards.h"
#include "api/options.h"
#include "base/memory.h"
#include "base/probe.h"
#include "ops/devices.h"
#include "solver/timing.h"
#include "solver/tune.h"

enum { WORKERS_MAX = 4096 };

int lockstep_probe(int cores, struct lockstep_probe *probe, struct lockstep_error *error)
{
    LS_OWN_MODE;
    struct ls_error *inner = ls_api_error(error);
    struct ls_probe found;
    *probe = (struct lockstep_probe){.cores = 0};
    if (cores < 0)
        return ls_fail(inner, LOCKSTEP_USAGE, NULL, "use 0 for all of them",
                       "%d cores cannot be probed", cores);
    LS_TRY(ls_probe(cores, &found, inner));
    *probe = (struct lockstep_probe){found.cores, found.flops, found.bytes};
    return 0;
}

static int check_workers(int workers, struct ls_error *error)
{
    if (workers >= 0 && workers <= WORKERS_MAX)
        return 0;
    return ls_fail(error, LOCKSTEP_USAGE, NULL, "use 1 to 4096, or leave it out",
                   "%d workers are not possible", workers);
}

/* ---- Timing ---------------------------------------------------------------------------------- */

void lockstep_time_options_init(struct lockstep_time_options *options)
{
    *options = (struct lockstep_time_options){.struct_size = sizeof *options};
}

int lockstep_time(const struct lockstep_solver *solver, const struct lockstep_time_options *options,
                  struct lockstep_timing **out, struct lockstep_error *error)
{
    LS_OWN_MODE;
    struct ls_error *inner = ls_api_error(error);
    *out = NULL;
    struct lockstep_time_options mine;
    LS_TRY(LS_API_OPTIONS(mine, options, "lockstep_time_options_init", inner));
    options = &mine;
    LS_TRY(check_workers(options->workers, inner));
    if (options->iterations < 0)
        return ls_fail(inner, LOCKSTEP_USAGE, NULL, NULL, "%lld iterations are not possible",
                       (long long)options->iterations);
    int card;
    char name[LS_API_DEVICE_ROOM];
    mine.device = ls_api_solver_device(solver, mine.device, name);
    LS_TRY(ls_api_select(mine.device, mine.isa, inner));
    LS_TRY(ls_api_use_card(mine.device, "a timing", &card, inner));
    const struct ls_device *device;
    LS_TRY(ls_device_find(mine.device, &device, inner));
    mine.workers = ls_api_workers(device, mine.workers);
    struct lockstep_timing *timing = ls_alloc(1, sizeof *timing);
    if (timing == NULL)
        return ls_fail_memory(inner, "a timing");
    struct lockstep_callbacks callbacks = options->callbacks;
    mine.callbacks = ls_caller_callbacks(&callbacks);
    int status = ls_timing(solver->definition, &mine, timing, inner);
    if (status != 0)
        lockstep_timing_free(timing);
    else
        *out = timing;
    return status;
}

void lockstep_timing_free(struct lockstep_timing *timing)
{
    if (timing == NULL)
        return;
    ls_timing_clear(timing);
    ls_free(timing);
}

const struct lockstep_time_total *lockstep_timing_total(const struct lockstep_timing *timing)
{
    return &timing->total;
}

const struct lockstep_time_layer *lockstep_timing_layers(const struct lockstep_timing *timing,
                                                         size_t *count)
{
    *count = timing->layer_count;
    return timing->layers;
}

/* ---- Tuning ---------------------------------------------------------------------------------- */

void lockstep_tune_options_init(struct lockstep_tune_options *options)
{
    *options = (struct lockstep_tune_options){.struct_size = sizeof *options};
}

int lockstep_tune(const struct lockstep_solver *solver, const struct lockstep_tune_options *options,
                  struct lockstep_tune_point *points, size_t count, struct lockstep_error *error)
{
    LS_OWN_MODE;
    struct ls_error *inner = ls_api_error(error);
    struct lockstep_tune_options mine;
    LS_TRY(LS_API_OPTIONS(mine, options, "lockstep_tune_options_init", inner));
    options = &mine;
    if (count == 0)
        return ls_fail(inner, LOCKSTEP_USAGE, NULL, NULL, "there is nothing to measure");
    if (!(options->seconds >= 0))
        return ls_fail(inner, LOCKSTEP_USAGE, NULL, NULL, "%g seconds are not possible",
                       options->seconds);
    for (size_t i = 0; i < count; i++) {
        LS_TRY(check_workers(points[i].workers, inner));
        if (points[i].batch < 0 || points[i].batch > INT32_MAX || points[i].micro_batch < 0 ||
            points[i].micro_batch > INT32_MAX)
            return ls_fail(inner, LOCKSTEP_USAGE, NULL, NULL,
                           "batch %lld with micro_batch %lld is not possible",
                           (long long)points[i].batch, (long long)points[i].micro_batch);
        points[i] = (struct lockstep_tune_point){.workers = points[i].workers,
                                                 .batch = points[i].batch,
                                                 .micro_batch = points[i].micro_batch};
    }
    int card;
    char name[LS_API_DEVICE_ROOM];
    mine.device = ls_api_solver_device(solver, mine.device, name);
    LS_TRY(ls_api_select(mine.device, mine.isa, inner));
    LS_TRY(ls_api_use_card(mine.device, "a measurement", &card, inner));
    struct lockstep_callbacks callbacks = options->callbacks;
    mine.callbacks = ls_caller_callbacks(&callbacks);
    return ls_tune(solver->definition, &mine, points, count, inner);
}
