/* When things happen in a training, and at which learning rate.
 *
 * Everything is a function of the number of updates done so far. What the solver gives in epochs is
 * turned into updates once, when the data set's size is known.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SOLVER_SCHEDULE_H
#define LS_SOLVER_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "schema/definition.h"

enum ls_policy {
    LS_POLICY_FIXED,
    LS_POLICY_STEP,
    LS_POLICY_EXP,
    LS_POLICY_INV,
    LS_POLICY_MULTISTEP,
    LS_POLICY_POLY,
    LS_POLICY_SIGMOID,
    LS_POLICY_COSINE,
    LS_POLICY_ONECYCLE,
    LS_POLICY_MULTIFIXED
};

struct ls_schedule {
    enum ls_policy policy;
    double base_lr;  /* after scaling by the batch */
    double lr_scale; /* what base_lr was multiplied by; 1 without lr_scaling */
    double gamma, power, lr_min, pct_start, div_factor, final_div_factor;
    int64_t stepsize;
    int64_t *stepvalue;
    size_t stepvalue_count;
    int64_t warmup;      /* updates; 0: none */
    double warmup_start; /* factor before the first of them */
    double warmup_rate;  /* instead: the rate that it begins at; below 0: the factor holds */
    bool after_warmup;   /* cosine: it begins where the warm-up ends */
    double *stage_rate;  /* multifixed: rates, and the last updates that have them */
    int64_t *stage_end;
    size_t stage_count;
    int64_t max_iter;
    int64_t test_interval, snapshot_interval, display; /* 0: never */
};

/* `definition` is where the solver was read, for places; `update_samples`: samples of a full
 * update; `updates_per_epoch`: see ls_batching (0: no epochs, then fields in epochs are an error).
 */
int ls_schedule_init(struct ls_schedule *schedule, const struct ls_definition *definition,
                     const Lockstep__SolverParameter *solver, int64_t update_samples,
                     double updates_per_epoch, struct ls_error *error);
void ls_schedule_free(struct ls_schedule *schedule);

/* Calls `say` with a sentence for what the schedule says in vain: steps that come too late, a
 * warm-up that is longer than the training, a policy that changes nothing, no rate at all. */
void ls_schedule_tell_odd(const struct ls_schedule *schedule,
                          void (*say)(void *user, const char *sentence), void *user);

/* The learning rate of update number `iteration` (0: the first), before lr_mult. */
double ls_schedule_rate(const struct ls_schedule *schedule, int64_t iteration);

#endif
