/* A limit on memory changes no bit. Nets of many kinds are trained without a limit, with one
 * half way to the smallest plan, and with the smallest, on one worker and on three: snapshots
 * are the same bytes, and plans are really smaller.
 *
 * LOCKSTEP_NETS="FIRST COUNT" runs other random nets than the usual ones.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>

#include "engine/plans.h"
#include "solver/training_plan.h"
#include "trainings/random_net.h"
#include "numerics/sizes.h"
#include "ops/devices.h"
#include "solver/fit.h"

enum { UPDATES = 3 };

struct outcome {
    int status;
    size_t memory;  /* that it takes */
    size_t largest; /* of one of its plans alone; those of other micro-batches may have more in the
                       arena and hold less */
    struct bytes state;
};

static size_t recomputations; /* in the first plans of all trainings so far */

/* `limit` 0: none. */
static struct outcome train(const struct lockstep_solver *solver, int workers, size_t limit)
{
    struct training *training = start(solver, workers, NULL, NULL);
    const struct ls_trainer *trainer = training->trainer->inner;
    struct outcome outcome = {.memory = limit > 0 ? limit_memory(training, limit)
                                                  : ls_net_memory_bytes(trainer->train, workers)};
    for (size_t i = 0; i < trainer->train->plan_count; i++) {
        const struct ls_plan *plan = trainer->train->plans[i]->plan;
        size_t bytes = plan->arena_bytes * (size_t)workers +
                       plan->stashed_bytes * (size_t)ls_plans_slots(trainer->train, workers);
        outcome.largest = bytes > outcome.largest ? bytes : outcome.largest;
    }
    recomputations += ls_net_first_plan(trainer->train)->recomputations;
    for (int i = 0; i < UPDATES && outcome.status == 0; i++)
        outcome.status = lockstep_trainer_step(training->trainer, 1, training->error);
    outcome.state = snapshot(training);
    finish(training);
    return outcome;
}

static void check_outcome(const struct outcome *first, struct outcome other, const char *what,
                          int workers, size_t limit)
{
    assert_int_equal(first->status, other.status);
    check_same(first->state, other.state, "%s, %d workers, %zu bytes", what, workers, limit);
}

/* Returns the smallest part of its memory that the net can be trained in. */
static double check_limits(const struct lockstep_solver *solver, const char *what)
{
    struct outcome free_one = train(solver, 1, 0), least = train(solver, 1, 1);
    size_t middle = (free_one.memory + least.memory) / 2;
    double part = (double)least.memory / (double)free_one.memory;
    assert_true(least.memory <= free_one.memory);
    check_outcome(&free_one, least, what, 1, 1);
    struct outcome half = train(solver, 1, middle);
    if (half.largest > middle)
        fail_msg("%zu bytes where %zu are allowed: %s", half.largest, middle, what);
    check_outcome(&free_one, half, what, 1, middle);
    for (int i = 0; i < 3; i++) {
        size_t limit = i == 0 ? 0 : i == 1 ? 3 * middle : 1;
        check_outcome(&free_one, train(solver, 3, limit), what, 3, limit);
    }
    free(free_one.state.data);
    return part;
}

/* ---- Nets by hand ---------------------------------------------------------------------------- */

static const struct net {
    const char *what, *file; /* of tests/nets */
    const char *group;       /* of its norms; NULL: it has none */
    double part;             /* of its memory is enough */
} nets[] = {
    {"convolution and pooling", "limits_convolutions", NULL, 1.0},
    {"a deep chain", "limits_chain", NULL, 0.6},
    {"residual blocks, statistics of the batch", "limits_residual", "0", 0.6},
    {"residual blocks, statistics of groups", "limits_residual", "5", 0.7},
    {"dropout and inner products", "limits_products", NULL, 1.0},
    {"dropout between convolutions", "limits_dropout", NULL, 0.85},
};

static struct lockstep_solver *solver_of(const struct net *net, const char *settings,
                                         const char *batch)
{
    const char *text =
        ls_test_net(net->file, LS_TEST_VALUES({"batch", batch}, {"group", net->group}));
    return load_solver(SGD "micro_batch: 5 max_iter: 9 %s net_param { %s }\n", settings, text);
}

