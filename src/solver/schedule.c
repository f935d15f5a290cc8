/* Learning rates and intervals. See solver/schedule.h.
 *
 * Caffe's policies (SolverParameter.lr_policy), with t the number of updates done:
 *     fixed      base                         step       base gamma^floor(t / stepsize)
 *     exp        base gamma^t                 inv        base (1 + gamma t)^-power
 *     multistep  base gamma^(values <= t)     poly       base (1 - t / max_iter)^power
 *     sigmoid    base / (1 + exp(-gamma (t - stepsize)))
 * and
 *     cosine     lr_min + (base - lr_min) (1 + cos(pi t / max_iter)) / 2      (Loshchilov, Hutter:
 *                SGDR, 2017, without restarts); with cosine_after_warmup t and max_iter count
 *                from the end of the warm-up
 *     onecycle   from base / div_factor up to base in the first pct_start of the run, then down to
 *                base / div_factor / final_div_factor, both along a cosine    (Smith, Topin 2019)
 *     multifixed the rate of the first stage whose stageiter is t or more, else of the last one
 *                (Intel's fork)
 * A warm-up multiplies any of them by warmup_start + (1 - warmup_start) (t + 1) / warmup; with
 * warmup_start_lr it is Intel's, from that rate at t = 0 to base at t = warmup, instead of them.
 *
 * Powers and cosines come from SLEEF's deterministic functions: the C library's may differ between
 * systems in the last bit.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver/schedule.h"

#include <math.h>
#include <sleef.h>
#include <stdio.h>
#include <string.h>

#include "base/arithmetic.h"
#include "base/memory.h"

static double power_of(double x, double y)
{
    if (y == 0 || x == 1)
        return 1;
    return x == 0 ? 0 : Sleef_cinz_powd1_u10purec(x, y);
}

static double cosine(double x)
{
    return Sleef_cinz_cosd1_u10purec(x);
}

/* From `from` to `to` along half a cosine; x in [0, 1]. */
static double anneal(double from, double to, double x)
{
    return to + (from - to) * (1 + cosine(3.14159265358979323846 * x)) / 2;
}

static double onecycle(const struct ls_schedule *schedule, double t)
{
    double start = schedule->base_lr / schedule->div_factor;
    double end = start / schedule->final_div_factor;
    double last = (double)(schedule->max_iter > 1 ? schedule->max_iter - 1 : 1);
    double peak = schedule->pct_start * last;
    if (t < peak)
        return anneal(start, schedule->base_lr, t / peak);
    double x = last > peak ? (t - peak) / (last - peak) : 1;
    return anneal(schedule->base_lr, end, x > 1 ? 1 : x);
}

static double cosine_rate(const struct ls_schedule *schedule, int64_t iteration)
{
    const int64_t begin = schedule->after_warmup ? schedule->warmup : 0;
    const int64_t past = iteration - begin, all = schedule->max_iter - begin;
    double x = past < 0 ? 0 : past < all ? (double)past / (double)all : 1;
    return anneal(schedule->base_lr, schedule->lr_min, x);
}

static int64_t steps_passed(const struct ls_schedule *schedule, int64_t iteration)
{
    int64_t passed = 0;
    for (size_t i = 0; i < schedule->stepvalue_count; i++)
        passed += schedule->stepvalue[i] <= iteration;
    return passed;
}

static double stage_rate(const struct ls_schedule *schedule, int64_t iteration)
{
    size_t stage = 0;
    while (stage + 1 < schedule->stage_count && iteration > schedule->stage_end[stage])
        stage++;
    return schedule->stage_rate[stage];
}

