/* A trainer of several ranks in one process (api/rank_threads.h) is one of one rank, for the
 * program that calls it: same bits, same snapshots, same figures, stops, and a failure of any rank
 * is a failure of it.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <unistd.h>

#include "base/thread.h"
#include "trainings/training.h"

enum { SAMPLES = 50, END = 6 };

static struct lockstep_solver *make_solver(void)
{
    return load_solver(
        "base_lr: 0.02 momentum: 0.9 weight_decay: 0.0005 lr_policy: 'inv' gamma: 0.1 power: 0.5\n"
        "max_iter: %d snapshot: 2 test_interval: 3 snapshot_best: 'accuracy' iter_size: 2\n"
        "micro_batch: 4 clip_gradients: 2 random_seed: 5 display: 1\n"
        "net_param { %s }\n",
        END, ls_test_net("rank_threads", LS_TEST_VALUES({"batch", "20"})));
}

static int setup(void **state)
{
    write_idx_pair(ls_test_path("images"), ls_test_path("labels"), SAMPLES, 12);
    *state = make_solver();
    return 0;
}

static int teardown(void **state)
{
    lockstep_solver_free(*state);
    return 0;
}

/* What a trainer has told, and what it is asked. */
struct listener {
    int64_t stop_at; /* asks for a stop from this update on; < 0: never */
    int64_t iteration;
    int displays, tests;
    double loss;
    pthread_t thread; /* that was called */
    bool other;       /* a callback came on another one */
};

static void hear(void *user, const struct lockstep_event *event)
{
    struct listener *listener = user;
    listener->other = listener->other || !pthread_equal(listener->thread, pthread_self());
    listener->iteration = event->iteration;
    listener->displays += event->kind == LOCKSTEP_EVENT_DISPLAY;
    listener->tests += event->kind == LOCKSTEP_EVENT_TEST;
}

static enum lockstep_request answer(void *user)
{
    struct listener *listener = user;
    listener->other = listener->other || !pthread_equal(listener->thread, pthread_self());
    return listener->stop_at >= 0 && listener->iteration >= listener->stop_at
               ? LOCKSTEP_SNAPSHOT_AND_STOP
               : LOCKSTEP_GO_ON;
}

static struct lockstep_trainer *create(const struct lockstep_solver *solver, int ranks,
                                       const char *prefix, const char *resume,
                                       struct listener *listener, struct lockstep_error *error)
{
    struct lockstep_train_options options;
    struct lockstep_trainer *trainer = NULL;
    static const int cards[] = {4, 3, 2, 1};
    lockstep_train_options_init(&options);
    options.workers = ranks > 1 ? 1 : 2;
    options.snapshot_prefix = ls_test_path(prefix);
    options.resume = resume;
    options.overwrite = 1;
    if (listener != NULL) {
        listener->thread = pthread_self();
        options.callbacks = (struct lockstep_callbacks){listener, hear, answer};
    }
    if (ls_api_trainer_create(solver, &options, ranks, cards, &trainer, ls_api_error(error)) != 0)
        fail_msg("%d ranks: %s", ranks, lockstep_error_text(error));
    return trainer;
}

static const char *file_of(const char *prefix, int iteration)
{
    char name[64];
    snprintf(name, sizeof name, "%s_iter_%d.safetensors", prefix, iteration);
    return ls_test_path(name);
}