static void memory_limits_change_no_bit(void **state)
{
    (void)state;
    write_cifar(ls_test_path("cifar.bin"), 61);
    for (size_t i = 0; i < 2 * sizeof nets / sizeof *nets; i++) {
        const struct net *net = &nets[i / 2];
        const char *settings = i % 2 == 0 ? "random_seed: 3" : "random_seed: 3 precision: BF16";
        struct lockstep_solver *solver = solver_of(net, settings, "20");
        double part = check_limits(solver, net->what);
        if (part > net->part)
            fail_msg("%s, %s: %.2f of the memory is needed", net->what, settings, part);
        lockstep_solver_free(solver);
    }
}

/* ---- Pictures of different sizes ------------------------------------------------------------- */

static void memory_limits_change_no_bit_with_pictures_of_several_sizes(void **state)
{
    (void)state;
    mkdir(ls_test_path("p"), 0755);
    mkdir(ls_test_path("p_maps"), 0755);
    for (int i = 0; i < PICTURES; i++)
        write_pair("p", i, size_of(i));
    struct lockstep_solver *solver =
        make_solver(SGD "micro_batch: 3 max_iter: 9", "p", "batch_size: 12 shuffle: true", "",
                    (struct size_net){.file = "sizes_deconvolved"});
    check_limits(solver, "sizes");
    lockstep_solver_free(solver);
}

/* ---- Nets at random -------------------------------------------------------------------------- */

static void memory_limits_change_no_bit_of_random_nets(void **state)
{
    (void)state;
    uint64_t first = 1, count = 12;
    const char *chosen = getenv("LOCKSTEP_NETS");
    if (chosen != NULL && sscanf(chosen, "%" SCNu64 " %" SCNu64, &first, &count) != 2)
        fail_msg("LOCKSTEP_NETS is \"FIRST COUNT\", not \"%s\"", chosen);
    write_random_net_data();
    recomputations = 0;
    for (uint64_t seed = first; seed < first + count; seed++) {
        struct ls_text text = make_random_net(seed);
        assert_false(text.failed);
        struct lockstep_solver *solver = load_solver("%s", text.data);
        check_limits(solver, text.data);
        lockstep_solver_free(solver);
        ls_text_free(&text);
    }
    assert_true(recomputations > 0);
}

/* ---- The whole of a training ----------------------------------------------------------------- */

static double recompute_work(const struct ls_trainer *trainer)
{
    double work = 0;
    for (size_t i = 0; i < trainer->train->plan_count; i++)
        work += trainer->train->plans[i]->plan->recompute_work;
    return work;
}

/* Plans for `memory` in all (1: the smallest). Returns what they take, *work is that of
 * recomputations. */
static size_t fit_into(const struct lockstep_solver *solver, size_t memory, double *work)
{
    struct ls_error *error = calloc(1, sizeof *error);
    struct ls_trainer *trainer;
    struct ls_fit fit;
    assert_int_equal(
        ls_training_plan_create(solver->definition, ls_device_default(), 2, 0, &trainer, error), 0);
    if (memory == 1) {
        assert_int_equal(ls_fit_of_trainer(trainer, &fit, error), 0);
        assert_int_equal(ls_fit_limit(&fit, 1, &trainer->forecast, error), 0);
    } else if (ls_fit_trainer(trainer, memory, error) != 0) {
        fail_msg("%s", error->problems[0].message);
    }
    size_t total = ls_forecast_total(&trainer->forecast);
    *work = recompute_work(trainer);
    ls_trainer_free(trainer);
    free(error);
    return total;
}

/* With a limit between the least memory and all that a training can use, less is recomputed than
 * with the least; also where micro-batches of two sizes, or tests, have different needs. */
static void more_memory_means_less_recomputation(void **state)
{
    (void)state;
    int limited = 0;
    write_cifar(ls_test_path("cifar.bin"), 61);
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
        struct lockstep_solver *solver = solver_of(&nets[i], "test_interval: 2", "22");
        double free_work, least_work, work;
        size_t most = fit_into(solver, 0, &free_work), least = fit_into(solver, 1, &least_work);
        for (int part = 1; part < 8 && least < most && least_work > free_work; part++) {
            size_t limit = least + (most - least) / 8 * (size_t)part;
            assert_true(fit_into(solver, limit, &work) <= limit);
            /* Where a hundredth can be saved; less may be one step, which is recomputed or not. */
            if (part >= 4 && most - least > most / 100 && work >= least_work)
                fail_msg("%s: all that can be is recomputed for %d/8", nets[i].what, part);
            limited++;
        }
        lockstep_solver_free(solver);
    }
    assert_true(limited > 20);
}

