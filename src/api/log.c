/* The public interface: logs and pages of them.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "api/api.h"
#include "api/options.h"
#include "report/figure.h"
#include "report/log.h"
#include "report/page.h"
#include "report/parting.h"

int lockstep_log_new(struct lockstep_log **log, struct lockstep_error *error)
{
    struct ls_error *inner = ls_api_error(error);
    *log = ls_log_new();
    return *log != NULL ? 0 : ls_fail_memory(inner, "a log");
}

void lockstep_log_free(struct lockstep_log *log)
{
    ls_log_free(log);
}

int lockstep_log_read(struct lockstep_log *log, const char *path, struct lockstep_error *error)
{
    struct ls_error *inner = ls_api_error(error);
    LS_TRY(ls_api_require(path, "path", inner));
    return ls_log_read(log, path, inner);
}

int lockstep_log_line(struct lockstep_log *log, const char *line, size_t length,
                      struct lockstep_error *error)
{
    return ls_log_line(log, line, length, ls_api_error(error));
}

const struct lockstep_series *lockstep_log_series(const struct lockstep_log *log, size_t *count)
{
    for (size_t i = 0; i < log->series_count; i++)
        log->shown[i] = (struct lockstep_series){.name = log->series[i].name,
                                                 .points = log->series[i].points,
                                                 .count = log->series[i].count,
                                                 .better = ls_figure_direction(&log->series[i])};
    *count = log->series_count;
    return log->shown;
}

int lockstep_log_last(const struct lockstep_log *log, const char *name, int64_t *iteration,
                      double *value)
{
    const struct ls_series *series = ls_log_find(log, name);
    if (series == NULL || series->count == 0)
        return 0;
    *iteration = series->last_iteration;
    *value = series->last;
    return 1;
}

const struct lockstep_fact *lockstep_log_facts(const struct lockstep_log *log, size_t *count)
{
    *count = log->fact_count;
    return log->facts;
}

const struct lockstep_log_message *lockstep_log_messages(const struct lockstep_log *log,
                                                         size_t *count)
{
    *count = log->message_count;
    return log->messages;
}

const struct lockstep_log_parameter *lockstep_log_parameters(const struct lockstep_log *log,
                                                             size_t *count)
{
    *count = log->parameter_count;
    return log->parameters;
}

void lockstep_log_describe(const struct lockstep_log *log, struct lockstep_log_state *state)
{
    *state = log->state;
    state->seconds = log->earlier + log->elapsed;
    state->weights_hash = log->hash;
    state->last_snapshot = log->last_snapshot != NULL ? log->last_snapshot : "";
    state->best_snapshot = log->best_snapshot != NULL ? log->best_snapshot : "";
}

void lockstep_log_compare(const struct lockstep_log *a, const struct lockstep_log *b,
                          struct lockstep_parting *parting)
{
    ls_log_compare(a, b, parting);
}

void lockstep_page_options_init(struct lockstep_page_options *options)
{
    *options = (struct lockstep_page_options){.struct_size = sizeof *options};
}

int lockstep_page_write(const char *path, const struct lockstep_log *const *logs, size_t count,
                        const struct lockstep_page_options *options, struct lockstep_error *error)
{
    struct ls_error *inner = ls_api_error(error);
    struct lockstep_page_options mine;
    LS_TRY(ls_api_require(path, "path", inner));
    LS_TRY(LS_API_OPTIONS(mine, options, "lockstep_page_options_init", inner));
    return ls_page_write(path, logs, count, &mine, inner);
}
