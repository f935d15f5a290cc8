/* `verify` with a mistake that breaks the contract on purpose (cmake/mutants.cmake), or without.
 *
 * The first net has what every mutant needs to show itself but one of batch statistics, which are
 * in the second. Two workers run the first one's micro-batches in an order that one worker does
 * not, by a schedule and not by chance; trainings that lockstep_verify makes get it through a
 * wrapped ls_engine_create. Micro-batches of the second go through it together, each on its own
 * worker.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "trainings/training.h"

static int expected = LOCKSTEP_DIFFERENT;

static struct schedule schedules[8];
static int schedule_count;
static int held_until; /* 64 samples make 8 micro-batches */

int __real_ls_engine_create(const struct ls_device *device, struct ls_comm *comm, int workers,
                            struct ls_engine **engine, struct ls_error *error);
int __wrap_ls_engine_create(const struct ls_device *device, struct ls_comm *comm, int workers,
                            struct ls_engine **engine, struct ls_error *error);

int __wrap_ls_engine_create(const struct ls_device *device, struct ls_comm *comm, int workers,
                            struct ls_engine **engine, struct ls_error *error)
{
    int status = __real_ls_engine_create(device, comm, workers, engine, error);
    assert_int_equal(status, 0);
    struct schedule *schedule = &schedules[schedule_count++];
    *schedule = (struct schedule){.lock = PTHREAD_MUTEX_INITIALIZER,
                                  .moved = PTHREAD_COND_INITIALIZER,
                                  .workers = workers,
                                  .slow_worker = -1,
                                  .last = held_until};
    (*engine)->before_micro_batch = follow_schedule;
    (*engine)->user = schedule;
    return 0;
}

static struct lockstep_solver *solver_with(const char *norm)
{
    return load_solver("base_lr: 0.02 momentum: 0.9 lr_policy: 'fixed' max_iter: 100\n"
                       "net_param { %s }\n",
                       ls_test_net("mutants", LS_TEST_VALUES({"norm", norm})));
}

static void check_verify(struct lockstep_solver *solver)
{
    struct lockstep_error *error = lockstep_error_new();
    /* A worker runs at least one micro-batch an update: in six updates even a forgetful one, that
     * loses each third and may have lost the one that only measured, has lost one that counts. */
    int status = verify_workers(solver, (const int[]){1, 2}, 2, 6, error);
    if (status != expected)
        fail_msg("verify returned %d, not %d: %s", status, expected, lockstep_error_text(error));
    if (expected == LOCKSTEP_DIFFERENT &&
        (strstr(lockstep_error_text(error), " 1 worker") == NULL ||
         strstr(lockstep_error_text(error), " 2 workers") == NULL)) /* it may not come again */
        fail_msg("%s", lockstep_error_text(error));
    lockstep_error_free(error);
    lockstep_solver_free(solver);
}

static void verify_finds_mutants(void **state)
{
    (void)state;
    held_until = 7;
    check_verify(solver_with(""));
}

static void verify_finds_mutants_of_batch_statistics(void **state)
{
    (void)state;
    held_until = 0;
    check_verify(solver_with("layer { name: 'norm' type: 'BatchNorm' bottom: 'ip1' top: 'ip1' }"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(verify_finds_mutants),
                                       cmocka_unit_test(verify_finds_mutants_of_batch_statistics)};
    const char *mutant = getenv("LOCKSTEP_MUTANT");
    if (mutant == NULL || strcmp(mutant, "SOUND") == 0)
        expected = LOCKSTEP_OK;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
