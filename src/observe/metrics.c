/* Prometheus' text format. See observe/metrics.h.
 *
 * Each figure has a line HELP, a line TYPE, and its samples. Figures that are not known yet are
 * left out.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "observe/metrics.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic_file.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/utf8.h"

static const double rest = 5; /* seconds between two files */

/* A figure of a test, as it was last. */
struct tested {
    char name[200]; /* of the output; "" ends the list */
    int net;
    double value;
};
enum { TESTED_MAX = 64 };

struct lockstep_metrics {
    pthread_mutex_t lock; /* a failure of another rank ends the run from another thread */
    char *path;
    double (*clock)(void);
    double written; /* when the file was; 0: not yet */
    bool running, known, over;
    int64_t iteration, iteration_end, skipped, audits, warnings, first;
    int ranks, workers;
    double loss, rate, speed, epoch, begun, ended, code, snapshot; /* NaN: not known */
    uint64_t forecast;
    struct tested tested[TESTED_MAX];
};

static double system_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int ls_metrics_new(const char *path, double (*clock)(void), struct lockstep_metrics **out,
                   struct ls_error *error)
{
    struct lockstep_metrics *metrics = *out = ls_alloc(1, sizeof *metrics);
    if (metrics == NULL)
        return ls_fail_memory(error, "metrics");
    metrics->path = ls_copy_string(path);
    metrics->clock = clock != NULL ? clock : system_clock;
    metrics->loss = metrics->rate = metrics->speed = metrics->snapshot = (double)NAN;
    metrics->ended = metrics->code = (double)NAN;
    pthread_mutex_init(&metrics->lock, NULL);
    int status =
        metrics->path == NULL ? ls_fail_memory(error, "metrics") : ls_metrics_flush(metrics, error);
    if (status != 0) {
        ls_metrics_free(metrics);
        *out = NULL;
    }
    return status;
}

void ls_metrics_free(struct lockstep_metrics *metrics)
{
    if (metrics == NULL)
        return;
    pthread_mutex_destroy(&metrics->lock);
    ls_free(metrics->path);
    ls_free(metrics);
}

/* ---- Text ------------------------------------------------------------------------------------ */

static void add_head(struct ls_text *text, const char *name, const char *type, const char *help)
{
    ls_text_format(text, "# HELP lockstep_%s %s\n# TYPE lockstep_%s %s\n", name, help, name, type);
}

