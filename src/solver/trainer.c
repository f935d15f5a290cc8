/* Making and freeing trainers; one update. See solver/trainer.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver/trainer.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/mutant.h"
#include "base/memory.h"
#include "base/thread.h"
#include "engine/compare.h"
#include "engine/figures.h"
#include "engine/norms.h"
#include "engine/step.h"
#include "ops/devices.h"
#include "schema/upgrade.h"
#include "snapshot/weights.h"
#include "solver/data.h"
#include "solver/environment.h"
#include "solver/ranks.h"
#include "solver/snapshots.h"
#include "transport/comm.h"
#include "transport/failure_detector.h"

/* ---- Creation -------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    enum ls_update_kind kind;
} kinds[] = {{"SGD", LS_UPDATE_SGD},          {"Nesterov", LS_UPDATE_NESTEROV},
             {"Adam", LS_UPDATE_ADAM},        {"AdamW", LS_UPDATE_ADAMW},
             {"AdaGrad", LS_UPDATE_ADAGRAD},  {"RMSProp", LS_UPDATE_RMSPROP},
             {"AdaDelta", LS_UPDATE_ADADELTA}};

static int find_kind(struct ls_trainer *trainer, struct ls_error *error)
{
    const char *type = trainer->solver->type != NULL ? trainer->solver->type : "SGD";
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].name, type) == 0) {
            trainer->update_kind = kinds[i].kind;
            return 0;
        }
    return ls_fail(error, LOCKSTEP_DEFINITION, NULL, NULL, "unknown solver type '%s'", type);
}

static struct ls_net_options net_options(const struct ls_trainer *trainer,
                                         const struct ls_net_definition *definition)
{
    return (struct ls_net_options){.definition = definition,
                                   .seed = trainer->seed,
                                   .micro_batch = trainer->micro_batch,
                                   .workers = trainer->workers,
                                   .share = ls_comm_own(trainer->comm),
                                   .iter_size = 1,
                                   .device = trainer->device,
                                   .parameters = trainer->parameters,
                                   .views = (struct ls_view_set *)&trainer->views,
                                   .phase = LOCKSTEP__PHASE__TEST};
}

static int open_train_net(struct ls_trainer *trainer, struct ls_error *error)
{
    struct ls_net_options options = net_options(trainer, &trainer->definition->train);
    options.phase = LOCKSTEP__PHASE__TRAIN;
    options.training = true;
    options.augment = true;
    options.iter_size = trainer->solver->iter_size;
    options.follow_groups = trainer->solver->follow_groups;
    char place[LS_PLACE_MAX];
    options.follow_groups_place = ls_place(trainer->definition->definition, trainer->solver,
                                           "follow_groups", place, sizeof place);
    int status = ls_net_open(&options, &trainer->train, error);
    trainer->train_parameters = trainer->parameters->count;
    return status;
}

/* The net that tests on the train data: the first test net with the train net's Data layers in
 * place of its own (they are matched by their first top), or the train net itself. */
static int define_train_test(struct ls_trainer *trainer, struct ls_error *error)
{
    const struct ls_net_definition *base = trainer->definition->test_count > 0
                                               ? &trainer->definition->test[0]
                                               : &trainer->definition->train;
    const Lockstep__NetParameter *train = trainer->definition->train.net;
    Lockstep__NetParameter *net = ls_alloc(1, sizeof *net);
    trainer->train_test_net = net;
    if (net == NULL)
        return ls_fail_memory(error, "a net");
    *net = *base->net;
    net->layer = ls_alloc(net->n_layer + 1, sizeof *net->layer);
    if (net->layer == NULL)
        return ls_fail_memory(error, "a net");
    memcpy(net->layer, base->net->layer, net->n_layer * sizeof *net->layer);
    for (size_t i = 0; i < net->n_layer; i++)
        for (size_t j = 0; j < train->n_layer; j++) {
            const Lockstep__LayerParameter *mine = net->layer[i], *theirs = train->layer[j];
            if (mine->data_param != NULL && theirs->data_param != NULL && mine->n_top > 0 &&
                theirs->n_top == mine->n_top && strcmp(mine->top[0], theirs->top[0]) == 0)
                net->layer[i] = train->layer[j];
        }
    trainer->train_test_definition = *base;
    trainer->train_test_definition.net = net;
    trainer->train_test_definition.test_iter = 0;
    return 0;
}

