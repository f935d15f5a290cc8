/* Random data in place of those that a definition names.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "cli/dummy.h"

#include "cli/report.h"
#include "monitor/terminal.h"

static void tell(void *user, const char *line)
{
    (void)user;
    int rank;
    if (ls_quiet())
        return;
    if (lockstep_job_launched(&rank) == 1 || rank == 0) /* all ranks do the same */
        ls_cli_error(0, "note: %s", line);
}

bool ls_cli_dummy_options(const struct ls_cli_dummy_values *values, bool missing,
                          struct lockstep_dummy_options *options)
{
    lockstep_dummy_options_init(options);
    options->inputs = values->inputs.items;
    options->input_count = values->inputs.count;
    options->all = values->all;
    options->tell = tell;
    return missing || values->all || values->inputs.count > 0;
}

int ls_cli_use_dummy_data(const struct ls_cli_dummy_values *values, bool missing,
                          struct lockstep_solver *solver, struct lockstep_error *error)
{
    struct lockstep_dummy_options options;
    if (!ls_cli_dummy_options(values, missing, &options))
        return 0;
    return lockstep_solver_use_dummy_data(solver, &options, error);
}
