/* lockstep plot: curves of logs as text.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/report.h"
#include "cli/run_names.h"
#include "cli/suggest.h"
#include "lockstep/log.h"
#include "monitor/plot.h"
#include "monitor/terminal.h"

enum { LOGS_MAX = 8, FIELDS_MAX = 8, CURVES_MAX = 64, FIELD_SIZE = 128, NAMES_MAX = 400 };

struct values {
    struct ls_cli_list logs;
    const char *fields;
    int64_t width, height;
    int logarithmic, ascii, braille, follow;
};

/* The logs as they are now, and what is drawn of them. */
struct session {
    const struct values *values;
    struct lockstep_log *logs[LOGS_MAX];
    char names[LOGS_MAX][LS_CLI_RUN_NAME]; /* of the runs */
    char fields[FIELDS_MAX][FIELD_SIZE];
    size_t field_count;
    int lines;         /* on the screen */
    int width, height; /* of the terminal when they were drawn */
    bool drawn;        /* there are logs to draw */
};

/* "accuracy" means "test/accuracy", where no series has that very name. */
static bool is_meant(const char *field, const char *name)
{
    const char *slash = strrchr(name, '/');
    return strcmp(field, name) == 0 || (slash != NULL && strcmp(field, slash + 1) == 0);
}

static bool has_series(const struct session *session, const char *name)
{
    for (size_t l = 0; l < session->values->logs.count; l++) {
        size_t count;
        const struct lockstep_series *series = lockstep_log_series(session->logs[l], &count);
        for (size_t i = 0; i < count; i++)
            if (strcmp(series[i].name, name) == 0)
                return true;
    }
    return false;
}

/* The first series of any log that `matches`; "" where there is none. */
static const char *find_series(const struct session *session, const char *field, const char *part)
{
    for (size_t l = 0; l < session->values->logs.count; l++) {
        size_t count;
        const struct lockstep_series *series = lockstep_log_series(session->logs[l], &count);
        for (size_t i = 0; i < count; i++)
            if (field != NULL ? is_meant(field, series[i].name)
                              : strstr(series[i].name, part) != NULL)
                return series[i].name;
    }
    return "";
}

static int unknown_field(const struct session *session, const char *field)
{
    const char *names[NAMES_MAX + 1];
    size_t known = 0;
    for (size_t l = 0; l < session->values->logs.count; l++) {
        size_t count;
        const struct lockstep_series *series = lockstep_log_series(session->logs[l], &count);
        for (size_t i = 0; i < count && known < NAMES_MAX; i++)
            names[known++] = series[i].name;
    }
    names[known] = NULL;
    const char *near = ls_cli_suggest(field, names);
    if (near != NULL)
        return ls_cli_usage_error("plot: no log has '%s'. hint: did you mean '%s'?", field, near);
    char all[1024] = "";
    for (size_t i = 0; i < known; i++) {
        size_t used = strlen(all);
        bool again = false;
        for (size_t j = 0; j < i; j++)
            again = again || strcmp(names[i], names[j]) == 0;
        if (!again)
            snprintf(all + used, sizeof all - used, "%s%s", used > 0 ? ", " : "", names[i]);
    }
    return ls_cli_usage_error("plot: no log has '%s'. hint: there are %s", field, all);
}

/* What the user names, or the loss and the first accuracy of a test. */
static int choose_fields(struct session *session)
{
    const char *text = session->values->fields;
    session->field_count = 0;
    if (text == NULL) {
        const char *accuracy = find_series(session, NULL, "accuracy");
        snprintf(session->fields[session->field_count++], FIELD_SIZE, "loss");
        if (accuracy[0] != '\0')
            snprintf(session->fields[session->field_count++], FIELD_SIZE, "%s", accuracy);
        return 0;
    }
    while (*text != '\0') {
        size_t length = strcspn(text, ",");
        char *field = session->fields[session->field_count];
        if (length == 0 || length >= FIELD_SIZE || session->field_count == FIELDS_MAX)
            return ls_cli_usage_error("plot: --fields takes up to %d names with commas between",
                                      FIELDS_MAX);
        snprintf(field, FIELD_SIZE, "%.*s", (int)length, text);
        if (strcmp(field, "lr") == 0)
            snprintf(field, FIELD_SIZE, "learning_rate");
        if (find_series(session, field, NULL)[0] == '\0' && !session->values->follow)
            return unknown_field(session, field);
        session->field_count++;
        text += length;
        text += *text == ',' && text[1] != '\0';
        if (strcmp(text, ",") == 0)
            break;
    }
    return 0;
}

/* Reads all logs anew. Where one cannot be read what was read before stays, and `error` says why.
 */
static int read_logs(struct session *session, struct lockstep_error *error)
{
    struct lockstep_log *logs[LOGS_MAX] = {NULL};
    size_t count = session->values->logs.count;
    int status = 0;
    for (size_t i = 0; i < count && status == 0; i++) {
        status = lockstep_log_new(&logs[i], error);
        if (status == 0)
            status = lockstep_log_read(logs[i], session->values->logs.items[i], error);
    }
    for (size_t i = 0; i < count; i++) {
        lockstep_log_free(status == 0 ? session->logs[i] : logs[i]);
        if (status == 0)
            session->logs[i] = logs[i];
    }
    return status;
}

