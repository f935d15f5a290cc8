/* lockstep help [COMMAND]
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cli/commands.h"
#include "lockstep/lockstep.h"

struct values {
    struct ls_cli_list commands;
};

static int run(const void *data)
{
    const struct values *values = data;
    if (values->commands.count == 0) {
        ls_cli_overview();
        return 0;
    }
    const struct ls_cli_command *command = ls_cli_find_command(values->commands.items[0]);
    if (command == NULL)
        return LOCKSTEP_USAGE;
    ls_cli_help(command);
    return 0;
}

static const struct ls_cli_option options[] = {{.name = NULL}};

const struct ls_cli_command ls_cli_command_help = {
    .name = "help",
    .summary = "says what the commands do",
    .usage = "[COMMAND]",
    .options = options,
    .arguments = offsetof(struct values, commands),
    .arguments_max = 1,
    .arguments_name = "COMMAND",
    .example = "lockstep help train",
    .run = run,
    .values_size = sizeof(struct values),
};
