/* The nets of a training. See solver/training_plan.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver/training_plan.h"

#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "engine/plans.h"
#include "graph/build.h"
#include "ops/devices.h"
#include "schema/upgrade.h"
#include "solver/check.h"
#include "solver/masks.h"
#include "transport/comm.h"
#include "transport/comm_job.h"

/* ---- Nets ------------------------------------------------------------------------------------ */

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
    if (trainer->keeps_blobs) {
        trainer->watched = trainer->definition->train;
        trainer->watched.debug_info = true;
        options.definition = &trainer->watched;
    }
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
    trainer->train_test.net = net;
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
    trainer->train_test.definition = *base;
    trainer->train_test.definition.net = net;
    trainer->train_test.definition.test_iter = 0;
    return 0;
}

static int open_test(struct ls_trainer *trainer, const struct ls_net_definition *definition,
                     int64_t samples, struct ls_error *error)
{
    struct ls_net_options options = net_options(trainer, definition);
    options.samples = samples;
    options.trained = trainer->train; /* NULL: it could not be built */
    struct ls_test *test = &trainer->tests[trainer->test_count];
    LS_TRY(ls_net_open(&options, &test->net, error));
    trainer->test_count++;
    test->batches = ls_training_plan_batches(test->net, definition->test_iter);
    return 0;
}

double ls_training_plan_epoch(const struct ls_solver_definition *definition,
                              const struct ls_batching *batching)
{
    if (batching->samples < INT64_MAX)
        return ls_batching_updates_per_epoch(batching);
    return definition->train.dummy ? 1 : 0;
}

int64_t ls_training_plan_batches(const struct ls_net *net, int32_t test_iter)
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
    trainer->train_test.there = true;
    return open_test(trainer, &trainer->train_test.definition, trainer->solver->test_on_train,
                     error);
}

struct ls_store_options ls_training_plan_store_options(const struct ls_trainer *trainer)
{
    return (struct ls_store_options){.rank = trainer->comm->rank,
                                     .ranks = trainer->comm->size,
                                     .training = true,
                                     .workers = trainer->workers,
                                     .state = trainer->groups->state,
                                     .average = trainer->solver->weight_average != NULL,
                                     .seed = trainer->seed};
}

/* Those of parameters, and those of the solver's file. */
static int read_masks(const struct ls_trainer *trainer, struct ls_error *error)
{
    const char *named = trainer->solver->mask;
    char *path = NULL;
    if (named != NULL) {
        path = ls_resolve_path(named, trainer->definition->definition->file);
        if (path == NULL)
            return ls_fail_memory(error, "a path");
    }
    int status = ls_masks_read(trainer->parameters, path, error);
    ls_free(path);
    return status;
}

int ls_training_plan_open_nets(struct ls_trainer *trainer, struct ls_error *error)
{
    int status = open_train_net(trainer, error);
    int test_status = open_tests(trainer, error);
    LS_TRY(status);
    LS_TRY(test_status);
    LS_TRY(read_masks(trainer, error));
    LS_TRY(ls_trainer_check_names(trainer, error));
    LS_TRY(ls_trainer_check_training(trainer, error));
    return ls_groups_create(trainer->definition, trainer->parameters, trainer->train_parameters,
                            &trainer->groups, error);
}

int ls_training_plan_add_data_gradients(struct ls_trainer *trainer, struct ls_error *error)
{
    trainer->watched.data_gradients = true;
    return ls_plans_limit(trainer->train, trainer->train->options.activation_bytes, error);
}

/* ---- Plans ----------------------------------------------------------------------------------- */

struct ls_trainer *ls_training_plan_new(const struct ls_solver_definition *definition,
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
    trainer->gradients.outgrew_first = trainer->gradients.outgrew_last = -1;
    trainer->best.iteration = -1;
    trainer->chain.linked = -1;
    if (comm == NULL) {
        if (ls_comm_create_alone(&trainer->alone, error) != 0) {
            ls_training_plan_free(trainer);
            return NULL;
        }
        trainer->comm = trainer->alone;
        (void)ls_comm_start(trainer->comm, workers, NULL, NULL); /* with one rank it cannot fail */
    }
    return trainer;
}

int ls_training_plan_check(const struct ls_solver_definition *definition, struct ls_error *error)
{
    struct ls_trainer *trainer =
        ls_training_plan_new(definition, ls_device_default(), NULL, 1, error);
    if (trainer == NULL)
        return LOCKSTEP_RESOURCE;
    int status = open_train_net(trainer, error);
    int test_status = open_test_nets(trainer, error);
    status = status != 0 ? status : test_status;
    bool sound = status == 0 && (error == NULL || error->count == 0); /* the solver, too */
    if (sound)
        status = ls_groups_create(definition, trainer->parameters, trainer->train_parameters,
                                  &trainer->groups, error);
    ls_training_plan_free(trainer);
    return status;
}

int ls_training_plan_check_types(const struct ls_solver_definition *definition,
                                 struct ls_error *error)
{
    return ls_graph_check_types(&definition->train, error);
}

int ls_training_plan_create(const struct ls_solver_definition *definition,
                            const struct ls_device *device, int workers, int64_t micro_batch,
                            struct ls_trainer **out, struct ls_error *error)
{
    *out = NULL;
    struct ls_trainer *trainer = ls_training_plan_new(definition, device, NULL, workers, error);
    if (trainer == NULL)
        return LOCKSTEP_RESOURCE;
    if (micro_batch > 0)
        trainer->micro_batch = micro_batch;
    int status = ls_training_plan_open_nets(trainer, error);
    if (status != 0)
        ls_training_plan_free(trainer);
    else
        *out = trainer;
    return status;
}

int ls_training_plan_tell_rates(const struct ls_solver_definition *definition,
                                const struct ls_net *train,
                                void (*say)(void *user, const char *sentence), void *user,
                                struct ls_error *error)
{
    struct ls_schedule schedule;
    const struct ls_batching *batching = &train->batching;
    const int64_t asked = definition->solver->iter_size;
    const int64_t batches = asked > batching->iter_size ? asked : batching->iter_size;
    const double passes = (double)batching->iter_size / (double)batches;
    const double per_epoch = ls_training_plan_epoch(definition, batching) * passes;
    int status = ls_schedule_init(&schedule, definition->definition, definition->solver,
                                  batching->batch * batches, per_epoch, error);
    if (status == 0)
        ls_schedule_tell_odd(&schedule, say, user);
    ls_schedule_free(&schedule);
    return status;
}

void ls_training_plan_free(struct ls_trainer *trainer)
{
    if (trainer == NULL)
        return;
    ls_net_close(trainer->train);
    for (size_t i = 0; i < trainer->test_count; i++)
        ls_net_close(trainer->tests[i].net);
    ls_groups_free(trainer->groups);
    ls_view_set_free(&trainer->views);
    ls_parameter_set_free(trainer->parameters);
    if (trainer->train_test.net != NULL)
        ls_free(trainer->train_test.net->layer);
    ls_free(trainer->train_test.net);
    ls_free(trainer->tests);
    ls_free(trainer->nets);
    ls_comm_end(trainer->alone);
    ls_free(trainer);
}
