/* Loading a net to look at. See cli/net.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cli/net.h"

#include <inttypes.h>

#include "cli/report.h"

int ls_cli_load_net(const char *command, const struct ls_cli_net_values *values,
                    struct lockstep_net **net)
{
    struct lockstep_dummy_options dummy;
    struct lockstep_net_options options;
    *net = NULL;
    if (values->model == NULL)
        return ls_cli_usage_error("%s: --model FILE is missing", command);
    lockstep_net_options_init(&options);
    options.phase = values->phase;
    options.level = (int)values->level;
    options.stages = values->stages.items;
    options.stage_count = values->stages.count;
    if (ls_cli_dummy_options(&values->dummy, true, &dummy))
        options.dummy = &dummy;
    struct lockstep_error *error = lockstep_error_new();
    int status = lockstep_net_load(values->model, &options, net, error);
    if (status != 0)
        ls_cli_report(status, error);
    lockstep_error_free(error);
    return status;
}

const char *ls_cli_format_shape(const struct lockstep_blob *blob, char buffer[LS_CLI_SHAPE_ROOM])
{
    size_t length = 0;
    buffer[0] = '\0';
    for (int i = 0; i < blob->rank; i++)
        length += (size_t)snprintf(buffer + length, LS_CLI_SHAPE_ROOM - length, "%s%" PRId64,
                                   i > 0 ? " x " : "", blob->extent[i]);
    return buffer;
}

double ls_cli_blob_size(const struct lockstep_blob *blob)
{
    double size = 1;
    for (int i = 0; i < blob->rank; i++)
        size *= (double)blob->extent[i];
    return size;
}
