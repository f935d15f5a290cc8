/* The public interface: data tools.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "api/api.h"
#include "api/options.h"
#include "data/convert.h"
#include "data/mean.h"
#include "data/options.h"
#include "data/survey.h"

void lockstep_source_options_init(struct lockstep_source_options *options)
{
    *options = (struct lockstep_source_options){.struct_size = sizeof *options};
}

int lockstep_source_help(const char *backend, void (*tell)(void *user, const char *line),
                         void *user, struct lockstep_error *error)
{
    return ls_source_help(backend, tell, user, ls_api_error(error));
}

int lockstep_convert(const struct lockstep_source_options *source, const char *path,
                     int64_t *records, struct lockstep_error *error)
{
    LS_OWN_MODE;
    struct ls_error *inner = ls_api_error(error);
    struct lockstep_source_options mine;
    LS_TRY(LS_API_OPTIONS(mine, source, "lockstep_source_options_init", inner));
    struct lockstep_callbacks callbacks = mine.callbacks;
    mine.callbacks = ls_caller_callbacks(&callbacks);
    return ls_convert(&mine, path, records, inner);
}

int lockstep_mean(const struct lockstep_source_options *source, const char *path,
                  double *channel_means, int *channels, struct lockstep_error *error)
{
    LS_OWN_MODE;
    struct ls_error *inner = ls_api_error(error);
    struct lockstep_source_options mine;
    LS_TRY(LS_API_OPTIONS(mine, source, "lockstep_source_options_init", inner));
    struct lockstep_callbacks callbacks = mine.callbacks;
    mine.callbacks = ls_caller_callbacks(&callbacks);
    return ls_mean(&mine, path, channel_means, channels, inner);
}

int lockstep_source_survey(const struct lockstep_source_options *source,
                           struct lockstep_source_facts *facts, struct lockstep_error *error)
{
    LS_OWN_MODE;
    struct ls_error *inner = ls_api_error(error);
    struct lockstep_source_options mine;
    LS_TRY(LS_API_OPTIONS(mine, source, "lockstep_source_options_init", inner));
    return ls_survey(&mine, facts, inner);
}
