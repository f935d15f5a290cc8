/* lockstep list: the snapshots of a training.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/column.h"
#include "cli/commands.h"
#include "cli/report.h"
#include "cli/size.h"
#include "monitor/json.h"
#include "monitor/terminal.h"

struct values {
    struct ls_cli_list prefixes;
    int json;
};

struct listing {
    struct ls_json_writer json;
    bool as_json, begun;
    int64_t count, damaged;
    uint64_t bytes;
};

/* Where a terminal has little room: neither dates nor scores. */
static bool is_narrow(void)
{
    return ls_cli_table_width() < 60;
}

static void put_row(const struct lockstep_listed_snapshot *snapshot)
{
    char when[24] = "?", score[24] = "-", iteration[24] = "?";
    time_t written = (time_t)snapshot->written;
    struct tm local;
    if (localtime_r(&written, &local) != NULL)
        strftime(when, sizeof when, "%Y-%m-%d %H:%M", &local);
    if (snapshot->has_best)
        snprintf(score, sizeof score, "%.5g", snapshot->best);
    if (snapshot->iteration >= 0)
        snprintf(iteration, sizeof iteration, "%" PRId64, snapshot->iteration);
    if (is_narrow()) {
        printf("%9s", iteration);
        ls_cli_put_size((uint64_t)snapshot->bytes);
        fputs("  ", stdout);
    } else {
        printf("%9s  %s", iteration, when);
        ls_cli_put_size((uint64_t)snapshot->bytes);
        printf("  %8s  ", score);
    }
    if (snapshot->problem != NULL)
        fputs("DAMAGED ", stdout);
    if (snapshot->is_best)
        fputs("BEST ", stdout);
    ls_put_clean(stdout, snapshot->path);
    if (snapshot->caffemodel || snapshot->solverstate)
        printf(" (and %s%s%s)", snapshot->caffemodel ? "caffemodel" : "",
               snapshot->caffemodel && snapshot->solverstate ? ", " : "",
               snapshot->solverstate ? "solverstate" : "");
    if (snapshot->problem != NULL) {
        fputs(": ", stdout);
        ls_put_clean(stdout, snapshot->problem);
    }
    putchar('\n');
}

static void put_object(struct ls_json_writer *json, const struct lockstep_listed_snapshot *snapshot)
{
    ls_json_open(json, NULL, '{');
    ls_json_string(json, "path", snapshot->path);
    ls_json_integer(json, "iteration", snapshot->iteration);
    ls_json_integer(json, "bytes", snapshot->bytes);
    ls_json_integer(json, "written", snapshot->written);
    ls_json_string(json, "version", snapshot->version);
    if (snapshot->has_best)
        ls_json_number(json, "best_score_before", snapshot->best);
    ls_json_boolean(json, "best", snapshot->is_best != 0);
    ls_json_boolean(json, "caffemodel", snapshot->caffemodel != 0);
    ls_json_boolean(json, "solverstate", snapshot->solverstate != 0);
    ls_json_boolean(json, "whole", snapshot->problem == NULL);
    ls_json_string(json, "problem", snapshot->problem);
    ls_json_close(json, '}');
}

static void put_snapshot(void *user, const struct lockstep_listed_snapshot *snapshot)
{
    struct listing *listing = user;
    listing->count++;
    listing->damaged += snapshot->problem != NULL;
    listing->bytes += (uint64_t)snapshot->bytes;
    if (listing->as_json) {
        put_object(&listing->json, snapshot);
        return;
    }
    if (!listing->begun)
        puts(is_narrow() ? "Iteration       Size  File"
                         : "Iteration  Written                 Size    Before  File");
    listing->begun = true;
    put_row(snapshot);
}

static int run(const void *data)
{
    const struct values *values = data;
    struct listing listing = {.json = {stdout, false}, .as_json = values->json != 0};
    struct lockstep_error *error = lockstep_error_new();
    int result = 0;
    if (listing.as_json)
        ls_json_open(&listing.json, NULL, '[');
    for (size_t i = 0; i < values->prefixes.count; i++) {
        int status =
            lockstep_list_snapshots(values->prefixes.items[i], put_snapshot, &listing, error);
        if (status != 0)
            ls_cli_report(status, error);
        result = result != 0 ? result : status;
    }
    if (listing.as_json) {
        ls_json_close(&listing.json, ']');
        putchar('\n');
    } else if (listing.count > 1) {
        char size[LS_CLI_SIZE_ROOM];
        printf("%" PRId64 " snapshots, %s; %" PRId64 " damaged\n", listing.count,
               ls_cli_format_size(listing.bytes, size), listing.damaged);
    }
    lockstep_error_free(error);
    return result != 0 ? result : listing.damaged > 0 ? LOCKSTEP_WEIGHTS : 0;
}

static const struct ls_cli_option options[] = {LS_CLI_JSON(struct values, json), {.name = NULL}};

const struct ls_cli_command ls_cli_command_list = {
    .name = "list",
    .summary = "the snapshots of a training: iteration, date, size, and whether they are whole",
    .usage = "[--json] PREFIX...",
    .notes =
        "PREFIX is what the solver calls snapshot_prefix, or the name of one of its snapshots.\n"
        "'Before' is the best score of snapshot_best in front of that snapshot: its own test came\n"
        "behind it. Every file is read to its end; the exit code is 5 where one is damaged or\n"
        "there is none.",
    .options = options,
    .arguments = offsetof(struct values, prefixes),
    .arguments_min = 1,
    .arguments_max = SIZE_MAX,
    .arguments_name = "PREFIX",
    .example = "lockstep list examples/mnist/lenet",
    .run = run,
    .values_size = sizeof(struct values),
};
