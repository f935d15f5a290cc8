/* The rows of lockstep_plan show the chains of the plan that training runs (plan/chain.c).
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "trainings/training.h"

enum { CHANNELS = 40 };

static struct lockstep_solver *load(void)
{
    return load_solver("base_lr: 0.1 lr_policy: 'fixed' max_iter: 100 micro_batch: 8 "
                       "snapshot_after_train: false net_param { %s }",
                       ls_test_net("shown_chains", NULL));
}

static void plans_show_the_chains_that_training_runs(void **state)
{
    (void)state;
    struct lockstep_solver *solver = load();
    struct lockstep_error *error = lockstep_error_new();
    struct lockstep_plan_options options;
    struct lockstep_plan *shown;
    size_t count = 0;
    lockstep_plan_options_init(&options);
    options.workers = 2;
    assert_int_equal(lockstep_plan_training(solver, &options, &shown, error), 0);
    struct training *training = start(solver, 2, NULL, NULL);
    const struct lockstep_plan_net *net = lockstep_plan_net(shown, 0);
    const struct ls_plan *plan = ls_net_first_plan(training->trainer->inner->train);
    assert_int_equal(net->step_count, plan->step_count);
    for (size_t s = 0; s < plan->step_count; s++) {
        const struct ls_step *step = &plan->steps[s];
        assert_int_equal(net->steps[s].chain, step->chain);
        assert_int_equal(net->steps[s].channels, step->chain > 0 ? step->at_once : 0);
        assert_true(step->chain == 0 || (step->at_once > 0 && step->at_once < CHANNELS));
        count += step->chain > 0;
    }
    assert_true(count > 0);
    finish(training);
    lockstep_plan_free(shown);
    lockstep_error_free(error);
    lockstep_solver_free(solver);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(plans_show_the_chains_that_training_runs)};
    write_cifar(ls_test_path("cifar.bin"), 64);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