static double policy_rate(const struct ls_schedule *schedule, int64_t iteration)
{
    double base = schedule->base_lr, t = (double)iteration, x;
    switch (schedule->policy) {
    case LS_POLICY_FIXED:
        return base;
    case LS_POLICY_STEP:
        return base * power_of(schedule->gamma, (double)(iteration / schedule->stepsize));
    case LS_POLICY_EXP:
        return base * power_of(schedule->gamma, t);
    case LS_POLICY_INV:
        return base * power_of(1 + schedule->gamma * t, -schedule->power);
    case LS_POLICY_MULTISTEP:
        return base * power_of(schedule->gamma, (double)steps_passed(schedule, iteration));
    case LS_POLICY_POLY:
        x = 1 - t / (double)schedule->max_iter;
        return x > 0 ? base * power_of(x, schedule->power) : 0;
    case LS_POLICY_SIGMOID:
        x = -schedule->gamma * (t - (double)schedule->stepsize);
        return base / (1 + Sleef_cinz_expd1_u10purec(x));
    case LS_POLICY_COSINE:
        return cosine_rate(schedule, iteration);
    case LS_POLICY_ONECYCLE:
        return onecycle(schedule, t);
    case LS_POLICY_MULTIFIXED:
        return stage_rate(schedule, iteration);
    }
    return base;
}

double ls_schedule_rate(const struct ls_schedule *schedule, int64_t iteration)
{
    double t = (double)iteration, warmup = (double)schedule->warmup;
    if (iteration < schedule->warmup && schedule->warmup_rate >= 0)
        return (t * schedule->base_lr + (warmup - t) * schedule->warmup_rate) / warmup;
    double rate = policy_rate(schedule, iteration);
    if (iteration < schedule->warmup)
        rate *= schedule->warmup_start +
                (1 - schedule->warmup_start) * (double)(iteration + 1) / (double)schedule->warmup;
    return rate;
}

/* ---- From the solver ------------------------------------------------------------------------- */

static const struct {
    const char *name;
    enum ls_policy policy;
} policies[] = {{"fixed", LS_POLICY_FIXED},
                {"step", LS_POLICY_STEP},
                {"exp", LS_POLICY_EXP},
                {"inv", LS_POLICY_INV},
                {"multistep", LS_POLICY_MULTISTEP},
                {"poly", LS_POLICY_POLY},
                {"sigmoid", LS_POLICY_SIGMOID},
                {"cosine", LS_POLICY_COSINE},
                {"onecycle", LS_POLICY_ONECYCLE},
                {"multifixed", LS_POLICY_MULTIFIXED}};

static int find_policy(struct ls_schedule *schedule, const Lockstep__SolverParameter *solver,
                       struct ls_error *error)
{
    const char *name = solver->lr_policy != NULL ? solver->lr_policy : "fixed";
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++)
        if (strcmp(policies[i].name, name) == 0) {
            schedule->policy = policies[i].policy;
            return 0;
        }
    return ls_fail(error, LOCKSTEP_DEFINITION, NULL, NULL, "unknown lr_policy '%s'", name);
}

/* Epochs to updates, at least one. */
static int64_t updates(double epochs, double per_epoch)
{
    double count = floor(epochs * per_epoch + 0.5);
    if (count > 9e15)
        return INT64_C(9000000000000000);
    return count < 1 ? 1 : (int64_t)count;
}

/* A field that counts in epochs, and the one that counts iterations in its place. */
struct epoch_field {
    const char *epochs, *iterations;
};

/* The first one that is given; no name: there is none. */
static struct epoch_field epoch_field(const Lockstep__SolverParameter *solver)
{
    if (solver->has_max_epoch)
        return (struct epoch_field){"max_epoch", "max_iter"};
    if (solver->has_step_epoch)
        return (struct epoch_field){"step_epoch", "stepsize"};
    if (solver->n_stepvalue_epoch > 0)
        return (struct epoch_field){"stepvalue_epoch", "stepvalue"};
    if (solver->has_test_interval_epoch)
        return (struct epoch_field){"test_interval_epoch", "test_interval"};
    if (solver->has_snapshot_epoch)
        return (struct epoch_field){"snapshot_epoch", "snapshot"};
    if (solver->has_warmup_epoch)
        return (struct epoch_field){"warmup_epoch", "warmup_iter"};
    return (struct epoch_field){NULL, NULL};
}

