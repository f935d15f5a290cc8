/* lockstep show: what is in a file.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/column.h"
#include "cli/commands.h"
#include "cli/gallery.h"
#include "cli/rate.h"
#include "cli/report.h"
#include "cli/size.h"
#include "lockstep/log.h"
#include "monitor/json.h"
#include "monitor/terminal.h"

enum { NAME = 24, VALUE_MAX = 300, FIGURES = 4 };

struct values {
    struct ls_cli_list files;
    int64_t records;
    int json, full, draw;
};

struct showing {
    const struct values *values;
    struct ls_json_writer json;
    struct ls_cli_gallery gallery;
    const char *path;
    bool draw;
    bool kind, log, heading; /* the kind is written; it is a log; the tensors' heading is written */
};

/* ---- As JSON --------------------------------------------------------------------------------- */

static void json_tensor(struct ls_json_writer *json, const struct lockstep_shown_tensor *tensor)
{
    ls_json_open(json, NULL, '{');
    ls_json_string(json, "tensor", tensor->name);
    ls_json_string(json, "type", tensor->type);
    ls_json_open(json, "shape", '[');
    for (int i = 0; i < tensor->rank; i++)
        ls_json_integer(json, NULL, tensor->shape[i]);
    ls_json_close(json, ']');
    ls_json_integer(json, "count", tensor->count);
    if (tensor->has_figures) {
        ls_json_number(json, "min", tensor->least);
        ls_json_number(json, "max", tensor->most);
        ls_json_number(json, "mean", tensor->mean);
        ls_json_number(json, "norm", tensor->norm);
        ls_json_integer(json, "zeros", tensor->zeros);
        ls_json_integer(json, "not_finite", tensor->not_finite);
    }
    ls_json_close(json, '}');
}

static void json_record(struct ls_json_writer *json, const struct lockstep_shown_record *record)
{
    ls_json_open(json, NULL, '{');
    ls_json_integer(json, "record", record->index);
    ls_json_string(json, "name", record->name);
    ls_json_string(json, "text", record->text);
    if (record->label >= 0)
        ls_json_integer(json, "label", record->label);
    ls_json_close(json, '}');
}

/* ---- As text --------------------------------------------------------------------------------- */

static void put_kind(void *user, const char *name, const char *summary)
{
    struct showing *showing = user;
    showing->log = strcmp(name, "log") == 0;
    showing->kind = true;
    if (showing->values->json) {
        ls_json_string(&showing->json, "kind", name);
        ls_json_string(&showing->json, "summary", summary);
        ls_json_open(&showing->json, "contents", '[');
    } else {
        ls_put_clean(stdout, showing->path);
        printf(": %s\n", summary);
    }
}

/* Long texts are cut to their first line, unless all is wanted. */
static void put_fact(void *user, const char *name, const char *value)
{
    struct showing *showing = user;
    if (showing->values->json) {
        ls_json_open(&showing->json, NULL, '{');
        ls_json_string(&showing->json, "fact", name);
        ls_json_string(&showing->json, "value", value);
        ls_json_close(&showing->json, '}');
        return;
    }
    size_t first = strcspn(value, "\n"), length = strlen(value), lines = 1;
    while (length > 0 && value[length - 1] == '\n')
        length--;
    for (size_t i = 0; i < length; i++)
        lines += value[i] == '\n';
    bool cut = !showing->values->full && (lines > 1 || first > VALUE_MAX);
    /* Short values on a terminal end their lines between words; definitions stay as they are. */
    bool wraps = !showing->values->full && ls_terminal(stdout);
    int width = ls_terminal_width(stdout);
    fputs("  ", stdout);
    ls_put_clean(stdout, name);
    fputs(": ", stdout);
    for (size_t at = 0; at < length;) {
        char line[4096];
        size_t piece = strcspn(value + at, "\n");
        size_t most = cut ? VALUE_MAX : sizeof line - 1;
        snprintf(line, sizeof line, "%.*s", (int)(piece < most ? piece : most), value + at);
        fputs(at > 0 ? "\n    " : "", stdout);
        if (wraps)
            ls_put_wrapped(stdout, line, at > 0 ? 4 : ls_text_columns(name) + 4, width);
        else
            ls_put_clean(stdout, line);
        if (cut)
            break;
        at += piece < most ? piece + 1 : most;
    }
    char size[LS_CLI_SIZE_ROOM];
    if (cut)
        printf(" ... (%zu line%s, %s; --full shows them)", lines, lines == 1 ? "" : "s",
               ls_cli_format_size(length, size));
    putchar('\n');
}

/* Columns of a tensor's name. `room`: for figures behind it. A narrow terminal cuts names, a wide
 * one has room for longer ones, and a file gets them whole. */
static int name_room(const char *name, int room)
{
    enum { LEAST = 8, MORE = 24 };
    const int usual = NAME - 2, length = (int)strlen(name), spare = room - 9 * FIGURES;
    if (!ls_terminal(stdout))
        return length > usual ? length : usual;
    if (room < 0)
        return usual + room > LEAST ? usual + room : LEAST;
    return usual + (spare > MORE ? MORE : spare > 0 ? spare : 0);
}

