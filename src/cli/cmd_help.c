/* lockstep help [COMMAND | sources | SOURCE]
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/links.h"
#include "cli/report.h"
#include "lockstep/lockstep.h"

struct values {
    struct ls_cli_list commands;
};

static void put_line(void *user, const char *line)
{
    (void)user;
    puts(line);
}

static void ignore_line(void *user, const char *line)
{
    (void)user, (void)line;
}

/* The kinds of sources of data, or the fields of one (`backend`). */
static int help_sources(const char *backend)
{
    struct lockstep_error *error = lockstep_error_new();
    if (backend == NULL)
        puts("sources of data (data_param.backend; convert and mean: --backend):\n");
    int status = lockstep_source_help(backend, put_line, NULL, error);
    if (backend == NULL)
        puts("\n'lockstep help NAME' lists the fields that one of them reads.");
    if (status != 0)
        ls_cli_report(status, error);
    lockstep_error_free(error);
    return status;
}

static int run(const void *data)
{
    const struct values *values = data;
    if (values->commands.count == 0) {
        ls_cli_overview();
        return 0;
    }
    const char *name = values->commands.items[0];
    if (strcmp(name, "sources") == 0)
        return help_sources(NULL);
    if (lockstep_source_help(name, ignore_line, NULL, NULL) == 0)
        return help_sources(name);
    const struct ls_cli_alias *link = ls_cli_find_link(name);
    if (link != NULL && link->command == NULL)
        return link->run(1, (char *[]){(char *)(uintptr_t) "-help"});
    const struct ls_cli_command *command = link != NULL ? link->command : ls_cli_find_command(name);
    if (command == NULL)
        return LOCKSTEP_USAGE;
    ls_cli_help(command);
    return 0;
}

static const struct ls_cli_option options[] = {{.name = NULL}};

const struct ls_cli_command ls_cli_command_help = {
    .name = "help",
    .summary = "says what the commands do, and what sources of data read",
    .usage = "[COMMAND | sources | SOURCE]",
    .options = options,
    .arguments = offsetof(struct values, commands),
    .arguments_max = 1,
    .arguments_name = "COMMAND, sources or SOURCE,",
    .example = "lockstep help train\nlockstep help sources\nlockstep help IMAGES",
    .run = run,
    .values_size = sizeof(struct values),
};
