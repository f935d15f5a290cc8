/* What a sweep has found: a table, sweep.json, report.html.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/column.h"
#include "cli/command_line.h"
#include "cli/output_file.h"
#include "cli/report.h"
#include "cli/sweep.h"
#include "monitor/json.h"
#include "monitor/terminal.h"

enum { LOGS_MAX = 8, VALUE_COLUMNS = 14 };

static const char *const states[] = {
    [LS_SWEEP_WAITING] = "waiting", [LS_SWEEP_RUNNING] = "running",
    [LS_SWEEP_DONE] = "done",       [LS_SWEEP_STOPPED] = "stopped",
    [LS_SWEEP_FAILED] = "failed",   [LS_SWEEP_INTERRUPTED] = "interrupted",
};

/* ---- The table ------------------------------------------------------------------------------- */

/* Columns of a field: as wide as its longest value. */
static int width_of(const struct ls_sweep *sweep, size_t field)
{
    int width = ls_text_columns(lockstep_sweep_field(sweep->plan, field));
    for (size_t i = 0; i < sweep->count; i++) {
        const int own = ls_text_columns(lockstep_sweep_value(sweep->plan, i, field));
        width = own > width ? own : width;
    }
    return width < VALUE_COLUMNS ? width : VALUE_COLUMNS;
}

static void put_cell(const char *text, int width)
{
    ls_cli_put_name(text, width);
    putchar(' ');
}

/* Columns of place, result and state; of the updates, which narrow terminals go without. */
enum { FRAME = 24, UPDATES = 10, NARROW = 60 };

/* How many fields have room; at least one. */
static size_t fields_that_fit(const struct ls_sweep *sweep, bool updates)
{
    const size_t count = lockstep_sweep_field_count(sweep->plan);
    int room = ls_terminal_width(stdout) - FRAME - (updates ? UPDATES : 0);
    size_t fit = 0;
    while (fit < count && (fit == 0 || room >= width_of(sweep, fit) + 2)) {
        room -= width_of(sweep, fit) + 2;
        fit++;
    }
    return fit;
}

static void put_row(const struct ls_sweep *sweep, const struct ls_sweep_run *run, size_t fields,
                    bool updates)
{
    const size_t index = (size_t)(run - sweep->runs);
    double value;
    for (size_t f = 0; f < fields; f++)
        put_cell(lockstep_sweep_value(sweep->plan, index, f), width_of(sweep, f));
    if (ls_sweep_result(sweep, run, &value))
        printf("%10.6g", value);
    else
        printf("%10s", "-");
    if (updates)
        printf("  %8" PRId64, run->reached);
    printf("  %s\n", states[run->state]);
}

void ls_sweep_put_table(const struct ls_sweep *sweep)
{
    const struct ls_sweep_run **order = calloc(sweep->count, sizeof *order);
    if (order == NULL)
        return;
    ls_sweep_order(sweep, order);
    const bool updates = ls_terminal_width(stdout) >= NARROW;
    const size_t fields = fields_that_fit(sweep, updates);
    const size_t left = lockstep_sweep_field_count(sweep->plan) - fields;
    if (sweep->metric != NULL) {
        fputs("Result: ", stdout);
        ls_cli_put_line(NULL, sweep->metric);
    }
    fputs("  #  ", stdout);
    for (size_t f = 0; f < fields; f++)
        put_cell(lockstep_sweep_field(sweep->plan, f), width_of(sweep, f));
    printf("%10s", "result");
    puts(updates ? "   updates" : "");
    for (size_t i = 0; i < sweep->count; i++) {
        printf("%3zu  ", i + 1);
        put_row(sweep, order[i], fields, updates);
    }
    if (left > 0)
        printf("%zu more field%s: in sweep.json\n", left, left > 1 ? "s" : "");
    free(order);
}

void ls_sweep_put_train(FILE *line, const struct ls_sweep *sweep, const struct ls_sweep_run *run)
{
    const struct ls_sweep_values *values = sweep->values;
    ls_cli_put_command(line, "train");
    ls_cli_put_option(line, "--solver", values->solver);
    for (size_t i = 0; i < run->set_count; i++)
        ls_cli_put_option(line, "--set", run->set[i]);
    ls_cli_put_option(line, "--weights", values->weights);
    ls_cli_put_option(line, "--map", values->map);
    ls_cli_put_option(line, "--isa", values->isa);
    ls_cli_put_device(line, values->device);
}

/* ---- sweep.json ------------------------------------------------------------------------------ */

static void put_command(struct ls_json_writer *json, const struct ls_sweep *sweep,
                        const struct ls_sweep_run *run)
{
    char *line = NULL;
    size_t size;
    FILE *out = open_memstream(&line, &size);
    if (out == NULL)
        return;
    ls_sweep_put_train(out, sweep, run);
    if (fclose(out) == 0)
        ls_json_string(json, "command", line + 1);
    free(line);
}

/* Those that an earlier sweep with other rungs has left are none of this one. */
static void put_figures(struct ls_json_writer *json, const struct ls_sweep *sweep,
                        const struct ls_sweep_run *run)
{
    int64_t rung = ls_sweep_next_rung(sweep, run, 0);
    ls_json_open(json, "figures", '[');
    for (size_t i = 0; i < run->end_count; i++) {
        const struct ls_sweep_end *end = &run->ends[i];
        while (rung > 0 && rung < end->iteration)
            rung = ls_sweep_next_rung(sweep, run, rung);
        if (end->iteration > run->reached || (end->iteration != rung && end->iteration != run->end))
            continue;
        ls_json_open(json, NULL, '{');
        ls_json_integer(json, "iteration", end->iteration);
        for (size_t f = 0; f < end->count; f++)
            ls_json_number(json, end->figures[f].name, end->figures[f].value);
        ls_json_close(json, '}');
    }
    ls_json_close(json, ']');
}

