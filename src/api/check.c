/* The public interface: looking for bad records.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>

#include "api/api.h"
#include "api/options.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/thread.h"
#include "data/check.h"
#include "engine/ignored.h"
#include "engine/labels.h"
#include "engine/plans.h"
#include "ops/devices.h"
#include "schema/net.h"
#include "solver/training_plan.h"

void lockstep_check_options_init(struct lockstep_check_options *options)
{
    *options = (struct lockstep_check_options){.struct_size = sizeof *options};
}

/* A check and where it is. */
struct checking {
    const struct lockstep_check_options *options;
    struct lockstep_callbacks callbacks; /* the caller's */
    const struct ls_net *net;
    int dataset;
    struct lockstep_checked_source source;
    int64_t bad; /* in all sources */
};

static void tell_bad(void *user, int64_t record, const char *name, const char *reason)
{
    const struct checking *checking = user;
    struct lockstep_bad_record bad = {.net = checking->source.net,
                                      .layer = checking->source.layer,
                                      .source = checking->source.source,
                                      .name = name,
                                      .reason = reason,
                                      .record = record};
    if (checking->options->bad != NULL)
        checking->options->bad(checking->options->user, &bad);
}

/* What no record is bad for, and that cannot be meant. */
static void tell_warning(void *user, const char *sentence)
{
    const struct checking *checking = user;
    const struct lockstep_event event = {
        .kind = LOCKSTEP_EVENT_WARNING, .text = sentence, .test_net = -1};
    if (checking->callbacks.event != NULL)
        checking->callbacks.event(checking->callbacks.user, &event);
}

static void tell_odd(void *user, const struct ls_number_rule *rule, const char *text)
{
    struct checking *checking = user;
    struct ls_text sentence = {0};
    ls_text_format(&sentence, "%s, layer '%s', %s: %s (%s)", checking->source.net,
                   checking->source.layer, checking->source.source, text, rule->place);
    if (!sentence.failed)
        tell_warning(checking, sentence.data);
    ls_text_free(&sentence);
}

static int tell_progress(void *user, int64_t done, int64_t count)
{
    const struct checking *checking = user;
    const struct lockstep_callbacks *callbacks = &checking->callbacks;
    struct lockstep_event event = {
        .kind = LOCKSTEP_EVENT_NOTICE, .samples = done, .iteration_end = count, .text = ""};
    if (callbacks->event != NULL)
        callbacks->event(callbacks->user, &event);
    return callbacks->poll != NULL &&
           callbacks->poll(callbacks->user) == LOCKSTEP_SNAPSHOT_AND_STOP;
}

static int check_source(struct checking *checking, struct ls_error *error)
{
    const struct ls_dataset *dataset = checking->net->datasets[checking->dataset];
    const Lockstep__LayerParameter *layer = checking->net->data_layers[checking->dataset];
    double begun = ls_clock();
    int threads = checking->options->threads;
    struct ls_number_rule *rules;
    struct ls_check check = {.threads = threads > 0 ? threads : ls_cpu_count(),
                             .bad = tell_bad,
                             .odd = tell_odd,
                             .progress = tell_progress,
                             .user = checking};
    checking->source.layer = layer->name != NULL ? layer->name : "";
    checking->source.source = ls_dataset_name(dataset);
    checking->source.records = ls_dataset_size(dataset);
    int64_t skippable = 0;
    int status =
        ls_labels_rules(checking->net, checking->dataset, &rules, &check.rule_count, error);
    check.rules = rules;
    if (status == 0)
        status = ls_dataset_check(dataset, &check, &checking->source.bad, &skippable, error);
    ls_free(rules);
    LS_TRY(status);
    /* Something must be there to put in their place. */
    checking->source.skippable = checking->source.bad < checking->source.records ? skippable : 0;
    checking->source.seconds = ls_clock() - begun;
    checking->bad += checking->source.bad;
    if (checking->options->source != NULL)
        checking->options->source(checking->options->user, &checking->source);
    return 0;
}

/* A net whose data forgive. */
struct forgiving_net {
    struct ls_parameter_set *parameters;
    struct ls_view_set views;
    struct ls_net *net;
};

