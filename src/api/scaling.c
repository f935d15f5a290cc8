/* The public interface: plans for many ranks.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver/fit.h"
#include "solver/scaling.h"

#include "api/api.h"
#include "api/cards.h"
#include "api/job.h"
#include "api/options.h"
#include "base/memory.h"
#include "base/thread.h"
#include "ops/devices.h"
#include "solver/timing.h"
#include "solver/training_plan.h"
#include "transport/comm.h"

enum { WORKERS_MAX = 4096, TIMED = 5 };

struct lockstep_scaling {
    struct lockstep_scaling_total total;
    struct lockstep_scaling_row *rows;
    size_t count;
};

void lockstep_scaling_options_init(struct lockstep_scaling_options *options)
{
    *options = (struct lockstep_scaling_options){
        .struct_size = sizeof *options, .bandwidth = 1.25e9, .latency = 20e-6, .message = 1e-6};
}

static int check_link(const struct lockstep_scaling_options *options, struct ls_error *error)
{
    bool possible = options->bandwidth > 0 && options->bandwidth < 1e18 && options->latency >= 0 &&
                    options->latency <= 3600 && options->message >= 0 && options->message <= 3600;
    if (possible)
        return 0;
    return ls_fail(error, LOCKSTEP_USAGE, NULL, NULL,
                   "a link of %g bytes/s, %g s and %g s a message is not possible",
                   options->bandwidth, options->latency, options->message);
}

static int check_options(const struct lockstep_scaling_options *options, struct ls_error *error)
{
    if (options->workers < 0 || options->workers > WORKERS_MAX)
        return ls_fail(error, LOCKSTEP_USAGE, NULL, "use 1 to 4096, or leave it out",
                       "%d workers are not possible", options->workers);
    for (size_t i = 0; i < options->count; i++)
        if (options->ranks[i] < 1 || options->ranks[i] > LOCKSTEP_RANKS_MAX)
            return ls_fail(error, LOCKSTEP_USAGE, NULL, NULL,
                           "%d ranks are not possible, 1 to %d are", options->ranks[i],
                           LOCKSTEP_RANKS_MAX);
    if (options->iterations < 0 || !(options->compute >= 0 && options->compute < 1e9))
        return ls_fail(error, LOCKSTEP_USAGE, NULL, NULL,
                       "%lld iterations, or updates of %g s, are not possible",
                       (long long)options->iterations, options->compute);
    LS_TRY(check_link(options, error));
    return ls_api_select(options->device, options->isa, error);
}

/* Times some updates, on as many workers as a rank has, or as this machine has cores. */
static int measure(const struct lockstep_solver *solver,
                   const struct lockstep_scaling_options *options, struct ls_scaling_load *load,
                   int64_t *iterations, struct ls_error *error)
{
    struct lockstep_timing timing = {.layer_count = 0};
    struct lockstep_callbacks callbacks = options->callbacks;
    int cores = ls_cpu_count();
    struct lockstep_time_options time = {.struct_size = sizeof time,
                                         .workers = load->workers < cores ? load->workers : cores,
                                         .memory = options->memory,
                                         .device = options->device,
                                         .iterations =
                                             options->iterations > 0 ? options->iterations : TIMED,
                                         .callbacks = ls_caller_callbacks(&callbacks)};
    int status = ls_timing(solver->definition, &time, &timing, error);
    if (status == 0)
        ls_scaling_measured(load, &timing);
    *iterations = timing.total.iterations;
    ls_timing_clear(&timing);
    return status;
}

/* The micro-batch that would keep the workers of all ranks busy, where the one there is does not.
 * (Where micro-batches follow groups of batch norm it is these that would have to be smaller; where
 * a layer mixes samples there is none.) */
static int64_t smaller_micro_batch(const struct ls_scaling_load *load, const struct ls_net *net,
                                   int ranks)
{
    int64_t wanted = (int64_t)ranks * load->workers;
    bool fixed = net->batching.group > 0 || net->mixer != NULL;
    return load->units >= wanted || fixed ? 0 : net->batching.batch / wanted;
}

static int predict_rows(struct lockstep_scaling *scaling, const struct ls_scaling_load *load,
                        const struct ls_net *net, const struct lockstep_scaling_options *options,
                        struct ls_error *error)
{
    const struct ls_scaling_link link = {options->bandwidth, options->latency, options->message};
    struct lockstep_scaling_row alone, row;
    struct lockstep_scaling_total *total = &scaling->total;
    LS_TRY(ls_scaling_predict(load, &link, 1, &alone, error));
    total->fastest = 1;
    total->fastest_seconds = alone.seconds;
    for (int ranks = 2; ranks < 2 * total->useful && ranks <= LOCKSTEP_RANKS_MAX; ranks *= 2) {
        LS_TRY(ls_scaling_predict(load, &link, ranks, &row, error));
        if (row.seconds < total->fastest_seconds) {
            total->fastest = ranks;
            total->fastest_seconds = row.seconds;
        }
    }
    for (; scaling->count < options->count; scaling->count++) {
        LS_TRY(ls_scaling_predict(load, &link, options->ranks[scaling->count], &row, error));
        row.efficiency = alone.seconds / (row.ranks * row.seconds);
        row.micro_batch = smaller_micro_batch(load, net, row.ranks);
        scaling->rows[scaling->count] = row;
    }
    return 0;
}

