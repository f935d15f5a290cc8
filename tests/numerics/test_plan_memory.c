/* Plans of random networks, with the kernels that train them: with any amount of memory and any
 * number of workers, in training and in tests, no step overwrites what is still needed.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/plans.h"
#include "solver/training_plan.h"
#include "trainings/random_net.h"
#include "ops/devices.h"
#include "unit/plan/plan_memory.h"

enum { SEEDS = 300, CAFFE_SEEDS = 150 };

struct made {
    struct ls_text text;
    uint64_t seed;
};

static struct seen {
    size_t plans, shared, stashed, chained, recomputed, gathered;
} seen;

static void check_plan(const struct ls_net_plan *of, const struct made *made, const char *what)
{
    const struct ls_plan *plan = of->plan;
    struct memory_check check = check_plan_memory(plan, NULL, 0);
    free(check.contents);
    if (check.problem[0] != '\0') {
        fputs(made->text.data, stderr); /* print_error would cut it off */
        fail_msg("seed %d, %s, micro-batches of %d: %s", (int)made->seed, what, (int)of->samples,
                 check.problem);
    }
    seen.plans++;
    seen.shared += check.shared;
    seen.stashed += check.stashed;
    seen.chained += check.chained;
    seen.recomputed += plan->recomputations;
    seen.gathered += ls_plan_gathers(plan);
}

static void check_net(const struct ls_net *net, const struct made *made, const char *what)
{
    for (size_t i = 0; i < net->plan_count; i++)
        check_plan(net->plans[i], made, what);
}

static void check_nets(struct ls_trainer *trainer, const struct made *made, const char *what)
{
    check_net(trainer->train, made, what);
    for (size_t i = 0; i < trainer->test_count; i++)
        check_net(trainer->tests[i].net, made, what);
}

static void check_seed(uint64_t seed, struct ls_text text)
{
    const int workers = 1 + (int)(seed % 3);
    struct made made = {text, seed};
    struct ls_error *error = calloc(1, sizeof *error);
    struct lockstep_solver *solver = load_solver("%s", text.data);
    struct ls_trainer *trainer = NULL;
    if (ls_training_plan_create(solver->definition, ls_device_default(), workers, 0, &trainer,
                                error) != 0)
        fail_msg("%s", error->problems[0].message);
    check_nets(trainer, &made, "without a limit");
    size_t most = ls_net_memory_bytes(trainer->train, workers);
    assert_int_equal(ls_plans_limit(trainer->train, 1, error), 0);
    check_nets(trainer, &made, "the least memory");
    size_t least = ls_net_memory_bytes(trainer->train, workers);
    assert_int_equal(ls_plans_limit(trainer->train, (most + least) / 2, error), 0);
    check_nets(trainer, &made, "some memory");
    ls_trainer_free(trainer);
    lockstep_solver_free(solver);
    ls_text_free(&made.text);
    free(error);
}

static void plans_of_random_nets_overwrite_nothing_needed(void **state)
{
    (void)state;
    write_random_net_data();
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        check_seed(seed, make_random_net(seed));
    for (uint64_t seed = 1; seed <= CAFFE_SEEDS; seed++)
        check_seed(seed, make_random_caffe_net(seed));
    print_message("%zu plans: %zu steps in place, %zu in chains, %zu values stashed, %zu "
                  "recomputations, %zu plans that gather\n",
                  seen.plans, seen.shared, seen.chained, seen.stashed, seen.recomputed,
                  seen.gathered);
    assert_true(seen.shared > 0 && seen.stashed > 0 && seen.recomputed > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_of_random_nets_overwrite_nothing_needed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