/* What fits a training with a limit of the caller's, where so much memory is there at all. */
static int fit_with(const struct lockstep_solver *solver, size_t memory, size_t there,
                    struct ls_forecast *forecast, struct ls_error *error)
{
    struct ls_trainer *trainer;
    struct ls_fit fit;
    assert_int_equal(
        ls_training_plan_create(solver->definition, ls_device_default(), 2, 0, &trainer, error), 0);
    assert_int_equal(ls_fit_of_trainer(trainer, &fit, error), 0);
    fit.there = there;
    int status = ls_fit(&fit, memory, forecast, error);
    ls_trainer_free(trainer);
    return status;
}

static void what_a_container_has_is_a_limit(void **state)
{
    (void)state;
    struct ls_forecast forecast;
    struct ls_error *error = calloc(1, sizeof *error);
    write_cifar(ls_test_path("cifar.bin"), 61);
    struct lockstep_solver *solver = solver_of(&nets[2], "", "20");
    double work;
    const size_t most = fit_into(solver, 0, &work), least = fit_into(solver, 1, &work);
    assert_true(least < most);
    assert_int_equal(fit_with(solver, 0, 2 * most, &forecast, error), 0);
    assert_true(forecast.limit == 0 && !forecast.contained); /* there is enough */
    assert_int_equal(fit_with(solver, 3 * most, 2 * most, &forecast, error), 0);
    assert_true(forecast.limit == 3 * most && !forecast.contained);
    const size_t limit = (least + most) / 2;
    assert_int_equal(fit_with(solver, 0, limit, &forecast, error), 0);
    assert_true(forecast.limit == limit && forecast.contained);
    assert_true(ls_forecast_total(&forecast) <= limit);
    assert_int_equal(fit_with(solver, 3 * most, limit, &forecast, error), 0);
    assert_true(forecast.limit == limit && forecast.contained);
    assert_int_equal(fit_with(solver, limit, 2 * most, &forecast, error), 0);
    assert_true(forecast.limit == limit && !forecast.contained);
    assert_int_equal(fit_with(solver, 0, least / 2, &forecast, error), LOCKSTEP_RESOURCE);
    assert_non_null(strstr(error->problems[0].message, "limit of this container leaves it"));
    assert_int_equal(fit_with(solver, LS_MEMORY_LEAST, least / 2, &forecast, error),
                     LOCKSTEP_RESOURCE);
    lockstep_solver_free(solver);
    free(error);
}

/* ---- Tests ----------------------------------------------------------------------------------- */

/* A test phase works in the memory that training has anyway. */
static void test_phases_need_no_more_memory_than_training(void **state)
{
    (void)state;
    write_cifar(ls_test_path("cifar.bin"), 61);
    for (int i = 0; i < 4; i++) {
        const int group = i / 2;
        const struct net net = {.file = "limits_residual", .group = group == 0 ? "0" : "5"};
        const char *settings = i % 2 == 0 ? "test_interval: 2" : "test_interval: 2 precision: BF16";
        struct lockstep_solver *solver = solver_of(&net, settings, "20");
        struct training *training = start(solver, 2, NULL, NULL);
        const struct ls_trainer *trainer = training->trainer->inner;
        const struct ls_plan *train_plan = ls_net_first_plan(trainer->train);
        const struct ls_plan *test_plan = ls_net_first_plan(trainer->tests[0].net);
        if (group == 0) /* little of what this training keeps is in its arena */
            assert_true(train_plan->stashed_bytes > 0 &&
                        test_plan->arena_bytes > train_plan->arena_bytes);
        else
            assert_true(test_plan->arena_bytes < train_plan->arena_bytes);
        step(training, 2);
        assert_int_equal(ls_room_bytes(&trainer->engine->room, 2),
                         ls_net_memory_bytes(trainer->train, 2));
        finish(training);
        lockstep_solver_free(solver);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_limits_change_no_bit),
        cmocka_unit_test(memory_limits_change_no_bit_with_pictures_of_several_sizes),
        cmocka_unit_test(memory_limits_change_no_bit_of_random_nets),
        cmocka_unit_test(more_memory_means_less_recomputation),
        cmocka_unit_test(what_a_container_has_is_a_limit),
        cmocka_unit_test(test_phases_need_no_more_memory_than_training)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
