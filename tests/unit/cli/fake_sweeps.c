/* The fake library: sweeps. Each has one run, with what was set.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "fake_inner.h"

#include <string.h>

struct lockstep_sweep {
    struct lockstep_sweep_options options;
};

void lockstep_sweep_options_init(struct lockstep_sweep_options *options)
{
    *options = (struct lockstep_sweep_options){.struct_size = sizeof *options};
}

int lockstep_sweep_new(const struct lockstep_sweep_options *options, struct lockstep_sweep **sweep,
                       struct lockstep_error *error)
{
    fake_note("sweep(%s|%d|%d) ", options->set[0], (int)options->random, (int)options->seed);
    int status = fake_answer(fake.convert_status, error);
    *sweep = NULL;
    if (status != 0)
        return status;
    *sweep = fake_make(sizeof **sweep);
    (*sweep)->options = *options;
    return 0;
}

void lockstep_sweep_free(struct lockstep_sweep *sweep)
{
    if (sweep != NULL)
        fake_unmake(sweep);
}

size_t lockstep_sweep_run_count(const struct lockstep_sweep *sweep)
{
    (void)sweep;
    return 1;
}

const char *const *lockstep_sweep_run_set(const struct lockstep_sweep *sweep, size_t run,
                                          size_t *count)
{
    (void)run;
    *count = sweep->options.set_count;
    return sweep->options.set;
}

size_t lockstep_sweep_field_count(const struct lockstep_sweep *sweep)
{
    (void)sweep;
    return 1;
}

const char *lockstep_sweep_field(const struct lockstep_sweep *sweep, size_t field)
{
    (void)sweep;
    (void)field;
    return "field";
}

const char *lockstep_sweep_value(const struct lockstep_sweep *sweep, size_t run, size_t field)
{
    (void)sweep;
    (void)run;
    (void)field;
    return "value";
}

int lockstep_solver_hash(const struct lockstep_solver *solver, char hash[65],
                         struct lockstep_error *error)
{
    (void)solver;
    (void)error;
    strcpy(hash, "hash");
    return 0;
}
