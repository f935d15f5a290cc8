/* lockstep check-plugin: tests the layer types of a plugin.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cli/commands.h"
#include "cli/report.h"

struct values {
    struct ls_cli_list files, settings, bottoms;
    const char *type;
};

static int run(const void *data)
{
    const struct values *values = data;
    struct lockstep_error *error = lockstep_error_new();
    struct lockstep_plugin_check_options options;
    lockstep_plugin_check_options_init(&options);
    options.type = values->type;
    options.settings = values->settings.items;
    options.setting_count = values->settings.count;
    options.bottoms = values->bottoms.items;
    options.bottom_count = values->bottoms.count;
    options.tell = ls_cli_put_line;
    int status = lockstep_plugin_check(values->files.items[0], &options, error);
    if (status != 0)
        ls_cli_report(status, error);
    lockstep_error_free(error);
    return status;
}

static const struct ls_cli_option options[] = {
    LS_CLI_ROW(LS_CLI_TEXT, "type", "NAME", struct values, type, 0,
               "this layer type alone; default: all of the plugin's"),
    LS_CLI_ROW(LS_CLI_LIST, "set", "KEY=VALUE", struct values, settings, 0,
               "a setting, as plugin_param would have it; may be given several times"),
    LS_CLI_ROW(LS_CLI_LIST, "bottom", "SHAPE", struct values, bottoms, 0,
               "the shape of a bottom, for each of them; default: 4x3x5x4"),
    {.name = NULL}};

const struct ls_cli_command ls_cli_command_check_plugin = {
    .name = "check-plugin",
    .summary = "tests the layer types of a plugin: exactness and gradients",
    .notes =
        "FILE is a shared object (include/lockstep/plugin.h). Each type must give the same bits\n"
        "whenever it is called, write all of its outputs and nothing else, compute each sample\n"
        "by itself as in a batch (unless it says that it mixes samples), and have the\n"
        "gradients that finite differences give. The exit code is 8 where one does not.",
    .usage = "FILE [--type NAME] [--set KEY=VALUE] [--bottom 4x3x5x4]",
    .options = options,
    .arguments = offsetof(struct values, files),
    .arguments_min = 1,
    .arguments_max = 1,
    .arguments_name = "FILE",
    .example = "lockstep check-plugin ./shrink.so --type Shrink --set threshold=0.2",
    .run = run,
    .values_size = sizeof(struct values),
};
