/* lockstep init: definitions for data that is at hand.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/init_data.h"
#include "cli/init_net.h"
#include "cli/report.h"

static const char net_name[] = "train_test.prototxt", solver_name[] = "solver.prototxt";

struct values {
    struct ls_cli_list data;
    const char *output;
    int yes;
};

/* Asks on the terminal. An empty answer is `otherwise`. False: there is no answer. */
static bool ask(const char *question, const char *otherwise, char answer[LS_INIT_PATH])
{
    printf(otherwise[0] != '\0' ? "%s [%s] " : "%s ", question, otherwise);
    fflush(stdout);
    if (fgets(answer, LS_INIT_PATH, stdin) == NULL)
        return false;
    answer[strcspn(answer, "\n")] = '\0';
    if (answer[0] == '\0')
        snprintf(answer, LS_INIT_PATH, "%s", otherwise);
    return answer[0] != '\0';
}

static int write_file(const char *path, const struct ls_init_data *data, bool solver)
{
    FILE *file = fopen(path, "wxe");
    if (file == NULL)
        return ls_cli_error(LOCKSTEP_RESOURCE, "%s: %s", path,
                            errno == EEXIST ? "is there already; nothing is overwritten. hint: "
                                              "--output DIR takes another folder"
                                            : strerror(errno));
    if (solver)
        ls_init_put_solver(file, data, net_name);
    else
        ls_init_put_net(file, data);
    bool failed = ferror(file) != 0;
    if (fclose(file) != 0 || failed) {
        unlink(path);
        return ls_cli_error(LOCKSTEP_RESOURCE, "%s: cannot be written completely", path);
    }
    return 0;
}

static int write_definitions(const char *folder, const struct ls_init_data *data)
{
    char net[LS_INIT_PATH + 32], solver[LS_INIT_PATH + 32];
    snprintf(net, sizeof net, "%s/%s", folder, net_name);
    snprintf(solver, sizeof solver, "%s/%s", folder, solver_name);
    if (strlen(folder) >= LS_INIT_PATH)
        return ls_cli_usage_error("init: the path of the folder is too long");
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return ls_cli_error(LOCKSTEP_RESOURCE, "%s: cannot make the folder: %s", folder,
                            strerror(errno));
    int status = write_file(net, data, false);
    if (status != 0)
        return status;
    status = write_file(solver, data, true);
    if (status != 0) {
        unlink(net);
        return status;
    }
    printf("Written: %s, %s\nTo train: lockstep train --solver %s\n", net, solver, solver);
    return 0;
}

static int run(const void *data)
{
    const struct values *values = data;
    bool asks = !values->yes && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    char path[LS_INIT_PATH] = "", folder[LS_INIT_PATH] = "";
    if (values->data.count > 0)
        snprintf(path, sizeof path, "%s", values->data.items[0]);
    else if (!asks ||
             !ask("Where is the data (a folder of pictures by class, the files of MNIST or "
                  "CIFAR-10, an LMDB, a text)?",
                  "", path))
        return ls_cli_usage_error("init: DATA is missing: the folder or file to train on");
    static struct ls_init_data found; /* tens of KiB */
    int status = ls_init_look(path, &found);
    if (status != 0)
        return status;
    ls_init_describe(stdout, "", &found);
    snprintf(folder, sizeof folder, "%s", values->output != NULL ? values->output : ".");
    if (values->output == NULL && asks &&
        !ask("Write the definitions to which folder?", ".", folder))
        return ls_cli_usage_error("init: nothing is written");
    return write_definitions(folder, &found);
}

static const struct ls_cli_option options[] = {
    LS_CLI_ROW(LS_CLI_TEXT, "output", "DIR", struct values, output, 0,
               "where train_test.prototxt and solver.prototxt go (also -o); default: here"),
    LS_CLI_ROW(LS_CLI_FLAG, "yes", NULL, struct values, yes, 0, "ask nothing"),
    {.name = NULL}};

const struct ls_cli_command ls_cli_command_init = {
    .name = "init",
    .summary = "writes a solver and a net for data that is at hand",
    .notes =
        "DATA is a folder of pictures with a sub-folder for each class (or such folders called\n"
        "train and test), the folder with the files of MNIST or CIFAR-10, an LMDB database, a\n"
        "list file of pictures and labels, or a text. Pictures get a residual network, a text a\n"
        "GPT over its characters. Comments in the files tell what was found. Nothing is\n"
        "overwritten. On a terminal it asks for what is not given.",
    .usage = "[DATA] [--output DIR] [--yes]",
    .options = options,
    .arguments = offsetof(struct values, data),
    .arguments_max = 1,
    .arguments_name = "DATA",
    .example = "lockstep init photos --output photos-net\n"
               "lockstep train --solver photos-net/solver.prototxt",
    .run = run,
    .values_size = sizeof(struct values),
};
