/* lockstep diff: what differs between two snapshots.
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
    .summary = "says what differs between two snapshots: tensors, elements, notes",
    .notes =
        "FIRST and SECOND are safetensors files. The exit code is 0 where all tensors are the\n"
        "same (fields of the definition and other notes may differ), else 8.",
    .usage = "FIRST SECOND",
    .options = options,
    .arguments = offsetof(struct values, files),
    .arguments_min = 2,
    .arguments_max = 2,
    .arguments_name = "FIRST SECOND",
    .example = "lockstep diff one_iter_1000.safetensors two_iter_1000.safetensors",
    .run = run,
    .values_size = sizeof(struct values),
};
