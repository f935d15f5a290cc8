/* The public interface: plans.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "api/plan.h"

#include <stdatomic.h>
#include <stdio.h>

#include "api/api.h"
#include "api/cards.h"
#include "api/options.h"
#include "base/memory.h"
#include "base/thread.h"
#include "engine/ignored.h"
#include "ops/devices.h"
#include "solver/fit.h"
#include "solver/trainer.h"
#include "solver/training_plan.h"

void lockstep_plan_options_init(struct lockstep_plan_options *options)
{
    *options = (struct lockstep_plan_options){.struct_size = sizeof *options};
}

static int check_options(const struct lockstep_plan_options *options, struct ls_error *error)
{
    if (options->workers < 0 || options->workers > 4096)
        return ls_fail(error, LOCKSTEP_USAGE, NULL, "use 1 to 4096, or leave it out",
                       "%d workers are not possible", options->workers);
    return ls_api_select(options->device, options->isa, error);
}

/* The thread works with the plan's card. */
static int use_card(struct lockstep_plan *plan, const char *device, int workers,
                    struct ls_error *error)
{
    const struct ls_device *found;
    LS_TRY(ls_device_find(device, &found, error));
    plan->workers = ls_api_workers(found, workers);
    plan->library = found->environment->library;
    return ls_api_use_card(device, "a plan", &plan->card, error);
}

static void show_memory(struct lockstep_plan *plan, const struct ls_forecast *forecast)
{
    plan->memory = (struct lockstep_plan_memory){.workers = forecast->workers,
                                                 .stashes = forecast->slots,
                                                 .arena = forecast->arena,
                                                 .stashed = forecast->stashed,
                                                 .parameters = forecast->weights,
                                                 .views = forecast->views,
                                                 .gradients = forecast->gradients,
                                                 .state = forecast->history,
                                                 .averages = forecast->averages,
                                                 .statistics = forecast->statistics,
                                                 .data = forecast->data,
                                                 .snapshot = forecast->snapshot,
                                                 .code = forecast->programs,
                                                 .runtime = forecast->base,
                                                 .total = ls_forecast_total(forecast),
                                                 .cache = forecast->cache,
                                                 .limit = forecast->limit,
                                                 .sample_states = forecast->sample_states};
    plan->device_data = forecast->records;
    plan->staging = forecast->staging;
    plan->host = ls_forecast_host(forecast);
}

static int show_nets(struct lockstep_plan *plan, const struct ls_fit *fit, struct ls_error *error)
{
    plan->nets = ls_alloc(fit->count, sizeof *plan->nets);
    if (plan->nets == NULL)
        return ls_fail_memory(error, "a plan");
    size_t tests = 0;
    for (; plan->net_count < fit->count; plan->net_count++) {
        struct ls_plan_net *rows = &plan->nets[plan->net_count];
        const struct ls_net *net = fit->nets[plan->net_count];
        bool on_train = plan->trainer != NULL && plan->trainer->train_test.there &&
                        plan->net_count == fit->count - 1;
        if (net->options.training)
            snprintf(rows->name, sizeof rows->name, "train");
        else if (on_train)
            snprintf(rows->name, sizeof rows->name, "test on train data");
        else if (tests++ == 0)
            snprintf(rows->name, sizeof rows->name, "test");
        else
            snprintf(rows->name, sizeof rows->name, "test #%zu", tests - 1);
        int status = ls_plan_rows(net, fit->views, &fit->store, rows, error);
        if (status != 0) {
            ls_plan_rows_free(rows);
            return status;
        }
    }
    return 0;
}

/* What the definitions say in vain, as a training or a test would tell it. */
static void tell_warnings(const char *const *warnings, size_t count, const struct ls_fit *fit,
                          const struct lockstep_plan_options *options)
{
    if (options->warn == NULL)
        return;
    for (size_t i = 0; i < count; i++)
        options->warn(options->user, warnings[i]);
    ls_ignored_tell(fit->nets, fit->count, options->warn, options->user);
}

/* The parameters that are trained, each with the settings of its group. */
static int show_parameters(struct lockstep_plan *plan, struct ls_error *error)
{
    const struct ls_parameter_set *set = plan->trainer->parameters;
    plan->parameters = ls_alloc(set->count + 1, sizeof *plan->parameters);
    if (plan->parameters == NULL)
        return ls_fail_memory(error, "a plan");
    for (size_t i = 0; i < set->count; i++) {
        const struct ls_parameter *parameter = set->items[i];
        if (!parameter->trained)
            continue;
        const struct ls_group *group = ls_group_of(plan->trainer->groups, parameter);
        plan->parameters[plan->parameter_count++] = (struct lockstep_plan_parameter){
            .name = parameter->name,
            .group = group->name,
            .type = group->type,
            .rate = group->rate * (double)group->lr_mult * (double)parameter->lr_mult,
            .decay =
                (double)group->decay * (double)group->decay_mult * (double)parameter->decay_mult};
    }
    return 0;
}

