/* Making and freeing trainers; one update. See solver/trainer.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver/trainer.h"

#include <stdio.h>
#include <string.h>

#include "base/mutant.h"
#include "base/memory.h"
#include "base/thread.h"
#include "engine/compare.h"
#include "engine/copies.h"
#include "engine/exponents.h"
#include "engine/figures.h"
#include "engine/norms.h"
#include "engine/reducer.h"
#include "engine/step.h"
#include "ops/devices.h"
#include "schema/upgrade.h"
#include "snapshot/weights.h"
#include "solver/audits.h"
#include "solver/blobs.h"
#include "solver/chain.h"
#include "solver/data.h"
#include "solver/debug_info.h"
#include "solver/environment.h"
#include "solver/events.h"
#include "solver/fit.h"
#include "solver/heartbeat.h"
#include "solver/outputs.h"
#include "solver/ranks.h"
#include "solver/snapshots.h"
#include "solver/statistics.h"
#include "solver/trace.h"
#include "solver/training_plan.h"
#include "transport/comm.h"
#include "transport/comm_job.h"
#include "transport/failure_detector.h"

/* ---- Creation -------------------------------------------------------------------------------- */

static int create_store(struct ls_trainer *trainer, struct ls_error *error)
{
    struct ls_store_options options = ls_training_plan_store_options(trainer);
    int status = ls_engine_create_store(trainer->engine, trainer->parameters, &trainer->views,
                                        &options, error);
    trainer->store = trainer->engine->store;
    return status;
}

static int bind(struct ls_trainer *trainer, struct ls_error *error)
{
    LS_TRY(ls_engine_bind(trainer->engine, trainer->nets, trainer->test_count + 1, error));
    LS_TRY(ls_step_create(trainer->engine, trainer->train, &trainer->train_pass, error));
    for (size_t i = 0; i < trainer->test_count; i++)
        LS_TRY(
            ls_step_create(trainer->engine, trainer->tests[i].net, &trainer->tests[i].pass, error));
    return ls_net_prefetcher(trainer->train, INT64_MAX, &trainer->decoded, &trainer->prefetcher,
                             error);
}

static int init_schedule(struct ls_trainer *trainer, struct ls_error *error)
{
    const struct ls_batching *batching = &trainer->train->batching;
    double per_epoch = ls_training_plan_epoch(trainer->definition, batching);
    LS_TRY(ls_schedule_init(&trainer->schedule, trainer->definition->definition, trainer->solver,
                            batching->batch * batching->iter_size, per_epoch, error));
    trainer->run_end = trainer->schedule.max_iter;
    trainer->figures.losses = ls_alloc((size_t)trainer->solver->average_loss, sizeof(double));
    trainer->answers = ls_alloc((size_t)trainer->comm->size, sizeof *trainer->answers);
    if (trainer->figures.losses == NULL || trainer->answers == NULL)
        return ls_fail_memory(error, "a trainer");
    return 0;
}

/* No weight depends on gradients of data: so neither the layouts of parameters, which the first
 * plans have chosen, nor the environment, which snapshots hold, may depend on them. */
static int add_data_gradients(struct ls_trainer *trainer, struct ls_error *error)
{
    LS_TRY(ls_training_plan_add_data_gradients(trainer, error));
    return ls_fit_trainer(trainer, trainer->memory, error);
}

static int create(struct ls_trainer *trainer, const struct lockstep_train_options *options,
                  struct ls_error *error)
{
    trainer->prefix =
        options->snapshot_prefix != NULL
            ? ls_snapshot_prefix(trainer->definition->definition->file, options->snapshot_prefix)
            : ls_copy_string(trainer->solver->snapshot_prefix);
    if (trainer->prefix == NULL)
        return ls_fail_memory(error, "a trainer");
    /* A trial on random data writes nothing that it is not asked for. */
    const bool trial = options->snapshot_prefix == NULL && trainer->definition->train.dummy;
    const bool beside = options->status_file != NULL && options->status_file[0] == '\0';
    if (!trial || !beside)
        LS_TRY(ls_heartbeat_place(trainer, options->status_file, error));
    LS_TRY(ls_engine_create(trainer->device, trainer->comm, trainer->workers, &trainer->engine,
                            error));
    trainer->engine->audited_part = trainer->audited_part;
    trainer->engine->audit_seed = trainer->seed;
    ls_trainer_trace_threads(trainer);
    LS_TRY(ls_training_plan_open_nets(trainer, error));
    LS_TRY(ls_fit_trainer(trainer, (size_t)options->memory, error));
    LS_TRY(ls_environment_make(trainer, error));
    if (trainer->keeps_blobs && trainer->finds_data_gradients)
        LS_TRY(add_data_gradients(trainer, error));
    LS_TRY(init_schedule(trainer, error));
    LS_TRY(create_store(trainer, error));
    LS_TRY(bind(trainer, error));
    LS_TRY(ls_data_begin(trainer, error));
    if (trainer->measures)
        LS_TRY(ls_statistics_create(trainer, &trainer->statistics, error));
    if (trainer->finds_data_gradients && !trainer->keeps_blobs)
        return ls_fail(error, LOCKSTEP_USAGE, NULL, "set `blobs`, too",
                       "gradients of data are kept with the blobs alone");
    if (trainer->keeps_blobs)
        LS_TRY(ls_blobs_create(trainer, &trainer->blobs, error));
    const struct ls_snapshots_options snapshots = {.required = options->snapshot_required != 0,
                                                   .overwrite = options->overwrite != 0,
                                                   .copies = trainer->forecast.copies,
                                                   .none = trial};
    return ls_snapshots_create(trainer, &snapshots, &trainer->snapshots, error);
}