static int open_test(struct ls_trainer *trainer, const struct ls_net_definition *definition,
                     int64_t samples, struct ls_error *error)
{
    struct ls_net_options options = net_options(trainer, definition);
    options.samples = samples;
    struct ls_test *test = &trainer->tests[trainer->test_count];
    LS_TRY(ls_net_open(&options, &test->net, error));
    trainer->test_count++;
    test->batches = ls_test_batches(test->net, definition->test_iter);
    return 0;
}

int64_t ls_test_batches(const struct ls_net *net, int32_t test_iter)
{
    if (test_iter > 0)
        return test_iter;
    double batches = ls_batching_updates_per_epoch(&net->batching);
    return net->batching.samples == INT64_MAX ? 1 : (int64_t)ceil(batches);
}

static int open_test_nets(struct ls_trainer *trainer, struct ls_error *error)
{
    const struct ls_solver_definition *definition = trainer->definition;
    trainer->tests = ls_alloc(definition->test_count + 1, sizeof *trainer->tests);
    if (trainer->tests == NULL)
        return ls_fail_memory(error, "test nets");
    int status = 0;
    for (size_t i = 0; i < definition->test_count; i++) {
        int result = open_test(trainer, &definition->test[i], 0, error);
        status = status != 0 ? status : result;
    }
    return status;
}

static int open_tests(struct ls_trainer *trainer, struct ls_error *error)
{
    LS_TRY(open_test_nets(trainer, error));
    if (trainer->solver->test_on_train <= 0)
        return 0;
    LS_TRY(define_train_test(trainer, error));
    trainer->has_train_test = true;
    return open_test(trainer, &trainer->train_test_definition, trainer->solver->test_on_train,
                     error);
}

struct ls_store_options ls_trainer_store_options(const struct ls_trainer *trainer)
{
    return (struct ls_store_options){.rank = trainer->comm->rank,
                                     .ranks = trainer->comm->size,
                                     .training = true,
                                     .workers = trainer->workers,
                                     .histories = ls_update_histories(trainer->update_kind),
                                     .average = trainer->solver->weight_average != NULL,
                                     .seed = trainer->seed};
}

static int create_store(struct ls_trainer *trainer, struct ls_error *error)
{
    struct ls_store_options options = ls_trainer_store_options(trainer);
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
    double per_epoch = batching->samples == INT64_MAX ? 0 : ls_batching_updates_per_epoch(batching);
    LS_TRY(ls_schedule_init(&trainer->schedule, trainer->definition->definition, trainer->solver,
                            batching->batch * batching->iter_size, per_epoch, error));
    trainer->run_end = trainer->schedule.max_iter;
    trainer->losses = ls_alloc((size_t)trainer->solver->average_loss, sizeof(double));
    trainer->answers = ls_alloc((size_t)trainer->comm->size, sizeof *trainer->answers);
    if (trainer->losses == NULL || trainer->answers == NULL)
        return ls_fail_memory(error, "a trainer");
    return 0;
}

/* Opens the nets and checks them; nothing that is large is allocated. */
static int open_nets(struct ls_trainer *trainer, struct ls_error *error)
{
    LS_TRY(find_kind(trainer, error));
    int status = open_train_net(trainer, error);
    int test_status = open_tests(trainer, error);
    LS_TRY(status);
    LS_TRY(test_status);
    LS_TRY(ls_trainer_check_names(trainer, error));
    return ls_trainer_check_training(trainer, error);
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
    LS_TRY(ls_engine_create(trainer->device, trainer->comm, trainer->workers, &trainer->engine,
                            error));
    trainer->engine->audited_part = trainer->audited_part;
    trainer->engine->audit_seed = trainer->seed;
    LS_TRY(open_nets(trainer, error));
    LS_TRY(ls_trainer_fit(trainer, (size_t)options->memory, error));
    LS_TRY(ls_environment_make(trainer, error));
    LS_TRY(init_schedule(trainer, error));
    LS_TRY(create_store(trainer, error));
    LS_TRY(bind(trainer, error));
    LS_TRY(ls_data_begin(trainer, error));
    const struct ls_snapshots_options snapshots = {.required = options->snapshot_required != 0,
                                                   .overwrite = options->overwrite != 0,
                                                   .copies = trainer->forecast.copies};
    return ls_snapshots_create(trainer, &snapshots, &trainer->snapshots, error);
}