/* Epochs of data that have no end. */
static int fail_endless(const struct ls_definition *definition,
                        const Lockstep__SolverParameter *solver, struct epoch_field field,
                        struct ls_error *error)
{
    char place[LS_PLACE_MAX], hint[120];
    snprintf(hint, sizeof hint, "give it in iterations: %s, or --set %s=N", field.iterations,
             field.iterations);
    return ls_fail(error, LOCKSTEP_DEFINITION,
                   ls_place(definition, solver, field.epochs, place, sizeof place), hint,
                   "%s counts in epochs, but the data have no end", field.epochs);
}

static int set_steps(struct ls_schedule *schedule, const Lockstep__SolverParameter *solver,
                     double per_epoch, struct ls_error *error)
{
    size_t count = solver->n_stepvalue_epoch > 0 ? solver->n_stepvalue_epoch : solver->n_stepvalue;
    schedule->stepvalue = ls_alloc(count + 1, sizeof *schedule->stepvalue);
    if (schedule->stepvalue == NULL)
        return ls_fail_memory(error, "a schedule");
    schedule->stepvalue_count = count;
    for (size_t i = 0; i < count; i++)
        schedule->stepvalue[i] = solver->n_stepvalue_epoch > 0
                                     ? updates((double)solver->stepvalue_epoch[i], per_epoch)
                                     : solver->stepvalue[i];
    schedule->stepsize =
        solver->has_step_epoch ? updates((double)solver->step_epoch, per_epoch) : solver->stepsize;
    if (schedule->stepsize < 1 && schedule->policy == LS_POLICY_STEP)
        schedule->stepsize = 1; /* the schema has refused this */
    return 0;
}

static int set_stages(struct ls_schedule *schedule, const Lockstep__SolverParameter *solver,
                      struct ls_error *error)
{
    size_t count = solver->n_stagelr; /* as many as stageiter; the schema has seen to it */
    schedule->stage_rate = ls_alloc(count + 1, sizeof *schedule->stage_rate);
    schedule->stage_end = ls_alloc(count + 1, sizeof *schedule->stage_end);
    if (schedule->stage_rate == NULL || schedule->stage_end == NULL)
        return ls_fail_memory(error, "a schedule");
    schedule->stage_count = count;
    for (size_t i = 0; i < count && i < solver->n_stageiter; i++) {
        schedule->stage_rate[i] = (double)solver->stagelr[i] * schedule->lr_scale;
        schedule->stage_end[i] = solver->stageiter[i];
    }
    return 0;
}

/* What the batch makes of the solver's rates. */
static void scale_rate(struct ls_schedule *schedule, const Lockstep__SolverParameter *solver,
                       int64_t update_samples)
{
    double factor = 1;
    if (solver->has_base_batch_size && solver->base_batch_size > 0) {
        double ratio = (double)update_samples / (double)solver->base_batch_size;
        if (solver->lr_scaling == LOCKSTEP__SOLVER_PARAMETER__LEARNING_RATE_SCALING__LINEAR)
            factor = ratio;
        else if (solver->lr_scaling == LOCKSTEP__SOLVER_PARAMETER__LEARNING_RATE_SCALING__SQRT)
            factor = sqrt(ratio);
    }
    schedule->lr_scale = factor;
    schedule->base_lr = (double)solver->base_lr * factor;
    schedule->warmup_rate =
        solver->has_warmup_start_lr ? (double)solver->warmup_start_lr * factor : -1;
}