/* The points of a series, to be freed; NULL: there is no memory. */
static struct ls_plot_point *points_of(const struct lockstep_series *series)
{
    struct ls_plot_point *points = calloc(series->count + 1, sizeof *points);
    for (size_t i = 0; points != NULL && i < series->count; i++)
        points[i] = (struct ls_plot_point){series->points[i].last, series->points[i].mean,
                                           series->points[i].count};
    return points;
}

/* The run, and the series where its name is not the field's. */
static void name_curve(const struct session *session, size_t log, const char *series,
                       const char *field, char name[FIELD_SIZE + 256])
{
    const char *run = session->names[log];
    if (strcmp(series, field) == 0)
        snprintf(name, FIELD_SIZE + 256, "%s", run);
    else
        snprintf(name, FIELD_SIZE + 256, "%s %s", run, series);
}

static int put_field(struct session *session, const char *field, struct ls_plot *plot)
{
    struct ls_plot_curve curves[CURVES_MAX];
    struct ls_plot_point *points[CURVES_MAX];
    char(*names)[FIELD_SIZE + 256] = calloc(CURVES_MAX, sizeof *names);
    size_t curve = 0;
    bool memory = names != NULL, exact = has_series(session, field);
    for (size_t l = 0; l < session->values->logs.count && memory; l++) {
        size_t count;
        const struct lockstep_series *series = lockstep_log_series(session->logs[l], &count);
        for (size_t i = 0; i < count && curve < CURVES_MAX && memory; i++) {
            const char *name = series[i].name;
            if (exact ? strcmp(field, name) != 0 : !is_meant(field, name))
                continue;
            points[curve] = points_of(&series[i]);
            memory = points[curve] != NULL;
            name_curve(session, l, name, field, names[curve]);
            curves[curve] =
                (struct ls_plot_curve){names[curve], points[curve], memory ? series[i].count : 0};
            curve++;
        }
    }
    plot->title = field;
    plot->curves = curves;
    plot->count = curve;
    /* Dots of several curves look alike where there are no colours. */
    plot->ascii = session->values->ascii != 0 ||
                  (session->values->braille == 0 &&
                   (!ls_terminal_utf8() || (curve > 1 && plot->colours == LS_COLOURS_NONE)));
    if (memory)
        session->lines += ls_plot_put(stdout, plot);
    for (size_t i = 0; i < curve; i++)
        free(points[i]);
    free(names);
    plot->curves = NULL;
    plot->count = 0;
    return memory ? 0 : ls_cli_no_memory();
}

/* Lines of a curve's area where the screen has room for all of them. */
static int choose_height(const struct session *session)
{
    enum { MOST = 14, LEAST = 4, AROUND = 3 };
    if (session->values->height > 0)
        return (int)session->values->height;
    int rows = session->field_count > 0 ? ls_terminal_height(stdout) : 0;
    int room = rows > 0 ? (rows - 2) / (int)session->field_count - AROUND -
                              (int)session->values->logs.count
                        : MOST;
    return room > MOST ? MOST : room < LEAST ? LEAST : room;
}

static int put_plots(struct session *session)
{
    const struct values *values = session->values;
    struct ls_plot plot = {.width = (int)values->width,
                           .height = choose_height(session),
                           .logarithmic = values->logarithmic != 0,
                           .colours = ls_terminal_colours(stdout)};
    if (plot.width == 0)
        plot.width = ls_terminal_width(stdout) - (ls_terminal(stdout) ? 1 : 0);
    for (size_t i = 0; i < session->field_count; i++) {
        int status = put_field(session, session->fields[i], &plot);
        if (status != 0)
            return status;
    }
    session->drawn = true;
    fflush(stdout);
    return 0;
}

static bool all_ended(const struct session *session)
{
    for (size_t i = 0; i < session->values->logs.count; i++) {
        struct lockstep_log_state state;
        lockstep_log_describe(session->logs[i], &state);
        if (!state.ended)
            return false;
    }
    return true;
}

/* Removes what was drawn. Where the size of the terminal has changed it may have broken lines anew,
 * and what it shows of them is not known: all of the screen goes. */
static void remove_plots(struct session *session)
{
    int width = ls_terminal_width(stdout), height = ls_terminal_height(stdout);
    if (width != session->width || height != session->height)
        fputs("\033[H\033[2J", stdout);
    else if (session->lines > 0)
        printf("\033[%dA\r\033[J", session->lines);
    session->width = width;
    session->height = height;
    session->lines = 0;
}

/* A log that is not there yet, or that a training has just begun anew, is waited for. */
static void put_waiting(struct session *session, struct lockstep_error *error)
{
    char line[512];
    const char *text = lockstep_error_text(error);
    snprintf(line, sizeof line, "waiting: %.*s", (int)strcspn(text, "\n"), text);
    ls_text_cut(line, session->width - 1, line, sizeof line);
    ls_put_clean(stdout, line);
    putchar('\n');
    session->lines++;
}

