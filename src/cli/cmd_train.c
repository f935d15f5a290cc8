/* lockstep train: trains a net.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/common.h"
#include "cli/dummy.h"
#include "cli/job.h"
#include "cli/live_page.h"
#include "cli/observers.h"
#include "cli/output_file.h"
#include "cli/report.h"
#include "cli/signals.h"
#include "monitor/monitor.h"

enum { DEFAULT_TIMEOUT = 300 };

struct values {
    const char *solver, *prefix, *resume, *weights, *map, *log, *isa, *device, *balance, *report;
    const char *tensorboard, *metrics, *trace;
    uint64_t trace_limit;
    int64_t workers, iterations, timeout;
    uint64_t memory;
    double audit;
    int overwrite, required, statistics, partial; /* 0 or 1 */
    int allow_other_numerics;
    struct ls_cli_list set;
    struct ls_cli_dummy_values dummy;
};

/* A training under way, as its callbacks see it. */
struct session {
    struct ls_monitor monitor;
    struct ls_cli_observers observers;
    struct lockstep_job *job; /* NULL: this process is alone */
    int ranks;
    bool speaks;                  /* rank 0, or alone */
    char *status_file;            /* NULL: beside the snapshots */
    bool told;                    /* that it is going to stop */
    struct ls_cli_live_page page; /* folder NULL: there is none */
    long old_log; /* bytes of an earlier run in the log, which go when the training begins */
};

/* Removes what an earlier run has left in the log: now the training begins, and what could have
 * kept it from that has been looked at. What was said before it began stays. */
static void drop_old_log(struct session *session)
{
    FILE *log = session->monitor.log;
    if (log == NULL || session->old_log <= 0)
        return;
    fflush(log);
    long end = fseek(log, 0, SEEK_END) == 0 ? ftell(log) : 0;
    size_t length = end > session->old_log ? (size_t)(end - session->old_log) : 0;
    char *said = malloc(length + 1);
    if (said != NULL && fseek(log, session->old_log, SEEK_SET) == 0 &&
        fread(said, 1, length, log) == length && ftruncate(fileno(log), 0) == 0) {
        rewind(log);
        fwrite(said, 1, length, log);
    }
    session->old_log = 0;
    free(said);
}

static void on_event(void *user, const struct lockstep_event *event)
{
    struct session *session = user;
    if (event->kind == LOCKSTEP_EVENT_START || event->kind == LOCKSTEP_EVENT_RUN)
        drop_old_log(session);
    ls_monitor_event(&session->monitor, event);
    if (session->page.folder != NULL)
        ls_cli_live_page_event(&session->page, event);
    char text[1024];
    if (ls_cli_observe(&session->observers, event, text, sizeof text))
        ls_monitor_say(&session->monitor, "warning: %s; the training goes on without it", text);
}

static enum lockstep_request on_poll(void *user)
{
    struct session *session = user;
    enum lockstep_request request = ls_cli_signal_request();
    if (request == LOCKSTEP_SNAPSHOT_AND_STOP && !session->told && session->speaks) {
        session->told = true;
        ls_monitor_say(&session->monitor, "Stopping with a snapshot%s",
                       session->ranks > 1 ? "." : "; the same signal again stops at once.");
    }
    return request;
}

/* The job is about to be ended because of one rank; this one says so. Any thread. */
static void on_failure(void *user, int status, const char *text)
{
    struct session *session = user;
    ls_cli_put_lines(text);
    ls_cli_observers_end(&session->observers, status);
}

static void define_page(const struct values *values, struct session *session,
                        struct lockstep_solver *solver)
{
    struct lockstep_dummy_options dummy;
    const bool replaced = ls_cli_dummy_options(&values->dummy, false, &dummy);
    dummy.tell = NULL; /* the training has told it */
    ls_cli_live_page_define(&session->page, solver, values->solver, replaced ? &dummy : NULL);
}

