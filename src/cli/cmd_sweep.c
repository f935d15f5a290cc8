/* lockstep sweep: trains a net with several values of fields of its solver.
 *
 * Each run is a process of `lockstep train` with a share of the cores. Which of them go on after a
 * rung is in cli/sweep_rungs.c, what the processes are in cli/sweep_child.c.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/report.h"
#include "cli/signals.h"
#include "cli/sweep.h"
#include "monitor/clock.h"
#include "monitor/live.h"

enum { PARALLEL_MAX = 1024, TICK = 20 /* milliseconds */, OUTPUT_MAX = 3000 };

/* ---- Runs ------------------------------------------------------------------------------------ */

/* How many runs are in, and how many of those are where they are to be compared next. */
static size_t count_in(const struct ls_sweep *sweep, size_t *there)
{
    size_t count = 0;
    *there = 0;
    for (size_t i = 0; i < sweep->count; i++) {
        count += sweep->runs[i].in;
        *there += sweep->runs[i].in && ls_sweep_is_there(sweep, &sweep->runs[i]);
    }
    return count;
}

/* What became of a run whose process has ended. */
static void say_ended(struct ls_sweep *sweep, const struct ls_sweep_run *run)
{
    char taken[24], before[64];
    double value;
    size_t there;
    const size_t in = count_in(sweep, &there);
    snprintf(before, sizeof before, "[%zu/%zu]", there, in);
    ls_format_duration(ls_monitor_clock() - run->begun, taken, sizeof taken);
    if (run->state == LS_SWEEP_FAILED) {
        const char *message = run->message != NULL ? run->message : "out of memory";
        const char *hint = strstr(message, ". hint: "); /* that of one training */
        const int length = (int)(hint != NULL ? hint - message : (ptrdiff_t)strlen(message));
        ls_sweep_say(sweep, true, "%s %s: FAILED: %.*s", before, run->label, length, message);
        return;
    }
    if (run->state == LS_SWEEP_INTERRUPTED)
        ls_sweep_say(sweep, true, "%s: stopped by a signal", run->label);
    else if (ls_sweep_figure_of(ls_sweep_end_at(run, run->target), sweep->metric, &value))
        ls_sweep_say(sweep, false, "%s %s: %s = %.6g after %" PRId64 " updates (%s)", before,
                     run->label, sweep->metric, value, run->target, taken);
    else
        ls_sweep_say(sweep, false, "%s %s: no value after %" PRId64 " updates", before, run->label,
                     run->target);
}

static int look_at_all(struct ls_sweep *sweep)
{
    int status = 0;
    for (size_t i = 0; i < sweep->count && status == 0; i++) {
        struct ls_sweep_run *run = &sweep->runs[i];
        if (run->state != LS_SWEEP_RUNNING)
            continue;
        status = ls_sweep_look(sweep, run);
        if (status != 0 || run->state == LS_SWEEP_RUNNING)
            continue;
        status = ls_sweep_find_metric(sweep);
        if (status != 0)
            continue;
        say_ended(sweep, run);
        status = ls_sweep_write(sweep, false, false);
    }
    return status;
}

/* The next run that is to be trained; NULL: there is none now. */
static struct ls_sweep_run *next_run(struct ls_sweep *sweep)
{
    for (size_t i = 0; i < sweep->count; i++) {
        struct ls_sweep_run *run = &sweep->runs[i];
        if (!run->in || run->state != LS_SWEEP_WAITING || ls_sweep_is_there(sweep, run))
            continue;
        if (run->logged < ls_sweep_target(sweep, run)) /* else it failed behind that */
            ls_sweep_recall_failure(run);
        if (run->state == LS_SWEEP_WAITING)
            return run;
        say_ended(sweep, run);
    }
    return NULL;
}

/* Starts what there is room for; the cores that are free are shared among those. */
static int start_some(struct ls_sweep *sweep, size_t parallel, int cores)
{
    int status = 0;
    for (size_t i = 0; i < sweep->count; i++)
        if (sweep->runs[i].state == LS_SWEEP_RUNNING)
            cores -= sweep->runs[i].workers;
    while (sweep->running < parallel && status == 0) {
        struct ls_sweep_run *run = next_run(sweep);
        if (run == NULL)
            break;
        const size_t waiting = ls_sweep_count_waiting(sweep), room = parallel - sweep->running;
        const int share = cores / (int)(waiting < room ? waiting : room);
        status = ls_sweep_start(sweep, run, share > 0 ? share : 1);
        cores -= run->workers;
    }
    return status;
}

