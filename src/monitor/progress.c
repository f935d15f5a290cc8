/* Progress of a command. See monitor/progress.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "monitor/progress.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "monitor/live.h"
#include "monitor/terminal.h"

static const double quiet_limit = 10, redraw_interval = 0.1; /* seconds */

static double monotonic_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void ls_progress_init(struct ls_progress *progress, FILE *out, double (*clock)(void))
{
    *progress = (struct ls_progress){.out = out, .terminal = ls_terminal(out)};
    progress->clock = clock != NULL ? clock : monotonic_clock;
    progress->begun = progress->told = progress->clock();
}

void ls_progress_clear(struct ls_progress *progress)
{
    if (progress->live)
        fputs("\r\033[K", progress->out);
    progress->live = false;
}

/* "12000/60000 records  20%  35100 records/s  2s left" */
static void compose(const struct ls_progress *progress, const struct lockstep_event *event,
                    char *line, size_t size)
{
    char left[24] = "";
    double done = (double)event->samples, all = (double)event->iteration_end;
    double taken = progress->clock() - progress->begun;
    int length = snprintf(line, size, "%" PRId64 "/%" PRId64 " records  %d%%", event->samples,
                          event->iteration_end, (int)(100 * done / all));
    if (!(taken > 0) || !(done > 0))
        return;
    ls_format_duration(taken * (all - done) / done, left, sizeof left);
    snprintf(line + length, size - (size_t)length, "  %.0f records/s  %s left", done / taken, left);
}

static void draw(struct ls_progress *progress, const char *text)
{
    char line[256];
    int width = progress->width > 0 ? progress->width : ls_terminal_width(progress->out);
    snprintf(line, sizeof line, "%s", text);
    ls_text_cut(line, width - 3, line, sizeof line);
    fputc('\r', progress->out);
    ls_put_clean(progress->out, line);
    fputs("\033[K", progress->out);
    progress->live = true;
}

void ls_progress_event(void *user, const struct lockstep_event *event)
{
    struct ls_progress *progress = user;
    if (event->kind != LOCKSTEP_EVENT_NOTICE || event->text == NULL)
        return;
    char line[128] = "";
    double now = progress->clock();
    bool counted = event->iteration_end > 0, last = event->samples == event->iteration_end;
    if (counted)
        compose(progress, event, line, sizeof line);
    if (progress->terminal) {
        if (counted && now - progress->drawn < redraw_interval)
            return;
        draw(progress, counted ? line : event->text);
        progress->drawn = now;
    } else if (!counted || last || now - progress->told >= quiet_limit) {
        ls_put_clean(progress->out, counted ? line : event->text);
        putc('\n', progress->out);
        progress->told = now;
    }
    if (counted && last) /* what is counted next has a speed of its own */
        progress->begun = now;
    fflush(progress->out);
}