static int open_net(struct forgiving_net *opened, const struct ls_net_definition *definition,
                    Lockstep__Phase phase, uint64_t seed, const struct ls_net *trained,
                    struct ls_error *error)
{
    *opened = (struct forgiving_net){.parameters = ls_parameter_set_new()};
    struct ls_net_options options = {.definition = definition,
                                     .phase = phase,
                                     .training = phase == LOCKSTEP__PHASE__TRAIN,
                                     .forgiving = true,
                                     .seed = seed,
                                     .micro_batch = 1,
                                     .iter_size = 1,
                                     .workers = 1,
                                     .device = ls_device_default(),
                                     .parameters = opened->parameters,
                                     .views = &opened->views,
                                     .trained = trained};
    return opened->parameters == NULL ? ls_fail_memory(error, "a net")
                                      : ls_net_open(&options, &opened->net, error);
}

static void close_net(struct forgiving_net *opened)
{
    ls_net_close(opened->net);
    ls_view_set_free(&opened->views);
    ls_parameter_set_free(opened->parameters);
}

/* Reads all data of a net. */
static int check_net(struct checking *checking, struct ls_net *net, struct ls_error *error)
{
    int status = 0;
    checking->net = net;
    ls_ignored_tell(&net, 1, tell_warning, checking);
    for (int d = 0; status == 0 && d < net->dataset_count; d++) {
        checking->dataset = d;
        status = check_source(checking, error);
    }
    return status == 0 && net->varying >= 0 ? ls_plans_check_sizes(net, true, error) : status;
}

/* Opens a net for its tests, which knows the classes of the one that is trained (NULL: there is
 * none), and reads all its data. */
static int check_test(struct checking *checking, const struct ls_net_definition *definition,
                      uint64_t seed, const struct ls_net *trained, struct ls_error *error)
{
    struct forgiving_net test;
    int status = open_net(&test, definition, LOCKSTEP__PHASE__TEST, seed, trained, error);
    if (status == 0)
        status = check_net(checking, test.net, error);
    close_net(&test);
    return status;
}

static int end(const struct checking *checking, int status, struct ls_error *error)
{
    if (status != 0 || checking->bad == 0)
        return status;
    return ls_fail(error, LOCKSTEP_DATA, NULL, NULL, "%lld bad record%s", (long long)checking->bad,
                   checking->bad == 1 ? "" : "s");
}

int lockstep_check(const struct lockstep_solver *solver,
                   const struct lockstep_check_options *options, struct lockstep_error *error)
{
    LS_OWN_MODE;
    struct ls_error *inner = ls_api_error(error);
    const struct ls_solver_definition *definition = solver->definition;
    uint64_t seed = ls_solver_seed(definition->solver);
    struct checking checking = {0};
    char name[32] = "train";
    struct lockstep_check_options mine;
    LS_TRY(LS_API_OPTIONS(mine, options, "lockstep_check_options_init", inner));
    options = &mine;
    checking.options = options;
    checking.callbacks = options->callbacks;
    checking.source.net = name;
    struct forgiving_net train;
    int status = open_net(&train, &definition->train, LOCKSTEP__PHASE__TRAIN, seed, NULL, inner);
    if (status == 0)
        status = ls_training_plan_tell_rates(definition, train.net, tell_warning, &checking, inner);
    if (status == 0)
        status = check_net(&checking, train.net, inner);
    for (size_t i = 0; i < definition->test_count && status != LOCKSTEP_STOPPED; i++) {
        snprintf(name, sizeof name, i > 0 ? "test #%zu" : "test", i);
        int result = check_test(&checking, &definition->test[i], seed, train.net, inner);
        status = status != 0 && result != LOCKSTEP_STOPPED ? status : result;
    }
    close_net(&train);
    return end(&checking, status, inner);
}

int lockstep_check_model(const char *path, const struct lockstep_check_options *options,
                         struct lockstep_error *error)
{
    LS_OWN_MODE;
    struct ls_error *inner = ls_api_error(error);
    struct ls_net_state state = {.phase = LOCKSTEP__PHASE__TEST};
    struct ls_net_definition definition = {0};
    struct checking checking = {0};
    struct lockstep_check_options mine;
    LS_TRY(LS_API_OPTIONS(mine, options, "lockstep_check_options_init", inner));
    options = &mine;
    checking.options = options;
    checking.callbacks = options->callbacks;
    LS_TRY(ls_net_read(path, &state, &definition, inner));
    checking.source.net = "test";
    int status = check_test(&checking, &definition, 1, NULL, inner);
    ls_definition_free(definition.definition);
    return end(&checking, status, inner);
}
