/* lockstep report: pages of logs.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/model.h"
#include "cli/output_file.h"
#include "cli/page.h"
#include "cli/report.h"
#include "cli/run_names.h"
#include "cli/size.h"
#include "cli/worst.h"

enum { LOGS_MAX = 8 };

struct values {
    struct ls_cli_list logs, names;
    struct ls_cli_model_values model;
    const char *output, *title, *times, *score;
    int64_t worst, samples;
};

static int check(const struct values *values)
{
    if (values->output == NULL)
        return ls_cli_usage_error("report: -o FILE is missing: where the page goes");
    if (values->logs.count > LOGS_MAX)
        return ls_cli_usage_error("report: a page shows at most %d logs", LOGS_MAX);
    if (values->names.count > values->logs.count)
        return ls_cli_usage_error("report: there are more names than logs");
    if (values->model.weights != NULL && values->model.model == NULL)
        return ls_cli_usage_error("report: --weights go with --model FILE");
    double score = 0;
    const char *end = values->score != NULL ? ls_cli_parse_number(values->score, &score) : "";
    if (end == NULL || *end != '\0' || score > 1)
        return ls_cli_usage_error("report: --score '%s' is no number from 0 to 1", values->score);
    for (size_t i = 0; i < values->logs.count; i++)
        if (ls_cli_same_file(values->logs.items[i], values->output))
            return ls_cli_usage_error("report: %s is a log; the page would take its place",
                                      values->output);
    int status = ls_cli_check_output("report", values->output, &values->times, 1);
    if (status != 0)
        return status;
    return ls_cli_check_model_output("report", values->output, &values->model);
}

static int read_logs(const struct values *values, struct lockstep_log **logs,
                     struct lockstep_error *error)
{
    for (size_t i = 0; i < values->logs.count; i++) {
        int status = lockstep_log_new(&logs[i], error);
        if (status == 0)
            status = lockstep_log_read(logs[i], values->logs.items[i], error);
        if (status != 0)
            return ls_cli_report(status, error);
    }
    return 0;
}

/* Where a log says that its weights are, or beside the log; NULL: no such file, or no memory. */
static char *find_file(const char *log, const char *said)
{
    const char *end = strrchr(log, '/'), *base = strrchr(said, '/');
    char *path = NULL;
    size_t size;
    if (said[0] == '\0')
        return NULL;
    FILE *out = open_memstream(&path, &size);
    if (out == NULL)
        return NULL;
    if (access(said, R_OK) == 0)
        fputs(said, out);
    else
        fprintf(out, "%.*s%s", end != NULL ? (int)(end + 1 - log) : 0, log,
                base != NULL ? base + 1 : said);
    if (fclose(out) == 0 && access(path, R_OK) == 0)
        return path;
    free(path);
    return NULL;
}

/* The weights that the first log names, the best before the last, where the user names none. */
static char *weights_of_log(const struct values *values, const struct lockstep_log *log)
{
    struct lockstep_log_state state = {.lines = 0};
    if (values->model.model == NULL || values->model.weights != NULL)
        return NULL;
    lockstep_log_describe(log, &state);
    if (state.best_snapshot == NULL || state.last_snapshot == NULL)
        return NULL;
    char *found = find_file(values->logs.items[0], state.best_snapshot);
    return found != NULL ? found : find_file(values->logs.items[0], state.last_snapshot);
}

/* How the net does with these weights. A page can go without where they are only those that the log
 * names: the net may be another one by now, or one that does not classify. */
static int find_worst(const struct values *values, const struct lockstep_log *log,
                      struct ls_cli_worst *worst)
{
    struct ls_cli_model_values model = values->model;
    double score = 0.5;
    char *named = weights_of_log(values, log);
    if (named != NULL)
        model.weights = named;
    if (model.weights == NULL || strcmp(model.weights, "none") == 0)
        return 0;
    if (values->score != NULL)
        (void)ls_cli_parse_number(values->score, &score); /* it was checked */
    int status = ls_cli_worst_find(worst, &model, values->samples, (size_t)values->worst, score);
    if (status != 0 && named != NULL) {
        ls_cli_worst_free(worst);
        ls_cli_put_lines("the page goes without classes and samples");
        status = 0;
    } else if (status == 0) {
        worst->weights = strdup(model.weights);
    }
    free(named);
    return status;
}

