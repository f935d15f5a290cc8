/* lockstep help [COMMAND | sources | SOURCE]
 * SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/commands.h"
#include "cli/links.h"
#include "cli/manual.h"
#include "cli/output_file.h"
#include "cli/report.h"
#include "lockstep/lockstep.h"

struct values {
    struct ls_cli_list commands;
    const char *pages;
    int manual;
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

/* The manual page of a link, of a command, or, without both, of the program. */
static void put_page(FILE *out, const struct ls_cli_alias *link,
                     const struct ls_cli_command *command)
{
    if (link != NULL)
        ls_cli_put_link_manual(out, link);
    else
        ls_cli_put_manual(out, command);
}

/* The same as a file of a folder. */
static int write_page(const char *folder, const struct ls_cli_alias *link,
                      const struct ls_cli_command *command)
{
    char path[4096];
    int length =
        snprintf(path, sizeof path, "%s/%s%s%s.1", folder, link != NULL ? link->name : "lockstep",
                 command != NULL ? "-" : "", command != NULL ? command->name : "");
    struct ls_cli_output_file page;
    if (length >= (int)sizeof path)
        return ls_cli_error(LOCKSTEP_RESOURCE, "%s: cannot write the page: %s", path,
                            strerror(ENAMETOOLONG));
    const int status = ls_cli_output_open(path, &page);
    if (status != 0)
        return status;
    put_page(page.stream, link, command);
    return ls_cli_output_commit(&page);
}

static int write_pages(const char *folder)
{
    int status = ls_cli_output_folder(folder);
    if (status == 0)
        status = write_page(folder, NULL, NULL);
    for (size_t i = 0; ls_cli_commands[i] != NULL && status == 0; i++)
        status = write_page(folder, NULL, ls_cli_commands[i]);
    for (const struct ls_cli_alias *link = ls_cli_links; link->name != NULL && status == 0; link++)
        status = write_page(folder, link, NULL);
    return status;
}

static int show_page(const char *name)
{
    const struct ls_cli_alias *link = name != NULL ? ls_cli_find_link(name) : NULL;
    const struct ls_cli_command *command = NULL;
    if (name != NULL && link == NULL) {
        command = ls_cli_find_command(name);
        if (command == NULL)
            return LOCKSTEP_USAGE;
    }
    put_page(stdout, link, command);
    return 0;
}

static int run(const void *data)
{
    const struct values *values = data;
    if (values->pages != NULL)
        return write_pages(values->pages);
    if (values->manual)
        return show_page(values->commands.count > 0 ? values->commands.items[0] : NULL);
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
    if (link != NULL && link->command == NULL) {
        puts(link->help);
        return 0;
    }
    const struct ls_cli_command *command = link != NULL ? link->command : ls_cli_find_command(name);
    if (command == NULL)
        return LOCKSTEP_USAGE;
    ls_cli_help(command);
    return 0;
}

static const struct ls_cli_option options[] = {
    LS_CLI_ROW(LS_CLI_FLAG, "man", NULL, struct values, manual, 0,
               "the manual page of the command, or of the program, for 'man -l -'"),
    LS_CLI_ROW(LS_CLI_TEXT, "man-pages", "DIR", struct values, pages, 0,
               "write all manual pages into this folder"),
    {.name = NULL}};

const struct ls_cli_command ls_cli_command_help = {
    .name = "help",
    .summary = "says what the commands do, and what sources of data read",
    .usage = "[--man] [COMMAND | sources | SOURCE]",
    .options = options,
    .arguments = offsetof(struct values, commands),
    .arguments_max = 1,
    .arguments_name = "COMMAND, sources or SOURCE,",
    .arguments_choices = "COMMANDS sources SOURCES",
    .example = "lockstep help train\nlockstep help sources\nlockstep help IMAGES\n"
               "lockstep help --man train | man -l -",
    .run = run,
    .values_size = sizeof(struct values),
};
