/* Recurrent layers: trainings with states that go on from update to update have the same bytes on
 * any number of workers and ranks, in any memory, from any snapshot, in FP32 and BF16, and learn.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "base/random.h"
#include "support/npy_files.h"
#include "trainings/ranks.h"

enum { RECORDS = 31, STEPS = 5, INPUTS = 6, FIXED = 4 };

/* The class of a step is that of the number before it, which a state must remember, or 4 at the
 * beginning of a sequence. */
static int setup(void **state)
{
    (void)state;
    static float x[RECORDS * STEPS * INPUTS], cont[RECORDS * STEPS], fixed[RECORDS * FIXED];
    static int32_t label[RECORDS * STEPS];
    const uint64_t key = ls_random_key(1, LS_RANDOM_TEST, "recurrent");
    for (int r = 0; r < RECORDS * STEPS; r++) {
        const uint32_t now = ls_random_below(key, 0, (uint64_t)r, 4);
        const uint32_t before = r % STEPS > 0 ? ls_random_below(key, 0, (uint64_t)r - 1, 4) : 4;
        for (uint32_t i = 0; i < INPUTS; i++)
            x[r * INPUTS + (int)i] = i == now ? 1 : 0.1F * ls_random_uniform(key, 1, (uint64_t)r);
        cont[r] = r % STEPS == 0 || ls_random_below(key, 2, (uint64_t)r, 5) == 0 ? 0 : 1;
        if (r % STEPS == 0 && r / STEPS % 3 == 0) /* some windows go on where the last one ended */
            cont[r] = 1;
        label[r] = cont[r] > 0 ? (int32_t)before : 4;
    }
    for (int i = 0; i < RECORDS * FIXED; i++)
        fixed[i] = ls_random_uniform(key, 3, (uint64_t)i) - 0.5F;
    write_npy(ls_test_path("x.npy"), "<f4", "(31, 5, 6)", x, sizeof x);
    write_npy(ls_test_path("cont.npy"), "<f4", "(31, 5)", cont, sizeof cont);
    write_npy(ls_test_path("fixed.npy"), "<f4", "(31, 4)", fixed, sizeof fixed);
    write_npy(ls_test_path("class.npy"), "<i4", "(31, 5)", label, sizeof label);
    return 0;
}

static struct lockstep_solver *make_solver(const char *settings)
{
    return load_solver("base_lr: 0.2 momentum: 0.9 lr_policy: 'fixed' max_iter: 300\n"
                       "random_seed: 3 %s net_param { %s }\n",
                       settings, ls_test_net("recurrent", LS_TEST_VALUES({NULL, NULL})));
}

static const char *const settings[] = {"micro_batch: 2", "micro_batch: 2 precision: BF16",
                                       "micro_batch: 2 algorithm: PORTABLE clip_gradients: 0.5"};
enum { SETTINGS = sizeof settings / sizeof *settings };

static void same_bytes_on_any_number_of_workers(void **state)
{
    (void)state;
    for (int i = 0; i < SETTINGS; i++) {
        struct lockstep_solver *solver = make_solver(settings[i]);
        check_workers(solver, NULL, 6);
        lockstep_solver_free(solver);
    }
}

static void same_bytes_with_several_batches_an_update(void **state)
{
    (void)state;
    static const int workers[] = {1, 2, 3, 5};
    struct lockstep_solver *solver = make_solver("micro_batch: 2 iter_size: 2");
    struct lockstep_error *error = lockstep_error_new();
    if (verify_workers(solver, workers, 4, 5, error) != 0)
        fail_msg("%s", lockstep_error_text(error));
    lockstep_error_free(error);
    lockstep_solver_free(solver);
}

static void same_bytes_on_ranks(void **state)
{
    (void)state;
    struct lockstep_solver *solver = make_solver(settings[0]);
    const struct bytes expected = run_alone(solver, 6);
    for (int ranks = 2; ranks < 4; ranks++) {
        struct job job = {.solver = solver,
                          .ranks = ranks,
                          .workers = {1, 2, 1},
                          .updates = 6,
                          .dynamic = ranks == 3,
                          .audit = 0.5};
        check_job(&job, expected, "ranks");
    }
    free(expected.data);
    lockstep_solver_free(solver);
}

static void same_bytes_from_a_snapshot(void **state)
{
    (void)state;
    for (int i = 0; i < SETTINGS; i++) {
        struct lockstep_solver *solver = make_solver(settings[i]);
        check_resumed(solver, 3, 3);
        lockstep_solver_free(solver);
    }
}

static void same_bytes_in_less_memory(void **state)
{
    (void)state;
    for (int i = 0; i < SETTINGS; i++) {
        struct lockstep_solver *solver = make_solver(settings[i]);
        struct training *training = start(solver, 1, NULL, NULL);
        step(training, 4);
        const struct bytes expected = snapshot(training);
        finish(training);
        for (int workers = 1; workers < 4; workers += 2) {
            training = start(solver, workers, NULL, NULL);
            limit_memory(training, 1);
            step(training, 4);
            check_same(expected, snapshot(training), "%s, %d workers, least memory", settings[i],
                       workers);
            finish(training);
        }
        free(expected.data);
        lockstep_solver_free(solver);
    }
}