/* A trainer without anything in it. `comm` NULL: a process by itself, with a communicator of its
 * own. */
static struct ls_trainer *new_trainer(const struct ls_solver_definition *definition,
                                      const struct ls_device *device, struct ls_comm *comm,
                                      int workers, struct ls_error *error)
{
    struct ls_trainer *trainer = ls_alloc(1, sizeof *trainer);
    struct ls_parameter_set *parameters = ls_parameter_set_new();
    if (trainer == NULL || parameters == NULL) {
        ls_free(trainer);
        ls_parameter_set_free(parameters);
        ls_fail_memory(error, "a trainer");
        return NULL;
    }
    trainer->device = device;
    trainer->comm = comm;
    trainer->definition = definition;
    trainer->solver = definition->solver;
    trainer->seed = ls_solver_seed(definition->solver);
    trainer->workers = workers;
    trainer->micro_batch = definition->solver->micro_batch;
    trainer->parameters = parameters;
    trainer->snapshot_at = -1;
    trainer->outgrew_first = trainer->outgrew_last = -1;
    trainer->best_iteration = -1;
    trainer->chain.linked = -1;
    if (comm == NULL) {
        if (ls_comm_create_alone(&trainer->alone, error) != 0) {
            ls_trainer_free(trainer);
            return NULL;
        }
        trainer->comm = trainer->alone;
        (void)ls_comm_start(trainer->comm, workers, NULL, NULL); /* with one rank it cannot fail */
    }
    return trainer;
}

int ls_trainer_check_nets(const struct ls_solver_definition *definition, struct ls_error *error)
{
    struct ls_trainer *trainer = new_trainer(definition, ls_device_default(), NULL, 1, error);
    if (trainer == NULL)
        return LOCKSTEP_RESOURCE;
    int status = open_train_net(trainer, error);
    int test_status = open_test_nets(trainer, error);
    ls_trainer_free(trainer);
    return status != 0 ? status : test_status;
}

int ls_trainer_plan(const struct ls_solver_definition *definition, const struct ls_device *device,
                    int workers, int64_t micro_batch, struct ls_trainer **out,
                    struct ls_error *error)
{
    *out = NULL;
    struct ls_trainer *trainer = new_trainer(definition, device, NULL, workers, error);
    if (trainer == NULL)
        return LOCKSTEP_RESOURCE;
    if (micro_batch > 0)
        trainer->micro_batch = micro_batch;
    int status = open_nets(trainer, error);
    if (status != 0)
        ls_trainer_free(trainer);
    else
        *out = trainer;
    return status;
}

int ls_trainer_join(const struct ls_solver_definition *definition,
                    const struct lockstep_train_options *options, struct ls_comm *comm,
                    struct ls_trainer **out, struct ls_error *error)
{
    *out = NULL;
    int workers = options->workers > 0 ? options->workers : ls_cpu_count();
    const struct ls_device *device;
    struct ls_trainer *trainer = NULL;
    int status = ls_device_find(options->device, &device, error);
    if (status == 0) {
        trainer = new_trainer(definition, device, comm, workers, error);
        status = trainer == NULL ? LOCKSTEP_RESOURCE : 0;
    }
    if (comm != NULL) { /* whatever happened here: the others wait for this */
        int started = ls_comm_start(comm, workers, device->enter_thread, error);
        status = status != 0 ? status : started;
    }
    if (status == 0) {
        trainer->callbacks = options->callbacks;
        trainer->audited_part = options->audit;
        trainer->allow_other_numerics = options->allow_other_numerics != 0;
        status = create(trainer, options, error);
    }
    if (comm != NULL)
        status = ls_comm_agree(comm, status, error);
    if (status == 0)
        status = ls_ranks_compare(trainer, options, error);
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
    if (trainer->comm != NULL) /* it may name a layer, which goes */
        ls_detector_note(trainer->comm->detector, trainer->iteration, NULL);
    ls_snapshots_free(trainer->snapshots);
    ls_data_end(trainer);
    ls_prefetcher_close(trainer->prefetcher);
    ls_step_free(trainer->train_pass);
    ls_net_close(trainer->train);
    for (size_t i = 0; i < trainer->test_count; i++) {
        ls_prefetcher_close(trainer->tests[i].prefetcher);
        ls_step_free(trainer->tests[i].pass);
        ls_net_close(trainer->tests[i].net);
    }
    ls_prefetch_memory_free(&trainer->decoded);
    ls_engine_free(trainer->engine);
    ls_view_set_free(&trainer->views);
    ls_parameter_set_free(trainer->parameters);
    ls_schedule_free(&trainer->schedule);
    ls_outputs_free(&trainer->outputs);
    if (trainer->train_test_net != NULL)
        ls_free(trainer->train_test_net->layer);
    ls_free(trainer->train_test_net);
    ls_free(trainer->tests);
    ls_free(trainer->nets);
    ls_free(trainer->losses);
    ls_free(trainer->answers);
    ls_free(trainer->prefix);
    ls_free(trainer->course);
    ls_free(trainer->environment);
    ls_free(trainer->history);
    ls_comm_end(trainer->alone);
    ls_free(trainer);
}