static void add_up(const struct ls_trainer *trainer, const struct ls_scaling_load *load,
                   const struct lockstep_scaling_options *options,
                   struct lockstep_scaling_total *total)
{
    const struct ls_batching *batching = &trainer->train->batching;
    *total = (struct lockstep_scaling_total){.workers = load->workers,
                                             .batch = batching->batch,
                                             .micro_batch = ls_batching_largest(batching),
                                             .micro_batches = load->units * load->batches,
                                             .samples = batching->batch * load->batches,
                                             .useful = (int)load->units,
                                             .bandwidth = options->bandwidth,
                                             .latency = options->latency,
                                             .message = options->message};
    for (size_t l = 0; l < load->layer_count; l++)
        total->sync_points += load->layers[l].syncs[0] + load->layers[l].syncs[1];
    for (size_t p = 0; p < load->parameters; p++) {
        const struct ls_parameter *parameter = trainer->parameters->items[p];
        if (load->elements[p] > 0)
            total->summed += ls_parameter_bytes(parameter);
        else if (parameter->trained)
            total->factored += ls_parameter_bytes(parameter);
    }
}

static int plan(struct lockstep_scaling *scaling, const struct lockstep_solver *solver,
                const struct lockstep_scaling_options *options, struct ls_trainer **trainer,
                struct ls_scaling_load *load, struct ls_error *error)
{
    const struct ls_device *device;
    int card;
    LS_TRY(ls_device_find(options->device, &device, error));
    LS_TRY(ls_api_use_card(options->device, "a rank", &card, error));
    const int workers = ls_api_workers(device, options->workers);
    LS_TRY(ls_training_plan_create(solver->definition, device, workers, 0, trainer, error));
    (*trainer)->elsewhere = true;
    LS_TRY(ls_fit_trainer(*trainer, (size_t)options->memory, error));
    LS_TRY(ls_scaling_load(*trainer, load, error));
    add_up(*trainer, load, options, &scaling->total);
    if (options->compute > 0)
        ls_scaling_estimated(load, *trainer, options->compute);
    else
        LS_TRY(measure(solver, options, load, &scaling->total.iterations, error));
    scaling->rows = ls_alloc(options->count + 1, sizeof *scaling->rows);
    if (scaling->rows == NULL)
        return ls_fail_memory(error, "a plan");
    return predict_rows(scaling, load, (*trainer)->train, options, error);
}

int lockstep_plan_scaling(const struct lockstep_solver *solver,
                          const struct lockstep_scaling_options *options,
                          struct lockstep_scaling **out, struct lockstep_error *error)
{
    LS_OWN_MODE;
    struct ls_error *inner = ls_api_error(error);
    struct ls_scaling_load load = {.workers = 0};
    struct ls_trainer *trainer = NULL;
    *out = NULL;
    struct lockstep_scaling_options mine;
    LS_TRY(LS_API_OPTIONS(mine, options, "lockstep_scaling_options_init", inner));
    options = &mine;
    LS_TRY(check_options(options, inner));
    struct lockstep_scaling *scaling = ls_alloc(1, sizeof *scaling);
    if (scaling == NULL)
        return ls_fail_memory(inner, "a plan");
    int status = plan(scaling, solver, options, &trainer, &load, inner);
    ls_scaling_clear(&load);
    ls_trainer_free(trainer);
    if (status != 0)
        lockstep_scaling_free(scaling);
    else
        *out = scaling;
    return status;
}

void lockstep_scaling_free(struct lockstep_scaling *scaling)
{
    if (scaling == NULL)
        return;
    ls_free(scaling->rows);
    ls_free(scaling);
}

const struct lockstep_scaling_total *lockstep_scaling_total(const struct lockstep_scaling *scaling)
{
    return &scaling->total;
}

const struct lockstep_scaling_row *lockstep_scaling_rows(const struct lockstep_scaling *scaling,
                                                         size_t *count)
{
    *count = scaling->count;
    return scaling->rows;
}

/* ---- What a job did -------------------------------------------------------------------------- */

void lockstep_job_figures(const struct lockstep_job *job, struct lockstep_job_figures *figures)
{
    *figures = (struct lockstep_job_figures){.small = 0};
    if (job == NULL || job->comm == NULL)
        return;
    const struct ls_comm *comm = job->comm;
    figures->sent = (struct lockstep_traffic){.sums = comm->sent[LS_TRAFFIC_SUMS],
                                              .weights = comm->sent[LS_TRAFFIC_WEIGHTS],
                                              .factors = comm->sent[LS_TRAFFIC_FACTORS],
                                              .small = comm->sent[LS_TRAFFIC_SMALL]};
    figures->small = (double)comm->waited[LS_WAIT_SMALL] * 1e-9;
    figures->wait_sums = (double)comm->waited[LS_WAIT_SUMS] * 1e-9;
    figures->wait_weights =
        (double)comm->waited[LS_WAIT_WEIGHTS] * 1e-9 / (comm->workers > 0 ? comm->workers : 1);
    figures->transfer = (double)comm->under_way * 1e-9;
}
