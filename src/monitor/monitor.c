/* Events to lines.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "monitor/monitor.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "monitor/clock.h"
#include "monitor/live.h"
#include "monitor/log.h"
#include "monitor/outputs.h"
#include "monitor/terminal.h"

static const double quiet_limit = 10; /* seconds without a line about progress */
static const double redraw_interval = 0.1;
static const double smoothing_time = 5; /* of the speeds that are shown */

void ls_monitor_init(struct ls_monitor *monitor, FILE *out, FILE *log, double (*clock)(void))
{
    *monitor = (struct ls_monitor){.out = out,
                                   .log = log,
                                   .terminal = ls_terminal(out),
                                   .quiet = ls_quiet(),
                                   .verbose = ls_verbose(),
                                   .line = {.out = out}};
    monitor->clock = clock != NULL ? clock : ls_monitor_clock;
    monitor->time = ls_monitor_time;
    monitor->begun = monitor->clock();
    monitor->line_time = monitor->window_time = monitor->begun;
}

static int width_of(const struct ls_monitor *monitor)
{
    return monitor->width > 0 ? monitor->width : ls_terminal_width(monitor->out);
}

void ls_monitor_clear(struct ls_monitor *monitor)
{
    ls_live_line_clear(&monitor->line, width_of(monitor));
}