static int train(const struct values *values, struct session *session, struct lockstep_error *error)
{
    struct lockstep_solver *solver;
    struct lockstep_trainer *trainer = NULL;
    struct lockstep_train_options options;
    lockstep_train_options_init(&options);
    options.job = session->job;
    options.workers = (int)values->workers;
    options.isa = values->isa;
    options.device = values->device;
    options.snapshot_prefix = values->prefix;
    options.resume = values->resume;
    options.weights = values->weights;
    options.map = values->map;
    options.partial_weights = values->partial;
    options.memory = values->memory;
    options.audit = values->audit;
    options.statistics =
        values->statistics || values->report != NULL || values->tensorboard != NULL;
    options.trace = values->trace;
    options.trace_limit = values->trace_limit;
    options.status_file = session->status_file != NULL ? session->status_file : "";
    options.overwrite = values->overwrite;
    options.snapshot_required = values->required;
    options.allow_other_numerics = values->allow_other_numerics;
    options.callbacks = (struct lockstep_callbacks){session, on_event, on_poll};
    int status =
        lockstep_solver_load(values->solver, values->set.items, values->set.count, &solver, error);
    if (status == 0)
        status = ls_cli_use_dummy_data(&values->dummy, false, solver, error);
    status = lockstep_job_agree(session->job, status, error);
    if (status == 0 && session->page.folder != NULL)
        define_page(values, session, solver);
    if (status == 0)
        status = lockstep_trainer_create(solver, &options, &trainer, error);
    lockstep_solver_free(solver);
    if (status == 0)
        status = lockstep_trainer_run(trainer, values->iterations, error);
    lockstep_trainer_free(trainer);
    ls_monitor_clear(&session->monitor);
    return status;
}

/* All that was said, except where the weights came from: they are in the snapshot. `iterations` is
 * where the run ends; < 0: with the training. */
static void put_resume(FILE *line, const struct values *values, int ranks, const char *snapshot,
                       int64_t iterations)
{
    char launch[64];
    if (ranks > 1)
        fprintf(line, " %s", ls_cli_launch_command(ranks, launch));
    ls_cli_put_command(line, "train");
    ls_cli_put_option(line, "--solver", values->solver);
    ls_cli_put_option(line, "--resume", snapshot);
    ls_cli_put_option(line, "--snapshot-prefix", values->prefix);
    ls_cli_put_each(line, "--set", &values->set);
    if (values->dummy.all)
        ls_cli_put_word(line, "--dummy-data");
    ls_cli_put_each(line, "--input", &values->dummy.inputs);
    if (values->workers > 0)
        fprintf(line, " --workers %" PRId64, values->workers);
    if (values->memory > 0)
        fprintf(line, " --memory %" PRIu64, values->memory);
    if (values->audit > 0)
        fprintf(line, " --audit %.6g", values->audit); /* no bit depends on it */
    if (iterations >= 0)
        fprintf(line, " --iterations %" PRId64, iterations);
    if (values->required)
        ls_cli_put_word(line, "--snapshot-required");
    ls_cli_put_option(line, "--log-json", values->log);
    if (values->statistics)
        ls_cli_put_word(line, "--statistics");
    ls_cli_put_option(line, "--report", values->report);
    ls_cli_put_option(line, "--tensorboard", values->tensorboard);
    ls_cli_put_option(line, "--metrics", values->metrics);
    ls_cli_put_option(line, "--isa", values->isa);
    ls_cli_put_device(line, values->device);
    if (values->timeout != DEFAULT_TIMEOUT)
        fprintf(line, " --timeout %" PRId64, values->timeout);
    ls_cli_put_option(line, "--balance", values->balance);
}

