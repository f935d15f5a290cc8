/* Learning rates: each policy against its formula, as Caffe and the forks have it.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver/schedule.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "support/support.h"

static struct ls_schedule schedule;

static void begin(Lockstep__SolverParameter *solver, const char *policy)
{
    lockstep__solver_parameter__init(solver);
    solver->lr_policy = (char *)policy;
    solver->base_lr = 0.5F;
    solver->max_iter = 100;
    solver->gamma = 0.75F;
    solver->power = 1.5F;
    solver->stepsize = 7;
}

static void make(const Lockstep__SolverParameter *solver, int64_t samples)
{
    struct ls_error error = {0};
    ls_schedule_free(&schedule);
    assert_int_equal(ls_schedule_init(&schedule, NULL, solver, samples, 0, &error), 0);
}

static void expect(int64_t iteration, double rate)
{
    double found = ls_schedule_rate(&schedule, iteration);
    if (!(fabs(found - rate) <= 1e-12 * fabs(rate)))
        fail_msg("update %lld: %.17g, not %.17g", (long long)iteration, found, rate);
}

/* SGDSolver::GetLearningRate, policy by policy. */
static void policies_of_caffe(void **state)
{
    (void)state;
    Lockstep__SolverParameter solver;
    static const char *const names[] = {"fixed", "step", "exp", "inv", "poly", "sigmoid"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        begin(&solver, names[i]);
        make(&solver, 1);
        for (int t = 0; t < 100; t++) {
            double factor[] = {1,
                               pow(0.75, t / 7),
                               pow(0.75, t),
                               pow(1 + 0.75 * t, -1.5),
                               pow(1 - t / 100.0, 1.5),
                               1 / (1 + exp(-0.75 * (t - 7)))};
            expect(t, 0.5 * factor[i]);
        }
    }
}

/* Caffe's current_step grows by one in each update whose number has reached the next value. */
static void steps_at_given_updates(void **state)
{
    (void)state;
    Lockstep__SolverParameter solver;
    int32_t values[] = {3, 4, 10};
    begin(&solver, "multistep");
    solver.n_stepvalue = 3;
    solver.stepvalue = values;
    make(&solver, 1);
    int current = 0;
    for (int t = 0; t < 20; t++) {
        if (current < 3 && t >= values[current])
            current++;
        expect(t, 0.5 * pow(0.75, current));
    }
}

/* A stage's rate holds up to its stageiter, that update included; the last one's for ever. */
static void stages_with_rates_of_their_own(void **state)
{
    (void)state;
    Lockstep__SolverParameter solver;
    float rates[] = {0.25F, 1, 0.125F};
    int32_t ends[] = {2, 5, 8};
    begin(&solver, "multifixed");
    solver.n_stagelr = solver.n_stageiter = 3;
    solver.stagelr = rates;
    solver.stageiter = ends;
    make(&solver, 1);
    static const double wanted[] = {.25, .25, .25, 1, 1, 1, .125, .125, .125, .125, .125};
    for (int t = 0; t < 11; t++)
        expect(t, wanted[t]);
}

/* A rate to begin with, and a factor, are two things: with base_lr 0.5 a rate of 0.1 is the factor
 * 0.2. Intel's warm-up replaces the policy; ours multiplies it, and ends one update earlier. */
static void warm_ups(void **state)
{
    (void)state;
    Lockstep__SolverParameter solver;
    begin(&solver, "exp");
    solver.has_warmup_iter = solver.has_warmup_start_lr = 1;
    solver.warmup_iter = 4;
    solver.warmup_start_lr = 0.125F;
    make(&solver, 1);
    for (int t = 0; t < 4; t++)
        expect(t, (t * 0.5 + (4 - t) * 0.125) / 4);
    expect(4, 0.5 * pow(0.75, 4));
    solver.has_warmup_start_lr = 0;
    solver.has_warmup_start = 1;
    solver.warmup_start = 0.25F;
    make(&solver, 1);
    for (int t = 0; t < 4; t++)
        expect(t, 0.5 * pow(0.75, t) * (0.25 + 0.75 * (t + 1) / 4));
}

/* A larger batch raises all rates that a solver names. */
static void a_batch_scales_all_rates(void **state)
{
    (void)state;
    Lockstep__SolverParameter solver;
    float rates[] = {0.25F, 1};
    int32_t ends[] = {2, 5};
    begin(&solver, "multifixed");
    solver.n_stagelr = solver.n_stageiter = 2;
    solver.stagelr = rates;
    solver.stageiter = ends;
    solver.has_warmup_iter = solver.has_warmup_start_lr = solver.has_base_batch_size = 1;
    solver.warmup_iter = 2;
    solver.warmup_start_lr = 0.125F;
    solver.base_batch_size = 64;
    solver.lr_scaling = LOCKSTEP__SOLVER_PARAMETER__LEARNING_RATE_SCALING__LINEAR;
    make(&solver, 128);
    expect(0, 0.25);
    expect(1, (1 + 0.25) / 2);
    expect(2, 0.5);
    expect(3, 2);
    ls_schedule_free(&schedule);
}

