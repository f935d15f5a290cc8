/* The public interface: sweeps.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "sweep/sweep.h"

#include <string.h>

#include "api/api.h"
#include "api/options.h"
#include "base/sha256.h"
#include "base/text.h"
#include "schema/canonical.h"

void lockstep_sweep_options_init(struct lockstep_sweep_options *options)
{
    *options = (struct lockstep_sweep_options){.struct_size = sizeof *options, .seed = 1};
}

int lockstep_sweep_new(const struct lockstep_sweep_options *options, struct lockstep_sweep **sweep,
                       struct lockstep_error *error)
{
    struct ls_error *inner = ls_api_error(error);
    struct lockstep_sweep_options mine;
    *sweep = NULL;
    LS_TRY(LS_API_OPTIONS(mine, options, "lockstep_sweep_options_init", inner));
    return ls_sweep_new(&mine, sweep, inner);
}

void lockstep_sweep_free(struct lockstep_sweep *sweep)
{
    ls_sweep_free(sweep);
}

size_t lockstep_sweep_run_count(const struct lockstep_sweep *sweep)
{
    return sweep->run_count;
}

const char *const *lockstep_sweep_run_set(const struct lockstep_sweep *sweep, size_t run,
                                          size_t *count)
{
    *count = run < sweep->run_count ? sweep->axis_count : 0;
    if (run >= sweep->run_count)
        return NULL;
    return (const char *const *)&sweep->sets[run * sweep->axis_count];
}

size_t lockstep_sweep_field_count(const struct lockstep_sweep *sweep)
{
    return sweep->varied_count;
}

const char *lockstep_sweep_field(const struct lockstep_sweep *sweep, size_t field)
{
    return field < sweep->varied_count ? sweep->axes[sweep->varied[field]].name : NULL;
}

const char *lockstep_sweep_value(const struct lockstep_sweep *sweep, size_t run, size_t field)
{
    if (run >= sweep->run_count || field >= sweep->varied_count)
        return NULL;
    const size_t axis = sweep->varied[field];
    return sweep->sets[run * sweep->axis_count + axis] + strlen(sweep->axes[axis].field) + 1;
}

/* The solver with its train net, then each test net with what is tested of it. */
static int write_all(const struct ls_solver_definition *solver, struct ls_text *text,
                     struct ls_error *error)
{
    LS_TRY(ls_definition_canonical(solver, 0, text, error));
    for (size_t i = 0; i < solver->test_count; i++) {
        ls_text_format(text, "\ntest %zu of %d batches\n", i, (int)solver->test[i].test_iter);
        LS_TRY(ls_net_canonical(&solver->test[i], text, error));
    }
    return text->failed ? ls_fail_memory(error, "a definition") : 0;
}

int lockstep_solver_hash(const struct lockstep_solver *solver, char hash[65],
                         struct lockstep_error *error)
{
    struct ls_text text = {0};
    struct ls_sha256 sum;
    hash[0] = '\0';
    int status = write_all(solver->definition, &text, ls_api_error(error));
    if (status == 0) {
        ls_sha256_begin(&sum);
        ls_sha256_add(&sum, text.data, text.length);
        ls_sha256_end(&sum, hash);
    }
    ls_text_free(&text);
    return status;
}
