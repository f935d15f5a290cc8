/* lockstep verify: trains with several numbers of workers and compares every byte.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>

#include "cli/commands.h"
#include "cli/report.h"
#include "cli/size.h"
#include "monitor/monitor.h"

enum { COUNTS_MAX = 64, WORKERS_MAX = 4096 };

struct values {
    const char *solver, *workers, *weights, *isa;
    int64_t iterations;
    struct ls_cli_list set;
};

static int verify(const struct values *values, const int *counts, size_t count,
                  struct lockstep_error *error)
{
    struct ls_monitor monitor;
    struct lockstep_solver *solver;
    struct lockstep_train_options options;
    ls_monitor_init(&monitor, stdout, NULL, NULL);
    lockstep_train_options_init(&options);
    options.isa = values->isa;
    options.weights = values->weights;
    options.callbacks = (struct lockstep_callbacks){&monitor, ls_monitor_event, NULL};
    int status =
        lockstep_solver_load(values->solver, values->set.items, values->set.count, &solver, error);
    if (status == 0)
        status = lockstep_verify(solver, &options, counts, count, values->iterations, error);
    lockstep_solver_free(solver);
    ls_monitor_clear(&monitor);
    return status;
}

static int run(const void *data)
{
    const struct values *values = data;
    int counts[COUNTS_MAX];
    if (values->solver == NULL)
        return ls_cli_usage_error("verify: --solver FILE is missing");
    size_t count;
    if (!ls_cli_parse_counts(values->workers, WORKERS_MAX, counts, COUNTS_MAX, &count))
        return ls_cli_usage_error("verify: --workers '%s' is not a list of at most %d numbers from "
                                  "1 to %d, such as 1,2,3",
                                  values->workers, COUNTS_MAX, WORKERS_MAX);
    struct lockstep_error *error = lockstep_error_new();
    int status = verify(values, counts, count, error);
    if (status == 0)
        printf("Verified: workers %s compute the same bytes.\n", values->workers);
    else
        ls_cli_report(status, error);
    lockstep_error_free(error);
    return status;
}

static void defaults(void *data)
{
    struct values *values = data;
    values->iterations = -1;
    values->workers = "1,2,3";
}

static const struct ls_cli_option options[] = {
    LS_CLI_SOLVER(struct values, solver, ""),
    LS_CLI_ROW(LS_CLI_TEXT, "workers", "LIST", struct values, workers, 0,
               "the numbers of workers to compare; default: 1,2,3"),
    LS_CLI_ROW(LS_CLI_INTEGER, "iterations", "N", struct values, iterations, 1,
               "updates; default: as many as the solver says, at most 50"),
    LS_CLI_ROW(LS_CLI_TEXT, "weights", "FILES", struct values, weights, 0,
               "start from weights (safetensors, caffemodel)"),
    LS_CLI_SET(struct values, set),
    LS_CLI_ISA(struct values, isa),
    {.name = NULL}};

const struct ls_cli_command ls_cli_command_verify = {
    .name = "verify",
    .summary = "trains with several numbers of workers and compares every byte",
    .usage = "--solver FILE [--workers 1,2,3] [--iterations N]",
    .options = options,
    .example = "lockstep verify --solver lenet_solver.prototxt --workers 1,2,3 --iterations 50",
    .defaults = defaults,
    .run = run,
    .values_size = sizeof(struct values),
};
