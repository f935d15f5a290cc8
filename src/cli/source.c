/* Options of a source of data.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cli/source.h"

#include "cli/report.h"

int ls_cli_source_options(const char *command, const struct ls_cli_source_values *values,
                          struct lockstep_source_options *options)
{
    if (values->backend == NULL)
        return ls_cli_usage_error("%s: --backend KIND is missing", command);
    lockstep_source_options_init(options);
    options->backend = values->backend;
    options->source = values->source.items;
    options->source_count = values->source.count;
    options->label_source = values->label_source;
    options->root_folder = values->root_folder;
    options->resize_height = (int)values->resize_height;
    options->resize_width = (int)values->resize_width;
    options->gray = values->gray;
    options->no_antialias = values->no_antialias;
    options->split = values->split;
    return 0;
}