/* Trains to the end; the snapshots must be those of the training "whole". */
static void check_run(const struct lockstep_solver *solver, int ranks, const char *prefix,
                      const char *resume, const struct listener *expected)
{
    struct lockstep_error *error = lockstep_error_new();
    struct listener listener = {.stop_at = -1};
    struct lockstep_trainer *trainer = create(solver, ranks, prefix, resume, &listener, error);
    if (lockstep_trainer_run(trainer, -1, error) != 0)
        fail_msg("%d ranks: %s", ranks, lockstep_error_text(error));
    listener.loss = lockstep_trainer_loss(trainer);
    assert_int_equal(lockstep_trainer_iteration(trainer), END);
    assert_false(listener.other);
    lockstep_trainer_free(trainer);
    lockstep_error_free(error);
    assert_true(listener.loss == expected->loss);
    for (int i = END - 2; i <= END; i += 2) {
        struct bytes whole = read_bytes(file_of("whole", i));
        check_same(whole, read_bytes(file_of(prefix, i)), "%d ranks, iteration %d", ranks, i);
        free(whole.data);
    }
    if (resume == NULL) {
        assert_int_equal(listener.displays, expected->displays);
        assert_int_equal(listener.tests, expected->tests);
    }
}

static struct listener whole;

static void train_whole(const struct lockstep_solver *solver)
{
    struct lockstep_error *error = lockstep_error_new();
    whole = (struct listener){.stop_at = -1};
    struct lockstep_trainer *trainer = create(solver, 1, "whole", NULL, &whole, error);
    assert_int_equal(lockstep_trainer_run(trainer, -1, error), 0);
    whole.loss = lockstep_trainer_loss(trainer);
    lockstep_trainer_free(trainer);
    lockstep_error_free(error);
}

static void any_number_of_ranks_gives_same_bits(void **state)
{
    train_whole(*state);
    for (int ranks = 2; ranks <= 4; ranks++)
        check_run(*state, ranks, "ranks", NULL, &whole);
}

/* A stop by a callback, and a resume on another number of ranks. */
static void forget(const char *prefix)
{
    for (int i = 1; i <= END; i++)
        unlink(file_of(prefix, i));
}

static void a_stop_and_a_resume_leave_no_trace(void **state)
{
    for (int ranks = 1; ranks <= 3; ranks++) {
        struct lockstep_error *error = lockstep_error_new();
        struct listener listener = {.stop_at = 3};
        struct lockstep_trainer *trainer = create(*state, ranks, "cut", NULL, &listener, error);
        assert_int_equal(lockstep_trainer_run(trainer, -1, error), LOCKSTEP_STOPPED);
        const int64_t reached = lockstep_trainer_iteration(trainer);
        assert_in_range(reached, 3, END - 1);
        lockstep_trainer_free(trainer);
        lockstep_error_free(error);
        check_run(*state, ranks % 3 + 1, "cut", "auto", &whole);
        forget("cut");
    }
}

static void parameters_and_gradients_are_those_of_all_ranks(void **state)
{
    float *alone = NULL, *numbers = NULL;
    uint64_t hash = 0, other = 1;
    struct lockstep_error *error = lockstep_error_new();
    for (int ranks = 1; ranks <= 3; ranks++) {
        struct lockstep_trainer *trainer = create(*state, ranks, "p", NULL, NULL, error);
        const size_t size = lockstep_trainer_parameter_size(trainer, 0);
        numbers = realloc(numbers, 2 * size * sizeof *numbers);
        alone = realloc(alone, 2 * size * sizeof *alone);
        assert_true(numbers != NULL && alone != NULL);
        assert_int_equal(lockstep_trainer_read_parameter(trainer, 0, numbers, size, error), 0);
        for (size_t i = 0; i < size; i++)
            numbers[i] = numbers[i] * 2;
        assert_int_equal(lockstep_trainer_write_parameter(trainer, 0, numbers, size, error), 0);
        if (lockstep_trainer_step(trainer, 2, error) != 0)
            fail_msg("%s", lockstep_error_text(error));
        assert_int_equal(lockstep_trainer_read_parameter(trainer, 0, numbers, size, error), 0);
        assert_int_equal(lockstep_trainer_read_gradient(trainer, 0, numbers + size, size, error),
                         0);
        assert_int_equal(lockstep_trainer_hash(trainer, &other, error), 0);
        const struct lockstep_output *outputs;
        size_t count;
        assert_int_equal(lockstep_trainer_test_count(trainer), 1);
        assert_int_equal(lockstep_trainer_evaluate(trainer, 0, &outputs, &count, error), 0);
        assert_true(count > 0);
        if (ranks == 1) {
            memcpy(alone, numbers, 2 * size * sizeof *alone);
            hash = other;
        }
        assert_memory_equal(alone, numbers, 2 * size * sizeof *alone);
        assert_true(hash == other);
        lockstep_trainer_free(trainer);
    }
    lockstep_error_free(error);
    free(numbers);
    free(alone);
}

