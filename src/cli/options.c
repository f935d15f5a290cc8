/* Parsing a command's arguments, and its help.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cli/options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common.h"
#include "cli/report.h"
#include "cli/size.h"
#include "cli/suggest.h"

enum { HELP_COLUMN = 26, COMMON_MAX = 8 };

/* Flags of Caffe's program that are spelt or done in another way here. */
static const struct {
    const char *name, *advice;
} elsewhere[] = {
    {"snapshot", "to continue from a snapshot, say --resume FILE"},
    {"gpu", "leave it out: this command needs no card"},
    {"model", "say --solver FILE, which names the net"},
    {"sigint-effect", "leave it out; SIGINT makes a snapshot and stops"},
    {"sighup-effect", "leave it out; SIGHUP makes a snapshot and goes on"},
};

/* The name of an argument that looks like an option, with '-' for '_', into `name`; the result is
 * the value behind '=', or NULL. */
static const char *split_name(const char *argument, char *name, size_t size)
{
    argument += argument[1] == '-' ? 2 : 1;
    size_t length = strcspn(argument, "=");
    size_t kept = length < size ? length : size - 1;
    for (size_t i = 0; i < kept; i++)
        name[i] = argument[i] == '_' ? '-' : argument[i];
    name[kept] = '\0';
    return argument[length] == '=' ? argument + length + 1 : NULL;
}

/* Some options have a letter, too. */
static const struct ls_cli_option *find_option(const struct ls_cli_option *options,
                                               const char *name)
{
    const char *meant = strcmp(name, "o") == 0 ? "output" : strcmp(name, "q") == 0 ? "quiet" : name;
    for (const struct ls_cli_option *option = options; option->name != NULL; option++)
        if (strcmp(option->name, meant) == 0)
            return option;
    return NULL;
}

static int unknown_option(const struct ls_cli_command *command, const char *argument,
                          const char *name)
{
    const char *names[LS_CLI_OPTIONS_MAX + COMMON_MAX + 2];
    size_t count = 0;
    for (size_t i = 0; i < sizeof elsewhere / sizeof elsewhere[0]; i++) {
        if (strcmp(elsewhere[i].name, name) == 0)
            return ls_cli_usage_error("%s: unknown option '%s'. hint: %s", command->name, argument,
                                      elsewhere[i].advice);
    }
    for (const struct ls_cli_option *option = command->options;
         option->name != NULL && count < LS_CLI_OPTIONS_MAX; option++)
        names[count++] = option->name;
    for (const struct ls_cli_option *option = ls_cli_common_options; option->name != NULL; option++)
        names[count++] = option->name;
    names[count++] = "help";
    names[count] = NULL;
    const char *near = ls_cli_suggest(name, names);
    if (near != NULL)
        return ls_cli_usage_error("%s: unknown option '%s'. hint: did you mean '--%s'?",
                                  command->name, argument, near);
    return ls_cli_usage_error("%s: unknown option '%s'. hint: 'lockstep help %s' lists the options",
                              command->name, argument, command->name);
}

static int append(struct ls_cli_list *list, const char *text)
{
    const char **items = realloc((void *)list->items, (list->count + 1) * sizeof *list->items);
    if (items == NULL)
        return ls_cli_error(LOCKSTEP_RESOURCE, "out of memory for the arguments");
    list->items = items;
    list->items[list->count++] = text;
    return 0;
}

static int set_integer(const struct ls_cli_option *option, const char *text, int64_t *value)
{
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0')
        return ls_cli_usage_error("--%s: '%s' is not a whole number", option->name, text);
    if (number < option->minimum)
        return ls_cli_usage_error("--%s: %lld is too small: must be at least %" PRId64,
                                  option->name, number, option->minimum);
    if (number > INT32_MAX)
        return ls_cli_usage_error("--%s: %lld is too large", option->name, number);
    *value = number;
    return 0;
}

static int set_size(const struct ls_cli_option *option, const char *text, uint64_t *value)
{
    if (ls_cli_parse_size(text, value))
        return 0;
    return ls_cli_usage_error(
        "--%s: '%s' is not a size. hint: write it as 600MiB, 1.5GiB, 512MB or "
        "in bytes",
        option->name, text);
}