static int run(const void *data)
{
    const struct values *values = data;
    struct lockstep_log *logs[LOGS_MAX] = {NULL};
    const struct lockstep_log *read[LOGS_MAX];
    const char *names[LOGS_MAX];
    char short_names[LOGS_MAX][LS_CLI_RUN_NAME];
    struct ls_cli_page page = {.net = NULL};
    struct ls_cli_worst worst = {.count = 0};
    struct lockstep_page_options options;
    int status = check(values);
    if (status != 0)
        return status;
    struct lockstep_error *error = lockstep_error_new();
    status = read_logs(values, logs, error);
    if (status == 0)
        status = ls_cli_page_read(&page, values->model.model, values->times);
    lockstep_page_options_init(&options);
    ls_cli_run_names(values->logs.items, values->logs.count, short_names);
    for (size_t i = 0; i < values->logs.count && status == 0; i++) {
        read[i] = logs[i];
        names[i] = i < values->names.count ? values->names.items[i] : short_names[i];
    }
    options.title = values->title;
    options.names = names;
    options.definition = page.definition;
    options.net = page.net;
    options.times = page.times;
    if (status == 0)
        status = find_worst(values, logs[0], &worst);
    options.confusion = worst.confusion;
    options.found = worst.found;
    options.pictures = worst.pictures;
    options.picture_count = worst.count;
    options.pictures_title = worst.title;
    options.weights = worst.weights;
    if (status == 0) {
        status = lockstep_page_write(values->output, read, values->logs.count, &options, error);
        if (status != 0)
            ls_cli_report(status, error);
    }
    for (size_t i = 0; i < values->logs.count; i++)
        lockstep_log_free(logs[i]);
    ls_cli_page_free(&page);
    ls_cli_worst_free(&worst);
    lockstep_error_free(error);
    return status;
}

static void defaults(void *data)
{
    struct values *values = data;
    values->worst = 24;
}

static const struct ls_cli_option options[] = {
    LS_CLI_ROW(LS_CLI_TEXT, "output", "FILE", struct values, output, 0,
               "where the page goes (also -o)"),
    LS_CLI_ROW(LS_CLI_LIST, "name", "NAME", struct values, names, 0,
               "what a run is called; once for each log, in their order. Default:\n"
               "what tells the logs' paths apart"),
    LS_CLI_ROW(LS_CLI_TEXT, "title", "TEXT", struct values, title, 0,
               "the page's title; default: the net's name, and those of several runs"),
    LS_CLI_MODEL_OPTIONS(struct values, model),
    LS_CLI_ROW(LS_CLI_TEXT, "labels", "FILE", struct values, model.labels, 0,
               "names of the classes, one a line, in place of those of the weights"),
    LS_CLI_ROW(LS_CLI_INTEGER, "samples", "N", struct values, samples, 1,
               "with --model: compare the first N samples of the test data with\n"
               "their labels; default: all"),
    LS_CLI_ROW(LS_CLI_INTEGER, "worst", "N", struct values, worst, 0,
               "with --model: how many of the worst samples to show; default: 24"),
    LS_CLI_ROW(LS_CLI_TEXT, "score", "F", struct values, score, 0,
               "with --model, of a net that finds boxes: show those with at least this\n"
               "score; default: 0.5"),
    LS_CLI_ROW(LS_CLI_TEXT, "times", "FILE", struct values, times, 0,
               "what 'lockstep time --json' wrote: the time of each layer"),
    {.name = NULL}};

const struct ls_cli_command ls_cli_command_report = {
    .name = "report",
    .summary = "makes a page in HTML of the logs of trainings: curves, facts, the net",
    .notes =
        "LOG is what 'lockstep train --log-json LOG' writes; several logs are drawn on top of\n"
        "each other; a page of two says where they part. The page is one file that\n"
        "browsers show without a network. With --model it shows how the net does, class by\n"
        "class or box by box, with the weights that the first log names (the best before the\n"
        "last snapshot), or those of --weights; '--weights none' leaves that out.",
    .usage = "LOG... -o FILE.html [OPTIONS]",
    .options = options,
    .arguments = offsetof(struct values, logs),
    .arguments_min = 1,
    .arguments_max = SIZE_MAX,
    .arguments_name = "LOG",
    .example = "lockstep report log.json -o report.html --model lenet_solver.prototxt\n"
               "lockstep report log.json -o report.html --model lenet_solver.prototxt \\\n"
               "    --weights lenet_iter_10000.safetensors\n"
               "lockstep report first.json second.json -o both.html",
    .defaults = defaults,
    .run = run,
    .values_size = sizeof(struct values),
};
