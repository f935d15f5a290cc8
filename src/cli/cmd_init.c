/* lockstep init: definitions for data that is at hand.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/init_data.h"
#include "cli/init_net.h"
#include "cli/output_file.h"
#include "cli/report.h"
#include "monitor/terminal.h"

static const char net_name[] = "train_test.prototxt", solver_name[] = "solver.prototxt";

struct values {
    struct ls_cli_list data;
    const char *output, *backend, *maps;
    int yes;
};

/* Asks on the terminal. An empty answer is `otherwise`, which may be "" where there is none. False:
 * there is no answer and none will come. */
static bool ask(const char *question, const char *otherwise, char answer[LS_INIT_PATH])
{
    char line[LS_INIT_PATH];
    const char *home = getenv("HOME");
    do {
        printf(otherwise[0] != '\0' ? "%s [%s] " : "%s ", question, otherwise);
        fflush(stdout);
        if (fgets(line, sizeof line, stdin) == NULL) {
            putchar('\n'); /* the cursor is behind the question */
            return false;
        }
        size_t begin = strspn(line, " \t"), end = strcspn(line, "\n");
        while (end > begin && (line[end - 1] == ' ' || line[end - 1] == '\t'))
            end--;
        line[end] = '\0';
        snprintf(answer, LS_INIT_PATH, "%s", end > begin ? line + begin : otherwise);
    } while (answer[0] == '\0');
    /* No shell has read it. What gets too long stays as it is, and is not found. */
    if (strncmp(answer, "~/", 2) == 0 && home != NULL &&
        strlen(home) + strlen(answer) < LS_INIT_PATH) {
        size_t length = strlen(home);
        memmove(answer + length, answer + 1, strlen(answer));
        memcpy(answer, home, length);
    }
    return true;
}

static int write_file(const char *path, const struct ls_init_data *data, bool solver)
{
    struct stat info;
    if (lstat(path, &info) == 0)
        return ls_cli_error(LOCKSTEP_RESOURCE,
                            "%s: is there already; nothing is overwritten. hint: --output DIR "
                            "takes another folder",
                            path);
    FILE *file = ls_cli_output_stream(path, LOCKSTEP_FILE_NEW, false);
    if (file == NULL)
        return LOCKSTEP_RESOURCE;
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
    int status = ls_cli_output_folder(folder);
    if (status == 0)
        status = write_file(net, data, false);
    if (status != 0)
        return status;
    status = write_file(solver, data, true);
    if (status != 0) {
        unlink(net);
        return status;
    }
    printf("Written: %s, %s\n", net, solver);
    if (!ls_quiet())
        printf("To train: lockstep train --solver %s\n", solver);
    return 0;
}

static int no_answer(void)
{
    return ls_cli_usage_error("init: there is no answer; nothing is written");
}

/* Looks at data. Where they can be taken in two ways that is asked, or refused with the options
 * that answer it. */
static int look(const struct values *values, const char *path, bool asks,
                struct ls_init_data *found)
{
    struct ls_init_hints hints = {values->backend, values->maps};
    int status;
    while ((status = ls_init_look(path, &hints, found)) == LS_INIT_UNCLEAR) {
        char answer[LS_INIT_PATH], question[1200];
        const char **hint = strcmp(found->option, "maps") == 0 ? &hints.maps : &hints.backend;
        if (!asks)
            return ls_cli_usage_error("init: %s hint: --%s %s, or --%s %s", found->question,
                                      found->option, found->values[0], found->option,
                                      found->values[1]);
        snprintf(question, sizeof question, "%s\n%s or %s:", found->question, found->values[0],
                 found->values[1]);
        *hint = NULL;
        while (*hint == NULL) {
            if (!ask(question, "", answer))
                return ls_cli_usage_error("init: there is no answer; nothing is written");
            for (int i = 0; i < 2; i++)
                if (strcasecmp(answer, found->values[i]) == 0)
                    *hint = found->values[i];
        }
    }
    return status;
}

/* Looks at the data that the user names; what is none is asked for again. */
static int find_data(const struct values *values, bool asks, struct ls_init_data *found)
{
    char path[LS_INIT_PATH] = "";
    if (values->data.count > 0) {
        snprintf(path, sizeof path, "%s", values->data.items[0]);
        return look(values, path, asks, found);
    }
    if (!asks)
        return ls_cli_usage_error("init: DATA is missing: the folder or file to train on");
    ls_put_wrapped(stdout,
                   "What is there to train on? A folder of pictures with a sub-folder for each "
                   "class, or with a folder of label maps beside them; the files of MNIST or "
                   "CIFAR-10, an LMDB database, a list of pictures, a text, or token ids.",
                   0, ls_terminal_width(stdout));
    putchar('\n');
    do {
        if (!ask("Path of the data:", "", path))
            return no_answer();
    } while (look(values, path, asks, found) != 0);
    return 0;
}

static int run(const void *data)
{
    const struct values *values = data;
    bool asks = !values->yes && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    static struct ls_init_data found; /* tens of KiB */
    int status = find_data(values, asks, &found);
    if (status != 0)
        return status;
    if (!ls_quiet())
        ls_init_describe(stdout, "", &found);
    if (values->output != NULL || !asks)
        return write_definitions(values->output != NULL ? values->output : ".", &found);
    do {
        char folder[LS_INIT_PATH];
        if (!ask("Folder for the definitions:", ".", folder))
            return no_answer();
        status = write_definitions(folder, &found);
    } while (status != 0);
    return 0;
}

static const struct ls_cli_option options[] = {
    LS_CLI_ROW(LS_CLI_TEXT, "output", "DIR", struct values, output, 0,
               "where train_test.prototxt and solver.prototxt go (also -o); default: here"),
    LS_CLI_CHOICE("backend", "KIND", struct values, backend,
                  "IMAGES IMAGE_PAIRS IDX CIFAR LMDB TEXT TOKENS",
                  "what the data are, where they can be taken in two ways"),
    LS_CLI_CHOICE("maps", "WHAT", struct values, maps, "classes masks",
                  "label maps: each label is a class, or all but 0 are one"),
    LS_CLI_ROW(LS_CLI_FLAG, "yes", NULL, struct values, yes, 0, "ask nothing"),
    {.name = NULL}};

const struct ls_cli_command ls_cli_command_init = {
    .name = "init",
    .summary = "writes a solver and a net for data that is at hand",
    .notes =
        "DATA is a folder of pictures with a sub-folder for each class (or such folders called\n"
        "train and test), pictures beside label maps of the same names (images and labels), the\n"
        "folder with the files of MNIST or CIFAR-10, an LMDB database, a list file of pictures\n"
        "and labels, a text, or token ids as tokenize writes them. Pictures get a residual\n"
        "network, those with maps a U-net, a text and tokens a GPT. Comments in the files tell\n"
        "what was found. Nothing is overwritten. On a terminal it asks for what is not given or\n"
        "not clear; elsewhere it refuses, and names the options that answer.",
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
