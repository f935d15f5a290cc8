/* Training on pictures with boxes: what is random in them, and which boxes are left, is the same on
 * any number of workers and ranks, and from a snapshot.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/random.h"
#include "support/annotated_files.h"
#include "trainings/ranks.h"

static uint64_t word(uint64_t stream)
{
    static const uint64_t key = 4711;
    return (uint64_t)ls_random_u32(key, stream, 0) << 32 | ls_random_u32(key, stream, 1);
}

static struct lockstep_solver *make_solver(const char *fields)
{
    static bool made;
    if (!made)
        annotated_make_set(ls_test_path("boxes"), 33, 14, 20, 2, 0, word);
    made = true;
    return load_solver("base_lr: 0.02 momentum: 0.9 lr_policy: 'fixed' max_iter: 200 "
                       "random_seed: 3 %s\nnet_param { %s }\n",
                       fields,
                       ls_test_net("annotated", LS_TEST_VALUES({"boxes", ls_test_path("boxes")})));
}

static void same_bytes_on_any_number_of_workers(void **state)
{
    (void)state;
    struct lockstep_solver *solver = make_solver("micro_batch: 1");
    check_workers(solver, NULL, 7);
    lockstep_solver_free(solver);
}

static void loss_goes_down(void **state)
{
    (void)state;
    struct lockstep_solver *solver = make_solver("");
    check_learns(solver, 181, 0.8);
    lockstep_solver_free(solver);
}

static void same_bytes_on_ranks(void **state)
{
    (void)state;
    struct lockstep_solver *solver = make_solver("micro_batch: 3");
    struct bytes expected = run_alone(solver, 5);
    struct job job = {
        .solver = solver, .ranks = 3, .workers = {1, 2, 1}, .updates = 5, .dynamic = true};
    check_job(&job, expected, "work queue");
    free(expected.data);
    lockstep_solver_free(solver);
}

static void same_bytes_from_a_snapshot(void **state)
{
    (void)state;
    struct lockstep_solver *solver = make_solver("micro_batch: 2");
    check_resumed(solver, 3, 4);
    lockstep_solver_free(solver);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bytes_on_any_number_of_workers),
        cmocka_unit_test(loss_goes_down),
        cmocka_unit_test(same_bytes_on_ranks),
        cmocka_unit_test(same_bytes_from_a_snapshot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