int ls_trainer_join(const struct ls_solver_definition *definition,
                    const struct lockstep_train_options *options, struct ls_comm *comm,
                    struct ls_trainer **out, struct ls_error *error)
{
    *out = NULL;
    int workers = options->workers > 0 ? options->workers : ls_cpu_count();
    const struct ls_device *device;
    struct ls_trainer *trainer = NULL;
    struct ls_timeline_track *before =
        ls_timeline_here; /* this thread's, while the trainer is made */
    int status = ls_device_find(options->device, &device, error);
    if (status == 0) {
        trainer = ls_training_plan_new(definition, device, comm, workers, error);
        status = trainer == NULL ? LOCKSTEP_RESOURCE : 0;
    }
    if (comm != NULL) { /* whatever happened here: the others wait for this */
        int started = ls_comm_start(comm, workers, device->enter_thread, error);
        status = status != 0 ? status : started;
    }
    if (status == 0) {
        trainer->callbacks = options->callbacks;
        trainer->audited_part = options->audit;
        trainer->measures = options->statistics != 0;
        trainer->keeps_blobs = options->blobs != 0;
        trainer->finds_data_gradients = options->data_gradients != 0;
        trainer->numerics.allow_other = options->allow_other_numerics != 0;
        if (options->trace != NULL)
            status = ls_trainer_trace_begin(trainer, options->trace, options->trace_limit, error);
        if (status == 0)
            status = create(trainer, options, error);
        ls_timeline_here = before;
    }
    if (comm != NULL)
        status = ls_comm_agree(comm, status, error);
    if (status == 0)
        status = ls_ranks_compare(trainer, options, error);
    if (status == 0)
        status = ls_reducer_connect(trainer->engine->reducer, error);
    if (status != 0)
        ls_trainer_free(trainer);
    else
        *out = trainer;
    return status;
}

int ls_trainer_create(const struct ls_solver_definition *definition,
                      const struct lockstep_train_options *options, struct ls_trainer **out,
                      struct ls_error *error)
{
    return ls_trainer_join(definition, options, NULL, out, error);
}

void ls_trainer_free(struct ls_trainer *trainer)
{
    if (trainer == NULL)
        return;
    /* It may name a layer, which goes. */
    ls_detector_note(trainer->comm->detector, trainer->iteration, NULL);
    ls_snapshots_free(trainer->snapshots);
    ls_engine_end_exchanges(trainer->engine);
    ls_data_end(trainer);
    ls_statistics_free(trainer->statistics);
    ls_blobs_free(trainer->blobs);
    ls_prefetcher_close(trainer->prefetcher);
    ls_step_free(trainer->train_pass);
    for (size_t i = 0; i < trainer->test_count; i++) {
        ls_prefetcher_close(trainer->tests[i].prefetcher);
        ls_step_free(trainer->tests[i].pass);
    }
    ls_net_close(trainer->train);
    trainer->train = NULL;
    for (size_t i = 0; i < trainer->test_count; i++)
        ls_net_close(trainer->tests[i].net);
    trainer->test_count = 0;
    ls_prefetch_memory_free(&trainer->decoded);
    ls_engine_free(trainer->engine);
    ls_schedule_free(&trainer->schedule);
    ls_outputs_free(&trainer->figures.outputs);
    ls_free(trainer->figures.losses);
    ls_free(trainer->answers);
    ls_free(trainer->prefix);
    ls_free(trainer->status_file);
    ls_free(trainer->cards);
    ls_free(trainer->course);
    ls_free(trainer->numerics.environment);
    ls_free(trainer->numerics.history);
    ls_trainer_trace_end(trainer);
    ls_training_plan_free(trainer);
}

/* ---- One update ------------------------------------------------------------------------------ */

