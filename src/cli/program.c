/* The program: which command it is, and what it is without one.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/common.h"
#include "cli/job.h"
#include "cli/links.h"
#include "cli/report.h"
#include "cli/suggest.h"

const struct ls_cli_command *const ls_cli_commands[] = {&ls_cli_command_train,
                                                        &ls_cli_command_sweep,
                                                        &ls_cli_command_test,
                                                        &ls_cli_command_predict,
                                                        &ls_cli_command_classify,
                                                        &ls_cli_command_generate,
                                                        &ls_cli_command_verify,
                                                        &ls_cli_command_replay,
                                                        &ls_cli_command_plan,
                                                        &ls_cli_command_shapes,
                                                        &ls_cli_command_draw,
                                                        &ls_cli_command_time,
                                                        &ls_cli_command_tune,
                                                        &ls_cli_command_check,
                                                        &ls_cli_command_check_plugin,
                                                        &ls_cli_command_convert,
                                                        &ls_cli_command_convert_weights,
                                                        &ls_cli_command_export,
                                                        &ls_cli_command_import,
                                                        &ls_cli_command_mean,
                                                        &ls_cli_command_tokenize,
                                                        &ls_cli_command_prune,
                                                        &ls_cli_command_show,
                                                        &ls_cli_command_list,
                                                        &ls_cli_command_diff,
                                                        &ls_cli_command_report,
                                                        &ls_cli_command_plot,
                                                        &ls_cli_command_completion,
                                                        &ls_cli_command_init,
                                                        &ls_cli_command_help,
                                                        NULL};

const char ls_cli_exit_codes[] =
    "0 ok, 1 internal, 2 usage, 3 definition, 4 data, 5 weights or snapshot,\n"
    "6 diverged, 7 out of memory or disk, 8 verify or the ranks of a job found a\n"
    "difference, 9 another rank of the job failed or is not heard of, 75 stopped by a\n"
    "signal with a snapshot to resume from";

void ls_cli_overview(void)
{
    puts("lockstep: trains neural networks; the same bits on any number of workers\n\n"
         "usage: lockstep COMMAND OPTIONS...\n\ncommands:");
    for (size_t i = 0; ls_cli_commands[i] != NULL; i++)
        printf("  %-15s %s\n", ls_cli_commands[i]->name, ls_cli_commands[i]->summary);
    puts("\nas in Caffe, also as links of these names (each has --help):");
    for (const struct ls_cli_alias *link = ls_cli_links; link->name != NULL; link++)
        printf("  %-25s %s\n", link->name,
               link->command != NULL ? link->command->summary : link->summary);
    puts("\n'lockstep help COMMAND' (or 'lockstep COMMAND --help') lists a command's options,\n"
         "'lockstep --version' says what this program is built on.\n\n"
         "options of every command:");
    ls_cli_put_options(ls_cli_common_options);
    puts("\nexample:\n"
         "  lockstep train --solver lenet_solver.prototxt\n\n"
         "exit codes:");
    puts(ls_cli_exit_codes);
}

void ls_cli_version(void)
{
    const char *info = lockstep_build_info();
    size_t length = strlen(info);
    char name[64];
    int named = snprintf(name, sizeof name, "lockstep %s\n", lockstep_version());
    if (strncasecmp(info, name, (size_t)named) != 0) /* it says so itself */
        fputs(name, stdout);
    printf("%s%s", info, length > 0 && info[length - 1] != '\n' ? "\n" : "");
}

const struct ls_cli_command *ls_cli_find_command(const char *name)
{
    enum { NAMES_MAX = 100 };
    const char *names[NAMES_MAX + 1];
    size_t count = 0;
    for (; ls_cli_commands[count] != NULL && count < NAMES_MAX; count++) {
        if (strcmp(ls_cli_commands[count]->name, name) == 0)
            return ls_cli_commands[count];
        names[count] = ls_cli_commands[count]->name;
    }
    names[count] = NULL;
    const char *near = ls_cli_suggest(name, names);
    if (near != NULL)
        ls_cli_usage_error("unknown command '%s'. hint: did you mean '%s'?", name, near);
    else
        ls_cli_usage_error("unknown command '%s'. hint: 'lockstep help' lists the commands", name);
    return NULL;
}

