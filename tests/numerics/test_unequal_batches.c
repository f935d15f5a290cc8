/* Data layers of one net whose batches have different sizes: batch n of the net is batch n of each.
 * The bytes of a training do not depend on workers, ranks or interruptions, each layer brings the
 * samples that it would bring alone, and what cannot be in step is told at the start.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "trainings/ranks.h"
#include "trainings/training.h"

enum { SAMPLES = 84 /* 7 batches of 12 */ };

static struct lockstep_solver *make_solver(const char *count, const char *tested, const char *first,
                                           const char *second, const char *more)
{
    const char *net =
        ls_test_net("unequal_batches", LS_TEST_VALUES({"count", count}, {"tested", tested},
                                                      {"first", first}, {"second", second}));
    return load_solver("base_lr: 0.05 momentum: 0.9 lr_policy: 'fixed' max_iter: 100 "
                       "random_seed: 3 test_interval: 2 %s net_param { %s }\n",
                       more, net);
}

/* The second layer begins again after 12 batches and a half, the first after 7. */
static void any_form_of_a_training_gives_the_same_bits(void **state)
{
    (void)state;
    struct lockstep_solver *solver = make_solver("50", "28", "", "", "iter_size: 6");
    check_workers(solver, NULL, 6);
    check_resumed(solver, 3, 4);
    struct bytes expected = run_alone(solver, 5);
    for (int dynamic = 0; dynamic < 2; dynamic++) {
        struct job job = {.solver = solver,
                          .ranks = 3,
                          .workers = {1, 2, 1},
                          .updates = 5,
                          .dynamic = dynamic == 1};
        check_job(&job, expected, dynamic ? "work queue" : "static");
    }
    free(expected.data);
    check_learns(solver, 60, 0.9);
    lockstep_solver_free(solver);
}

/* Epochs end together: 7 batches of 12 and of 4, with 2 samples that are left out. */
static void epochs_that_end_together_give_the_same_bits(void **state)
{
    (void)state;
    struct lockstep_solver *solver =
        make_solver("30", "28", "last_batch: DROP", "last_batch: DROP", "iter_size: 6");
    check_workers(solver, NULL, 7);
    check_resumed(solver, 4, 5);
    struct bytes expected = run_alone(solver, 7);
    struct job job = {.solver = solver, .ranks = 2, .workers = {2, 1}, .updates = 7};
    check_job(&job, expected, "epochs");
    free(expected.data);
    lockstep_solver_free(solver);
}

/* ---- What each layer brings ------------------------------------------------------------------ */

/* The weights of a layer after some updates; `few` and `many`: the parts of the net that are there.
 * Its micro-batches are whole batches in any case. */
static void train_branch(bool few, bool many, const char *name, float *weights, size_t size)
{
    static const char *const phase[] = {"phase: TEST", "phase: TRAIN"};
    const char *net =
        ls_test_net("unequal_branches", LS_TEST_VALUES({"few", phase[few]}, {"many", phase[many]}));
    struct lockstep_solver *solver =
        load_solver("base_lr: 0.05 momentum: 0.9 lr_policy: 'fixed' max_iter: 100 random_seed: 3 "
                    "iter_size: 2 %s net_param { %s }\n",
                    few && many ? ""
                    : few       ? "micro_batch: 4"
                                : "micro_batch: 12",
                    net);
    struct training *training = start(solver, 1, NULL, NULL);
    bool found = false;
    step(training, 25);
    for (size_t i = 0; i < lockstep_trainer_parameter_count(training->trainer); i++)
        if (strcmp(lockstep_trainer_parameter_name(training->trainer, i), name) == 0) {
            found = true;
            assert_int_equal(lockstep_trainer_read_parameter(training->trainer, i, weights, size,
                                                             training->error),
                             0);
        }
    assert_true(found);
    finish(training);
    lockstep_solver_free(solver);
}

static void each_layer_brings_what_it_would_bring_alone(void **state)
{
    (void)state;
    enum { SIZE = 10 * 15 * 15 };
    static float alone[SIZE], both[SIZE];
    train_branch(true, false, "a.weight", alone, SIZE);
    train_branch(true, true, "a.weight", both, SIZE);
    assert_memory_equal(alone, both, sizeof alone);
    train_branch(false, true, "b.weight", alone, SIZE);
    assert_memory_not_equal(alone, both, sizeof alone); /* the comparison sees such things */
    train_branch(true, true, "b.weight", both, SIZE);
    assert_memory_equal(alone, both, sizeof alone);
}

/* ---- What cannot be -------------------------------------------------------------------------- */

static void check_refused(struct lockstep_solver *solver, const char *text)
{
    struct lockstep_train_options options;
    struct lockstep_trainer *trainer = NULL;
    struct lockstep_error *error = lockstep_error_new();
    lockstep_train_options_init(&options);
    assert_int_equal(lockstep_trainer_create(solver, &options, &trainer, error),
                     LOCKSTEP_DEFINITION);
    if (strstr(lockstep_error_text(error), text) == NULL)
        fail_msg("not '%s': %s", text, lockstep_error_text(error));
    lockstep_error_free(error);
    lockstep_solver_free(solver);
}

static void epochs_that_do_not_end_together_are_told_at_the_start(void **state)
{
    (void)state;
    check_refused(make_solver("50", "32", "", "", ""),
                  "few: an epoch of its data is 8 batches of 4 samples, and one of the net 7 "
                  "batches of 12");
    check_refused(make_solver("50", "30", "", "", ""),
                  "few: has batches of 4 samples, and those of the net have 12, but the last one "
                  "of an epoch is smaller");
    check_refused(make_solver("50", "28", "last_batch: DROP", "last_batch: DROP", ""),
                  "few: an epoch of its data is 12 batches");
    check_refused(
        make_solver("50", "28", "", "", "micro_batch: 6"),
        "scores: mixes the samples of a batch, so that each batch of 12 is one micro-batch, "
        "but micro_batch is 6");
}

static int set_up(void **state)
{
    (void)state;
    write_idx_pair(ls_test_path("images"), ls_test_path("labels"), SAMPLES, 15);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_form_of_a_training_gives_the_same_bits),
        cmocka_unit_test(epochs_that_end_together_give_the_same_bits),
        cmocka_unit_test(each_layer_brings_what_it_would_bring_alone),
        cmocka_unit_test(epochs_that_do_not_end_together_are_told_at_the_start),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
