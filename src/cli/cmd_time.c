/* lockstep time: where the time of a training goes, layer by layer.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cli/cards.h"
#include "cli/commands.h"
#include "cli/dummy.h"
#include "cli/report.h"
#include "cli/time_table.h"

struct values {
    const char *solver, *model, *isa, *device;
    int64_t workers, iterations, level;
    uint64_t memory;
    int json;
    struct ls_cli_list set, stages;
    struct ls_cli_dummy_values dummy;
};

static int load(const struct values *values, struct lockstep_solver **solver,
                struct lockstep_error *error)
{
    int status = values->model != NULL ? lockstep_solver_of_net(values->model, (int)values->level,
                                                                values->stages.items,
                                                                values->stages.count, solver, error)
                                       : lockstep_solver_load(values->solver, values->set.items,
                                                              values->set.count, solver, error);
    if (status == 0)
        status = ls_cli_use_dummy_data(&values->dummy, true, *solver, error);
    return status;
}

static int check(const struct values *values)
{
    if ((values->solver == NULL) == (values->model == NULL))
        return ls_cli_usage_error("time: one of --solver FILE and --model FILE is needed");
    if (values->model != NULL && values->set.count > 0)
        return ls_cli_usage_error("time: --set is for a solver's fields, and there is none. hint: "
                                  "give --solver FILE instead of --model");
    if (values->solver != NULL && (values->stages.count > 0 || values->level != 0))
        return ls_cli_usage_error("time: --stage and --level are for --model. hint: a solver has "
                                  "train_state");
    return 0;
}

static int run(const void *data)
{
    const struct values *values = data;
    struct lockstep_time_options options;
    struct lockstep_timing *timing = NULL;
    struct lockstep_solver *solver = NULL;
    int status = check(values);
    if (status != 0)
        return status;
    lockstep_time_options_init(&options);
    options.workers = (int)values->workers;
    options.isa = values->isa;
    options.device = values->device;
    ls_cli_note_cards(values->device);
    options.memory = values->memory;
    options.iterations = values->iterations;
    struct lockstep_error *error = lockstep_error_new();
    status = load(values, &solver, error);
    if (status == 0)
        status = lockstep_time(solver, &options, &timing, error);
    if (status != 0)
        ls_cli_report(status, error);
    else if (values->json)
        ls_cli_put_time_json(timing);
    else
        ls_cli_put_time(timing);
    lockstep_timing_free(timing);
    lockstep_solver_free(solver);
    lockstep_error_free(error);
    return status;
}

static const struct ls_cli_option options[] = {
    LS_CLI_SOLVER(struct values, solver, "; nothing is written to disk"),
    LS_CLI_ROW(LS_CLI_TEXT, "model", "FILE", struct values, model, 0,
               "time a net's training step without a solver; where it has no loss,\n"
               "with the mean of each of its outputs as one"),
    LS_CLI_ROW(LS_CLI_INTEGER, "level", "N", struct values, level, INT32_MIN,
               "with --model: the net's level, for its include and exclude rules"),
    LS_CLI_ROW(LS_CLI_LIST, "stage", "NAME", struct values, stages, 0,
               "with --model: a stage for these rules"),
    LS_CLI_WORKER_COUNT(struct values, workers, ""),
    LS_CLI_ROW(LS_CLI_INTEGER, "iterations", "N", struct values, iterations, 1,
               "iterations that are measured, after two to warm up; default: 20"),
    LS_CLI_ROW(LS_CLI_SIZE, "memory", "SIZE", struct values, memory, 0,
               "as in train: what it may take"),
    LS_CLI_SET(struct values, set),
    LS_CLI_DUMMY_OPTIONS(struct values, dummy),
    LS_CLI_JSON(struct values, json),
    LS_CLI_ISA(struct values, isa),
    LS_CLI_DEVICE_ONE(struct values, device),
    {.name = NULL}};

const struct ls_cli_command ls_cli_command_time = {
    .name = "time",
    .summary = "takes the time of every layer of a training, and of the rest",
    .usage = "--solver FILE | --model FILE [OPTIONS]",
    .options = options,
    .example = "lockstep time --solver lenet_solver.prototxt --workers 2\n"
               "lockstep time --model deploy.prototxt --input data=10,3,224,224",
    .run = run,
    .values_size = sizeof(struct values),
};