static int run_command(const struct ls_cli_command *command, int count, char **arguments)
{
    if (command != &ls_cli_command_train && command != &ls_cli_command_help) {
        int refused = ls_cli_refuse_ranks(command->name);
        if (refused != 0)
            return refused;
    }
    void *values = calloc(1, command->values_size + 1);
    if (values == NULL)
        return ls_cli_no_memory();
    if (command->defaults != NULL)
        command->defaults(values);
    int status = ls_cli_parse(command, count, arguments, values);
    if (status == 0)
        status = command->run(values);
    else if (status < 0)
        status = 0; /* --help */
    ls_cli_free_values(command, values);
    free(values);
    int written = ls_cli_finish_output();
    return status != 0 ? status : written;
}

/* Whether an argument is --word or -word. */
static bool is_flag(const char *argument, const char *word)
{
    return argument[0] == '-' && strcmp(argument + (argument[1] == '-' ? 2 : 1), word) == 0;
}

static int run_link(const struct ls_cli_alias *link, int count, char **arguments)
{
    return link->command != NULL ? run_command(link->command, count, arguments)
                                 : link->run(count, arguments);
}

static const char *program = "lockstep";

const char *ls_cli_program(void)
{
    return program;
}

/* Where a standard stream is closed, the next file that is opened would take its number, and what
 * is said would get into that file. What takes the number here fails as a closed one does. */
static void hold_closed_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) /* open() takes the first free number */
        if (fcntl(fd, F_GETFD) < 0)
            // NOLINTNEXTLINE(android-cloexec-open): programs that we start have it, too
            (void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

/* With a smaller stack the program would end in a crash. */
static int check_stack(void)
{
    enum { LEAST = 512 << 10 };
    struct rlimit limit;
    if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= LEAST)
        return 0;
    return ls_cli_error(LOCKSTEP_RESOURCE,
                        "a stack of %llu KiB is too small, at least %d are needed. hint: "
                        "'ulimit -s 8192' before the command",
                        (unsigned long long)(limit.rlim_cur >> 10), LEAST >> 10);
}

int ls_cli_main(int count, char **arguments)
{
    hold_closed_streams();
    if (check_stack() != 0)
        return LOCKSTEP_RESOURCE;
    /* A limit on the size of files is an error of the write, which cleans up, not a sudden end. */
    signal(SIGXFSZ, SIG_IGN);
    if (count > 0 && arguments[0][0] != '\0')
        program = arguments[0];
    const struct ls_cli_alias *link = count > 0 ? ls_cli_find_link(arguments[0]) : NULL;
    int rest = count > 0 ? count - 1 : 0;
    int status = ls_cli_take_common(&rest, arguments + 1);
    if (status != 0)
        return status;
    if (link != NULL)
        return run_link(link, rest, arguments + 1);
    if (rest < 1)
        return ls_cli_usage_error("a command is missing. hint: 'lockstep help' lists the commands");
    if (is_flag(arguments[1], "help") || is_flag(arguments[1], "h")) {
        ls_cli_overview();
        return ls_cli_finish_output();
    }
    if (is_flag(arguments[1], "version")) {
        ls_cli_version();
        return ls_cli_finish_output();
    }
    link = ls_cli_find_link(arguments[1]);
    if (link != NULL && strchr(arguments[1], '/') == NULL)
        return run_link(link, rest - 1, arguments + 2);
    const struct ls_cli_command *command = ls_cli_find_command(arguments[1]);
    if (command == NULL)
        return LOCKSTEP_USAGE;
    return run_command(command, rest - 1, arguments + 2);
}
