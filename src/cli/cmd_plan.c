/* lockstep plan: what a training or a test will do, with which kernels, in how much memory.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>

#include "cli/commands.h"
#include "cli/plan_table.h"
#include "cli/report.h"

struct values {
    const char *solver, *model, *isa;
    int64_t workers, level;
    uint64_t memory;
    int json;
    struct ls_cli_list set, stages;
};

static int make(const struct values *values, struct lockstep_plan **plan,
                struct lockstep_error *error)
{
    struct lockstep_plan_options options;
    struct lockstep_solver *solver;
    lockstep_plan_options_init(&options);
    options.workers = (int)values->workers;
    options.isa = values->isa;
    options.memory = values->memory;
    options.level = (int)values->level;
    options.stages = values->stages.items;
    options.stage_count = values->stages.count;
    if (values->model != NULL)
        return lockstep_plan_model(values->model, &options, plan, error);
    int status =
        lockstep_solver_load(values->solver, values->set.items, values->set.count, &solver, error);
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
            return ls_cli_error(LOCKSTEP_RESOURCE, "out of memory");
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
               "plan a test: the net's definition, or a solver's"),
    LS_CLI_WORKER_COUNT(struct values, workers, ""),
    LS_CLI_ROW(LS_CLI_SIZE, "memory", "SIZE", struct values, memory, 0,
               "plan for so much memory (600MiB, 1.5GiB), and say which batch\n"
               "is the largest that fits"),
    LS_CLI_SET(struct values, set),
    LS_CLI_ROW(LS_CLI_INTEGER, "level", "N", struct values, level, INT32_MIN,
               "with --model: the net's level, for its include and exclude rules"),
    LS_CLI_ROW(LS_CLI_LIST, "stage", "NAME", struct values, stages, 0,
               "with --model: a stage for these rules"),
    LS_CLI_JSON(struct values, json),
    LS_CLI_ISA(struct values, isa),
    {.name = NULL}};

const struct ls_cli_command ls_cli_command_plan = {
    .name = "plan",
    .summary = "shows what a training or a test will do, and in how much memory",
    .usage = "--solver FILE | --model FILE [OPTIONS]",
    .options = options,
    .example = "lockstep plan --solver lenet_solver.prototxt --workers 2\n"
               "lockstep plan --solver resnet_solver.prototxt --memory 600MiB",
    .run = run,
    .values_size = sizeof(struct values),
};
