/* Progress of a command. See monitor/progress.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "monitor/progress.h"

#include <stdint.h>

#include "monitor/clock.h"
#include "monitor/terminal.h"

static const double quiet_limit = 10, redraw_interval = 0.1; /* seconds */

void ls_progress_init(struct ls_progress *progress, FILE *out, double (*clock)(void))
{
    *progress = (struct ls_progress){.out = out,
                                     .terminal = ls_terminal(out),
                                     .quiet = ls_quiet(),
                                     .line = {.out = out},
                                     .unit = "records"};
    progress->clock = clock != NULL ? clock : ls_monitor_clock;
    progress->begun = progress->told = progress->clock();
}

static int width_of(const struct ls_progress *progress)
{
    return progress->width > 0 ? progress->width : ls_terminal_width(progress->out);
}

void ls_progress_clear(struct ls_progress *progress)
{
    ls_live_line_clear(&progress->line, width_of(progress));
    fflush(progress->out); /* what follows may go to stderr */
}

/* On a terminal as much as fits, with a bar; in a file without one. */
static void compose(struct ls_progress *progress, const struct lockstep_event *event, int width,
                    char *line, size_t size)
{
    struct ls_counted counted = {.what = progress->unit,
                                 .done = event->samples,
                                 .all = event->iteration_end,
                                 .seconds = progress->clock() - progress->begun,
                                 .has_bar = progress->terminal,
                                 .bar = &progress->line.bar};
    ls_live_compose_count(&counted, width, line, size);
}

void ls_progress_event(void *user, const struct lockstep_event *event)
{
    struct ls_progress *progress = user;
    if (event->kind == LOCKSTEP_EVENT_WARNING && event->text != NULL) {
        ls_progress_clear(progress);
        fputs("warning: ", progress->out);
        ls_put_clean(progress->out, event->text);
        putc('\n', progress->out);
    }
    if (event->kind != LOCKSTEP_EVENT_NOTICE || event->text == NULL || progress->quiet)
        return;
    char line[256] = "";
    double now = progress->clock();
    bool counted = event->iteration_end > 0, last = event->samples == event->iteration_end;
    if (progress->terminal) {
        if (counted && now - progress->drawn < redraw_interval)
            return;
        /* The last column stays free: writing to it would wrap on some terminals. So do two more,
         * for the "^C" that a terminal shows, which goes away with the line. */
        int width = width_of(progress);
        if (counted)
            compose(progress, event, width - 3, line, sizeof line);
        else
            ls_text_cut(event->text, width - 3, line, sizeof line);
        ls_live_line_draw(&progress->line, line, width);
        progress->drawn = now;
    } else if (!counted || last || now - progress->told >= quiet_limit) {
        if (counted)
            compose(progress, event, (int)sizeof line, line, sizeof line);
        ls_put_clean(progress->out, counted ? line : event->text);
        putc('\n', progress->out);
        progress->told = now;
    }
    if (counted && last) { /* what is counted next has a speed of its own */
        progress->begun = now;
        progress->line.bar = (struct ls_live_bar){.columns = 0};
    }
    fflush(progress->out);
}