/* The last line of a run behind which there is something to train: how to go on. */
static void say_how_to_go_on(const struct values *values, struct session *session,
                             int64_t iterations)
{
    const char *snapshot = session->monitor.last_snapshot;
    char *text = NULL;
    size_t size;
    FILE *line = snapshot[0] != '\0' ? open_memstream(&text, &size) : NULL;
    if (line == NULL)
        return;
    put_resume(line, values, session->ranks, snapshot, iterations);
    /* A line that the monitor would cut is of no use. */
    if (fclose(line) == 0 && size < LS_MONITOR_LINE_MAX - 16)
        ls_monitor_say(&session->monitor, "To go on:%s", text);
    free(text);
}

/* ---- The log --------------------------------------------------------------------------------- */

/* Opens the log. A resumed run continues the one that is there; another one begins it anew, once it
 * has begun itself. */
static int open_log(const struct values *values, FILE **log, long *old)
{
    *log = NULL;
    *old = 0;
    if (values->log == NULL)
        return 0;
    struct stat info;
    bool anew = values->resume == NULL,
         file = stat(values->log, &info) == 0 && S_ISREG(info.st_mode);
    *log = ls_cli_output_stream(values->log, LOCKSTEP_FILE_APPEND, true);
    if (*log == NULL)
        return LOCKSTEP_RESOURCE;
    if (!anew && file)
        ls_cli_end_last_line(*log);
    if (anew && file)
        *old = (long)info.st_size;
    return 0;
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

/* ---- The job --------------------------------------------------------------------------------- */

/* "status.json" in the log's folder, owned by the caller; NULL without a log, or memory. */
static char *status_beside_log(const char *log)
{
    static const char name[] = "status.json";
    if (log == NULL)
        return NULL;
    const char *slash = strrchr(log, '/');
    size_t folder = slash != NULL ? (size_t)(slash - log) + 1 : 0;
    char *path = malloc(folder + sizeof name);
    if (path != NULL) {
        memcpy(path, log, folder);
        memcpy(path + folder, name, sizeof name);
    }
    return path;
}

static int open_job(const struct values *values, struct session *session,
                    struct lockstep_error *error)
{
    struct lockstep_job_options options;
    session->status_file = status_beside_log(values->log);
    lockstep_job_options_init(&options);
    options.timeout = (double)values->timeout;
    options.dynamic_balance = values->balance != NULL && strcmp(values->balance, "dynamic") == 0;
    options.status_file = session->status_file;
    options.failed = on_failure;
    options.user = session;
    int status = lockstep_job_open(&options, &session->job, error);
    session->ranks = lockstep_job_size(session->job);
    session->speaks = lockstep_job_rank(session->job) == 0;
    return status;
}

/* What a rank has lost is said by the one that ends the job; what all have found, by rank 0. */
static void report(const struct session *session, int status, struct lockstep_error *error)
{
    if (session->speaks && !(status == LOCKSTEP_LOST && session->ranks > 1))
        ls_cli_report(status, error);
}

static int train_as_rank(const struct values *values, struct session *session,
                         struct lockstep_error *error)
{
    FILE *log = NULL;
    int status = session->speaks ? open_log(values, &log, &session->old_log) : 0;
    session->observers.tensorboard = values->tensorboard;
    session->observers.metrics = values->metrics;
    if (status == 0 && session->speaks && values->report != NULL)
        status = ls_cli_live_page_open(&session->page, values->report, values->solver);
    if (status == 0 && session->speaks)
        status = ls_cli_observers_open(&session->observers);
    status = lockstep_job_agree(session->job, status, error);
    if (status != 0) {
        status = ls_cli_observers_close(&session->observers, status);
        status = ls_cli_live_page_close(&session->page, status);
        return close_log(values, log, status);
    }
    ls_monitor_init(&session->monitor, stdout, log, NULL);
    ls_cli_catch_signals(session->job);
    status = train(values, session, error);
    if (status == LOCKSTEP_STOPPED && session->speaks) {
        ls_monitor_say(&session->monitor, "Optimization stopped early.");
        say_how_to_go_on(values, session, values->iterations);
    } else if (status == 0 && session->monitor.iteration < session->monitor.max_iter) {
        say_how_to_go_on(values, session, -1); /* --iterations has ended the run */
    } else if (status != 0 && status != LOCKSTEP_STOPPED) {
        report(session, status, error);
    }
    if (session->page.folder != NULL)
        status = ls_cli_live_page_close(&session->page, status);
    status = ls_cli_observers_close(&session->observers, status);
    return close_log(values, log, status);
}

/* What is read stays. */
static int check_written(const struct values *values)
{
    const char *read[] = {values->solver, values->weights, values->map, values->resume};
    int status = ls_cli_check_output("train", values->log, read, 4);
    status = status != 0 ? status : ls_cli_check_output("train", values->metrics, read, 4);
    return status != 0 ? status : ls_cli_check_output("train", values->trace, read, 4);
}

static int check(const struct values *values)
{
    if (values->solver == NULL)
        return ls_cli_usage_error("train: --solver FILE is missing");
    if (values->statistics && values->log == NULL && values->report == NULL &&
        values->tensorboard == NULL)
        return ls_cli_usage_error("train: --statistics go to the log, and --log-json FILE is "
                                  "missing");
    if (values->trace_limit > 0 && values->trace == NULL)
        return ls_cli_usage_error("train: --trace-limit needs --trace FILE");
    if (values->balance != NULL && strcmp(values->balance, "static") != 0 &&
        strcmp(values->balance, "dynamic") != 0)
        return ls_cli_usage_error("train: --balance '%s' is neither 'static' nor 'dynamic'",
                                  values->balance);
    return check_written(values);
}

static int run(const void *data)
{
    const struct values *values = data;
    int status = check(values);
    if (status != 0)
        return status;
    struct session session = {.job = NULL};
    struct lockstep_error *error = lockstep_error_new();
    status = open_job(values, &session, error);
    if (status != 0) {
        ls_cli_let_rank_0_speak();
        ls_cli_report(status, error);
    } else {
        status = train_as_rank(values, &session, error);
        fflush(stdout);
        ls_cli_forget_job();
        status = lockstep_job_close(session.job, status, error);
    }
    free(session.status_file);
    lockstep_error_free(error);
    return status;
}

static void defaults(void *data)
{
    struct values *values = data;
    values->iterations = -1;
    values->timeout = DEFAULT_TIMEOUT;
}

static const struct ls_cli_option options[] = {
    LS_CLI_SOLVER(struct values, solver, "; it names the net"),
    LS_CLI_WORKER_COUNT(struct values, workers,
                        "; among several ranks its share. The result does not depend on it"),
    LS_CLI_ROW(LS_CLI_SIZE, "memory", "SIZE", struct values, memory, 0,
               "limit on memory (600MiB, 1.5GiB): some results are computed\n"
               "again instead of kept. The result does not depend on it"),
    LS_CLI_ROW(LS_CLI_INTEGER, "iterations", "N", struct values, iterations, 0,
               "stop after N updates in all, with a snapshot; changes no schedule"),
    LS_CLI_ROW(LS_CLI_TEXT, "snapshot-prefix", "P", struct values, prefix, 0,
               "where snapshots go: P_iter_<N>.safetensors; default: the solver's"),
    LS_CLI_ROW(LS_CLI_TEXT, "resume", "FILE", struct values, resume, 0,
               "go on from a snapshot; 'auto': from the newest one that is whole and\n"
               "of this training, or from the start where there are none"),
    LS_CLI_ROW(LS_CLI_FLAG, "overwrite", NULL, struct values, overwrite, 0,
               "start again, and write over snapshots of an earlier run"),
    LS_CLI_ROW(LS_CLI_FLAG, "snapshot-required", NULL, struct values, required, 0,
               "end where a snapshot cannot be written; without it that is a warning,\n"
               "and only the last snapshot must succeed"),
    LS_CLI_ROW(LS_CLI_TEXT, "weights", "FILES", struct values, weights, 0,
               "start from weights (safetensors, caffemodel), by the names of\n"
               "layers; several files separated by commas"),
    LS_CLI_MAP(struct values, map),
    LS_CLI_ROW(LS_CLI_FLAG, "partial-weights", NULL, struct values, partial, 0,
               "with --weights: parameters may stay random although the files have\n"
               "tensors of their shape that nothing takes. Else that is an error"),
    LS_CLI_SET(struct values, set),
    LS_CLI_DUMMY_OPTIONS(struct values, dummy),
    LS_CLI_ROW(LS_CLI_TEXT, "log-json", "FILE", struct values, log, 0,
               "write every event as a JSON object on a line of its own; with\n"
               "--resume, behind what is there"),
    LS_CLI_ROW(LS_CLI_FLAG, "statistics", NULL, struct values, statistics, 0,
               "with --log-json: at displays, norms and histograms of the weights\n"
               "and gradients of every parameter"),
    LS_CLI_ROW(LS_CLI_TEXT, "report", "FOLDER", struct values, report, 0,
               "keep FOLDER/report.html, a page with curves, the net and facts, up to\n"
               "date while the training runs; FOLDER/log.json has its events"),
    LS_CLI_ROW(LS_CLI_TEXT, "tensorboard", "DIR", struct values, tensorboard, 0,
               "write event files to a folder, for TensorBoard: curves, norms and\n"
               "histograms of parameters, filters, the definition"),
    LS_CLI_ROW(LS_CLI_TEXT, "metrics", "FILE", struct values, metrics, 0,
               "keep a file in Prometheus' text format: iteration, loss, speed, memory,\n"
               "skipped records, the last snapshot; for node_exporter"),
    LS_CLI_ROW(LS_CLI_TEXT, "trace", "FILE", struct values, trace, 0,
               "write what each thread of each rank did when, as JSON for Perfetto\n"
               "(ui.perfetto.dev) or chrome://tracing"),
    LS_CLI_ROW(LS_CLI_SIZE, "trace-limit", "SIZE", struct values, trace_limit, 0,
               "memory of each rank for that; default: 16MiB, about 500,000 events"),
    LS_CLI_ROW(LS_CLI_PART, "audit", "P", struct values, audit, 0,
               "compute this part (0 to 1) of the micro-batches a second time, on\n"
               "another core, and compare the bits before they count: finds and\n"
               "names a core that computes wrongly. Costs that much time"),
    LS_CLI_ISA(struct values, isa),
    LS_CLI_DEVICE(struct values, device),
    LS_CLI_ROW(LS_CLI_FLAG, "allow-other-numerics", NULL, struct values, allow_other_numerics, 0,
               "with --resume: go on although the snapshot was made in another numeric\n"
               "environment (instruction set, oneDNN, ...), with other bits; snapshots\n"
               "from there on name both. Else that is an error"),
    LS_CLI_ROW(LS_CLI_INTEGER, "timeout", "SECONDS", struct values, timeout, 0,
               "among several ranks: end when one of them sends nothing for so long, or\n"
               "the others wait so long for it; 0: never; default: 300"),
    LS_CLI_CHOICE("balance", "HOW", struct values, balance, "static dynamic",
                  "among several ranks: 'static' gives each a share by its workers,\n"
                  "'dynamic' gives work to free ranks. The result does not depend on it"),
    {.name = NULL}};

const struct ls_cli_command ls_cli_command_train = {
    .name = "train",
    .summary = "trains a net, with snapshots to resume from",
    .usage = "--solver FILE [OPTIONS]",
    .options = options,
    .example = "lockstep train --solver lenet_solver.prototxt --workers 4 --set base_lr=0.02\n"
               "lockstep train --solver lenet_solver.prototxt --resume auto\n"
               "mpirun -np 8 lockstep train --solver lenet_solver.prototxt --workers 4",
    .defaults = defaults,
    .run = run,
    .values_size = sizeof(struct values),
};
