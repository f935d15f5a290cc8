/* lockstep test: tests a trained net on its own test data.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdio.h>

#include "cli/commands.h"
#include "cli/model.h"
#include "cli/report.h"
#include "monitor/monitor.h"
#include "monitor/outputs.h"

struct values {
    struct ls_cli_model_values model;
    int64_t iterations;
    uint64_t memory;
};

static int run(const void *data)
{
    const struct values *values = data;
    struct ls_monitor monitor;
    struct lockstep_model *model;
    ls_monitor_init(&monitor, stdout, NULL, NULL);
    int status =
        ls_cli_load_model("test", &values->model, values->iterations, values->memory,
                          (struct lockstep_callbacks){&monitor, ls_monitor_event, NULL}, &model);
    if (status != 0)
        return status;
    struct lockstep_error *error = lockstep_error_new();
    const struct lockstep_output *outputs = NULL;
    size_t count = 0;
    int64_t samples = 0;
    status = lockstep_model_test(model, &outputs, &count, &samples, error);
    ls_monitor_clear(&monitor);
    if (count > 0) { /* even where one of them is not finite */
        ls_put_outputs(stdout, "Test net", outputs, count);
        printf("Tested %" PRId64 " samples.\n", samples);
    }
    if (status != 0)
        ls_cli_report(status, error);
    lockstep_error_free(error);
    lockstep_model_free(model);
    return status;
}

static const struct ls_cli_option options[] = {
    LS_CLI_MODEL_OPTIONS(struct values, model),
    LS_CLI_ROW(LS_CLI_INTEGER, "iterations", "N", struct values, iterations, 1,
               "test N batches; default: every sample once"),
    LS_CLI_ROW(LS_CLI_SIZE, "memory", "SIZE", struct values, memory, 0,
               "refuse to take more than so much (600MiB, 1.5GiB)"),
    {.name = NULL}};

const struct ls_cli_command ls_cli_command_test = {
    .name = "test",
    .summary = "tests a trained net on its test data",
    .usage = "--model FILE --weights FILE [OPTIONS]",
    .options = options,
    .example = "lockstep test --model lenet.prototxt --weights lenet_iter_10000.safetensors",
    .run = run,
    .values_size = sizeof(struct values),
};