/* Decisions, as many as can be made. */
static int decide(struct ls_sweep *sweep, bool *finished)
{
    bool decided = true;
    int status = 0;
    while (decided && status == 0 && !*finished) {
        const int64_t rung = sweep->rung;
        size_t there;
        status = ls_sweep_decide(sweep, &decided, finished);
        if (status == 0 && decided) {
            ls_sweep_say(sweep, false, "After %" PRId64 " updates %zu of %zu runs go on", rung,
                         count_in(sweep, &there), sweep->count);
            status = ls_sweep_write(sweep, true, false);
        }
    }
    return status;
}

/* ---- The loop -------------------------------------------------------------------------------- */

static void answer_signals(struct ls_sweep *sweep, bool *stopping)
{
    switch (ls_cli_signal_request()) {
    case LOCKSTEP_SNAPSHOT_AND_STOP:
        if (!*stopping) {
            ls_sweep_say(sweep, true,
                         "Stopping with snapshots; the same signal again stops at once.");
            ls_sweep_signal(sweep, SIGTERM);
        }
        *stopping = true;
        break;
    case LOCKSTEP_SNAPSHOT_AND_GO_ON:
        ls_sweep_signal(sweep, SIGHUP);
        break;
    default:
        break;
    }
}

static void read_running(struct ls_sweep *sweep)
{
    for (size_t i = 0; i < sweep->count; i++)
        if (sweep->runs[i].state == LS_SWEEP_RUNNING)
            (void)ls_sweep_log_read(&sweep->runs[i]);
}

/* After a failure of the sweep itself its trainings end with snapshots. */
static void stop_all(struct ls_sweep *sweep)
{
    const struct timespec tick = {.tv_nsec = TICK * 1000000L};
    ls_sweep_signal(sweep, SIGTERM);
    while (sweep->running > 0) {
        for (size_t i = 0; i < sweep->count; i++)
            if (sweep->runs[i].state == LS_SWEEP_RUNNING)
                (void)ls_sweep_look(sweep, &sweep->runs[i]);
        nanosleep(&tick, NULL);
    }
}

static int train_all(struct ls_sweep *sweep, bool *finished)
{
    const struct ls_sweep_values *values = sweep->values;
    const struct timespec tick = {.tv_nsec = TICK * 1000000L};
    const int cores = values->workers > 0 ? (int)values->workers : lockstep_default_workers();
    const size_t parallel = (size_t)(values->parallel > 0 ? values->parallel : cores);
    double read = 0;
    bool stopping = false;
    int status = 0;
    while (status == 0) {
        answer_signals(sweep, &stopping);
        status = look_at_all(sweep);
        if (status == 0 && !stopping)
            status = decide(sweep, finished);
        if (status == 0 && !stopping && !*finished)
            status = start_some(sweep, parallel, cores);
        if (sweep->running == 0 && (stopping || *finished || ls_sweep_count_waiting(sweep) == 0)) {
            size_t there;
            if (stopping || *finished || count_in(sweep, &there) > there)
                break;
            continue; /* the last ones have failed before, and all are there now */
        }
        if (ls_monitor_clock() - read > 0.2) {
            read_running(sweep);
            read = ls_monitor_clock();
        }
        ls_sweep_live_draw(sweep, ls_monitor_clock());
        nanosleep(&tick, NULL);
    }
    ls_sweep_live_clear(sweep);
    stop_all(sweep);
    return status;
}

/* ---- What is said at the end ----------------------------------------------------------------- */