int ls_schedule_init(struct ls_schedule *schedule, const struct ls_definition *definition,
                     const Lockstep__SolverParameter *solver, int64_t update_samples,
                     double updates_per_epoch, struct ls_error *error)
{
    *schedule = (struct ls_schedule){.gamma = (double)solver->gamma,
                                     .power = (double)solver->power,
                                     .lr_min = (double)solver->lr_min,
                                     .pct_start = (double)solver->pct_start,
                                     .div_factor = (double)solver->div_factor,
                                     .final_div_factor = (double)solver->final_div_factor,
                                     .warmup_start = (double)solver->warmup_start,
                                     .after_warmup = solver->cosine_after_warmup,
                                     .display = solver->display};
    double per_epoch = updates_per_epoch;
    const struct epoch_field field = epoch_field(solver);
    if (field.epochs != NULL && !(per_epoch > 0))
        return fail_endless(definition, solver, field, error);
    LS_TRY(find_policy(schedule, solver, error));
    LS_TRY(set_steps(schedule, solver, per_epoch, error));
    scale_rate(schedule, solver, update_samples);
    LS_TRY(set_stages(schedule, solver, error));
    schedule->max_iter =
        solver->has_max_epoch ? updates((double)solver->max_epoch, per_epoch) : solver->max_iter;
    schedule->warmup = solver->has_warmup_epoch ? updates((double)solver->warmup_epoch, per_epoch)
                                                : solver->warmup_iter;
    schedule->test_interval = solver->has_test_interval_epoch
                                  ? updates((double)solver->test_interval_epoch, per_epoch)
                                  : solver->test_interval;
    schedule->snapshot_interval = solver->has_snapshot_epoch
                                      ? updates((double)solver->snapshot_epoch, per_epoch)
                                      : solver->snapshot;
    return 0;
}

/* Why a policy never changes the rate; NULL: it does. */
static const char *idle_reason(const struct ls_schedule *schedule)
{
    switch (schedule->policy) {
    case LS_POLICY_STEP:
        return schedule->gamma == 1                       ? "gamma is 1"
               : schedule->stepsize >= schedule->max_iter ? "stepsize is not below max_iter"
                                                          : NULL;
    case LS_POLICY_MULTISTEP:
        return schedule->gamma == 1                           ? "gamma is 1"
               : schedule->stepvalue_count == 0               ? "there is no stepvalue"
               : schedule->stepvalue[0] >= schedule->max_iter ? "no stepvalue is below max_iter"
                                                              : NULL;
    case LS_POLICY_EXP:
        return schedule->gamma == 1 ? "gamma is 1" : NULL;
    case LS_POLICY_INV:
        return schedule->gamma == 0 ? "gamma is 0" : schedule->power == 0 ? "power is 0" : NULL;
    case LS_POLICY_POLY:
        return schedule->power == 0 ? "power is 0" : NULL;
    case LS_POLICY_COSINE:
        return schedule->lr_min == schedule->base_lr ? "lr_min is base_lr" : NULL;
    default:
        return NULL;
    }
}

void ls_schedule_tell_odd(const struct ls_schedule *schedule,
                          void (*say)(void *user, const char *sentence), void *user)
{
    char text[200];
    const char *reason = idle_reason(schedule);
    const size_t steps = schedule->policy == LS_POLICY_MULTISTEP ? schedule->stepvalue_count : 0;
    if (schedule->max_iter < 1)
        return;
    if (schedule->base_lr == 0 && schedule->policy != LS_POLICY_MULTIFIXED)
        say(user, "base_lr is 0: no update will change a weight");
    else if (reason != NULL) {
        snprintf(text, sizeof text, "lr_policy never changes the rate: %s", reason);
        say(user, text);
    }
    for (size_t i = 0; i < steps && reason == NULL; i++)
        if (schedule->stepvalue[i] > schedule->max_iter) {
            snprintf(text, sizeof text, "stepvalue %lld is beyond max_iter %lld: it never comes",
                     (long long)schedule->stepvalue[i], (long long)schedule->max_iter);
            say(user, text);
            break;
        }
    if (schedule->warmup > schedule->max_iter) {
        snprintf(
            text, sizeof text,
            "the warm-up of %lld iterations is longer than the training (%lld): the rate never "
            "comes to what the policy says",
            (long long)schedule->warmup, (long long)schedule->max_iter);
        say(user, text);
    }
}

void ls_schedule_free(struct ls_schedule *schedule)
{
    ls_free(schedule->stepvalue);
    ls_free(schedule->stage_rate);
    ls_free(schedule->stage_end);
    *schedule = (struct ls_schedule){0};
}