static int set_part(const struct ls_cli_option *option, const char *text, double *value)
{
    char *end;
    double number = strtod(text, &end);
    if (end == text || *end != '\0' || !(number >= 0 && number <= 1))
        return ls_cli_usage_error("--%s: '%s' is no number from 0 to 1", option->name, text);
    *value = number;
    return 0;
}

/* A flag is set by being there; "--flag=false" is for scripts. */
static int set_flag(const struct ls_cli_option *option, const char *text, int *value)
{
    if (text == NULL || strcmp(text, "true") == 0 || strcmp(text, "1") == 0)
        *value = 1;
    else if (strcmp(text, "false") == 0 || strcmp(text, "0") == 0)
        *value = 0;
    else
        return ls_cli_usage_error("--%s: '%s' is neither true nor false", option->name, text);
    return 0;
}

/* --device and --gpu have one place. */
static int set_device(const struct ls_cli_option *option, const char *text, const char **place)
{
    static char cards[512]; /* "cuda:" and a list; a command has one */
    const bool gpu = option->kind == LS_CLI_CARDS;
    if (*place != NULL && strcmp(gpu ? *place : text, "cuda") != 0)
        return ls_cli_usage_error("--gpu says that cards compute, and --device '%s' something "
                                  "else. hint: leave --device out",
                                  gpu ? *place : text);
    if (*place != NULL && !gpu)
        return 0;
    *place = text;
    if (gpu && snprintf(cards, sizeof cards, "cuda:%s", text) >= (int)sizeof cards)
        return ls_cli_usage_error("--gpu: the list is too long");
    if (gpu)
        *place = cards;
    return 0;
}

/* Stores the value of an option; `text` is NULL only for a flag. */
static int set_value(const struct ls_cli_option *option, const char *text, void *values)
{
    char *place = (char *)values + option->offset;
    switch (option->kind) {
    case LS_CLI_TEXT:
        if (strcmp(option->name, "device") == 0)
            return set_device(option, text, (const char **)(void *)place);
        *(const char **)(void *)place = text;
        return 0;
    case LS_CLI_CARDS:
        return set_device(option, text, (const char **)(void *)place);
    case LS_CLI_INTEGER:
        return set_integer(option, text, (int64_t *)(void *)place);
    case LS_CLI_SIZE:
        return set_size(option, text, (uint64_t *)(void *)place);
    case LS_CLI_PART:
        return set_part(option, text, (double *)(void *)place);
    case LS_CLI_FLAG:
        return set_flag(option, text, (int *)(void *)place);
    case LS_CLI_LIST:
        return append((struct ls_cli_list *)(void *)place, text);
    }
    return LOCKSTEP_INTERNAL;
}

/* The value of an option at arguments[*at]: `value`, or what follows, and then *at moves. `owner`
 * is what a message begins with: a command and a colon. */
static int take_value(const struct ls_cli_option *option, const char *owner, const char *value,
                      int count, char **arguments, int *at, void *values)
{
    const char *name = option->name;
    if (value == NULL && option->kind != LS_CLI_FLAG) {
        if (*at + 1 >= count || strncmp(arguments[*at + 1], "--", 2) == 0)
            return ls_cli_usage_error("%s--%s needs a value: --%s %s", owner, name, name,
                                      option->argument);
        value = arguments[++*at];
    }
    const bool may_be_empty = option->kind == LS_CLI_TEXT && option->minimum == LS_CLI_EMPTY;
    if (value != NULL && value[0] == '\0' && !may_be_empty)
        return ls_cli_usage_error("%s--%s has an empty value", owner, name);
    return set_value(option, value, values);
}

/* Parses the option at arguments[*at] and moves *at to the last argument that belongs to it.
 * `given` says of each option of the table whether it was there before. */
static int parse_option(const struct ls_cli_command *command, int count, char **arguments, int *at,
                        bool *given, void *values)
{
    char name[64];
    const char *argument = arguments[*at];
    const char *value = split_name(argument, name, sizeof name);
    if (strcmp(name, "help") == 0) {
        ls_cli_help(command);
        return -1;
    }
    const struct ls_cli_option *option = find_option(command->options, name);
    if (option == NULL)
        return unknown_option(command, argument, name);
    size_t index = (size_t)(option - command->options);
    if (index >= LS_CLI_OPTIONS_MAX)
        return LOCKSTEP_INTERNAL;
    if (given[index] && option->kind != LS_CLI_LIST)
        return ls_cli_usage_error("%s: --%s is given twice", command->name, name);
    given[index] = true;
    char owner[64];
    snprintf(owner, sizeof owner, "%s: ", command->name);
    return take_value(option, owner, value, count, arguments, at, values);
}