static void rule_for(void *user, const struct ls_parameter *parameter, struct ls_update_rule *rule)
{
    const struct ls_trainer *trainer = user;
    ls_groups_rule(trainer->groups, parameter, rule);
    if (LS_MUTANT(RATE) && trainer->comm->rank != 0)
        rule->rate *= 1.5F;
}

/* The average of a young training forgets faster, or it would keep the first, untrained weights for
 * 1 / (1 - decay) updates: at most (1 + t) / (10 + t) of it stays, as TensorFlow's moving averages
 * have it when they are told the number of updates. */
static float average_decay(float decay, int64_t iteration)
{
    float young = (float)((1 + (double)iteration) / (10 + (double)iteration));
    return young < decay ? young : decay;
}

static bool has_l1(const struct ls_trainer *trainer)
{
    const char *type = trainer->solver->regularization_type;
    return type != NULL && strcmp(type, "L1") == 0;
}

static void set_rules(struct ls_trainer *trainer)
{
    const Lockstep__SolverParameter *solver = trainer->solver;
    struct ls_groups_update update = {
        .rate = trainer->figures.rate, .iteration = trainer->iteration, .l1 = has_l1(trainer)};
    if (solver->weight_average != NULL)
        update.average_decay = average_decay(solver->weight_average->decay, trainer->iteration);
    ls_groups_set_rules(trainer->groups, &update);
}

/* Clips by the norm of the mean gradient of the whole update. (Caffe clips the sum over iter_size
 * batches, so that its threshold means something else for every iter_size.) */
static int clip(struct ls_trainer *trainer, struct ls_error *error)
{
    double limit = (double)trainer->solver->clip_gradients, norm = 0;
    if (!(limit > 0))
        return 0;
    LS_TRY(ls_norms_gradient(trainer->engine, &norm, error));
    if (norm > limit)
        ls_groups_scale_gradients(trainer->groups, (float)(limit / norm));
    return 0;
}

static double penalty_factor(void *user, const struct ls_parameter *parameter)
{
    const struct ls_trainer *trainer = user;
    double decay = ls_groups_penalty(trainer->groups, parameter);
    return has_l1(trainer) ? decay : decay / 2;
}

/* The penalty is shown, not needed: it is computed where an update is displayed. The decay of AdamW
 * and its like is no part of a loss. */
static int find_penalty(struct ls_trainer *trainer, struct ls_error *error)
{
    int64_t display = trainer->schedule.display;
    trainer->figures.penalty = 0;
    if (!ls_groups_have_penalty(trainer->groups) || display <= 0 ||
        trainer->iteration % display != 0)
        return 0;
    return ls_norms_penalty(trainer->engine, has_l1(trainer), penalty_factor, trainer,
                            &trainer->figures.penalty, error);
}

/* Small nets may repeat hundreds of updates: the first three are told one by one, then each time
 * that there are ten times as many. */
static void tell_repeat(struct ls_trainer *trainer)
{
    int64_t count = ++trainer->gradients.repeated, power = 10;
    while (power < count)
        power *= 10;
    if (count > 3 && count != power)
        return;
    char times[64] = "";
    if (count == power)
        snprintf(times, sizeof times, " (%lld updates of this run so far)", (long long)count);
    ls_events_say(trainer, LOCKSTEP_EVENT_DETAIL,
                  "Iteration %lld: the update was repeated, because sums of gradients were set "
                  "for another size; this takes time, and nothing is wrong%s",
                  (long long)trainer->iteration,
                  count == 3 ? " (from here on the 10th, 100th, ... is reported)" : times);
}

/* Looks at how large gradients are, and says what came of it: one that has grown far beyond all
 * that its parameter has had lately is an early sign of divergence. */
static void watch_gradients(struct ls_trainer *trainer, bool repeated)
{
    int parameter = 0, growth = ls_sums_growth(trainer->store->sums, &parameter);
    if (growth >= LS_OUTGREW) {
        if (trainer->gradients.outgrew_last < 0 ||
            trainer->iteration - trainer->gradients.outgrew_last > LS_OUTGREW_GAP)
            trainer->gradients.outgrew_first = trainer->iteration;
        trainer->gradients.outgrew_last = trainer->iteration;
        ls_events_say(
            trainer, LOCKSTEP_EVENT_NOTICE,
            "Iteration %lld: the gradient of '%s' is 2^%d times as large as any lately, or more, "
            "which can be the first sign of divergence: if the loss rises too, a lower base_lr, "
            "warm-up or clip_gradients may help",
            (long long)trainer->iteration, trainer->parameters->items[parameter]->name, growth);
    }
    if (repeated)
        tell_repeat(trainer);
}

int ls_trainer_check_whole(const struct ls_trainer *trainer, struct ls_error *error)
{
    if (!trainer->torn)
        return 0;
    /* The message is the same on all ranks, which all had the failure. */
    return ls_comm_common(trainer->comm,
                          ls_fail(error, LOCKSTEP_USAGE, NULL, "go on from a snapshot",
                                  "iteration %lld: a failure has left some weights changed and "
                                  "some not",
                                  (long long)trainer->iteration));
}