static void put_run(struct ls_json_writer *json, const struct ls_sweep *sweep,
                    const struct ls_sweep_run *run, size_t place)
{
    double value;
    ls_json_open(json, NULL, '{');
    ls_json_integer(json, "place", (int64_t)place);
    ls_json_integer(json, "run", run - sweep->runs + 1);
    ls_json_open(json, "set", '[');
    for (size_t i = 0; i < run->set_count; i++)
        ls_json_string(json, NULL, run->set[i]);
    ls_json_close(json, ']');
    ls_json_string(json, "folder", run->folder);
    ls_json_string(json, "definition", run->hash);
    ls_json_string(json, "state", states[run->state]);
    ls_json_integer(json, "iteration", run->reached);
    ls_json_integer(json, "iteration_end", run->end);
    if (ls_sweep_result(sweep, run, &value))
        ls_json_number(json, "result", value);
    else
        ls_json_string(json, "result", NULL);
    put_figures(json, sweep, run);
    if (run->state == LS_SWEEP_FAILED)
        ls_json_string(json, "message", run->message);
    put_command(json, sweep, run);
    ls_json_close(json, '}');
}

/* No time and no number of workers: equal sweeps have equal files. */
static void put_sweep(struct ls_json_writer *json, const struct ls_sweep *sweep,
                      const struct ls_sweep_run **order, bool finished)
{
    const struct ls_sweep_values *values = sweep->values;
    ls_json_open(json, NULL, '{');
    ls_json_string(json, "lockstep_sweep", lockstep_version());
    ls_json_string(json, "solver", values->solver);
    ls_json_open(json, "set", '[');
    for (size_t i = 0; i < values->set.count; i++)
        ls_json_string(json, NULL, values->set.items[i]);
    ls_json_close(json, ']');
    if (values->random > 0) {
        ls_json_integer(json, "random", values->random);
        ls_json_integer(json, "seed", values->seed);
    }
    if (values->halving > 0) {
        ls_json_integer(json, "halving", values->halving);
        ls_json_integer(json, "factor", values->factor);
    }
    ls_json_string(json, "metric", sweep->metric);
    ls_json_string(json, "best", sweep->larger ? "max" : "min");
    ls_json_boolean(json, "finished", finished);
    ls_json_open(json, "runs", '[');
    for (size_t i = 0; i < sweep->count; i++)
        put_run(json, sweep, order[i], i + 1);
    ls_json_close(json, ']');
    ls_json_close(json, '}');
}

static int write_json(const struct ls_sweep *sweep, const struct ls_sweep_run **order,
                      bool finished)
{
    char path[LS_SWEEP_PATH], *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    if (out == NULL)
        return ls_cli_no_memory();
    struct ls_json_writer json = {out, false};
    put_sweep(&json, sweep, order, finished);
    putc('\n', out);
    snprintf(path, sizeof path, "%s/sweep.json", sweep->values->output);
    int status = fclose(out) == 0 ? ls_cli_output_write(path, text, length) : ls_cli_no_memory();
    free(text);
    return status;
}

/* ---- report.html ----------------------------------------------------------------------------- */

/* Reads the logs of the best runs; those that have none yet are left out. */
static size_t read_logs(const struct ls_sweep *sweep, const struct ls_sweep_run **order,
                        struct lockstep_log **logs, const char **names)
{
    size_t count = 0;
    for (size_t i = 0; i < sweep->count && count < LOGS_MAX; i++) {
        char path[LS_SWEEP_PATH];
        snprintf(path, sizeof path, "%s/log.json", order[i]->path);
        if (lockstep_log_new(&logs[count], NULL) != 0)
            break;
        names[count] = order[i]->label;
        if (lockstep_log_read(logs[count], path, NULL) == 0)
            count++;
        else
            lockstep_log_free(logs[count]);
    }
    return count;
}

static int write_page(const struct ls_sweep *sweep, const struct ls_sweep_run **order)
{
    struct lockstep_log *logs[LOGS_MAX] = {NULL};
    const struct lockstep_log *read[LOGS_MAX] = {NULL};
    const char *names[LOGS_MAX];
    char path[LS_SWEEP_PATH], title[512];
    struct lockstep_page_options options;
    const size_t count = read_logs(sweep, order, logs, names);
    struct lockstep_error *error = lockstep_error_new();
    int status = 0;
    for (size_t i = 0; i < count; i++)
        read[i] = logs[i];
    snprintf(path, sizeof path, "%s/report.html", sweep->values->output);
    snprintf(title, sizeof title, "%s: %zu runs%s", sweep->values->solver, sweep->count,
             count < sweep->count ? ", the best" : "");
    lockstep_page_options_init(&options);
    options.title = title;
    options.names = names;
    if (count > 0)
        status = lockstep_page_write(path, read, count, &options, error);
    if (status != 0)
        ls_cli_report(status, error);
    for (size_t i = 0; i < count; i++)
        lockstep_log_free(logs[i]);
    lockstep_error_free(error);
    return status;
}

int ls_sweep_write(const struct ls_sweep *sweep, bool page, bool finished)
{
    const struct ls_sweep_run **order = calloc(sweep->count, sizeof *order);
    if (order == NULL)
        return ls_cli_no_memory();
    ls_sweep_order(sweep, order);
    int status = write_json(sweep, order, finished);
    if (status == 0 && page)
        status = write_page(sweep, order);
    free(order);
    return status;
}