int ls_cli_take_options(const struct ls_cli_option *options, int *count, char **arguments,
                        void *values)
{
    int kept = 0, status = 0, at = 0;
    for (; at < *count && strcmp(arguments[at], "--") != 0; at++) {
        char name[64] = "";
        const char *value = NULL;
        if (arguments[at][0] == '-' && arguments[at][1] != '\0')
            value = split_name(arguments[at], name, sizeof name);
        const struct ls_cli_option *option = find_option(options, name);
        if (option == NULL)
            arguments[kept++] = arguments[at];
        else if (status == 0)
            status = take_value(option, "", value, *count, arguments, &at, values);
    }
    while (at < *count)
        arguments[kept++] = arguments[at++];
    *count = kept;
    return status;
}

static int check_arguments(const struct ls_cli_command *command, const struct ls_cli_list *list)
{
    if (list->count > command->arguments_max) {
        const char *extra = list->items[command->arguments_max];
        return ls_cli_usage_error(
            "%s: '%s' is one argument too many, or an option's name is missing "
            "before it. hint: lockstep %s %s",
            command->name, extra, command->name, command->usage);
    }
    if (list->count < command->arguments_min)
        return ls_cli_usage_error("%s: too few arguments; %s must be given. hint: lockstep %s %s",
                                  command->name, command->arguments_name, command->name,
                                  command->usage);
    return 0;
}

int ls_cli_parse(const struct ls_cli_command *command, int count, char **arguments, void *values)
{
    struct ls_cli_list rest = {0};
    bool given[LS_CLI_OPTIONS_MAX] = {false};
    bool options = true;
    int status = 0;
    for (int at = 0; at < count && status == 0; at++) {
        const char *argument = arguments[at];
        if (options && strcmp(argument, "--") == 0)
            options = false;
        else if (options && argument[0] == '-' && argument[1] != '\0')
            status = parse_option(command, count, arguments, &at, given, values);
        else
            status = append(&rest, argument);
    }
    if (status == 0)
        status = check_arguments(command, &rest);
    if (status == 0 && command->arguments_max > 0)
        memcpy((char *)values + command->arguments, &rest, sizeof rest);
    else
        free((void *)rest.items);
    return status;
}

void ls_cli_free_values(const struct ls_cli_command *command, void *values)
{
    for (const struct ls_cli_option *option = command->options; option->name != NULL; option++) {
        if (option->kind == LS_CLI_LIST)
            free((void *)((struct ls_cli_list *)(void *)((char *)values + option->offset))->items);
    }
    if (command->arguments_max > 0)
        free((void *)((struct ls_cli_list *)(void *)((char *)values + command->arguments))->items);
}

/* Writes lines indented; the first one begins at `column`. */
static void put_indented(const char *text, int column)
{
    for (;;) {
        size_t length = strcspn(text, "\n");
        printf("%.*s\n", (int)length, text);
        if (text[length] == '\0')
            return;
        text += length + 1;
        printf("%*s", column, "");
    }
}

void ls_cli_put_options(const struct ls_cli_option *options)
{
    for (const struct ls_cli_option *option = options; option->name != NULL; option++) {
        char left[64];
        snprintf(left, sizeof left, "  --%s%s%s", option->name, option->argument != NULL ? " " : "",
                 option->argument != NULL ? option->argument : "");
        if ((int)strlen(left) > HELP_COLUMN - 2)
            printf("%s\n%*s", left, HELP_COLUMN, "");
        else
            printf("%-*s", HELP_COLUMN, left);
        put_indented(option->help, HELP_COLUMN);
    }
}

void ls_cli_help(const struct ls_cli_command *command)
{
    printf("lockstep %s: %s\n\nusage: lockstep %s%s%s\n", command->name, command->summary,
           command->name, command->usage[0] != '\0' ? " " : "", command->usage);
    if (command->notes != NULL)
        printf("\n%s\n", command->notes);
    if (command->options->name != NULL)
        puts("\noptions:");
    ls_cli_put_options(command->options);
    puts("\noptions of every command:");
    ls_cli_put_options(ls_cli_common_options);
    printf("\nexample:\n  ");
    put_indented(command->example, 2);
}
