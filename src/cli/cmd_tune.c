/* lockstep tune: throughput over micro-batch and batch sizes and workers.
 *
 * What is varied is varied by itself, the others stay as the definition has them; a list of one
 * number sets it for all. All points are measured in alternation.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>

#include "cli/cards.h"
#include "cli/commands.h"
#include "cli/report.h"
#include "cli/size.h"
#include "cli/tune_table.h"
#include "monitor/progress.h"
#include "monitor/terminal.h"

enum {
    VALUES_MAX = 32,
    WORKERS_MAX = 4096,
    SECONDS_MAX = 86400, /* a day for a point */
    POINTS_MAX = 1 + LS_CLI_VARIED * VALUES_MAX
};

struct values {
    const char *solver, *isa, *device, *seconds;
    const char *list[LS_CLI_VARIED];
    int json;
    struct ls_cli_list set;
};

/* The values of what is varied. */
struct sweep {
    int value[VALUES_MAX];
    size_t count;
};

static const char *const option_names[LS_CLI_VARIED] = {"micro-batch", "batch", "workers"};

static int parse_list(const char *text, const char *option, int most, struct sweep *sweep)
{
    if (ls_cli_parse_counts(text, most, sweep->value, VALUES_MAX, &sweep->count))
        return 0;
    return ls_cli_usage_error("tune: --%s '%s' is not a list of at most %d numbers from 1 to %d, "
                              "such as 1,2,4",
                              option, text, VALUES_MAX, most);
}

static int parse_seconds(const char *text, double *seconds)
{
    if (text == NULL)
        return 0;
    const char *end = ls_cli_parse_number(text, seconds);
    if (end != NULL && *end == '\0' && *seconds > 0 && *seconds <= SECONDS_MAX)
        return 0;
    return ls_cli_usage_error("tune: --seconds '%s' is not a number of seconds above 0 and at most "
                              "%d, such as 2.5",
                              text, SECONDS_MAX);
}

static void add(struct sweep *sweep, int64_t value, int64_t most)
{
    if (value < 1 || value > most || value > INT32_MAX || sweep->count == VALUES_MAX)
        return;
    for (size_t i = 0; i < sweep->count; i++)
        if (sweep->value[i] == value)
            return;
    sweep->value[sweep->count++] = (int)value;
}

/* What is varied where nothing is said. */
static void choose(enum ls_cli_varied varied, const struct lockstep_tune_point *base,
                   struct sweep *sweep)
{
    int64_t own = ls_cli_varied_value(base, varied);
    switch (varied) {
    case LS_CLI_MICRO_BATCH:
        for (int64_t factor = 8; factor > 1; factor /= 2)
            add(sweep, own / factor, base->batch);
        for (int64_t factor = 1; factor <= 8; factor *= 2)
            add(sweep, own * factor, base->batch);
        break;
    case LS_CLI_BATCH:
        for (int64_t factor = 4; factor > 1; factor /= 2)
            add(sweep, own / factor, INT32_MAX);
        for (int64_t factor = 1; factor <= 4; factor *= 2)
            add(sweep, own * factor, INT32_MAX);
        break;
    default:
        for (int64_t workers = 1; workers < own; workers *= 2)
            add(sweep, workers, own);
        add(sweep, own, own);
    }
}

static void set_value(struct lockstep_tune_point *point, enum ls_cli_varied varied, int64_t value)
{
    if (varied == LS_CLI_MICRO_BATCH)
        point->micro_batch = value;
    else if (varied == LS_CLI_BATCH)
        point->batch = value;
    else
        point->workers = (int)value;
}

/* The first point: what the definition says, and lists of one number. `*whole`: the net mixes the
 * samples of a batch, so that each batch is one micro-batch. */
static int find_base(const struct lockstep_solver *solver, const struct values *values,
                     const struct sweep *sweeps, struct lockstep_tune_point *base, bool *whole,
                     struct lockstep_error *error)
{
    struct lockstep_plan_options options;
    struct lockstep_plan *plan;
    lockstep_plan_options_init(&options);
    options.isa = values->isa;
    options.device = values->device;
    ls_cli_note_cards(values->device);
    int status = lockstep_plan_training(solver, &options, &plan, error);
    if (status != 0)
        return status;
    const struct lockstep_plan_net *net = lockstep_plan_net(plan, 0);
    *base = (struct lockstep_tune_point){.workers = lockstep_plan_memory(plan)->workers,
                                         .batch = net->batch,
                                         .micro_batch = net->micro_batch};
    *whole = net->mixer != NULL;
    lockstep_plan_free(plan);
    for (int varied = 0; varied < LS_CLI_VARIED; varied++)
        if (sweeps[varied].count == 1)
            set_value(base, (enum ls_cli_varied)varied, sweeps[varied].value[0]);
    if (base->micro_batch > base->batch || (*whole && sweeps[LS_CLI_MICRO_BATCH].count != 1))
        base->micro_batch = base->batch;
    return 0;
}