/* The schedule of nanoGPT's train.py: linear warm-up, cosine from there on. */
static void schedule_of_language_models(void **state)
{
    (void)state;
    enum { WARM = 12, ALL = 90 };
    Lockstep__SolverParameter solver;
    for (int newer = 0; newer < 2; newer++) { /* learning_rate * it / warmup_iters once */
        begin(&solver, "cosine");
        solver.max_iter = ALL;
        solver.lr_min = 0.0625F;
        solver.has_warmup_iter = 1;
        solver.warmup_iter = WARM;
        solver.has_warmup_start_lr = 1;
        solver.warmup_start_lr = newer ? 0.5F / (WARM + 1) : 0;
        solver.has_cosine_after_warmup = solver.cosine_after_warmup = 1;
        make(&solver, 1);
        for (int t = 0; t < ALL + 5; t++) {
            double part = t < ALL ? (t - WARM) / (double)(ALL - WARM) : 1;
            double rate = 0.0625 + (0.5 - 0.0625) * 0.5 * (1 + cos(3.14159265358979323846 * part));
            if (t < WARM)
                rate = newer ? 0.5 * (t + 1) / (WARM + 1) : 0.5 * t / WARM;
            double found = ls_schedule_rate(&schedule, t);
            if (!(fabs(found - rate) <= 1e-8)) /* warmup_start_lr is a float */
                fail_msg("update %d: %.17g, not %.17g", t, found, rate);
        }
    }
    begin(&solver, "cosine"); /* Lockstep's own warm-up, and one that never ends */
    solver.has_warmup_iter = solver.has_cosine_after_warmup = solver.cosine_after_warmup = 1;
    solver.warmup_iter = 100;
    make(&solver, 1);
    for (int t = 0; t < 100; t++)
        expect(t, 0.5 * (t + 1) / 100);
    expect(100, 0);
}

static void collect(void *user, const char *sentence)
{
    char *said = user;
    snprintf(said + strlen(said), 500 - strlen(said), "%s; ", sentence);
}

/* What a schedule says in vain is told; one that acts is not spoken of. */
static void schedules_that_cannot_be_meant(void **state)
{
    (void)state;
    static int32_t late[] = {20, 100, 101}, never[] = {100, 200}, good[] = {20, 100};
    const struct {
        const char *policy;
        int32_t *stepvalue;
        size_t steps;
        int32_t stepsize, warmup;
        float gamma, rate;
        const char *words; /* "": nothing is said */
    } cases[] = {
        {"fixed", NULL, 0, 7, 0, 1, 0.5F, ""},
        {"fixed", NULL, 0, 7, 100, 1, 0.5F, ""},
        {"fixed", NULL, 0, 7, 101, 1, 0.5F,
         "the warm-up of 101 iterations is longer than the training (100)"},
        {"fixed", NULL, 0, 7, 0, 1, 0, "base_lr is 0: no update will change a weight"},
        {"step", NULL, 0, 99, 0, 0.1F, 0.5F, ""},
        {"step", NULL, 0, 100, 0, 0.1F, 0.5F, "never changes the rate: stepsize is not below"},
        {"step", NULL, 0, 7, 0, 1, 0.5F, "never changes the rate: gamma is 1"},
        {"multistep", good, 2, 7, 0, 0.1F, 0.5F, ""},
        {"multistep", late, 3, 7, 0, 0.1F, 0.5F, "stepvalue 101 is beyond max_iter 100"},
        {"multistep", never, 2, 7, 0, 0.1F, 0.5F, "never changes the rate: no stepvalue is below"},
        {"inv", NULL, 0, 7, 0, 0, 0.5F, "never changes the rate: gamma is 0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Lockstep__SolverParameter solver;
        char said[500] = "";
        begin(&solver, cases[i].policy);
        solver.stepvalue = cases[i].stepvalue;
        solver.n_stepvalue = cases[i].steps;
        solver.stepsize = cases[i].stepsize;
        solver.warmup_iter = cases[i].warmup;
        solver.gamma = cases[i].gamma;
        solver.base_lr = cases[i].rate;
        make(&solver, 1);
        ls_schedule_tell_odd(&schedule, collect, said);
        if (cases[i].words[0] == '\0')
            assert_string_equal(said, "");
        else if (strstr(said, cases[i].words) == NULL)
            fail_msg("'%s' is not in: %s", cases[i].words, said);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schedule_of_language_models),
        cmocka_unit_test(policies_of_caffe),
        cmocka_unit_test(steps_at_given_updates),
        cmocka_unit_test(stages_with_rates_of_their_own),
        cmocka_unit_test(warm_ups),
        cmocka_unit_test(schedules_that_cannot_be_meant),
        cmocka_unit_test(a_batch_scales_all_rates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
