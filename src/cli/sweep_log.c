/* The log of a run of a sweep: how far it is, and the figures at the ends of its parts.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/report.h"
#include "cli/sweep.h"

struct ls_sweep_log {
    FILE *file;
    struct lockstep_log *log;
    char *line;
    size_t room;
    bool ended; /* the last event was an end */
};

/* ---- Ends ------------------------------------------------------------------------------------ */

static void free_end(struct ls_sweep_end *end)
{
    for (size_t i = 0; i < end->count; i++)
        free(end->figures[i].name);
    free(end->figures);
    *end = (struct ls_sweep_end){.iteration = 0};
}

/* The place for the end at that update: what was there goes. NULL: no memory. */
static struct ls_sweep_end *place_for(struct ls_sweep_run *run, int64_t iteration)
{
    for (size_t i = 0; i < run->end_count; i++)
        if (run->ends[i].iteration == iteration) {
            free_end(&run->ends[i]);
            return &run->ends[i];
        }
    struct ls_sweep_end *more = realloc(run->ends, (run->end_count + 1) * sizeof *more);
    if (more == NULL)
        return NULL;
    run->ends = more;
    size_t at = run->end_count++;
    for (; at > 0 && more[at - 1].iteration > iteration; at--)
        more[at] = more[at - 1];
    more[at] = (struct ls_sweep_end){.iteration = iteration};
    return &more[at];
}

/* Takes over those figures that are of this update: of tests, or the loss. */
static int take_figures(const struct ls_sweep_run *run, struct ls_sweep_end *end, bool tests)
{
    size_t count;
    const struct lockstep_series *series = lockstep_log_series(run->log->log, &count);
    for (size_t i = 0; i < count; i++) {
        struct ls_sweep_figure *figure = &end->figures[end->count];
        int64_t at = -1;
        const char *name = series[i].name;
        if ((tests ? strncmp(name, "test", 4) : strcmp(name, "loss")) != 0 ||
            !lockstep_log_last(run->log->log, name, &at, &figure->value) || at != end->iteration)
            continue;
        if ((figure->name = strdup(name)) == NULL)
            return ls_cli_no_memory();
        figure->better = series[i].better;
        end->count++;
    }
    return 0;
}

/* Tests come before the loss, whatever the log begins with. */
static int take_end(struct ls_sweep_run *run, int64_t iteration)
{
    size_t count;
    lockstep_log_series(run->log->log, &count);
    struct ls_sweep_end *end = place_for(run, iteration);
    if (end == NULL || (end->figures = calloc(count + 1, sizeof *end->figures)) == NULL)
        return ls_cli_no_memory();
    end->iteration = iteration;
    int status = take_figures(run, end, true);
    return status == 0 ? take_figures(run, end, false) : status;
}

const struct ls_sweep_end *ls_sweep_end_at(const struct ls_sweep_run *run, int64_t iteration)
{
    for (size_t i = 0; i < run->end_count; i++)
        if (run->ends[i].iteration == iteration)
            return &run->ends[i];
    return NULL;
}

const struct ls_sweep_figure *ls_sweep_find_figure(const struct ls_sweep_end *end, const char *name)
{
    for (size_t i = 0; end != NULL && name != NULL && i < end->count; i++)
        if (strcmp(end->figures[i].name, name) == 0)
            return &end->figures[i];
    return NULL;
}

bool ls_sweep_figure_of(const struct ls_sweep_end *end, const char *name, double *value)
{
    const struct ls_sweep_figure *figure = ls_sweep_find_figure(end, name);
    if (figure != NULL)
        *value = figure->value;
    return figure != NULL;
}

void ls_sweep_free_ends(struct ls_sweep_run *run)
{
    for (size_t i = 0; i < run->end_count; i++)
        free_end(&run->ends[i]);
    free(run->ends);
}

/* ---- The file -------------------------------------------------------------------------------- */

void ls_sweep_log_path(const struct ls_sweep_run *run, char path[LS_SWEEP_PATH])
{
    if (run->again)
        snprintf(path, LS_SWEEP_PATH, "%s/again_%" PRId64 ".json", run->path, run->target);
    else
        snprintf(path, LS_SWEEP_PATH, "%s/log.json", run->path);
}

static int open_log(struct ls_sweep_run *run)
{
    char path[LS_SWEEP_PATH];
    struct ls_sweep_log *log = calloc(1, sizeof *log);
    run->log = log;
    if (log == NULL || lockstep_log_new(&log->log, NULL) != 0)
        return ls_cli_no_memory();
    ls_sweep_log_path(run, path);
    log->file = ls_sweep_open_file(path);
    if (log->file == NULL && errno != ENOENT)
        return ls_cli_error(LOCKSTEP_RESOURCE, "%s: cannot be read: %s", path, strerror(errno));
    return 0;
}

static int take_line(struct ls_sweep_run *run, size_t length)
{
    struct ls_sweep_log *log = run->log;
    struct lockstep_log_state state;
    if (lockstep_log_line(log->log, log->line, length, NULL) != 0)
        return ls_cli_no_memory();
    lockstep_log_describe(log->log, &state);
    if (!run->again && state.iteration > run->logged)
        run->logged = state.iteration;
    const bool ends = state.ended && !log->ended;
    log->ended = state.ended != 0;
    return ends ? take_end(run, state.iteration) : 0;
}

int ls_sweep_log_read(struct ls_sweep_run *run)
{
    int status = 0;
    if (run->log == NULL || run->log->file == NULL) {
        ls_sweep_log_close(run);
        status = open_log(run);
    }
    while (status == 0 && run->log->file != NULL) {
        struct ls_sweep_log *log = run->log;
        const long begin = ftell(log->file);
        const ssize_t length = getline(&log->line, &log->room, log->file);
        if (length <= 0 || log->line[length - 1] != '\n') { /* the rest comes later */
            clearerr(log->file);
            fseek(log->file, begin, SEEK_SET);
            break;
        }
        status = take_line(run, (size_t)length);
    }
    return status;
}

void ls_sweep_log_close(struct ls_sweep_run *run)
{
    if (run->log == NULL)
        return;
    if (run->log->file != NULL)
        fclose(run->log->file);
    lockstep_log_free(run->log->log);
    free(run->log->line);
    free(run->log);
    run->log = NULL;
}

int64_t ls_sweep_log_iteration(const struct ls_sweep_run *run, double *loss)
{
    struct lockstep_log_state state = {.iteration = 0};
    int64_t at;
    *loss = NAN;
    if (run->log == NULL || run->log->log == NULL)
        return 0;
    lockstep_log_describe(run->log->log, &state);
    lockstep_log_last(run->log->log, "loss", &at, loss);
    return state.iteration;
}