void ls_monitor_say(struct ls_monitor *monitor, const char *format, ...)
{
    char line[LS_MONITOR_LINE_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    ls_monitor_clear(monitor);
    ls_put_clean(monitor->out, line);
    putc('\n', monitor->out);
    fflush(monitor->out);
}

/* ---- Plain lines --------------------------------------------------------------------------- */

/* "Iteration 100 (37.2 iter/s, 2.7s/100 iters, 1:23 left), loss = 0.213" after update number 100,
 * counted from 0; without the parentheses where nothing was measured. */
static void put_iteration(struct ls_monitor *monitor, const struct lockstep_event *event,
                          int64_t since, double seconds)
{
    int64_t count = event->iteration - since;
    fprintf(monitor->out, "Iteration %" PRId64, event->iteration - 1);
    if (count > 0 && seconds > 0) {
        int64_t more = event->iteration_end - event->iteration;
        char left[24] = "";
        ls_format_duration(seconds / (double)count * (double)more, left, sizeof left);
        fprintf(monitor->out, " (%.4g iter/s, %.4gs/%" PRId64 " iters%s%s%s)",
                (double)count / seconds, seconds, count, more > 0 ? ", " : "", more > 0 ? left : "",
                more > 0 ? " left" : "");
    }
    fprintf(monitor->out, ", loss = %.6g\n", event->data_loss);
    monitor->line_time = monitor->clock();
    monitor->line_iteration = monitor->loss_iteration = event->iteration;
}

/* The loss is that of the data, as Caffe prints it; the penalty of weight decay stands apart. */
static void put_display(struct ls_monitor *monitor, const struct lockstep_event *event)
{
    int64_t number = event->iteration - 1;
    put_iteration(monitor, event,
                  monitor->displayed ? monitor->display_iteration : event->iteration,
                  event->seconds);
    ls_put_outputs(monitor->out, "Train net", event->outputs, event->output_count);
    if (isfinite(event->penalty) && event->penalty != 0)
        fprintf(monitor->out, "Iteration %" PRId64 ", penalty = %.6g\n", number, event->penalty);
    fprintf(monitor->out, "Iteration %" PRId64 ", lr = %.6g\n", number, event->learning_rate);
}

/* Whether an update completes a twentieth of the run. */
static bool completes_part(const struct ls_monitor *monitor, const struct lockstep_event *event)
{
    enum { PARTS = 20 };
    double length = (double)(event->iteration_end - monitor->first_iteration) / PARTS;
    int64_t done = event->iteration - monitor->first_iteration;
    return done <= 1 || (int64_t)((double)done / length) != (int64_t)((double)(done - 1) / length);
}

/* Where nothing else is to be told: a line of progress before ten seconds without one are over, and
 * without displays for each twentieth of the run. */
static void put_progress(struct ls_monitor *monitor, const struct lockstep_event *event)
{
    double quiet = monitor->clock() - monitor->line_time;
    bool part = monitor->max_iter > 0 && !monitor->displays && completes_part(monitor, event);
    /* The next chance comes after one more update, so that a slow one must not be waited for. */
    if (part || quiet + event->seconds > quiet_limit)
        put_iteration(monitor, event, monitor->line_iteration, quiet);
}

static void put_test(struct ls_monitor *monitor, const struct lockstep_event *event)
{
    if (event->test_net < 0)
        fprintf(monitor->out, "Iteration %" PRId64 ", Testing on the train data\n",
                event->iteration);
    else
        fprintf(monitor->out, "Iteration %" PRId64 ", Testing net (#%d)\n", event->iteration,
                event->test_net);
    if (event->data_loss != 0)
        fprintf(monitor->out, "Test loss: %.6g\n", event->data_loss);
    ls_put_outputs(monitor->out, event->test_net < 0 ? "Train data" : "Test net", event->outputs,
                   event->output_count);
    monitor->line_time = monitor->clock();
    monitor->line_iteration = event->iteration;
}

/* ---- The live line ------------------------------------------------------------------------- */

/* Takes an update into account; after a while of them the speeds follow. */
static void measure(struct ls_monitor *monitor, const struct lockstep_event *event, double now)
{
    monitor->window_samples += event->samples_per_second * event->seconds;
    double time = now - monitor->window_time;
    int64_t count = event->iteration - monitor->window_iteration;
    if (time < redraw_interval || count <= 0)
        return;
    double weight = monitor->iteration_speed > 0 ? 1 - exp(-time / smoothing_time) : 1;
    monitor->iteration_speed += weight * ((double)count / time - monitor->iteration_speed);
    monitor->sample_speed += weight * (monitor->window_samples / time - monitor->sample_speed);
    monitor->window_time = now;
    monitor->window_iteration = event->iteration;
    monitor->window_samples = 0;
}

/* What happened since the last measurement was not training. */
static void restart_measurement(struct ls_monitor *monitor, int64_t iteration)
{
    monitor->window_time = monitor->clock();
    monitor->window_iteration = iteration;
    monitor->window_samples = 0;
}

static void draw(struct ls_monitor *monitor, const struct lockstep_event *event)
{
    double now = monitor->clock();
    measure(monitor, event, now);
    if (monitor->line.columns > 0 && now - monitor->drawn < redraw_interval)
        return;
    double left = -1;
    if (monitor->iteration_speed > 0)
        left = (double)(event->iteration_end - event->iteration) / monitor->iteration_speed;
    struct ls_live live = {.iteration = event->iteration,
                           .iteration_end = event->iteration_end,
                           .loss = event->data_loss,
                           .learning_rate = event->learning_rate,
                           .samples_per_second = monitor->sample_speed,
                           .seconds_left = left,
                           .score_name =
                               monitor->score_name[0] != '\0' ? monitor->score_name : NULL,
                           .score = monitor->score,
                           .bar = &monitor->line.bar};
    char line[256];
    /* The last column stays free: writing to it would wrap on some terminals. So do two more, for
     * the "^C" that a terminal shows, which goes away with the line. */
    int width = width_of(monitor);
    ls_live_compose(&live, width - 3, line, sizeof line);
    ls_live_line_draw(&monitor->line, line, width);
    monitor->drawn = now;
}

/* A test in one line. */
static void put_test_line(struct ls_monitor *monitor, const struct lockstep_event *event)
{
    fprintf(monitor->out, "Iteration %" PRId64 ", ", event->iteration);
    if (event->test_net < 0)
        fputs("train data:", monitor->out);
    else if (event->test_net == 0)
        fputs("test:", monitor->out);
    else
        fprintf(monitor->out, "test net #%d:", event->test_net);
    if (event->data_loss != 0)
        fprintf(monitor->out, " %.4g loss in all,", event->data_loss);
    ls_put_outputs_in_line(monitor->out, event->outputs, event->output_count);
    fprintf(monitor->out, " (%" PRId64 " samples)\n", event->samples);
}

/* ---- Events -------------------------------------------------------------------------------- */

static void put_text(struct ls_monitor *monitor, const char *before, const char *text)
{
    fputs(before, monitor->out);
    ls_put_clean(monitor->out, text != NULL ? text : "");
    putc('\n', monitor->out);
}

/* As put_text, for sentences: a terminal gets them with lines that end between words. */
static void put_sentence(struct ls_monitor *monitor, const char *before, const char *text)
{
    ls_put_marked(monitor->out, before, ls_terminal_colours(monitor->out));
    if (monitor->terminal)
        ls_put_wrapped(monitor->out, text != NULL ? text : "", (int)strlen(before),
                       width_of(monitor));
    else
        ls_put_clean(monitor->out, text != NULL ? text : "");
    putc('\n', monitor->out);
}

/* The last loss, unless it has been told; and whether the training or only this run is over. */
static void put_end(struct ls_monitor *monitor, const struct lockstep_event *event)
{
    if (!monitor->trained) /* resumed from where it ended */
        fprintf(monitor->out,
                "There is nothing to train: %" PRId64
                " iterations are done already, and this run ends at %" PRId64 ".\n",
                event->iteration, event->iteration_end);
    else if (monitor->loss_iteration != event->iteration)
        fprintf(monitor->out, "Iteration %" PRId64 ", loss = %.6g\n", event->iteration - 1,
                event->data_loss);
    if (monitor->quiet && monitor->last_snapshot[0] != '\0')
        put_text(monitor, "Snapshotting to ", monitor->last_snapshot);
    if (event->iteration < monitor->max_iter)
        fprintf(monitor->out, "Stopped after iteration %" PRId64 " of %" PRId64 ".\n",
                event->iteration, monitor->max_iter);
    else if (!monitor->quiet)
        put_text(monitor, "", "Optimization Done.");
}

/* Whether an event is told in a quiet run: warnings and the result. */
static bool is_result(const struct lockstep_event *event)
{
    switch (event->kind) {
    case LOCKSTEP_EVENT_WARNING:
    case LOCKSTEP_EVENT_AUDIT:
    case LOCKSTEP_EVENT_HASH:
    case LOCKSTEP_EVENT_END:
        return true;
    case LOCKSTEP_EVENT_TEST:
        return event->iteration == event->iteration_end;
    default:
        return false;
    }
}

/* Writes what is left on the screen or in the file. */
static void put_event(struct ls_monitor *monitor, const struct lockstep_event *event)
{
    switch (event->kind) {
    case LOCKSTEP_EVENT_START:
    case LOCKSTEP_EVENT_NOTICE:
    case LOCKSTEP_EVENT_DETAIL:
        put_sentence(monitor, "", event->text);
        break;
    case LOCKSTEP_EVENT_WARNING:
    case LOCKSTEP_EVENT_AUDIT:
        put_sentence(monitor, "warning: ", event->text);
        break;
    case LOCKSTEP_EVENT_PROGRESS:
        put_progress(monitor, event);
        break;
    case LOCKSTEP_EVENT_DISPLAY:
        put_display(monitor, event);
        break;
    case LOCKSTEP_EVENT_TEST:
        if (monitor->terminal)
            put_test_line(monitor, event);
        else
            put_test(monitor, event);
        break;
    case LOCKSTEP_EVENT_SNAPSHOT:
        put_text(monitor, "Snapshotting to ", event->text);
        break;
    case LOCKSTEP_EVENT_END:
        put_end(monitor, event);
        break;
    case LOCKSTEP_EVENT_HASH:
        put_sentence(monitor, "", event->text);
        break;
    case LOCKSTEP_EVENT_RUN:        /* START lines say it in words */
    case LOCKSTEP_EVENT_STATISTICS: /* for the log alone */
        break;
    }
}

/* The figure of a test that the live line shows: its first accuracy, else the first figure that is
 * no loss. */
static void keep_score(struct ls_monitor *monitor, const struct lockstep_event *event)
{
    const struct lockstep_output *score = NULL;
    for (size_t i = 0; i < event->output_count; i++) {
        const struct lockstep_output *output = &event->outputs[i];
        if (output->count != 1 || output->loss_weight != 0)
            continue;
        if (score == NULL ||
            (strstr(output->name, "accuracy") != NULL && strstr(score->name, "accuracy") == NULL))
            score = output;
    }
    if (score == NULL)
        return;
    snprintf(monitor->score_name, sizeof monitor->score_name, "%s", score->name);
    monitor->score = score->values[0];
}

/* Keeps what later events are measured against. */
static void remember(struct ls_monitor *monitor, const struct lockstep_event *event)
{
    if (event->kind == LOCKSTEP_EVENT_START) {
        monitor->display_iteration = monitor->line_iteration = event->iteration;
        monitor->line_time = monitor->clock();
    }
    monitor->iteration = event->iteration;
    if (event->kind == LOCKSTEP_EVENT_RUN && event->run != NULL) {
        monitor->max_iter = event->run->max_iter;
        monitor->first_iteration = event->run->first_iteration;
        monitor->displays = event->run->display > 0;
    }
    if (event->kind == LOCKSTEP_EVENT_DISPLAY) {
        monitor->display_iteration = event->iteration;
        monitor->displayed = true;
    }
    if (event->kind == LOCKSTEP_EVENT_PROGRESS)
        monitor->trained = true;
    if (event->kind == LOCKSTEP_EVENT_TEST && event->test_net == 0)
        keep_score(monitor, event);
    if (event->kind == LOCKSTEP_EVENT_SNAPSHOT && event->text != NULL)
        snprintf(monitor->last_snapshot, sizeof monitor->last_snapshot, "%s", event->text);
    if (event->kind != LOCKSTEP_EVENT_PROGRESS && event->kind != LOCKSTEP_EVENT_DISPLAY)
        restart_measurement(monitor, event->iteration);
}

/* The log is pushed out with everything rare, and once a second. */
static void log_event(struct ls_monitor *monitor, const struct lockstep_event *event)
{
    double now = monitor->clock();
    ls_log_event(monitor->log, event, monitor->time(), now - monitor->begun);
    bool often = event->kind == LOCKSTEP_EVENT_PROGRESS || event->kind == LOCKSTEP_EVENT_HASH;
    if (!often || now - monitor->log_flushed >= 1) {
        fflush(monitor->log);
        monitor->log_flushed = now;
    }
}

void ls_monitor_event(void *user, const struct lockstep_event *event)
{
    struct ls_monitor *monitor = user;
    bool training = event->kind == LOCKSTEP_EVENT_PROGRESS || event->kind == LOCKSTEP_EVENT_DISPLAY;
    if (monitor->log != NULL)
        log_event(monitor, event);
    if ((event->kind == LOCKSTEP_EVENT_HASH && event->text == NULL) ||
        event->kind == LOCKSTEP_EVENT_STATISTICS ||
        (event->kind == LOCKSTEP_EVENT_DETAIL && !monitor->verbose))
        return; /* for the log alone */
    if (monitor->quiet && !is_result(event)) {
        remember(monitor, event);
        return;
    }
    if (monitor->terminal && training) {
        /* A display repeats what the progress before it told. */
        if (event->kind == LOCKSTEP_EVENT_PROGRESS)
            draw(monitor, event);
    } else {
        ls_monitor_clear(monitor);
        put_event(monitor, event);
        fflush(monitor->out);
    }
    remember(monitor, event);
}
