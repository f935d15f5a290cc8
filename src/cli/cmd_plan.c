/* lockstep plan: what a training or a test will do, with which kernels, in how much memory; how
 * fast it will be on several ranks.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "cli/cards.h"
#include "cli/commands.h"
#include "cli/dummy.h"
#include "cli/plan_json.h"
#include "cli/plan_table.h"
#include "cli/rate.h"
#include "cli/report.h"
#include "cli/scaling_table.h"
#include "cli/size.h"

enum { RANKS_MAX = 64 }; /* numbers of ranks in a list */

struct values {
    const char *solver, *model, *phase, *isa, *device, *ranks, *link, *compute;
    int64_t workers, level, iterations;
    uint64_t memory;
    int json;
    struct ls_cli_list set, stages;
    struct ls_cli_dummy_values dummy;
};

/* Whether a net is to be planned as a training: it is asked for, or the net has data in no other
 * phase. What is wrong with the net is told later. */
static bool is_training(const struct values *values)
{
    struct lockstep_net_options options;
    struct lockstep_dummy_options dummy;
    struct lockstep_net *net = NULL;
    lockstep_net_options_init(&options);
    options.phase = values->phase;
    options.level = (int)values->level;
    options.stages = values->stages.items;
    options.stage_count = values->stages.count;
    if (ls_cli_dummy_options(&values->dummy, true, &dummy)) {
        dummy.tell = NULL;
        options.dummy = &dummy;
    }
    bool train = values->phase != NULL && strcmp(values->phase, "TRAIN") == 0;
    if (values->phase == NULL && lockstep_net_load(values->model, &options, &net, NULL) == 0)
        train = strcmp(lockstep_net_phase(net), "TRAIN") == 0;
    lockstep_net_free(net);
    return train;
}

static int load_solver(const struct values *values, struct lockstep_solver **solver,
                       struct lockstep_error *error)
{
    if (values->model == NULL)
        return lockstep_solver_load(values->solver, values->set.items, values->set.count, solver,
                                    error);
    return lockstep_solver_of_net(values->model, (int)values->level, values->stages.items,
                                  values->stages.count, solver, error);
}

static void warn(void *user, const char *sentence)
{
    (void)user;
    ls_cli_error(0, "warning: %s", sentence);
}

static int make(const struct values *values, struct lockstep_plan **plan,
                struct lockstep_error *error)
{
    struct lockstep_plan_options options;
    struct lockstep_solver *solver;
    lockstep_plan_options_init(&options);
    options.workers = (int)values->workers;
    options.isa = values->isa;
    options.device = values->device;
    ls_cli_note_cards(values->device);
    options.memory = values->memory;
    options.level = (int)values->level;
    options.stages = values->stages.items;
    options.stage_count = values->stages.count;
    options.warn = warn;
    struct lockstep_dummy_options dummy;
    if (ls_cli_dummy_options(&values->dummy, true, &dummy))
        options.dummy = &dummy;
    if (values->model != NULL && !is_training(values))
        return lockstep_plan_model(values->model, &options, plan, error);
    int status = load_solver(values, &solver, error);
    if (status == 0)
        status = ls_cli_use_dummy_data(&values->dummy, true, solver, error);
    if (status == 0)
        status = lockstep_plan_training(solver, &options, plan, error);
    lockstep_solver_free(solver);
    return status;
}

static int put(const struct values *values, struct lockstep_plan *plan,
               struct lockstep_error *error)
{
    size_t nets = lockstep_plan_net_count(plan);
    struct ls_cli_largest *largest = NULL;
    int status = 0;
    if (values->memory > 0) {
        largest = calloc(nets + 1, sizeof *largest);
        if (largest == NULL)
            return ls_cli_no_memory();
    }
    for (size_t i = 0; i < nets && largest != NULL && status == 0; i++)
        status = lockstep_plan_largest_batch(plan, i, values->memory, &largest[i].batch,
                                             &largest[i].bounded, error);
    if (status != 0)
        ls_cli_report(status, error);
    else if (values->json)
        ls_cli_put_plan_json(plan, largest);
    else
        ls_cli_put_plan(plan, largest);
    free(largest);
    return status;
}

/* ---- Several ranks --------------------------------------------------------------------------- */

static int parse_scaling(const struct values *values, int *ranks,
                         struct lockstep_scaling_options *options)
{
    struct ls_cli_link link = {options->bandwidth, options->latency, options->message};
    if (!ls_cli_parse_counts(values->ranks, LOCKSTEP_RANKS_MAX, ranks, RANKS_MAX, &options->count))
        return ls_cli_usage_error(
            "plan: --ranks '%s' is not a list of at most %d numbers from 1 to "
            "%d, such as 1,2,4,8",
            values->ranks, RANKS_MAX, LOCKSTEP_RANKS_MAX);
    if (values->link != NULL && !ls_cli_parse_link(values->link, &link))
        return ls_cli_usage_error("plan: --link: cannot parse '%s'. hint: write speed, latency and "
                                  "time of a message as in 10Gbps,20us,1us",
                                  values->link);
    if (values->compute != NULL) {
        const char *end = ls_cli_parse_time(values->compute, &options->compute);
        if (end == NULL || *end != '\0' || !(options->compute > 0))
            return ls_cli_usage_error("plan: --compute: '%s': expected a time such as 42ms",
                                      values->compute);
    }
    options->ranks = ranks;
    options->workers = (int)values->workers;
    options->bandwidth = link.bandwidth;
    options->latency = link.latency;
    options->message = link.message;
    options->iterations = values->iterations;
    options->isa = values->isa;
    options->device = values->device;
    options->memory = values->memory;
    return 0;
}

