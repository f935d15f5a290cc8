/* Options of every command. See cli/common.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cli/common.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cli/report.h"
#include "lockstep/lockstep.h"
#include "monitor/terminal.h"

struct values {
    struct ls_cli_list plugins;
    const char *color;
    int quiet, verbose;
};

enum { PLUGINS_MAX = 64 };
static const char *plugins[PLUGINS_MAX + 1];

const char *ls_cli_plugin(size_t index)
{
    return plugins[index];
}

static int load_plugins(const struct ls_cli_list *files)
{
    memset(plugins, 0, sizeof plugins);
    if (files->count > PLUGINS_MAX)
        return ls_cli_usage_error("--plugin %s: more than %d plugins", files->items[PLUGINS_MAX],
                                  PLUGINS_MAX);
    struct lockstep_error *error = lockstep_error_new();
    int status = 0;
    for (size_t i = 0; i < files->count && status == 0; i++) {
        status = lockstep_plugin_load(files->items[i], error);
        if (status != 0)
            ls_cli_report(status, error);
        else
            plugins[i] = files->items[i];
    }
    lockstep_error_free(error);
    return status;
}

static int choose_colours(const struct values *values)
{
    static const char *const names[] = {
        [LS_COLOURS_AUTO] = "auto", [LS_COLOURS_ALWAYS] = "always", [LS_COLOURS_NEVER] = "never"};
    const enum ls_verbosity verbosity = values->quiet     ? LS_QUIET
                                        : values->verbose ? LS_VERBOSE
                                                          : LS_NORMAL;
    for (int i = 0; values->color != NULL && i < (int)(sizeof names / sizeof *names); i++)
        if (strcmp(names[i], values->color) == 0) {
            ls_terminal_choose((enum ls_colour_choice)i, verbosity);
            return 0;
        }
    ls_terminal_choose(LS_COLOURS_AUTO, verbosity);
    return values->color == NULL
               ? 0
               : ls_cli_usage_error("--color: '%s' is unknown. hint: auto, always or never",
                                    values->color);
}

const struct ls_cli_option ls_cli_common_options[] = {
    LS_CLI_ROW(LS_CLI_FLAG, "quiet", NULL, struct values, quiet, 0,
               "show errors, warnings and the result only (also -q)"),
    LS_CLI_ROW(LS_CLI_FLAG, "verbose", NULL, struct values, verbose, 0,
               "show details, too: which parameter each tensor of a file of weights is\n"
               "for, updates that were repeated"),
    LS_CLI_CHOICE("color", "WHEN", struct values, color, "auto always never",
                  "colours: auto (on a terminal, unless NO_COLOR is set), always or\n"
                  "never; default: auto"),
    LS_CLI_ROW(LS_CLI_LIST, "plugin", "FILE", struct values, plugins, 0,
               "a shared object with layer types of its own; may be given several\n"
               "times"),
    {.name = NULL}};

int ls_cli_take_common(int *count, char **arguments)
{
    struct values values = {.quiet = 0};
    ls_terminal_choose(LS_COLOURS_AUTO, LS_NORMAL);
    int status = ls_cli_take_options(ls_cli_common_options, count, arguments, &values);
    if (status == 0)
        status = choose_colours(&values);
    if (status == 0)
        status = load_plugins(&values.plugins);
    free((void *)values.plugins.items);
    return status;
}