static void say_how_to_go_on(const struct ls_sweep *sweep)
{
    const struct ls_sweep_values *values = sweep->values;
    fputs("To go on:", stdout);
    ls_cli_put_command(stdout, "sweep");
    ls_cli_put_option(stdout, "--solver", values->solver);
    ls_cli_put_each(stdout, "--set", &values->set);
    if (values->random > 0)
        printf(" --random %" PRId64 " --seed %" PRId64, values->random, values->seed);
    if (values->halving > 0)
        printf(" --halving %" PRId64 " --factor %" PRId64, values->halving, values->factor);
    ls_cli_put_option(stdout, "--metric", values->metric);
    ls_cli_put_option(stdout, "--best", values->best);
    if (values->parallel > 0)
        printf(" --parallel %" PRId64, values->parallel);
    if (values->workers > 0)
        printf(" --workers %" PRId64, values->workers);
    ls_cli_put_option(stdout, "--weights", values->weights);
    ls_cli_put_option(stdout, "--map", values->map);
    ls_cli_put_option(stdout, "--isa", values->isa);
    ls_cli_put_device(stdout, values->device);
    ls_cli_put_option(stdout, "--output", values->output);
    putchar('\n');
}

/* The best run, and how it is repeated. Without one, the code of the first failure. */
static int say_best(const struct ls_sweep *sweep)
{
    const struct ls_sweep_run **order = calloc(sweep->count, sizeof *order);
    if (order == NULL)
        return ls_cli_no_memory();
    ls_sweep_order(sweep, order);
    const struct ls_sweep_run *best = order[0];
    int status = best->state == LS_SWEEP_DONE ? 0 : sweep->runs[0].code;
    if (best->state == LS_SWEEP_DONE) {
        fputs("To train the best one again:", stdout);
        ls_sweep_put_train(stdout, sweep, best);
        printf("\nIts folder: %s\nCurves of the best: %s/report.html\n", best->path,
               sweep->values->output);
    } else {
        ls_cli_put_lines("every run has failed");
    }
    free(order);
    return status;
}

static void put_plan(const struct ls_sweep *sweep)
{
    printf("%zu runs\n", sweep->count);
    for (size_t i = 0; i < sweep->count; i++) {
        const struct ls_sweep_run *run = &sweep->runs[i];
        printf("%4zu ", i + 1);
        ls_sweep_put_train(stdout, sweep, run);
        if (run->state == LS_SWEEP_FAILED)
            fputs("  # cannot be trained", stdout);
        putchar('\n');
        if (run->state == LS_SWEEP_FAILED && run->message != NULL)
            ls_cli_put_lines(run->message);
    }
}

static int sweep_all(struct ls_sweep *sweep)
{
    bool finished = false;
    for (size_t i = 0; i < sweep->count; i++)
        if (sweep->runs[i].state == LS_SWEEP_FAILED)
            say_ended(sweep, &sweep->runs[i]);
    ls_cli_catch_signals(NULL);
    int status = train_all(sweep, &finished);
    if (status == 0)
        status = ls_sweep_write(sweep, true, finished);
    if (status != 0)
        return status;
    ls_sweep_put_table(sweep);
    if (finished)
        return say_best(sweep);
    say_how_to_go_on(sweep);
    return LOCKSTEP_STOPPED;
}

/* ---- The command ----------------------------------------------------------------------------- */

static int check(const struct ls_sweep_values *values)
{
    if (values->solver == NULL)
        return ls_cli_usage_error("sweep: --solver FILE is missing");
    if (values->set.count == 0)
        return ls_cli_usage_error("sweep: --set FIELD=VALUES is missing: what is to be tried, such "
                                  "as --set base_lr=0.1,0.05");
    if (values->best != NULL && strcmp(values->best, "max") != 0 &&
        strcmp(values->best, "min") != 0)
        return ls_cli_usage_error("sweep: --best '%s' is neither 'max' nor 'min'", values->best);
    if (values->parallel > PARALLEL_MAX)
        return ls_cli_usage_error("sweep: --parallel is at most %d", PARALLEL_MAX);
    if (values->factor > 0 && values->halving == 0)
        return ls_cli_usage_error("sweep: --factor goes with --halving N");
    if (values->seed >= 0 && values->random == 0)
        return ls_cli_usage_error("sweep: --seed goes with --random N");
    if (strlen(values->output) > OUTPUT_MAX)
        return ls_cli_usage_error("sweep: the path of the folder is too long");
    return 0;
}

static int run(const void *data)
{
    struct ls_sweep_values values = *(const struct ls_sweep_values *)data;
    struct ls_sweep sweep;
    int status = check(&values);
    if (status != 0)
        return status;
    values.factor = values.factor > 0 ? values.factor : 2;
    values.seed = values.seed >= 0 ? values.seed : 1;
    status = ls_sweep_open(&sweep, &values);
    if (status == 0 && values.dry_run)
        put_plan(&sweep);
    else if (status == 0)
        status = ls_sweep_enter(&sweep);
    if (status == 0 && !values.dry_run)
        status = sweep_all(&sweep);
    ls_sweep_close(&sweep);
    return status;
}

