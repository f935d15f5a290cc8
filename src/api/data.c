/* The public interface: data tools.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "api/api.h"
#include "data/convert.h"

void lockstep_source_options_init(struct lockstep_source_options *options)
{
    *options = (struct lockstep_source_options){.struct_size = sizeof *options};
}

static int check(const struct lockstep_source_options *source, struct ls_error *error)
{
    if (source->struct_size != sizeof *source)
        return ls_fail(error, LOCKSTEP_USAGE, NULL, "call lockstep_source_options_init first",
                       "the options have a size of %zu bytes, not %zu", source->struct_size,
                       sizeof *source);
    return 0;
}

int lockstep_convert(const struct lockstep_source_options *source, const char *path,
                     int64_t *records, struct lockstep_error *error)
{
    LS_OWN_MODE;
    struct ls_error *inner = ls_api_error(error);
    LS_TRY(check(source, inner));
    struct lockstep_callbacks callbacks = source->callbacks;
    struct lockstep_source_options mine = *source;
    mine.callbacks = ls_caller_callbacks(&callbacks);
    return ls_convert(&mine, path, records, inner);
}

int lockstep_mean(const struct lockstep_source_options *source, const char *path,
                  double *channel_means, int *channels, struct lockstep_error *error)
{
    LS_OWN_MODE;
    struct ls_error *inner = ls_api_error(error);
    LS_TRY(check(source, inner));
    struct lockstep_callbacks callbacks = source->callbacks;
    struct lockstep_source_options mine = *source;
    mine.callbacks = ls_caller_callbacks(&callbacks);
    return ls_mean(&mine, path, channel_means, channels, inner);
}