static void add_value(struct ls_text *text, double value)
{
    char digits[32];
    if (isfinite(value))
        ls_format_number(digits, value);
    else
        snprintf(digits, sizeof digits, "%s", isnan(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf");
    ls_text_format(text, "%s\n", digits);
}

static void add(struct ls_text *text, const char *name, const char *type, const char *help,
                double value)
{
    if (isnan(value))
        return;
    add_head(text, name, type, help);
    ls_text_format(text, "lockstep_%s ", name);
    add_value(text, value);
}

/* A moment, in seconds since 1970 and thousandths. */
static void add_moment(struct ls_text *text, const char *name, const char *help, double value)
{
    if (isnan(value))
        return;
    add_head(text, name, "gauge", help);
    ls_text_format(text, "lockstep_%s %.3f\n", name, value);
}

/* The value of a label: a backslash, a quote and the end of a line are escaped. */
static void add_label(struct ls_text *text, const char *value)
{
    for (; *value != '\0'; value++)
        if (*value == '\n')
            ls_text_add(text, "\\n");
        else if (*value == '\\' || *value == '"')
            ls_text_format(text, "\\%c", *value);
        else
            ls_text_add_bytes(text, value, 1);
}

static void add_tested(struct ls_text *text, const struct lockstep_metrics *metrics)
{
    if (metrics->tested[0].name[0] == '\0')
        return;
    add_head(text, "test", "gauge", "Outputs of the last test.");
    for (int i = 0; i < TESTED_MAX && metrics->tested[i].name[0] != '\0'; i++) {
        ls_text_format(text, "lockstep_test{net=\"%d\",output=\"", metrics->tested[i].net);
        add_label(text, metrics->tested[i].name);
        ls_text_add(text, "\"} ");
        add_value(text, metrics->tested[i].value);
    }
}

/* Bytes of this process that are in memory; NaN: not known. */
static double resident_bytes(void)
{
    long pages = -1, all;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file == NULL || fscanf(file, "%ld %ld", &all, &pages) != 2)
        pages = -1;
    if (file != NULL)
        fclose(file);
    return pages >= 0 ? (double)pages * (double)sysconf(_SC_PAGESIZE) : (double)NAN;
}

static void add_run(struct ls_text *text, const struct lockstep_metrics *metrics)
{
    add(text, "iteration", "gauge", "Updates done.", (double)metrics->iteration);
    add(text, "iteration_end", "gauge", "Updates at which this run ends.",
        (double)metrics->iteration_end);
    add(text, "epoch", "gauge", "Passes over the training data.",
        metrics->epoch > 0 ? metrics->epoch : (double)NAN);
    add(text, "loss", "gauge", "Loss of the data in the last update.", metrics->loss);
    add(text, "learning_rate", "gauge", "Learning rate of the last update.", metrics->rate);
    add(text, "samples_per_second", "gauge", "Samples trained on in a second.", metrics->speed);
    add(text, "ranks", "gauge", "Processes of the job.", metrics->ranks);
    add(text, "workers", "gauge", "Workers of all ranks.", metrics->workers);
    add_moment(text, "start_time_seconds", "When this run began, since 1970.", metrics->begun);
    add_moment(text, "end_time_seconds", "When this run ended, since 1970.", metrics->ended);
    add(text, "exit_code", "gauge", "What this run ended with.", metrics->code);
    add(text, "memory_forecast_bytes", "gauge", "Memory that a rank is expected to take.",
        (double)metrics->forecast);
    add_moment(text, "last_snapshot_time_seconds", "When the last snapshot was written.",
               metrics->snapshot);
    add_tested(text, metrics);
}

static int write_file(struct lockstep_metrics *metrics, struct ls_error *error)
{
    struct ls_text text = {0};
    add(&text, "running", "gauge", "1 while the training goes on.", metrics->running ? 1 : 0);
    if (metrics->known)
        add_run(&text, metrics);
    add(&text, "resident_memory_bytes", "gauge", "Memory of rank 0.", resident_bytes());
    add(&text, "skipped_records_total", "counter", "Samples with bad records that were left out.",
        (double)metrics->skipped);
    add(&text, "audit_failures_total", "counter", "Computations that an audit has found wrong.",
        (double)metrics->audits);
    add(&text, "warnings_total", "counter", "Warnings of this run.", (double)metrics->warnings);
    int status = text.failed ? ls_fail_memory(error, "metrics")
                             : ls_atomic_refresh(metrics->path, text.data, text.length, error);
    ls_text_free(&text);
    metrics->written = metrics->clock();
    return status;
}

int ls_metrics_flush(struct lockstep_metrics *metrics, struct ls_error *error)
{
    pthread_mutex_lock(&metrics->lock);
    int status = write_file(metrics, error);
    pthread_mutex_unlock(&metrics->lock);
    return status;
}

int ls_metrics_end(struct lockstep_metrics *metrics, int code, struct ls_error *error)
{
    int status = 0;
    pthread_mutex_lock(&metrics->lock);
    if (!metrics->over) {
        metrics->over = true;
        metrics->running = false;
        metrics->ended = metrics->clock();
        metrics->code = code;
        status = write_file(metrics, error);
    }
    pthread_mutex_unlock(&metrics->lock);
    return status;
}

/* ---- Events ---------------------------------------------------------------------------------- */

static void take_run(struct lockstep_metrics *metrics, const struct lockstep_run *run)
{
    metrics->running = metrics->known = true;
    metrics->ranks = run->ranks;
    metrics->workers = run->workers;
    metrics->forecast = run->memory;
    metrics->begun = metrics->clock();
    metrics->ended = (double)NAN;
}

/* As much of a name as there is room for. What is no UTF-8 becomes the replacement character: a
 * reader would refuse the whole file. */
static void copy_name(char *out, size_t room, const char *name)
{
    static const char replacement[] = "\xef\xbf\xbd";
    size_t at = 0;
    while (*name != '\0') {
        size_t length = ls_utf8_length(name, strlen(name));
        const char *from = length > 0 ? name : replacement;
        size_t bytes = length > 0 ? length : sizeof replacement - 1;
        if (at + bytes >= room)
            break;
        memcpy(out + at, from, bytes);
        at += bytes;
        name += length > 0 ? length : 1;
    }
    out[at] = '\0';
}

static void take_test(struct lockstep_metrics *metrics, const struct lockstep_event *event)
{
    for (size_t i = 0; i < event->output_count; i++) {
        const struct lockstep_output *output = &event->outputs[i];
        struct tested *at = metrics->tested, *end = at + TESTED_MAX;
        if (output->count != 1)
            continue;
        char name[sizeof at->name];
        copy_name(name, sizeof name, output->name);
        while (at < end && at->name[0] != '\0' &&
               (at->net != event->test_net || strcmp(at->name, name) != 0))
            at++;
        if (at == end)
            return;
        memcpy(at->name, name, strlen(name) + 1);
        at->net = event->test_net;
        at->value = output->values[0];
    }
}

static void take_event(struct lockstep_metrics *metrics, const struct lockstep_event *event)
{
    metrics->iteration = event->iteration;
    if (event->epoch > 0)
        metrics->epoch = event->epoch;
    if (event->iteration_end > 0)
        metrics->iteration_end = event->iteration_end;
    if (event->kind == LOCKSTEP_EVENT_RUN && event->run != NULL)
        take_run(metrics, event->run);
    if (event->kind == LOCKSTEP_EVENT_PROGRESS || event->kind == LOCKSTEP_EVENT_DISPLAY) {
        metrics->loss = event->data_loss;
        metrics->rate = event->learning_rate;
        if (event->samples_per_second > 0)
            metrics->speed = event->samples_per_second;
    }
    if (event->kind == LOCKSTEP_EVENT_TEST)
        take_test(metrics, event);
    if (event->kind == LOCKSTEP_EVENT_SNAPSHOT)
        metrics->snapshot = metrics->clock();
    if (event->kind == LOCKSTEP_EVENT_END) {
        metrics->skipped += event->skipped;
        metrics->running = false;
        metrics->ended = metrics->clock();
    }
    metrics->audits += event->kind == LOCKSTEP_EVENT_AUDIT;
    metrics->warnings += event->kind == LOCKSTEP_EVENT_WARNING;
}

int ls_metrics_event(struct lockstep_metrics *metrics, const struct lockstep_event *event,
                     struct ls_error *error)
{
    int status = 0;
    pthread_mutex_lock(&metrics->lock);
    if (!metrics->over) {
        take_event(metrics, event);
        double passed = metrics->clock() - metrics->written;
        if (event->kind == LOCKSTEP_EVENT_END || passed < 0 || passed >= rest)
            status = write_file(metrics, error);
    }
    pthread_mutex_unlock(&metrics->lock);
    return status;
}
