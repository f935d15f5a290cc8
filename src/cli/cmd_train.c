/* lockstep train: trains a net.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/report.h"
#include "cli/signals.h"
#include "monitor/monitor.h"

struct values {
    const char *solver, *prefix, *resume, *weights, *log, *isa;
    int64_t workers, iterations;
    uint64_t memory;
    struct ls_cli_list set;
};

/* A training under way, as its callbacks see it. */
struct session {
    struct ls_monitor monitor;
    bool told; /* that it is going to stop */
};

static void on_event(void *user, const struct lockstep_event *event)
{
    struct session *session = user;
    ls_monitor_event(&session->monitor, event);
}

static enum lockstep_request on_poll(void *user)
{
    struct session *session = user;
    enum lockstep_request request = ls_cli_signal_request();
    if (request == LOCKSTEP_SNAPSHOT_AND_STOP && !session->told) {
        session->told = true;
        ls_monitor_say(&session->monitor,
                       "Stopping with a snapshot; the same signal again stops at once.");
    }
    return request;
}

static int train(const struct values *values, struct session *session, struct lockstep_error *error)
{
    struct lockstep_solver *solver;
    struct lockstep_trainer *trainer = NULL;
    struct lockstep_train_options options;
    lockstep_train_options_init(&options);
    options.workers = (int)values->workers;
    options.isa = values->isa;
    options.snapshot_prefix = values->prefix;
    options.resume = values->resume;
    options.weights = values->weights;
    options.memory = values->memory;
    options.callbacks = (struct lockstep_callbacks){session, on_event, on_poll};
    int status =
        lockstep_solver_load(values->solver, values->set.items, values->set.count, &solver, error);
    if (status == 0)
        status = lockstep_trainer_create(solver, &options, &trainer, error);
    lockstep_solver_free(solver);
    if (status == 0)
        status = lockstep_trainer_run(trainer, values->iterations, error);
    lockstep_trainer_free(trainer);
    ls_monitor_clear(&session->monitor);
    return status;
}

/* Writes a word of a command line, quoted for a shell where that is needed. */
static void put_word(FILE *line, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789_-+=./:,@%";
    const char *quote = word[strspn(word, plain)] != '\0' ? "'" : "";
    fprintf(line, " %s", quote);
    for (; *word != '\0'; word++)
        fprintf(line, *word == '\'' ? "'\\''" : "%c", *word);
    fputs(quote, line);
}

static void put_option(FILE *line, const char *option, const char *value)
{
    if (value == NULL)
        return;
    put_word(line, option);
    put_word(line, value);
}

/* All that was said, except where the weights came from: they are in the snapshot. */
static void put_resume(FILE *line, const struct values *values, const char *snapshot)
{
    put_word(line, ls_cli_program());
    put_word(line, "train");
    put_option(line, "--solver", values->solver);
    put_option(line, "--resume", snapshot);
    put_option(line, "--snapshot-prefix", values->prefix);
    for (size_t i = 0; i < values->set.count; i++)
        put_option(line, "--set", values->set.items[i]);
    if (values->workers > 0)
        fprintf(line, " --workers %" PRId64, values->workers);
    if (values->memory > 0)
        fprintf(line, " --memory %" PRIu64, values->memory);
    if (values->iterations >= 0)
        fprintf(line, " --iterations %" PRId64, values->iterations);
    put_option(line, "--log-json", values->log);
    put_option(line, "--isa", values->isa);
}

/* The last lines of a run that was stopped: how to go on. */
static void say_stopped(const struct values *values, struct session *session)
{
    const char *snapshot = session->monitor.last_snapshot;
    char *text = NULL;
    size_t size;
    ls_monitor_say(&session->monitor, "Optimization stopped early.");
    FILE *line = snapshot[0] != '\0' ? open_memstream(&text, &size) : NULL;
    if (line == NULL)
        return;
    put_resume(line, values, snapshot);
    /* A line that the monitor would cut is of no use. */
    if (fclose(line) == 0 && size < LS_MONITOR_LINE_MAX - 16)
        ls_monitor_say(&session->monitor, "To go on:%s", text);
    free(text);
}