static int plan_training(struct lockstep_plan *plan, const struct lockstep_plan_options *options,
                         struct ls_error *error)
{
    struct ls_fit fit;
    const struct ls_device *device;
    LS_TRY(ls_device_find(options->device, &device, error));
    LS_TRY(ls_training_plan_create(plan->solver->definition, device, plan->workers, 0,
                                   &plan->trainer, error));
    LS_TRY(ls_fit_trainer(plan->trainer, (size_t)options->memory, error));
    LS_TRY(ls_fit_of_trainer(plan->trainer, &fit, error));
    show_memory(plan, &plan->trainer->forecast);
    tell_warnings(plan->trainer->definition->warning, plan->trainer->definition->warning_count,
                  &fit, options);
    if (options->warn != NULL)
        LS_TRY(ls_training_plan_tell_rates(plan->trainer->definition, plan->trainer->train,
                                           options->warn, options->user, error));
    LS_TRY(show_parameters(plan, error));
    return show_nets(plan, &fit, error);
}

static int plan_model(struct lockstep_plan *plan, const char *path,
                      const struct lockstep_plan_options *options, struct ls_error *error)
{
    struct lockstep_model_options model;
    struct ls_fit fit;
    lockstep_model_options_init(&model);
    model.level = options->level;
    model.device = options->device;
    model.dummy = options->dummy;
    model.stages = options->stages;
    model.stage_count = options->stage_count;
    LS_TRY(ls_model_plan(path, &model, plan->workers, 0, &plan->model, error));
    struct ls_model_trial trial = {path, &model, plan->model};
    ls_model_fit(&trial, &fit);
    LS_TRY(ls_fit(&fit, (size_t)options->memory, &plan->model->forecast, error));
    show_memory(plan, &plan->model->forecast);
    const char *warning = plan->model->definition.definition->warning;
    tell_warnings(&warning, warning != NULL, &fit, options);
    return show_nets(plan, &fit, error);
}

static int new_plan(const struct lockstep_plan_options *options, struct lockstep_plan **out,
                    struct ls_error *error)
{
    struct lockstep_plan *plan = *out = ls_alloc(1, sizeof *plan);
    if (plan == NULL)
        return ls_fail_memory(error, "a plan");
    const int status = use_card(plan, options->device, options->workers, error);
    if (status != 0) {
        ls_free(plan);
        *out = NULL;
    }
    return status;
}

int lockstep_plan_training(const struct lockstep_solver *solver,
                           const struct lockstep_plan_options *options, struct lockstep_plan **out,
                           struct lockstep_error *error)
{
    LS_OWN_MODE;
    struct ls_error *inner = ls_api_error(error);
    *out = NULL;
    struct lockstep_plan_options mine;
    LS_TRY(LS_API_OPTIONS(mine, options, "lockstep_plan_options_init", inner));
    char name[LS_API_DEVICE_ROOM];
    mine.device = ls_api_solver_device(solver, mine.device, name);
    options = &mine;
    LS_TRY(check_options(options, inner));
    struct lockstep_plan *plan;
    LS_TRY(new_plan(options, &plan, inner));
    plan->solver = (struct lockstep_solver *)(uintptr_t)solver;
    atomic_fetch_add(&plan->solver->references, 1);
    int status = plan_training(plan, options, inner);
    if (status != 0)
        lockstep_plan_free(plan);
    else
        *out = plan;
    return status;
}

int lockstep_plan_model(const char *path, const struct lockstep_plan_options *options,
                        struct lockstep_plan **out, struct lockstep_error *error)
{
    LS_OWN_MODE;
    struct ls_error *inner = ls_api_error(error);
    *out = NULL;
    struct lockstep_plan_options mine;
    LS_TRY(LS_API_OPTIONS(mine, options, "lockstep_plan_options_init", inner));
    options = &mine;
    LS_TRY(check_options(options, inner));
    struct lockstep_plan *plan;
    LS_TRY(new_plan(options, &plan, inner));
    int status = plan_model(plan, path, options, inner);
    if (status != 0)
        lockstep_plan_free(plan);
    else
        *out = plan;
    return status;
}

void lockstep_plan_free(struct lockstep_plan *plan)
{
    if (plan == NULL)
        return;
    LS_OWN_MODE;
    ls_thread_set_card(plan->card);
    for (size_t i = 0; i < plan->net_count; i++)
        ls_plan_rows_free(&plan->nets[i]);
    ls_free(plan->nets);
    ls_free(plan->parameters);
    ls_trainer_free(plan->trainer);
    lockstep_model_free(plan->model);
    lockstep_solver_free(plan->solver);
    ls_free(plan);
}

uint64_t lockstep_plan_device_data(const struct lockstep_plan *plan)
{
    return plan->device_data;
}

uint64_t lockstep_plan_staging(const struct lockstep_plan *plan)
{
    return plan->staging;
}

uint64_t lockstep_plan_host(const struct lockstep_plan *plan)
{
    return plan->host;
}

