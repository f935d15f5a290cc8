/* A sweep while it runs: on a terminal a line for each run that is being trained, which are drawn
 * anew in place; in a file a line every half a minute.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "cli/sweep.h"
#include "monitor/live.h"
#include "monitor/terminal.h"

enum { LINE = 512 };
static const double redraw = 0.25, sparse = 30; /* seconds */

/* "340/1000  loss 0.21  1:05 left  base_lr=0.1". */
static void compose(const struct ls_sweep_run *run, double now, char line[LINE])
{
    char left[24] = "", loss[32] = "";
    double value;
    const int64_t iteration = ls_sweep_log_iteration(run, &value);
    const int64_t done = iteration - run->reached, all = run->target - run->reached;
    if (isfinite(value))
        snprintf(loss, sizeof loss, "  loss %.4g", value);
    if (done > 0 && all > done) {
        ls_format_duration((now - run->begun) * (double)(all - done) / (double)done, left,
                           sizeof left);
        snprintf(line, LINE, "%6" PRId64 "/%" PRId64 "%s  %s left  %s", iteration, run->target,
                 loss, left, run->label);
    } else {
        snprintf(line, LINE, "%6" PRId64 "/%" PRId64 "%s  %s", iteration, run->target, loss,
                 run->label);
    }
}

static void put(const char *text, int width)
{
    char line[LINE];
    ls_text_cut(text, width, line, sizeof line);
    ls_put_clean(stdout, line);
}

void ls_sweep_live_clear(struct ls_sweep *sweep)
{
    if (sweep->lines > 1)
        printf("\033[%dA", sweep->lines - 1);
    if (sweep->lines > 0)
        fputs("\r\033[J", stdout);
    sweep->lines = 0;
    fflush(stdout);
}

/* The last line has no end: a terminal that is full would scroll. */
static void draw(struct ls_sweep *sweep, double now)
{
    const int width = ls_terminal_width(stdout) - 1, height = ls_terminal_height(stdout);
    char line[LINE];
    ls_sweep_live_clear(sweep);
    snprintf(line, sizeof line, "%zu running, %zu waiting", sweep->running,
             ls_sweep_count_waiting(sweep));
    put(line, width);
    sweep->lines = 1;
    for (size_t i = 0; i < sweep->count; i++) {
        if (sweep->runs[i].state != LS_SWEEP_RUNNING || (height > 0 && sweep->lines >= height - 1))
            continue;
        compose(&sweep->runs[i], now, line);
        putchar('\n');
        put(line, width);
        sweep->lines++;
    }
    fflush(stdout);
}

void ls_sweep_live_draw(struct ls_sweep *sweep, double now)
{
    const bool terminal = ls_terminal(stdout);
    if (sweep->drawn <= 0 && !terminal)
        sweep->drawn = now;
    if (ls_quiet() || now - sweep->drawn < (terminal ? redraw : sparse))
        return;
    sweep->drawn = now;
    if (terminal) {
        draw(sweep, now);
        return;
    }
    for (size_t i = 0; i < sweep->count; i++) {
        char line[LINE];
        if (sweep->runs[i].state != LS_SWEEP_RUNNING)
            continue;
        compose(&sweep->runs[i], now, line);
        ls_put_clean(stdout, line);
        putchar('\n');
    }
    fflush(stdout);
}

void ls_sweep_say(struct ls_sweep *sweep, bool important, const char *format, ...)
{
    if (!important && ls_quiet())
        return;
    char text[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    ls_sweep_live_clear(sweep);
    if (ls_terminal(stdout))
        ls_put_wrapped(stdout, text, 0, ls_terminal_width(stdout));
    else
        ls_put_clean(stdout, text);
    putchar('\n');
    fflush(stdout);
}