/* Behind the base, what is varied; each point once. Returns how many there are. */
static size_t make_points(const struct sweep *sweeps, bool whole,
                          struct lockstep_tune_point *points, unsigned *in)
{
    size_t count = 1;
    in[0] = 0;
    for (int v = 0; v < LS_CLI_VARIED; v++) {
        enum ls_cli_varied varied = (enum ls_cli_varied)v;
        struct sweep sweep = sweeps[v];
        if (sweep.count == 0 && !(whole && varied == LS_CLI_MICRO_BATCH))
            choose(varied, &points[0], &sweep);
        for (size_t i = 0; i < sweep.count; i++) {
            if (sweep.value[i] == ls_cli_varied_value(&points[0], varied))
                continue;
            points[count] = points[0];
            set_value(&points[count], varied, sweep.value[i]);
            if (whole && varied == LS_CLI_BATCH)
                points[count].micro_batch = sweep.value[i];
            if (points[count].micro_batch > points[count].batch)
                continue; /* the same as with a micro-batch of the whole batch */
            in[count++] = 1U << v;
            in[0] |= 1U << v;
        }
    }
    return count;
}

static int tune(const struct values *values, const struct sweep *sweeps, double seconds,
                struct lockstep_error *error)
{
    static struct lockstep_tune_point points[POINTS_MAX]; /* too large for the stack */
    unsigned in[POINTS_MAX];
    size_t count = 0;
    bool whole = false;
    struct lockstep_solver *solver;
    struct lockstep_tune_options options;
    lockstep_tune_options_init(&options);
    options.isa = values->isa;
    options.device = values->device;
    options.seconds = seconds;
    /* Progress goes to stderr, where messages go: the table on stdout can be piped. */
    struct ls_progress progress;
    ls_progress_init(&progress, stderr, NULL);
    options.callbacks = (struct lockstep_callbacks){&progress, ls_progress_event, NULL};
    int status =
        lockstep_solver_load(values->solver, values->set.items, values->set.count, &solver, error);
    if (status == 0)
        status = find_base(solver, values, sweeps, &points[0], &whole, error);
    if (status == 0) {
        count = make_points(sweeps, whole, points, in);
        status = lockstep_tune(solver, &options, points, count, error);
    }
    ls_progress_clear(&progress);
    if (status == 0 && values->json)
        ls_cli_put_tune_json(points, count);
    else if (status == 0)
        ls_cli_put_tune(points, in, count, ls_terminal_width(stdout));
    lockstep_solver_free(solver);
    return status;
}

static int run(const void *data)
{
    const struct values *values = data;
    struct sweep sweeps[LS_CLI_VARIED] = {{.count = 0}};
    double seconds = 0;
    if (values->solver == NULL)
        return ls_cli_usage_error("tune: --solver FILE is missing");
    int status = parse_seconds(values->seconds, &seconds);
    for (int v = 0; v < LS_CLI_VARIED && status == 0; v++)
        if (values->list[v] != NULL)
            status = parse_list(values->list[v], option_names[v],
                                v == LS_CLI_WORKERS ? WORKERS_MAX : INT32_MAX, &sweeps[v]);
    if (status != 0)
        return status;
    struct lockstep_error *error = lockstep_error_new();
    status = tune(values, sweeps, seconds, error);
    if (status != 0)
        ls_cli_report(status, error);
    lockstep_error_free(error);
    return status;
}

static const struct ls_cli_option options[] = {
    LS_CLI_SOLVER(struct values, solver, "; nothing is written to disk"),
    LS_CLI_ROW(LS_CLI_TEXT, "workers", "LIST", struct values, list[LS_CLI_WORKERS], 0,
               "numbers of workers to try, such as 1,2,4 (one number: for all);\n"
               "default: powers of two up to the cores that there are"),
    LS_CLI_ROW(LS_CLI_TEXT, "batch", "LIST", struct values, list[LS_CLI_BATCH], 0,
               "batch sizes to try; default: from a quarter of the definition's\n"
               "to four times as much"),
    LS_CLI_ROW(LS_CLI_TEXT, "micro-batch", "LIST", struct values, list[LS_CLI_MICRO_BATCH], 0,
               "micro-batches to try; default: from an eighth to eight times"),
    LS_CLI_ROW(LS_CLI_TEXT, "seconds", "S", struct values, seconds, 0,
               "how long each point is measured, in five turns; default: 2.5"),
    LS_CLI_SET(struct values, set),
    LS_CLI_JSON(struct values, json),
    LS_CLI_ISA(struct values, isa),
    LS_CLI_DEVICE_ONE(struct values, device),
    {.name = NULL}};

const struct ls_cli_command ls_cli_command_tune = {
    .name = "tune",
    .summary = "measures the speed with other batches, micro-batches and workers",
    .usage = "--solver FILE [OPTIONS]",
    .options = options,
    .example = "lockstep tune --solver lenet_solver.prototxt\n"
               "lockstep tune --solver lenet_solver.prototxt --workers 2 --batch 64 --micro-batch "
               "4,8,16",
    .run = run,
    .values_size = sizeof(struct values),
};