/* ---- One update ------------------------------------------------------------------------------ */

/* The rule for one parameter: the update's rule with its multipliers. */
static void rule_for(void *user, const struct ls_parameter *parameter, struct ls_update_rule *rule)
{
    const struct ls_trainer *trainer = user;
    *rule = trainer->rule;
    rule->rate *= parameter->lr_mult;
    if (LS_MUTANT(RATE) && trainer->comm->rank != 0)
        rule->rate *= 1.5F;
    rule->decay *= parameter->decay_mult;
}

/* The average of a young training forgets faster, or it would keep the first, untrained weights for
 * 1 / (1 - decay) updates: at most (1 + t) / (10 + t) of it stays, as TensorFlow's moving averages
 * have it when they are told the number of updates. */
static float average_decay(float decay, int64_t iteration)
{
    float young = (float)((1 + (double)iteration) / (10 + (double)iteration));
    return young < decay ? young : decay;
}

static void set_rule(struct ls_trainer *trainer)
{
    const Lockstep__SolverParameter *solver = trainer->solver;
    struct ls_update_rule *rule = &trainer->rule;
    *rule = (struct ls_update_rule){.kind = trainer->update_kind,
                                    .rate = (float)trainer->rate,
                                    .momentum = solver->momentum,
                                    .momentum2 = solver->momentum2,
                                    .delta = solver->delta,
                                    .rms_decay = solver->rms_decay,
                                    .decay = solver->weight_decay,
                                    .l1 = solver->regularization_type != NULL &&
                                          strcmp(solver->regularization_type, "L1") == 0,
                                    .gradient_scale = 1};
    if (rule->kind == LS_UPDATE_ADAM || rule->kind == LS_UPDATE_ADAMW)
        rule->correction =
            ls_adam_correction(rule->momentum, rule->momentum2, trainer->iteration + 1);
    if (solver->weight_average != NULL)
        rule->average_decay = average_decay(solver->weight_average->decay, trainer->iteration);
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
        trainer->rule.gradient_scale = (float)(limit / norm);
    return 0;
}

static double penalty_factor(void *user, const struct ls_parameter *parameter)
{
    const struct ls_trainer *trainer = user;
    double decay = (double)trainer->solver->weight_decay * (double)parameter->decay_mult;
    return trainer->rule.l1 ? decay : decay / 2;
}

/* The penalty is shown, not needed: it is computed where an update is displayed. AdamW's decay is
 * no part of a loss. */
static int find_penalty(struct ls_trainer *trainer, struct ls_error *error)
{
    int64_t display = trainer->schedule.display;
    trainer->penalty = 0;
    if (!(trainer->solver->weight_decay > 0) || trainer->update_kind == LS_UPDATE_ADAMW ||
        display <= 0 || trainer->iteration % display != 0)
        return 0;
    return ls_norms_penalty(trainer->engine, trainer->rule.l1, penalty_factor, trainer,
                            &trainer->penalty, error);
}

/* Small nets may repeat hundreds of updates: the first three are told one by one, then each time
 * that there are ten times as many. */
static void tell_repeat(struct ls_trainer *trainer)
{
    int64_t count = ++trainer->repeated, power = 10;
    while (power < count)
        power *= 10;
    if (count > 3 && count != power)
        return;
    char times[64] = "";
    if (count == power)
        snprintf(times, sizeof times, " (%lld updates of this run so far)", (long long)count);
    ls_trainer_say(trainer, LOCKSTEP_EVENT_NOTICE,
                   "Iteration %lld: the update was repeated, because sums of gradients were set "
                   "for another size; this takes time, and nothing is wrong%s",
                   (long long)trainer->iteration,
                   count == 3 ? " (from here on the 10th, 100th, ... is told)" : times);
}

