/* lockstep diff: what differs between two files of weights, or two definitions.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cli/commands.h"
#include "cli/report.h"

struct values {
    struct ls_cli_list files;
};

static int run(const void *data)
{
    const struct values *values = data;
    struct lockstep_error *error = lockstep_error_new();
    int status =
        lockstep_diff(values->files.items[0], values->files.items[1], ls_cli_put_line, NULL, error);
    if (status != 0)
        ls_cli_report(status, error);
    lockstep_error_free(error);
    return status;
}

static const struct ls_cli_option options[] = {{.name = NULL}};

const struct ls_cli_command ls_cli_command_diff = {
    .name = "diff",
    .summary = "says what differs between two files of weights, or two definitions",
    .notes =
        "FIRST and SECOND are weights (snapshots, safetensors, caffemodels), nets or solvers.\n"
        "Places of fields are shown. The exit code is 0 where all tensors or all fields are the\n"
        "same (notes of a snapshot, and its definition, may differ), else 8.",
    .usage = "FIRST SECOND",
    .options = options,
    .arguments = offsetof(struct values, files),
    .arguments_min = 2,
    .arguments_max = 2,
    .arguments_name = "FIRST SECOND",
    .example = "lockstep diff one_iter_1000.safetensors two_iter_1000.safetensors\n"
               "lockstep diff lenet.prototxt lenet_wide.prototxt",
    .run = run,
    .values_size = sizeof(struct values),
};
