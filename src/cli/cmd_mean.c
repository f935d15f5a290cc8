/* lockstep mean: the mean picture of a source, as transform_param.mean_file takes it.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>

#include "cli/commands.h"
#include "cli/report.h"
#include "cli/source.h"
#include "monitor/monitor.h"
#include "monitor/progress.h"

enum { CHANNELS_MAX = 16 }; /* of which the library reports the means */

struct values {
    struct ls_cli_source_values source;
    struct ls_cli_list output;
};

static int run(const void *data)
{
    const struct values *values = data;
    const char *path = values->output.items[0];
    struct lockstep_source_options options;
    int status = ls_cli_source_options("mean", &values->source, &options);
    if (status != 0)
        return status;
    struct ls_monitor monitor;
    struct ls_progress progress;
    ls_monitor_init(&monitor, stdout, NULL, NULL);
    ls_progress_init(&progress, stdout, NULL);
    options.callbacks = (struct lockstep_callbacks){&progress, ls_progress_event, NULL};
    struct lockstep_error *error = lockstep_error_new();
    double means[CHANNELS_MAX];
    int channels = 0;
    status = lockstep_mean(&options, path, means, &channels, error);
    ls_progress_clear(&progress);
    if (status == 0) {
        ls_monitor_say(&monitor, "Wrote the mean to %s", path);
        for (int c = 0; c < channels && c < CHANNELS_MAX; c++)
            ls_monitor_say(&monitor, "mean_value channel [%d]: %.6g", c, means[c]);
    } else {
        ls_cli_report(status, error);
    }
    lockstep_error_free(error);
    return status;
}

static const struct ls_cli_option options[] = {LS_CLI_SOURCE_OPTIONS(struct values, source),
                                               {.name = NULL}};

const struct ls_cli_command ls_cli_command_mean = {
    .name = "mean",
    .summary = "writes the mean picture of a source, for transform_param.mean_file",
    .usage = "--backend KIND --source PATH [OPTIONS] OUTPUT",
    .options = options,
    .arguments = offsetof(struct values, output),
    .arguments_min = 1,
    .arguments_max = 1,
    .arguments_name = "OUTPUT, a .binaryproto file,",
    .example = "lockstep mean --backend LMDB --source cifar10_train_lmdb mean.binaryproto",
    .run = run,
    .values_size = sizeof(struct values),
};