static void put_tensor(void *user, const struct lockstep_shown_tensor *tensor)
{
    struct showing *showing = user;
    char shape[160] = "";
    if (showing->values->json) {
        json_tensor(&showing->json, tensor);
        return;
    }
    for (int i = 0; i < tensor->rank && strlen(shape) < sizeof shape - 24; i++) {
        size_t length = strlen(shape);
        snprintf(shape + length, sizeof shape - length, "%s%" PRId64, i > 0 ? "x" : "",
                 tensor->shape[i]);
    }
    static const char *const names[FIGURES] = {"min", "max", "mean", "norm"};
    const double figures[FIGURES] = {tensor->least, tensor->most, tensor->mean, tensor->norm};
    /* A narrow terminal gets as many figures as it has room for. */
    int room = ls_cli_table_width() - NAME - 20, shown = room / 9 < FIGURES ? room / 9 : FIGURES;
    if (!showing->heading) {
        printf("  %-*s %-14s %-4s", name_room("", room), "tensor", "shape", "type");
        for (int i = 0; i < shown; i++)
            printf(" %8s", names[i]);
        putchar('\n');
    }
    showing->heading = true;
    fputs("  ", stdout);
    ls_cli_put_name(tensor->name, name_room(tensor->name, room));
    printf("%-14s %-4s", shape[0] != '\0' ? shape : "-", tensor->type);
    for (int i = 0; tensor->has_figures && i < shown; i++)
        printf(i + 1 < FIGURES ? " %8.2g" : " %8.3g", figures[i]);
    if (tensor->not_finite > 0)
        printf("  %" PRId64 " NOT FINITE", tensor->not_finite);
    putchar('\n');
}

static bool draw_record(struct showing *showing, const struct lockstep_shown_record *record)
{
    size_t count = (size_t)(record->shape[0] * record->shape[1] * record->shape[2]);
    float *pixels = malloc((count + 1) * sizeof *pixels);
    char number[32] = "", label[32] = "";
    if (pixels == NULL)
        return false;
    memcpy(pixels, record->pixels, count * sizeof *pixels);
    snprintf(number, sizeof number, "#%" PRId64, record->index);
    if (record->label >= 0)
        snprintf(label, sizeof label, "label %" PRId64, record->label);
    ls_cli_gallery_put(&showing->gallery, stdout, record->shape, pixels, number, label);
    return true;
}

static void put_record(void *user, const struct lockstep_shown_record *record)
{
    struct showing *showing = user;
    if (showing->values->json) {
        json_record(&showing->json, record);
        return;
    }
    if (showing->draw && record->pixels != NULL && draw_record(showing, record))
        return;
    if (record->text[0] == '\0' && record->name[0] == '\0')
        return;
    printf("  %5" PRId64 "  ", record->index);
    if (record->name[0] != '\0' && record->text[0] != '\0')
        ls_cli_put_name(record->name, NAME);
    else
        ls_put_clean(stdout, record->name);
    ls_put_clean(stdout, record->text);
    putchar('\n');
}

/* ---- Logs ------------------------------------------------------------------------------------ */

static void put_state(struct showing *showing, const struct lockstep_log *log)
{
    struct lockstep_log_state state;
    char text[160];
    lockstep_log_describe(log, &state);
    snprintf(text, sizeof text, "%" PRId64 " of %" PRId64 " iterations%s", state.iteration,
             state.iteration_end, state.ended ? ", ended" : ", not at its end");
    put_fact(showing, "how far", text);
    char time[LS_CLI_RATE_ROOM];
    snprintf(text, sizeof text, "%s in %" PRId64 " run%s", ls_cli_format_time(state.seconds, time),
             state.runs, state.runs == 1 ? "" : "s");
    put_fact(showing, "time", text);
    if (state.bad > 0) {
        snprintf(text, sizeof text, "%" PRId64 ", the first is line %" PRId64, state.bad,
                 state.first_bad);
        put_fact(showing, "lines that are no events", text);
    }
    if (state.cut_off)
        put_fact(showing, "its last line", "has no end: the program was ended while it wrote");
    if (state.weights_hash != NULL && state.weights_hash[0] != '\0')
        put_fact(showing, "hash of the weights", state.weights_hash);
}

/* The value of a fact for people: sizes and counts of operations in units. */
static const char *value_in_units(const struct lockstep_fact *fact, char text[LS_CLI_SIZE_ROOM])
{
    double number;
    const char *end = ls_cli_parse_number(fact->value, &number);
    if (end == NULL || *end != '\0' || number >= 0x1p62)
        return fact->value;
    if (strcmp(fact->name, "memory_limit") == 0 && number == 0)
        return "none";
    if (strncmp(fact->name, "memory", 6) == 0)
        return ls_cli_format_size((uint64_t)number, text);
    if (strcmp(fact->name, "flops_per_sample") == 0)
        return ls_cli_format_count(number, "FLOP", text);
    return fact->value;
}

