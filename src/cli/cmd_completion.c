/* lockstep completion: scripts with which shells complete command lines.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/report.h"

struct values {
    struct ls_cli_list shell;
};

static int run(const void *data)
{
    const struct values *values = data;
    const char *shell = values->shell.items[0];
    if (strcmp(shell, "bash") == 0)
        ls_cli_complete_bash(stdout);
    else if (strcmp(shell, "zsh") == 0)
        ls_cli_complete_zsh(stdout);
    else if (strcmp(shell, "fish") == 0)
        ls_cli_complete_fish(stdout);
    else
        return ls_cli_usage_error("completion: shell '%s' is unknown. hint: bash, zsh or fish",
                                  shell);
    return 0;
}

static const struct ls_cli_option options[] = {{.name = NULL}};

const struct ls_cli_command ls_cli_command_completion = {
    .name = "completion",
    .summary = "writes the script with which a shell completes command lines",
    .usage = "bash | zsh | fish",
    .notes =
        "It completes commands, options, the words that options take, and files. An installed\n"
        "Lockstep has the scripts where these shells look for them.",
    .options = options,
    .arguments = offsetof(struct values, shell),
    .arguments_min = 1,
    .arguments_max = 1,
    .arguments_name = "bash, zsh or fish",
    .arguments_choices = "bash zsh fish",
    .example = "source <(lockstep completion bash)\n"
               "lockstep completion zsh >~/.zsh/completions/_lockstep\n"
               "lockstep completion fish >~/.config/fish/completions/lockstep.fish",
    .run = run,
    .values_size = sizeof(struct values),
};
