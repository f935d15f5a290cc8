/* Training on arrays: two inputs of different shapes and types and a dense label give the same bits
 * on any number of workers and ranks, and from a snapshot.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <unistd.h>

#include "base/random.h"
#include "support/npy_files.h"
#include "trainings/ranks.h"

enum { RECORDS = 50, FIELD = 2 * 5 * 5, NUMBERS = 7, TARGET = 6 };

static void write_arrays(void)
{
    static float field[RECORDS * FIELD];
    static int16_t numbers[RECORDS * NUMBERS];
    static double target[RECORDS * TARGET];
    uint64_t key = ls_random_key(1, LS_RANDOM_TEST, "arrays");
    for (int i = 0; i < RECORDS * FIELD; i++)
        field[i] = ls_random_uniform(key, 0, (uint64_t)i) - 0.5F;
    for (int i = 0; i < RECORDS * NUMBERS; i++)
        numbers[i] = (int16_t)((int)ls_random_below(key, 1, (uint64_t)i, 5) - 2);
    for (int i = 0; i < RECORDS * TARGET; i++)
        target[i] = ls_random_below(key, 2, (uint64_t)i, 1000) * 0x1p-10;
    write_npy(ls_test_path("field.npy"), "<f4", "(50, 2, 5, 5)", field, sizeof field);
    write_npy(ls_test_path("numbers.npy"), "<i2", "(50, 7)", numbers, sizeof numbers);
    write_npy(ls_test_path("target.npy"), "<f8", "(50, 6)", target, sizeof target);
}

static struct lockstep_solver *make_solver(const char *fields)
{
    return load_solver(
        "base_lr: 0.05 momentum: 0.9 lr_policy: 'fixed' max_iter: 100 random_seed: 3 %s\n"
        "net_param { %s }\n",
        fields, ls_test_net("arrays", NULL));
}

static void same_bytes_on_any_number_of_workers(void **state)
{
    (void)state;
    struct lockstep_solver *solver = make_solver("micro_batch: 2");
    check_workers(solver, NULL, 9);
    lockstep_solver_free(solver);
}

static void loss_goes_down(void **state)
{
    (void)state;
    struct lockstep_solver *solver = make_solver("");
    check_learns(solver, 61, 0.5);
    lockstep_solver_free(solver);
}

static void same_bytes_on_ranks(void **state)
{
    (void)state;
    struct lockstep_solver *solver = make_solver("micro_batch: 3");
    struct bytes expected = run_alone(solver, 7);
    for (int dynamic = 0; dynamic < 2; dynamic++) {
        struct job job = {.solver = solver,
                          .ranks = 3,
                          .workers = {1, 2, 1},
                          .updates = 7,
                          .dynamic = dynamic == 1};
        check_job(&job, expected, dynamic ? "work queue" : "static");
    }
    free(expected.data);
    lockstep_solver_free(solver);
}

static void same_bytes_from_a_snapshot(void **state)
{
    (void)state;
    struct lockstep_solver *solver = make_solver("micro_batch: 2");
    check_resumed(solver, 4, 6);
    lockstep_solver_free(solver);
}

/* Other numbers in any of the files are other data. */
static void changed_arrays_are_refused_by_a_resume(void **state)
{
    (void)state;
    struct lockstep_solver *solver = make_solver("");
    struct training *begun = start(solver, 1, "changed", NULL);
    step(begun, 5); /* more than an epoch */
    free(snapshot(begun).data);
    finish(begun);
    char path[512];
    snprintf(path, sizeof path, "%s", ls_test_path("snapshot.safetensors"));
    size_t size;
    char *bytes = ls_test_read(ls_test_path("target.npy"), &size);
    bytes[size - 2] ^= 1;
    ls_test_write(ls_test_path("target.npy"), bytes, size);
    struct lockstep_train_options options;
    struct lockstep_trainer *trainer = NULL;
    struct lockstep_error *error = lockstep_error_new();
    lockstep_train_options_init(&options);
    options.resume = path;
    options.workers = 1;
    assert_int_not_equal(lockstep_trainer_create(solver, &options, &trainer, error), 0);
    assert_null(trainer);
    if (strstr(lockstep_error_text(error), "trained on other data") == NULL)
        fail_msg("%s", lockstep_error_text(error));
    bytes[size - 2] ^= 1;
    ls_test_write(ls_test_path("target.npy"), bytes, size);
    free(bytes);
    lockstep_error_free(error);
    lockstep_solver_free(solver);
}

int main(void)
{
    write_arrays();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bytes_on_any_number_of_workers),
        cmocka_unit_test(loss_goes_down),
        cmocka_unit_test(same_bytes_on_ranks),
        cmocka_unit_test(same_bytes_from_a_snapshot),
        cmocka_unit_test(changed_arrays_are_refused_by_a_resume),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