const struct lockstep_plan_memory *lockstep_plan_memory(const struct lockstep_plan *plan)
{
    return &plan->memory;
}

size_t lockstep_plan_net_count(const struct lockstep_plan *plan)
{
    return plan->net_count;
}

const char *lockstep_plan_library(const struct lockstep_plan *plan)
{
    return plan->library;
}

const struct lockstep_plan_net *lockstep_plan_net(const struct lockstep_plan *plan, size_t index)
{
    return index < plan->net_count ? &plan->nets[index].shown : NULL;
}

size_t lockstep_plan_parameter_count(const struct lockstep_plan *plan)
{
    return plan->parameter_count;
}

const struct lockstep_plan_parameter *lockstep_plan_parameter(const struct lockstep_plan *plan,
                                                              size_t index)
{
    return index < plan->parameter_count ? &plan->parameters[index] : NULL;
}

size_t lockstep_plan_group_count(const struct lockstep_plan *plan)
{
    return plan->trainer != NULL ? plan->trainer->groups->count : 0;
}

/* ---- The largest batch ----------------------------------------------------------------------- */

/* Micro-batches of the net's size that memory can have at once: the smallest plans are the same for
 * any number of them. */
static int most_micro_batches(const struct ls_fit *fit, size_t memory, int64_t most, int64_t *found,
                              struct ls_error *error)
{
    struct ls_net *net = fit->nets[0];
    struct ls_forecast forecast;
    LS_TRY(ls_fit_limit(fit, 1, &forecast, error));
    int64_t micro_batch = ls_batching_largest(&net->batching), none = 0, too_many = most + 1;
    net->batching.micro_batch = micro_batch;
    for (*found = none; too_many - *found > 1;) {
        int64_t middle = *found == 0 && too_many == most + 1 ? most : (*found + too_many) / 2;
        LS_TRY(ls_net_assume_batch(net, middle * micro_batch, error));
        LS_TRY(ls_fit_forecast(fit, &forecast, error));
        if (ls_forecast_total(&forecast) <= memory)
            *found = middle;
        else
            too_many = middle;
    }
    return 0;
}

/* A test net by itself, as `lockstep test` has it. */
static int open_alone(const struct ls_net *like, struct lockstep_model **model,
                      struct ls_error *error)
{
    struct ls_net_options options = like->options;
    struct lockstep_model *made = ls_alloc(1, sizeof *made);
    if (made == NULL || (made->parameters = ls_parameter_set_new()) == NULL) {
        ls_free(made);
        return ls_fail_memory(error, "a plan");
    }
    made->workers = options.workers;
    options.parameters = made->parameters;
    options.views = &made->views;
    options.activation_bytes = 0;
    int status = ls_net_open(&options, &made->net, error);
    if (status != 0)
        lockstep_model_free(made);
    else
        *model = made;
    return status;
}

static int largest_batch(struct lockstep_plan *plan, size_t index, uint64_t memory, int64_t most,
                         int64_t *found, struct ls_error *error)
{
    struct ls_fit fit;
    struct ls_trainer *trainer = NULL;
    struct lockstep_model *model = NULL;
    int status = 0;
    if (plan->nets[index].shown.training) {
        status = ls_training_plan_create(plan->solver->definition, plan->trainer->device,
                                         plan->workers, 0, &trainer, error);
        if (status == 0)
            status = ls_fit_of_trainer(trainer, &fit, error);
    } else {
        const struct ls_net *net =
            plan->model != NULL ? plan->model->net : plan->trainer->nets[index];
        struct ls_model_trial trial = {0};
        status = open_alone(net, &model, error);
        trial.model = model;
        if (status == 0)
            ls_model_fit(&trial, &fit);
    }
    if (status == 0)
        status = most_micro_batches(&fit, (size_t)memory, most, found, error);
    ls_trainer_free(trainer);
    lockstep_model_free(model);
    return status;
}

int lockstep_plan_largest_batch(struct lockstep_plan *plan, size_t index, uint64_t memory,
                                int64_t *batch, int *bounded, struct lockstep_error *error)
{
    LS_OWN_MODE;
    struct ls_error *inner = ls_api_error(error);
    ls_thread_set_card(plan->card);
    *batch = 0;
    *bounded = 1;
    if (index >= plan->net_count)
        return ls_fail(inner, LOCKSTEP_USAGE, NULL, NULL, "the plan has %zu nets, not %zu",
                       plan->net_count, index + 1);
    const struct lockstep_plan_net *net = &plan->nets[index].shown;
    int64_t found = 0, most = LS_SUMS_CONTRIBUTIONS_MAX;
    if (net->training)
        most /= plan->trainer->train->batching.iter_size;
    if (net->mixer != NULL)
        most = 1;
    LS_TRY(largest_batch(plan, index, memory, most, &found, inner));
    *batch = found * net->micro_batch;
    *bounded = found < most || net->mixer != NULL;
    return 0;
}
