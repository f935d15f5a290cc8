/* lockstep check: reads all data once and lists every bad record.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdio.h>

#include "cli/commands.h"
#include "cli/rate.h"
#include "cli/report.h"
#include "monitor/json.h"
#include "monitor/progress.h"

struct values {
    const char *solver, *model;
    int64_t workers;
    int json;
    struct ls_cli_list set;
};

struct report {
    struct ls_progress progress;
    struct ls_json_writer json;
    bool as_json;
    int64_t sources, warnings;
};

static void put_bad(void *user, const struct lockstep_bad_record *bad)
{
    struct report *report = user;
    if (report->as_json) {
        ls_json_open(&report->json, NULL, '{');
        ls_json_string(&report->json, "event", "bad");
        ls_json_string(&report->json, "net", bad->net);
        ls_json_string(&report->json, "layer", bad->layer);
        ls_json_string(&report->json, "source", bad->source);
        ls_json_integer(&report->json, "record", bad->record);
        ls_json_string(&report->json, "name", bad->name);
        ls_json_string(&report->json, "reason", bad->reason);
        ls_json_close(&report->json, '}');
        return;
    }
    ls_progress_clear(&report->progress);
    bool named = bad->name[0] != '\0';
    printf("%s, layer '%s', %s: record %" PRId64 "%s%s%s: %s\n", bad->net, bad->layer, bad->source,
           bad->record, named ? " (" : "", bad->name, named ? ")" : "", bad->reason);
}

static void put_source(void *user, const struct lockstep_checked_source *source)
{
    struct report *report = user;
    double speed = source->seconds > 0 ? (double)source->records / source->seconds : 0;
    report->sources++;
    if (report->as_json) {
        ls_json_open(&report->json, NULL, '{');
        ls_json_string(&report->json, "event", "source");
        ls_json_string(&report->json, "net", source->net);
        ls_json_string(&report->json, "layer", source->layer);
        ls_json_string(&report->json, "source", source->source);
        ls_json_integer(&report->json, "records", source->records);
        ls_json_integer(&report->json, "bad", source->bad);
        ls_json_integer(&report->json, "skippable", source->skippable);
        ls_json_number(&report->json, "seconds", source->seconds);
        ls_json_close(&report->json, '}');
        return;
    }
    ls_progress_clear(&report->progress);
    char time[LS_CLI_RATE_ROOM], rate[LS_CLI_RATE_ROOM];
    ls_format_speed(speed, rate, sizeof rate);
    printf("%s, layer '%s', %s: %" PRId64 " records, %" PRId64 " bad; %s, %s records/s\n",
           source->net, source->layer, source->source, source->records, source->bad,
           ls_cli_format_time(source->seconds, time), rate);
    if (source->bad > 0)
        printf("    on_bad_record: SKIP would put others in the place of %" PRId64 " of them\n",
               source->skippable);
}

/* Progress, or what cannot be meant although no record is bad. */
static void put_event(void *user, const struct lockstep_event *event)
{
    struct report *report = user;
    if (event->kind != LOCKSTEP_EVENT_WARNING) {
        ls_progress_event(&report->progress, event);
        return;
    }
    report->warnings++;
    if (report->as_json) {
        ls_json_open(&report->json, NULL, '{');
        ls_json_string(&report->json, "event", "warning");
        ls_json_string(&report->json, "text", event->text);
        ls_json_close(&report->json, '}');
        return;
    }
    ls_progress_clear(&report->progress);
    printf("warning: %s\n", event->text);
}

static void put_end(const struct report *report)
{
    printf("All records of %" PRId64 " source%s are good", report->sources,
           report->sources == 1 ? "" : "s");
    if (report->warnings > 0)
        printf(", but there %s %" PRId64 " warning%s", report->warnings == 1 ? "is" : "are",
               report->warnings, report->warnings == 1 ? "" : "s");
    printf(".\n");
}

static int check(const struct values *values, const struct lockstep_check_options *options,
                 struct lockstep_error *error)
{
    if (values->model != NULL)
        return lockstep_check_model(values->model, options, error);
    struct lockstep_solver *solver;
    int status =
        lockstep_solver_load(values->solver, values->set.items, values->set.count, &solver, error);
    if (status == 0)
        status = lockstep_check(solver, options, error);
    lockstep_solver_free(solver);
    return status;
}

static int run(const void *data)
{
    const struct values *values = data;
    struct report report = {.json = {stdout, false}, .as_json = values->json != 0};
    struct lockstep_check_options options;
    if ((values->solver == NULL) == (values->model == NULL))
        return ls_cli_usage_error("check: give --solver FILE or --model FILE");
    if (values->model != NULL && values->set.count > 0)
        return ls_cli_usage_error("check: --set is for --solver");
    ls_progress_init(&report.progress, values->json ? stderr : stdout, NULL);
    lockstep_check_options_init(&options);
    options.threads = (int)values->workers;
    options.user = &report;
    options.bad = put_bad;
    options.source = put_source;
    options.callbacks = (struct lockstep_callbacks){&report, put_event, NULL};
    struct lockstep_error *error = lockstep_error_new();
    if (report.as_json)
        ls_json_open(&report.json, NULL, '[');
    int status = check(values, &options, error);
    ls_progress_clear(&report.progress);
    if (report.as_json) {
        ls_json_close(&report.json, ']');
        putchar('\n');
    }
    if (status != 0)
        ls_cli_report(status, error);
    else if (!report.as_json)
        put_end(&report);
    lockstep_error_free(error);
    return status;
}

static const struct ls_cli_option options[] = {
    LS_CLI_ROW(LS_CLI_TEXT, "solver", "FILE", struct values, solver, 0,
               "the data of this training: of its train net and its test nets"),
    LS_CLI_ROW(LS_CLI_TEXT, "model", "FILE", struct values, model, 0, "the test data of this net"),
    LS_CLI_SET(struct values, set),
    LS_CLI_ROW(LS_CLI_INTEGER, "workers", "N", struct values, workers, 1,
               "threads that read; default: as many as there are cores"),
    LS_CLI_JSON(struct values, json),
    {.name = NULL}};

const struct ls_cli_command ls_cli_command_check = {
    .name = "check",
    .summary = "reads all data once and lists every bad record, label and size",
    .usage = "--solver FILE | --model FILE [OPTIONS]",
    .options = options,
    .example = "lockstep check --solver solver.prototxt",
    .run = run,
    .values_size = sizeof(struct values),
};
