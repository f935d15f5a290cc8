/* lockstep time: where the time of a training goes, layer by layer.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cli/commands.h"
#include "cli/dummy.h"
#include "cli/report.h"
#include "cli/time_table.h"

struct values {
    const char *solver, *isa, *device;
    int64_t workers, iterations;
    uint64_t memory;
    int json;
    struct ls_cli_list set;
    struct ls_cli_dummy_values dummy;
};

static int run(const void *data)
{
    const struct values *values = data;
    struct lockstep_time_options options;
    struct lockstep_timing *timing = NULL;
    struct lockstep_solver *solver;
    if (values->solver == NULL)
        return ls_cli_usage_error("time: --solver FILE is missing");
    lockstep_time_options_init(&options);
    options.workers = (int)values->workers;
    options.isa = values->isa;
    options.device = values->device;
    options.memory = values->memory;
    options.iterations = values->iterations;
    struct lockstep_error *error = lockstep_error_new();
    int status =
        lockstep_solver_load(values->solver, values->set.items, values->set.count, &solver, error);
    if (status == 0)
        status = ls_cli_use_dummy_data(&values->dummy, true, solver, error);
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
    LS_CLI_WORKER_COUNT(struct values, workers, ""),
    LS_CLI_ROW(LS_CLI_INTEGER, "iterations", "N", struct values, iterations, 1,
               "iterations that are measured, after two to warm up; default: 20"),
    LS_CLI_ROW(LS_CLI_SIZE, "memory", "SIZE", struct values, memory, 0,
               "as in train: what it may take"),
    LS_CLI_SET(struct values, set),
    LS_CLI_DUMMY_OPTIONS(struct values, dummy),
    LS_CLI_JSON(struct values, json),
    LS_CLI_ISA(struct values, isa),
    LS_CLI_DEVICE(struct values, device),
    {.name = NULL}};

const struct ls_cli_command ls_cli_command_time = {
    .name = "time",
    .summary = "takes the time of every layer of a training, and of the rest",
    .usage = "--solver FILE [OPTIONS]",
    .options = options,
    .example = "lockstep time --solver lenet_solver.prototxt --workers 2",
    .run = run,
    .values_size = sizeof(struct values),
};