static void defaults(void *data)
{
    struct ls_sweep_values *values = data;
    values->output = "sweep";
    values->seed = -1;
}

static const struct ls_cli_option options[] = {
    LS_CLI_SOLVER(struct ls_sweep_values, solver, "; it names the net"),
    LS_CLI_ROW(LS_CLI_LIST, "set", "FIELD=VALUES", struct ls_sweep_values, set, 0,
               "values of a field of the solver, with commas between; batch=32,64:\n"
               "batch_size of the data that is trained on. With --random also a range:\n"
               "log:1e-4..1e-1, lin:0..0.01, int:16..128. May be given several times"),
    LS_CLI_ROW(LS_CLI_INTEGER, "random", "N", struct ls_sweep_values, random, 1,
               "train N runs with values that are drawn; default: every combination"),
    LS_CLI_ROW(LS_CLI_INTEGER, "seed", "K", struct ls_sweep_values, seed, 0,
               "of what is drawn; default: 1"),
    LS_CLI_ROW(LS_CLI_INTEGER, "parallel", "N", struct ls_sweep_values, parallel, 1,
               "train N runs at a time, each with a share of the cores; default: one\n"
               "for each core. The results do not depend on it"),
    LS_CLI_WORKER_COUNT(struct ls_sweep_values, workers, ", of all runs together"),
    LS_CLI_ROW(LS_CLI_INTEGER, "halving", "N", struct ls_sweep_values, halving, 1,
               "after N updates only the better half of the runs goes on, after 2 N\n"
               "half of these, and so on"),
    LS_CLI_ROW(LS_CLI_INTEGER, "factor", "F", struct ls_sweep_values, factor, 2,
               "with --halving: one of F goes on, F times as far; default: 2"),
    LS_CLI_ROW(LS_CLI_TEXT, "metric", "NAME", struct ls_sweep_values, metric, 0,
               "what runs are judged by: an output of the test ('accuracy'), or 'loss',\n"
               "that of the last update. Default: the first accuracy of a test, or its\n"
               "first output, or the loss"),
    LS_CLI_CHOICE("best", "HOW", struct ls_sweep_values, best, "max min",
                  "whether larger values are better ('max') or smaller ones ('min'); default:\n"
                  "as the layer says it, which makes the figure"),
    LS_CLI_ROW(LS_CLI_TEXT, "output", "DIR", struct ls_sweep_values, output, 0,
               "where the runs, sweep.json and report.html go (also -o); default: sweep.\n"
               "A sweep goes on with what is there"),
    LS_CLI_ROW(LS_CLI_FLAG, "dry-run", NULL, struct ls_sweep_values, dry_run, 0,
               "show the runs and train nothing"),
    LS_CLI_ROW(LS_CLI_TEXT, "weights", "FILES", struct ls_sweep_values, weights, 0,
               "start all runs from weights, as train does"),
    LS_CLI_MAP(struct ls_sweep_values, map),
    LS_CLI_ISA(struct ls_sweep_values, isa),
    LS_CLI_DEVICE(struct ls_sweep_values, device),
    {.name = NULL}};

const struct ls_cli_command ls_cli_command_sweep = {
    .name = "sweep",
    .summary = "trains with several values of fields, and says which are best",
    .usage = "--solver FILE --set FIELD=VALUES... [OPTIONS]",
    .notes = "Each run has the bits of 'lockstep train' with its values. A run that fails is\n"
             "reported and comes last. A sweep that was stopped goes on by the same command: what "
             "is finished is\n"
             "not trained again.",
    .options = options,
    .example = "lockstep sweep --solver lenet_solver.prototxt --set base_lr=0.1,0.05,0.01 \\\n"
               "    --set batch=32,64\n"
               "lockstep sweep --solver lenet_solver.prototxt --set base_lr=log:1e-4..1e-1 \\\n"
               "    --set weight_decay=lin:0..0.01 --random 16 --halving 250",
    .defaults = defaults,
    .run = run,
    .values_size = sizeof(struct ls_sweep_values),
};
