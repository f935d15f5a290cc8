/* Samples along axis 1: time-major nets train the same bits on any number of workers and ranks and
 * from a snapshot; with one step a sample, where the computation is the same, those of the net
 * whose samples lie along axis 0; with several steps, its figures.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "base/random.h"
#include "support/npy_files.h"
#include "trainings/ranks.h"

enum { RECORDS = 50, FEATURES = 3, STEPS = 5, CLASSES = 4 };

/* The class of a step is that of its largest number, or 3. */
static int setup(void **state)
{
    (void)state;
    uint64_t key = ls_random_key(1, LS_RANDOM_TEST, "steps");
    for (int steps = 1; steps <= STEPS; steps += STEPS - 1) {
        static float x[RECORDS * STEPS * FEATURES];
        static int32_t label[RECORDS * STEPS];
        int rows = RECORDS * steps;
        for (int i = 0; i < rows * FEATURES; i++)
            x[i] = ls_random_uniform(key, (uint64_t)steps, (uint64_t)i) - 0.5F;
        for (int i = 0; i < rows; i++) {
            const float *row = x + (ptrdiff_t)i * FEATURES;
            label[i] = row[0] > row[1] ? 0 : row[1] > row[2] ? 1 : 2;
            label[i] = row[2] > 0.3F ? 3 : label[i];
        }
        write_npy(ls_test_path(ls_test_text("x%d.npy", steps)), "<f4",
                  ls_test_text("(%d, %d, %d)", RECORDS, steps, FEATURES), x,
                  (size_t)(rows * FEATURES) * sizeof *x);
        write_npy(ls_test_path(ls_test_text("label%d.npy", steps)), "<i4",
                  ls_test_text("(%d, %d)", RECORDS, steps), label, (size_t)rows * sizeof *label);
    }
    return 0;
}

static struct lockstep_solver *make_solver(int steps, int axis, const char *loss)
{
    return load_solver(
        "base_lr: 0.2 momentum: 0.9 lr_policy: 'fixed' max_iter: 200 random_seed: 3\n"
        "micro_batch: 2 net_param { %s }\n",
        ls_test_net("steps", LS_TEST_VALUES({"steps", ls_test_text("%d", steps)},
                                            {"axis", ls_test_text("%d", axis)}, {"loss", loss})));
}

static void same_bytes_on_any_number_of_workers(void **state)
{
    (void)state;
    struct lockstep_solver *solver = make_solver(STEPS, 1, "");
    check_workers(solver, NULL, 9);
    lockstep_solver_free(solver);
}

static void same_bytes_on_ranks(void **state)
{
    (void)state;
    struct lockstep_solver *solver = make_solver(STEPS, 1, "");
    struct bytes expected = run_alone(solver, 7);
    for (int dynamic = 0; dynamic < 2; dynamic++) {
        struct job job = {.solver = solver,
                          .ranks = 3,
                          .workers = {1, 2, 1},
                          .updates = 7,
                          .dynamic = dynamic == 1,
                          .audit = 0.5};
        check_job(&job, expected, dynamic ? "work queue" : "static");
    }
    free(expected.data);
    lockstep_solver_free(solver);
}

static uint64_t hash_of(struct training *training)
{
    uint64_t hash;
    assert_int_equal(lockstep_trainer_hash(training->trainer, &hash, training->error), 0);
    return hash;
}

/* All divisors: by labels that count, by steps, by rows, by nothing. */
static const char *const divisors[] = {"", "normalization: FULL", "normalization: BATCH_SIZE",
                                       "normalization: NONE"};

static void one_step_gives_the_bits_of_samples_in_front(void **state)
{
    (void)state;
    for (size_t d = 0; d < sizeof divisors / sizeof *divisors; d++) {
        uint64_t hash[2];
        double loss[2];
        for (int axis = 0; axis < 2; axis++) {
            struct lockstep_solver *solver = make_solver(1, axis, divisors[d]);
            struct training *training = start(solver, 2, NULL, NULL);
            step(training, 9);
            hash[axis] = hash_of(training);
            loss[axis] = lockstep_trainer_loss(training->trainer);
            finish(training);
            lockstep_solver_free(solver);
        }
        assert_true(loss[0] == loss[1]);
        assert_true(hash[0] == hash[1]);
    }
}

static void several_steps_give_the_figures_of_samples_in_front(void **state)
{
    (void)state;
    for (size_t d = 0; d < sizeof divisors / sizeof *divisors; d++) {
        double loss[2][5];
        for (int axis = 0; axis < 2; axis++) {
            struct lockstep_solver *solver = make_solver(STEPS, axis, divisors[d]);
            struct training *training = start(solver, 2, NULL, NULL);
            for (int i = 0; i < 5; i++) {
                step(training, 1);
                loss[axis][i] = lockstep_trainer_loss(training->trainer);
            }
            finish(training);
            lockstep_solver_free(solver);
        }
        for (int i = 0; i < 5; i++)
            if (!(fabs(loss[0][i] - loss[1][i]) <= 1e-5 * fabs(loss[0][i])))
                fail_msg("%s, update %d: %.9g, and %.9g with time in front", divisors[d], i,
                         loss[0][i], loss[1][i]);
    }
}

static void loss_goes_down(void **state)
{
    (void)state;
    struct lockstep_solver *solver = make_solver(STEPS, 1, "");
    check_learns(solver, 101, 0.7);
    lockstep_solver_free(solver);
}

static void same_bytes_from_a_snapshot(void **state)
{
    (void)state;
    struct lockstep_solver *solver = make_solver(STEPS, 1, "");
    check_resumed(solver, 3, 5);
    lockstep_solver_free(solver);
}

static void an_axis_that_is_not_there_is_refused(void **state)
{
    (void)state;
    struct lockstep_solver *solver = make_solver(STEPS, 3, "");
    struct lockstep_error *error = lockstep_error_new();
    struct lockstep_train_options options;
    struct lockstep_trainer *trainer = NULL;
    lockstep_train_options_init(&options);
    options.workers = 1;
    assert_int_equal(lockstep_trainer_create(solver, &options, &trainer, error),
                     LOCKSTEP_DEFINITION);
    const char *text = lockstep_error_text(error);
    if (strstr(text, "top 1 has 3 axes with that of the samples; there is no axis 3") == NULL)
        fail_msg("%s", text);
    lockstep_error_free(error);
    lockstep_solver_free(solver);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bytes_on_any_number_of_workers),
        cmocka_unit_test(same_bytes_on_ranks),
        cmocka_unit_test(one_step_gives_the_bits_of_samples_in_front),
        cmocka_unit_test(several_steps_give_the_figures_of_samples_in_front),
        cmocka_unit_test(loss_goes_down),
        cmocka_unit_test(same_bytes_from_a_snapshot),
        cmocka_unit_test(an_axis_that_is_not_there_is_refused),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