/* ---- Records that are steps ------------------------------------------------------------------ */

enum { WINDOWS = 4, STREAMS = 3 };

/* The same windows of three streams: once a record is a step of all streams, once a window of one.
 */
static void write_streams(void)
{
    static float steps[WINDOWS][STEPS][STREAMS][INPUTS], windows[WINDOWS][STREAMS][STEPS][INPUTS];
    static float step_cont[WINDOWS][STEPS][STREAMS], window_cont[WINDOWS][STREAMS][STEPS];
    static int32_t step_class[WINDOWS][STEPS][STREAMS], window_class[WINDOWS][STREAMS][STEPS];
    const uint64_t key = ls_random_key(1, LS_RANDOM_TEST, "streams");
    for (int i = 0; i < WINDOWS * STEPS * STREAMS; i++) {
        const int w = i / STEPS / STREAMS, t = i / STREAMS % STEPS, n = i % STREAMS;
        for (int k = 0; k < INPUTS; k++)
            steps[w][t][n][k] = windows[w][n][t][k] =
                ls_random_uniform(key, (uint64_t)k, (uint64_t)i) - 0.5F;
        step_cont[w][t][n] = window_cont[w][n][t] = ls_random_below(key, 20, (uint64_t)i, 6) > 0;
        step_class[w][t][n] = window_class[w][n][t] =
            (int32_t)ls_random_below(key, 21, (uint64_t)i, 4);
    }
    write_npy(ls_test_path("x0.npy"), "<f4", "(20, 3, 6)", steps, sizeof steps);
    write_npy(ls_test_path("cont0.npy"), "<f4", "(20, 3)", step_cont, sizeof step_cont);
    write_npy(ls_test_path("class0.npy"), "<i4", "(20, 3)", step_class, sizeof step_class);
    write_npy(ls_test_path("x1.npy"), "<f4", "(12, 5, 6)", windows, sizeof windows);
    write_npy(ls_test_path("cont1.npy"), "<f4", "(12, 5)", window_cont, sizeof window_cont);
    write_npy(ls_test_path("class1.npy"), "<i4", "(12, 5)", window_class, sizeof window_class);
}

static struct lockstep_solver *make_streams(int axis)
{
    const char *batch = ls_test_text("%d", axis == 0 ? STEPS : STREAMS);
    return load_solver(
        "base_lr: 0.5 momentum: 0.9 lr_policy: 'fixed' max_iter: 300\n"
        "random_seed: 3 net_param { %s }\n",
        ls_test_net("recurrent_streams",
                    LS_TEST_VALUES({"axis", ls_test_text("%d", axis)}, {"batch", batch})));
}

static void records_that_are_steps_train_as_sequences_do(void **state)
{
    (void)state;
    double loss[2][9];
    write_streams();
    for (int axis = 0; axis < 2; axis++) {
        struct lockstep_solver *solver = make_streams(axis);
        struct training *training = start(solver, 1, NULL, NULL);
        for (int i = 0; i < 9; i++) {
            step(training, 1);
            loss[axis][i] = lockstep_trainer_loss(training->trainer);
        }
        finish(training);
        lockstep_solver_free(solver);
    }
    for (int i = 0; i < 9; i++)
        if (!(fabs(loss[0][i] - loss[1][i]) <= 1e-5 * loss[0][i]))
            fail_msg("update %d: %.9g, and %.9g where records are sequences", i, loss[0][i],
                     loss[1][i]);
}

static void records_that_are_steps_give_the_same_bytes(void **state)
{
    (void)state;
    static const int workers[] = {1, 2, 3, 5};
    struct lockstep_solver *solver = make_streams(0);
    struct lockstep_error *error = lockstep_error_new();
    if (verify_workers(solver, workers, 4, 5, error) != 0)
        fail_msg("%s", lockstep_error_text(error));
    lockstep_error_free(error);
    const struct bytes expected = run_alone(solver, 5);
    struct job job = {.solver = solver, .ranks = 2, .workers = {1, 1}, .updates = 5};
    check_job(&job, expected, "two ranks");
    free(expected.data);
    lockstep_solver_free(solver);
}

static void loss_goes_down(void **state)
{
    (void)state;
    struct lockstep_solver *solver = make_solver(settings[0]);
    check_learns(solver, 150, 0.5);
    lockstep_solver_free(solver);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bytes_on_any_number_of_workers),
        cmocka_unit_test(same_bytes_with_several_batches_an_update),
        cmocka_unit_test(same_bytes_on_ranks),
        cmocka_unit_test(same_bytes_from_a_snapshot),
        cmocka_unit_test(same_bytes_in_less_memory),
        cmocka_unit_test(records_that_are_steps_train_as_sequences_do),
        cmocka_unit_test(records_that_are_steps_give_the_same_bytes),
        cmocka_unit_test(loss_goes_down),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