/* ---- Failures -------------------------------------------------------------------------------- */

static void what_all_ranks_find_is_told_once(void **state)
{
    (void)state;
    struct lockstep_solver *solver =
        load_solver("base_lr: 1e30 lr_policy: 'fixed' max_iter: 9 micro_batch: 4\n"
                    "net_param { %s }\n",
                    ls_test_net("rank_threads", LS_TEST_VALUES({"batch", "20"})));
    struct lockstep_error *error = lockstep_error_new();
    struct lockstep_trainer *trainer = create(solver, 3, "wild", NULL, NULL, error);
    assert_int_equal(lockstep_trainer_run(trainer, -1, error), LOCKSTEP_DIVERGED);
    assert_non_null(strstr(lockstep_error_text(error), "finite"));
    lockstep_trainer_free(trainer);
    lockstep_error_free(error);
    lockstep_solver_free(solver);
}

static int fail_after(void *user, struct ls_error *error)
{
    const struct ls_trainer *trainer = user;
    if (trainer->iteration < 2)
        return 0;
    return ls_comm_conclude(trainer->comm,
                            ls_fail(error, LOCKSTEP_DATA, NULL, NULL, "the disk is gone"), error);
}

static void a_failure_of_one_rank_is_the_trainers(void **state)
{
    for (int bad = 0; bad < 3; bad++) {
        forget("bad");
        struct lockstep_error *error = lockstep_error_new();
        struct lockstep_trainer *trainer = create(*state, 3, "bad", NULL, NULL, error);
        struct ls_trainer *rank = trainer->ranks[bad];
        rank->after_update = fail_after;
        rank->after_update_user = rank;
        assert_int_equal(lockstep_trainer_run(trainer, -1, error), LOCKSTEP_DATA);
        assert_non_null(strstr(lockstep_error_text(error), "the disk is gone"));
        if (bad == 0)
            assert_int_equal(lockstep_trainer_step(trainer, 1, error), LOCKSTEP_LOST);
        lockstep_trainer_free(trainer);
        lockstep_error_free(error);
        check_run(*state, 2, "bad", "auto", &whole); /* what is on disk is whole */
    }
}

static int note_card(void *user, int rank, struct ls_error *error)
{
    int *cards = user;
    (void)error;
    cards[rank] = ls_thread_card();
    return 0;
}

static void each_rank_has_its_card(void **state)
{
    (void)state;
    const int cards[3] = {7, 5, 6};
    int seen[3] = {0};
    struct ls_rank_threads *threads = NULL;
    assert_int_equal(ls_rank_threads_create(3, cards, &threads, NULL), 0);
    assert_int_equal(ls_rank_threads_run(threads, note_card, seen, NULL), 0);
    assert_memory_equal(seen, cards, sizeof cards);
    assert_int_equal(ls_thread_card(), -1);
    ls_rank_threads_free(threads);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_ranks_gives_same_bits), /* first: the others compare */
        cmocka_unit_test(a_stop_and_a_resume_leave_no_trace),
        cmocka_unit_test(parameters_and_gradients_are_those_of_all_ranks),
        cmocka_unit_test(what_all_ranks_find_is_told_once),
        cmocka_unit_test(a_failure_of_one_rank_is_the_trainers),
        cmocka_unit_test(each_rank_has_its_card),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