static int plan_ranks(const struct values *values)
{
    struct lockstep_scaling_options options;
    struct lockstep_scaling *scaling = NULL;
    struct lockstep_solver *solver;
    int ranks[RANKS_MAX];
    lockstep_scaling_options_init(&options);
    int status = parse_scaling(values, ranks, &options);
    if (status != 0)
        return status;
    struct lockstep_error *error = lockstep_error_new();
    status =
        lockstep_solver_load(values->solver, values->set.items, values->set.count, &solver, error);
    if (status == 0)
        status = ls_cli_use_dummy_data(&values->dummy, true, solver, error);
    if (status == 0)
        status = lockstep_plan_scaling(solver, &options, &scaling, error);
    if (status != 0)
        ls_cli_report(status, error);
    else if (values->json)
        ls_cli_put_scaling_json(scaling);
    else
        ls_cli_put_scaling(scaling);
    lockstep_scaling_free(scaling);
    lockstep_solver_free(solver);
    lockstep_error_free(error);
    return status;
}

/* ---- The command ----------------------------------------------------------------------------- */

static int run(const void *data)
{
    const struct values *values = data;
    struct lockstep_plan *plan = NULL;
    if ((values->solver == NULL) == (values->model == NULL))
        return ls_cli_usage_error("plan: one of --solver FILE and --model FILE is needed");
    if (values->model != NULL && values->set.count > 0)
        return ls_cli_usage_error("plan: --set is for a solver's fields, and there is none. hint: "
                                  "give --solver FILE instead of --model");
    if (values->solver != NULL && (values->stages.count > 0 || values->level != 0))
        return ls_cli_usage_error("plan: --stage and --level are for --model. hint: a solver has "
                                  "train_state and test_state");
    if (values->phase != NULL && (values->solver != NULL || (strcmp(values->phase, "TRAIN") != 0 &&
                                                             strcmp(values->phase, "TEST") != 0)))
        return ls_cli_usage_error("plan: --phase is TRAIN or TEST, for --model");
    if (values->ranks != NULL && values->solver != NULL)
        return plan_ranks(values);
    if (values->ranks != NULL || values->link != NULL || values->compute != NULL ||
        values->iterations > 0)
        return ls_cli_usage_error("plan: %s. hint: give --ranks 1,2,4 and --solver FILE",
                                  values->ranks != NULL
                                      ? "--ranks is for a training"
                                      : "--link, --compute and --iterations are for several ranks");
    struct lockstep_error *error = lockstep_error_new();
    int status = make(values, &plan, error);
    if (status != 0)
        ls_cli_report(status, error);
    else
        status = put(values, plan, error);
    lockstep_plan_free(plan);
    lockstep_error_free(error);
    return status;
}

static const struct ls_cli_option options[] = {
    LS_CLI_ROW(LS_CLI_TEXT, "solver", "FILE", struct values, solver, 0,
               "plan a training with its tests: the solver's definition"),
    LS_CLI_ROW(LS_CLI_TEXT, "model", "FILE", struct values, model, 0,
               "plan a net by itself: its definition, or a solver's"),
    LS_CLI_CHOICE("phase", "PHASE", struct values, phase, "TRAIN TEST",
                  "with --model: TEST, or TRAIN, which plans a training; default: TEST,\n"
                  "if the net has data then"),
    LS_CLI_WORKER_COUNT(struct values, workers, ""),
    LS_CLI_ROW(LS_CLI_SIZE, "memory", "SIZE", struct values, memory, 0,
               "plan for this much memory (600MiB, 1.5GiB), and say which batch\n"
               "is the largest that fits"),
    LS_CLI_ROW(LS_CLI_TEXT, "ranks", "R,R,...", struct values, ranks, 0,
               "predict the training on N ranks of --workers each: time,\n"
               "what is sent, memory"),
    LS_CLI_ROW(LS_CLI_TEXT, "link", "RATE,LATENCY", struct values, link, 0,
               "with --ranks: what links do, and what a message costs besides;\n"
               "default: 10Gbps,20us,1us"),
    LS_CLI_ROW(LS_CLI_TEXT, "compute", "TIME", struct values, compute, 0,
               "with --ranks: what an update takes one worker (42ms), for other\n"
               "machines than this; default: some updates are timed here"),
    LS_CLI_ROW(LS_CLI_INTEGER, "iterations", "N", struct values, iterations, 1,
               "with --ranks: updates that are timed; default: 5"),
    LS_CLI_SET(struct values, set),
    LS_CLI_DUMMY_OPTIONS(struct values, dummy),
    LS_CLI_ROW(LS_CLI_INTEGER, "level", "N", struct values, level, INT32_MIN,
               "with --model: the net's level, for its include and exclude rules"),
    LS_CLI_ROW(LS_CLI_LIST, "stage", "NAME", struct values, stages, 0,
               "with --model: a stage for these rules"),
    LS_CLI_JSON(struct values, json),
    LS_CLI_ISA(struct values, isa),
    LS_CLI_DEVICE_ONE(struct values, device),
    {.name = NULL}};

const struct ls_cli_command ls_cli_command_plan = {
    .name = "plan",
    .summary = "shows what a training or a test will do, and in how much memory",
    .usage = "--solver FILE | --model FILE [OPTIONS]",
    .options = options,
    .example = "lockstep plan --solver lenet_solver.prototxt --workers 2\n"
               "lockstep plan --solver resnet_solver.prototxt --memory 600MiB\n"
               "lockstep plan --solver resnet_solver.prototxt --ranks 1,2,4,8 --link 10Gbps,20us",
    .run = run,
    .values_size = sizeof(struct values),
};