/* Draws again, over what was drawn, until all trainings have ended. A log that takes long to read
 * is read less often. */
static int follow(struct session *session, struct lockstep_error *error)
{
    enum { SHARE = 10 };
    int status = 0, unread = 0;
    while (status == 0 && (unread != 0 || !session->drawn || !all_ended(session))) {
        clock_t begun = clock();
        sleep(1);
        unread = read_logs(session, error);
        if (unread == 0)
            status = choose_fields(session);
        double taken = (double)(clock() - begun) / CLOCKS_PER_SEC;
        if (status != 0)
            break;
        remove_plots(session);
        if (unread == 0 || session->drawn)
            status = put_plots(session);
        if (unread != 0)
            put_waiting(session, error);
        fflush(stdout);
        sleep((unsigned)(taken * SHARE));
    }
    return status;
}

/* Whether the only thing that is wrong with the logs is that one is not there, or has nothing in it
 * yet: the training may begin later. */
static bool begins_later(const struct session *session)
{
    bool waits = false;
    for (size_t i = 0; i < session->values->logs.count; i++) {
        struct stat info = {.st_size = 0};
        if (stat(session->values->logs.items[i], &info) != 0 && errno != ENOENT)
            return false;
        waits = waits || info.st_size == 0;
    }
    return waits;
}

static int check(const struct values *values)
{
    if (values->logs.count > LOGS_MAX)
        return ls_cli_usage_error("plot: at most %d logs are drawn together", LOGS_MAX);
    if (values->ascii && values->braille)
        return ls_cli_usage_error("plot: give --ascii or --braille, not both");
    if (values->width > 0 && values->width < 20)
        return ls_cli_usage_error("plot: --width must be at least 20");
    if (values->width > 400 || values->height > 200)
        return ls_cli_usage_error("plot: --width is at most 400, --height 200");
    if (values->follow && !ls_terminal(stdout))
        return ls_cli_usage_error(
            "plot: --follow draws over what it has drawn: it needs a terminal");
    return 0;
}

static int run(const void *data)
{
    const struct values *values = data;
    struct session session = {.values = values};
    int status = check(values);
    if (status != 0)
        return status;
    struct lockstep_error *error = lockstep_error_new();
    ls_cli_run_names(values->logs.items, values->logs.count, session.names);
    session.width = ls_terminal_width(stdout);
    session.height = ls_terminal_height(stdout);
    status = read_logs(&session, error);
    const bool waits = status != 0 && values->follow && begins_later(&session);
    if (status != 0 && !waits)
        ls_cli_report(status, error);
    if (waits)
        put_waiting(&session, error);
    if (status == 0)
        status = choose_fields(&session);
    if (status == 0)
        status = put_plots(&session);
    if (values->follow && (status == 0 || waits))
        status = follow(&session, error);
    lockstep_error_free(error);
    for (size_t i = 0; i < values->logs.count; i++)
        lockstep_log_free(session.logs[i]);
    return status;
}

static const struct ls_cli_option options[] = {
    LS_CLI_CHOICE("fields", "LIST", struct values, fields,
                  "loss accuracy learning_rate samples_per_second weight_norm gradient_norm",
                  "what is drawn, with commas between: loss, lr, samples_per_second,\n"
                  "weight_norm, outputs of tests ('accuracy', 'test/accuracy');\n"
                  "default: loss, and the first accuracy"),
    LS_CLI_ROW(LS_CLI_FLAG, "log", NULL, struct values, logarithmic, 0, "a logarithmic scale"),
    LS_CLI_ROW(LS_CLI_FLAG, "follow", NULL, struct values, follow, 0,
               "draw again as the logs grow, until the trainings have ended"),
    LS_CLI_ROW(LS_CLI_FLAG, "ascii", NULL, struct values, ascii, 0,
               "draw with characters of ASCII; default: where the locale is not UTF-8,\n"
               "and for several curves without colours"),
    LS_CLI_ROW(LS_CLI_FLAG, "braille", NULL, struct values, braille, 0, "draw with braille dots"),
    LS_CLI_ROW(LS_CLI_INTEGER, "width", "N", struct values, width, 1,
               "columns; default: those of the terminal, or 80"),
    LS_CLI_ROW(LS_CLI_INTEGER, "height", "N", struct values, height, 2,
               "lines of a curve's area; default: as the terminal has room for, or 14"),
    {.name = NULL}};

const struct ls_cli_command ls_cli_command_plot = {
    .name = "plot",
    .summary = "draws curves of logs in the terminal",
    .notes = "LOG is what 'lockstep train --log-json LOG' writes; several are drawn together.",
    .usage = "LOG... [OPTIONS]",
    .options = options,
    .arguments = offsetof(struct values, logs),
    .arguments_min = 1,
    .arguments_max = SIZE_MAX,
    .arguments_name = "LOG",
    .example = "lockstep plot log.json\n"
               "lockstep plot --fields loss,accuracy,lr first.json second.json\n"
               "lockstep plot --log --follow log.json",
    .run = run,
    .values_size = sizeof(struct values),
};