/* The facts of the run, the last figures, and warnings. */
static int put_log(struct showing *showing, const char *path, struct lockstep_error *error)
{
    struct lockstep_log *log;
    size_t count;
    int status = lockstep_log_new(&log, error);
    if (status == 0)
        status = lockstep_log_read(log, path, error);
    if (status != 0) {
        lockstep_log_free(log);
        return status;
    }
    put_state(showing, log);
    const struct lockstep_fact *facts = lockstep_log_facts(log, &count);
    for (size_t i = 0; i < count; i++) {
        char text[LS_CLI_SIZE_ROOM];
        bool raw = showing->values->json != 0;
        put_fact(showing, facts[i].name, raw ? facts[i].value : value_in_units(&facts[i], text));
    }
    const struct lockstep_series *series = lockstep_log_series(log, &count);
    for (size_t i = 0; i < count; i++) {
        char text[96];
        if (series[i].count == 0)
            continue;
        const struct lockstep_point *last = &series[i].points[series[i].count - 1];
        snprintf(text, sizeof text, "%.6g at iteration %" PRId64, last->mean, last->last);
        put_fact(showing, series[i].name, text);
    }
    const struct lockstep_log_message *messages = lockstep_log_messages(log, &count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(messages[i].kind, "warning") == 0)
            put_fact(showing, "warning", messages[i].text);
    lockstep_log_free(log);
    return 0;
}

/* ---- The command ----------------------------------------------------------------------------- */

static int show_file(struct showing *showing, const char *path, struct lockstep_error *error)
{
    struct lockstep_show_options options;
    bool json = showing->values->json != 0;
    lockstep_show_options_init(&options);
    options.records = showing->values->records;
    options.user = showing;
    options.kind = put_kind;
    options.fact = put_fact;
    options.tensor = put_tensor;
    options.record = put_record;
    showing->log = showing->heading = false;
    if (json) {
        ls_json_open(&showing->json, NULL, '{');
        ls_json_string(&showing->json, "file", path);
    }
    showing->path = path;
    int status = lockstep_show(path, &options, error);
    if (status == 0 && showing->log)
        status = put_log(showing, path, error);
    ls_cli_gallery_draw(&showing->gallery, stdout);
    return status;
}

static int run(const void *data)
{
    const struct values *values = data;
    struct showing showing = {.values = values, .json = {stdout, false}};
    struct lockstep_error *error = lockstep_error_new();
    int result = 0;
    showing.draw = !values->json && (values->draw || ls_terminal(stdout) ||
                                     ls_terminal_colours(stdout) != LS_COLOURS_NONE);
    if (values->json)
        ls_json_open(&showing.json, NULL, '[');
    for (size_t i = 0; i < values->files.count; i++) {
        if (showing.kind && !values->json)
            putchar('\n');
        showing.kind = false;
        int status = show_file(&showing, values->files.items[i], error);
        if (values->json) {
            if (showing.kind)
                ls_json_close(&showing.json, ']');
            ls_json_string(&showing.json, "problem",
                           status != 0 ? lockstep_error_text(error) : NULL);
            ls_json_close(&showing.json, '}');
        }
        if (status != 0) {
            fflush(stdout);
            ls_cli_report(status, error);
        }
        result = result != 0 ? result : status;
    }
    if (values->json) {
        ls_json_close(&showing.json, ']');
        putchar('\n');
    }
    lockstep_error_free(error);
    return result;
}

static void defaults(void *data)
{
    struct values *values = data;
    values->records = -1;
}

static const struct ls_cli_option options[] = {
    LS_CLI_ROW(LS_CLI_INTEGER, "records", "N", struct values, records, 0,
               "show the first N records; default: 10"),
    LS_CLI_ROW(LS_CLI_FLAG, "full", NULL, struct values, full, 0,
               "long texts, too: definitions, environments, names of classes"),
    LS_CLI_ROW(LS_CLI_FLAG, "draw", NULL, struct values, draw, 0,
               "draw pictures, which is the default on a terminal and with colours"),
    LS_CLI_ROW(LS_CLI_FLAG, "json", NULL, struct values, json, 0, "JSON instead"),
    {.name = NULL}};

const struct ls_cli_command ls_cli_command_show = {
    .name = "show",
    .summary = "what is in a file: snapshots, weights, databases, logs, definitions",
    .usage = "[OPTIONS] FILE...",
    .notes =
        "Files are known by their content: snapshots and other safetensors, caffemodels,\n"
        "solverstates, LMDB, LevelDB, IDX, CIFAR, HDF5, .npy, mean files, files of token ids,\n"
        "tokenizers, logs of --log-json, nets, solvers, pictures, folders of pictures, ONNX.",
    .options = options,
    .arguments = offsetof(struct values, files),
    .arguments_min = 1,
    .arguments_max = SIZE_MAX,
    .arguments_name = "FILE",
    .example = "lockstep show lenet_iter_10000.safetensors\n"
               "lockstep show --records 20 cifar10_train_lmdb",
    .defaults = defaults,
    .run = run,
    .values_size = sizeof(struct values),
};