/* Opens the log. A resumed run continues the one that is there. */
static int open_log(const struct values *values, FILE **log)
{
    *log = NULL;
    if (values->log == NULL)
        return 0;
    *log = fopen(values->log, values->resume != NULL ? "ae" : "we");
    if (*log != NULL)
        return 0;
    return ls_cli_error(LOCKSTEP_RESOURCE, "%s: cannot create the log: %s", values->log,
                        strerror(errno));
}

static int close_log(const struct values *values, FILE *log, int status)
{
    if (log == NULL)
        return status;
    bool failed = ferror(log) != 0;
    failed = fclose(log) != 0 || failed;
    if (!failed)
        return status;
    ls_cli_error(LOCKSTEP_RESOURCE, "%s: the log could not be written completely", values->log);
    return status != 0 ? status : LOCKSTEP_RESOURCE;
}

static int run(const void *data)
{
    const struct values *values = data;
    if (values->solver == NULL)
        return ls_cli_usage_error("train: --solver FILE is missing");
    FILE *log;
    int status = open_log(values, &log);
    if (status != 0)
        return status;
    struct session session = {.told = false};
    struct lockstep_error *error = lockstep_error_new();
    ls_monitor_init(&session.monitor, stdout, log, NULL);
    ls_cli_catch_signals();
    status = train(values, &session, error);
    if (status == LOCKSTEP_STOPPED)
        say_stopped(values, &session);
    else if (status != 0)
        ls_cli_report(status, error);
    lockstep_error_free(error);
    return close_log(values, log, status);
}

static void defaults(void *data)
{
    struct values *values = data;
    values->iterations = -1;
}

static const struct ls_cli_option options[] = {
    LS_CLI_SOLVER(struct values, solver, "; it names the net"),
    LS_CLI_WORKER_COUNT(struct values, workers, ". The result does not depend on it"),
    LS_CLI_ROW(LS_CLI_SIZE, "memory", "SIZE", struct values, memory, 0,
               "take no more than so much (600MiB, 1.5GiB): compute some things\n"
               "again instead of keeping them. The result does not depend on it"),
    LS_CLI_ROW(LS_CLI_INTEGER, "iterations", "N", struct values, iterations, 0,
               "stop after N updates in all, with a snapshot; changes no schedule"),
    LS_CLI_ROW(LS_CLI_TEXT, "snapshot-prefix", "P", struct values, prefix, 0,
               "where snapshots go: P_iter_<N>.safetensors; default: the solver's"),
    LS_CLI_ROW(LS_CLI_TEXT, "resume", "FILE", struct values, resume, 0,
               "go on from a snapshot; 'auto': from the newest one that is whole,\n"
               "if there is one"),
    LS_CLI_ROW(LS_CLI_TEXT, "weights", "FILES", struct values, weights, 0,
               "start from weights (safetensors, caffemodel), by the names of\n"
               "layers; several files separated by commas"),
    LS_CLI_SET(struct values, set),
    LS_CLI_ROW(LS_CLI_TEXT, "log-json", "FILE", struct values, log, 0,
               "write every event as a JSON object on a line of its own; with\n"
               "--resume, behind what is there"),
    LS_CLI_ISA(struct values, isa),
    {.name = NULL}};

const struct ls_cli_command ls_cli_command_train = {
    .name = "train",
    .summary = "trains a net, with snapshots to resume from",
    .usage = "--solver FILE [OPTIONS]",
    .options = options,
    .example = "lockstep train --solver lenet_solver.prototxt --workers 4 --set base_lr=0.02\n"
               "lockstep train --solver lenet_solver.prototxt --resume auto",
    .defaults = defaults,
    .run = run,
    .values_size = sizeof(struct values),
};