int ls_trainer_swap_average(struct ls_trainer *trainer, struct ls_error *error)
{
    int status = ls_copies_swap_average(trainer->engine, error);
    trainer->torn = trainer->torn || status != 0;
    return status;
}

/* Whether updates have changed weights, as far as rates tell: those of a snapshot, too. */
static void note_updates(struct ls_trainer *trainer)
{
    struct ls_pass *pass = trainer->train_pass;
    const int64_t last = trainer->iteration - 1;
    if (!pass->updated && last >= 0)
        pass->updated = ls_schedule_rate(&trainer->schedule, 0) != 0 ||
                        ls_schedule_rate(&trainer->schedule, last) != 0;
}

/* The forward and the backward pass of the update. */
static int find_gradients(struct ls_trainer *trainer, struct ls_error *error)
{
    int repeated = 0;
    if (!trainer->prefetcher_ready)
        ls_prefetcher_seek(trainer->prefetcher, trainer->iteration);
    trainer->prefetcher_ready = true;
    ls_blobs_begin(trainer->blobs);
    note_updates(trainer);
    int status = ls_step_gradients(trainer->train_pass, trainer->prefetcher, trainer->iteration,
                                   trainer->iteration, &trainer->figures.totals, &repeated, error);
    ls_trainer_report_findings(trainer);
    LS_TRY(status);
    ls_blobs_end(trainer->blobs, trainer->figures.totals.record);
    watch_gradients(trainer, repeated > 0);
    trainer->figures.loss =
        ls_figures_loss(ls_net_graph(trainer->train), trainer->figures.totals.record);
    return 0;
}

static int update(struct ls_trainer *trainer, struct ls_error *error)
{
    bool first = !trainer->compared;
    LS_TRY(ls_trainer_check_whole(trainer, error));
    if (first) /* what each rank has filled by itself, or got from rank 0 */
        LS_TRY(ls_compare_weights(trainer->engine, LS_WEIGHTS_BEGIN, error));
    trainer->compared = true;
    trainer->figures.rate = ls_schedule_rate(&trainer->schedule, trainer->iteration);
    LS_TRY(find_gradients(trainer, error));
    set_rules(trainer);
    LS_TRY(find_penalty(trainer, error));
    LS_TRY(ls_debug_info_tell(trainer, error));
    LS_TRY(ls_statistics_before(trainer, error));
    LS_TRY(clip(trainer, error));
    struct ls_update_request request = {.rule = rule_for, .user = trainer};
    trainer->torn = true;
    LS_TRY(ls_step_apply(trainer->train_pass, &request, trainer->iteration, error));
    trainer->torn = false;
    trainer->figures.losses[trainer->iteration % trainer->solver->average_loss] =
        trainer->figures.loss;
    trainer->samples += trainer->figures.totals.samples;
    trainer->iteration++;
    LS_TRY(ls_statistics_after(trainer, error));
    LS_TRY(ls_data_note_update(trainer, error));
    LS_TRY(ls_trainer_link(trainer, error));
    trainer->wanted |= ls_comm_request(trainer->comm, 0);
    if (!first && trainer->iteration % LS_COMPARE_EVERY != 0)
        return 0;
    LS_TRY(ls_compare_weights(trainer->engine, trainer->iteration, error));
    return ls_compare_states(trainer->train_pass, trainer->iteration, error);
}

int ls_trainer_update(struct ls_trainer *trainer, struct ls_error *error)
{
    ls_thread_pool_enter(trainer->engine->pool);
    ls_comm_common(trainer->comm, 0);
    const uint32_t number = (uint32_t)trainer->iteration;
    uint64_t start = ls_timeline_start();
    int status = update(trainer, error);
    ls_timeline_add(LS_TIMELINE_UPDATE, NULL, number, start);
    if (status != 0)
        trainer->prefetcher_ready = false;
    status = ls_comm_conclude(trainer->comm, status, error);
    ls_thread_pool_leave(trainer->engine->pool);
    return status;
}

int ls_trainer_gradients(struct ls_trainer *trainer, struct ls_error *error)
{
    if (trainer->comm->size > 1)
        return ls_fail(error, LOCKSTEP_USAGE, NULL, "let one process compute them",
                       "gradients without an update are not computed with several ranks");
    LS_TRY(ls_trainer_check_whole(trainer, error));
    ls_thread_pool_enter(trainer->engine->pool);
    int status = find_gradients(trainer, error);
    ls_thread_pool_leave(trainer->engine->pool);
    trainer->prefetcher_ready = false; /* the update takes the same data */
    return status;
}