/* Looks at how large gradients are, and says what came of it: one that has grown far beyond all
 * that its parameter has had lately is an early sign of divergence. */
static void watch_gradients(struct ls_trainer *trainer, bool repeated)
{
    int parameter = 0, growth = ls_sums_growth(trainer->store->sums, &parameter);
    if (growth >= LS_OUTGREW) {
        if (trainer->outgrew_last < 0 ||
            trainer->iteration - trainer->outgrew_last > LS_OUTGREW_GAP)
            trainer->outgrew_first = trainer->iteration;
        trainer->outgrew_last = trainer->iteration;
        ls_trainer_say(
            trainer, LOCKSTEP_EVENT_NOTICE,
            "Iteration %lld: the gradient of '%s' is 2^%d times as large as any lately, or more, "
            "which can be the first sign of divergence: if the loss rises too, a lower base_lr, "
            "warm-up or clip_gradients may help%s",
            (long long)trainer->iteration, trainer->parameters->items[parameter]->name, growth,
            repeated ? " (the update was repeated, its sums set for larger gradients)" : "");
    } else if (repeated) {
        tell_repeat(trainer);
    }
}

static int update(struct ls_trainer *trainer, struct ls_error *error)
{
    int repeated = 0;
    bool first = !trainer->compared;
    if (first) /* what each rank has filled by itself, or got from rank 0 */
        LS_TRY(ls_compare_weights(trainer->engine, LS_WEIGHTS_BEGIN, error));
    trainer->compared = true;
    if (!trainer->prefetcher_ready)
        ls_prefetcher_seek(trainer->prefetcher, trainer->iteration);
    trainer->prefetcher_ready = true;
    trainer->rate = ls_schedule_rate(&trainer->schedule, trainer->iteration);
    int status = ls_step_gradients(trainer->train_pass, trainer->prefetcher, trainer->iteration,
                                   trainer->iteration, &trainer->totals, &repeated, error);
    ls_trainer_report_findings(trainer);
    LS_TRY(status);
    watch_gradients(trainer, repeated > 0);
    trainer->loss = ls_figures_loss(ls_net_graph(trainer->train), trainer->totals.record);
    trainer->losses[trainer->iteration % trainer->solver->average_loss] = trainer->loss;
    set_rule(trainer);
    LS_TRY(find_penalty(trainer, error));
    LS_TRY(clip(trainer, error));
    struct ls_update_request request = {.rule = rule_for, .user = trainer};
    LS_TRY(ls_step_apply(trainer->train_pass, &request, trainer->iteration, error));
    trainer->samples += trainer->totals.samples;
    trainer->iteration++;
    LS_TRY(ls_data_note_update(trainer, error));
    LS_TRY(ls_trainer_link(trainer, error));
    trainer->wanted |= ls_comm_request(trainer->comm, 0);
    return first || trainer->iteration % LS_COMPARE_EVERY == 0
               ? ls_compare_weights(trainer->engine, trainer->iteration, error)
               : 0;
}

int ls_trainer_update(struct ls_trainer *trainer, struct ls_error *error)
{
    ls_thread_pool_enter(trainer->engine->pool);
    ls_comm_common(trainer->comm, 0);
    int status = update(trainer, error);
    if (status != 0)
        trainer->prefetcher_ready = false;
    status = ls_comm_conclude(trainer->comm, status, error);
    ls_thread_pool_leave(trainer->engine->pool);
    return status;
}

/* ---- Events ---------------------------------------------------------------------------------- */

void ls_trainer_event(struct ls_trainer *trainer, struct lockstep_event *event)
{
    if (trainer->callbacks.event == NULL || trainer->comm->rank != 0)
        return;
    event->iteration = trainer->iteration;
    if (trainer->train->batching.samples != INT64_MAX)
        event->epoch =
            (double)trainer->iteration / ls_batching_updates_per_epoch(&trainer->train->batching);
    event->learning_rate = trainer->rate;
    trainer->callbacks.event(trainer->callbacks.user, event);
}

void ls_trainer_say(struct ls_trainer *trainer, enum lockstep_event_kind kind, const char *format,
                    ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    struct lockstep_event event = {.kind = kind, .text = text};
    ls_trainer_event(trainer, &event);
}
