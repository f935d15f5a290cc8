/* Training with Winograd's algorithm: the same bytes on any number of workers, with any limit on
 * memory, and after a resume; and it learns as well as the direct algorithm. AUTO trains as the
 * algorithm that it chooses.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "trainings/training.h"

#include "support/winograd.h"

enum { UPDATES = 15 };

/* In micro-batches of 6 the middle convolutions have 6 x 16 tiles. */
static struct lockstep_solver *make_solver(const char *algorithm, const char *more)
{
    return load_solver(
        "base_lr: 0.0005 momentum: 0.9 weight_decay: 0.0005 lr_policy: 'fixed' max_iter: 1000\n"
        "random_seed: 3 micro_batch: 6 %s net_param { %s }\n",
        more, ls_test_net("winograd", LS_TEST_VALUES({"algorithm", algorithm})));
}

static double train(const char *algorithm, int workers, struct bytes *bytes)
{
    struct lockstep_solver *solver = make_solver(algorithm, "");
    struct training *training = start(solver, workers, NULL, NULL);
    step(training, UPDATES);
    double loss = lockstep_trainer_loss(training->trainer);
    *bytes = snapshot(training);
    finish(training);
    lockstep_solver_free(solver);
    return loss;
}

/* Some updates with everything at once: several batches, clipping, an average of weights, a
 * limit on memory (0: none), and a stop after `cut` updates (0: none) with a resume on `then`
 * workers. */
struct course {
    int workers, cut, then;
    size_t limit;
};

static struct bytes follow(const struct lockstep_solver *solver, const struct course *course)
{
    enum { END = 6 };
    struct training *training = start(solver, course->workers, NULL, NULL);
    if (course->limit > 0)
        limit_memory(training, course->limit);
    step(training, course->cut > 0 ? course->cut : END);
    struct bytes bytes = snapshot(training);
    finish(training);
    if (course->cut == 0)
        return bytes;
    free(bytes.data);
    training = start(solver, course->then, NULL, ls_test_path("snapshot.safetensors"));
    assert_int_equal(lockstep_trainer_iteration(training->trainer), course->cut);
    step(training, END - course->cut);
    bytes = snapshot(training);
    finish(training);
    return bytes;
}

static void check_courses(const char *fields)
{
    static const struct course courses[] = {
        {2, 0, 0, 0}, {3, 0, 0, 0}, {5, 0, 0, 0}, {1, 0, 0, 1},
        {3, 0, 0, 1}, {2, 3, 1, 0}, {1, 1, 5, 0}, {5, 5, 3, 1},
    };
    struct lockstep_solver *solver = make_solver("algorithm: WINOGRAD", fields);
    struct bytes first = follow(solver, &(struct course){.workers = 1});
    for (size_t i = 0; i < sizeof courses / sizeof *courses; i++) {
        const struct course *c = &courses[i];
        check_same(first, follow(solver, c), "'%s': %d workers, a stop at %d, then %d, limit %zu",
                   fields, c->workers, c->cut, c->then, c->limit);
    }
    free(first.data);
    lockstep_solver_free(solver);
}

static void any_workers_and_memory_give_same_bits_with_winograd(void **state)
{
    (void)state;
    if (!winograd_is_there())
        ls_test_skip("oneDNN does not have it");
    check_courses("");
    check_courses("iter_size: 2 clip_gradients: 1 weight_average { decay: 0.9 }");
}

/* The smallest plan is smaller, or the limits above would be none. */
static void the_smallest_plan_is_smaller(void **state)
{
    (void)state;
    if (!winograd_is_there())
        ls_test_skip("oneDNN does not have it");
    struct lockstep_solver *solver = make_solver("algorithm: WINOGRAD", "");
    struct training *training = start(solver, 2, NULL, NULL);
    size_t free_one = ls_net_memory_bytes(training->trainer->inner->train, 2);
    size_t least = limit_memory(training, 1);
    if (least >= free_one)
        fail_msg("%zu bytes at least, %zu without a limit", least, free_one);
    finish(training);
    lockstep_solver_free(solver);
}

static void winograd_learns_as_the_direct_algorithm(void **state)
{
    (void)state;
    if (!winograd_is_there())
        ls_test_skip("oneDNN does not have it");
    struct bytes direct, winograd;
    double a = train("algorithm: DIRECT", 2, &direct);
    double b = train("algorithm: WINOGRAD", 2, &winograd);
    assert_true(a != b);             /* or nothing was compared */
    assert_true(a < 1.5 && b < 1.5); /* about log 10 = 2.3 at the start */
    if (!(a - b < 0.01 * a && b - a < 0.01 * a))
        fail_msg("the loss is %g with the direct algorithm, %g with Winograd's", a, b);
    free(direct.data);
    free(winograd.data);
}

/* Where Winograd's algorithm is missing, AUTO is the direct algorithm, to the bit (but for the
 * definition in the snapshot). */
static void auto_without_winograd_is_the_direct_algorithm(void **state)
{
    (void)state;
    struct bytes found, wanted;
    double a = train("", 2, &found), b = train("algorithm: DIRECT", 2, &wanted);
    if (winograd_is_there())
        assert_true(a != b);
    else
        assert_true(a == b);
    free(found.data);
    free(wanted.data);
}

static int write_data(void **state)
{
    (void)state;
    write_idx_pair(ls_test_path("images"), ls_test_path("labels"), 240, 16);
    return 0;
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_workers_and_memory_give_same_bits_with_winograd),
        cmocka_unit_test(the_smallest_plan_is_smaller),
        cmocka_unit_test(winograd_learns_as_the_direct_algorithm),
        cmocka_unit_test(auto_without_winograd_is_the_direct_algorithm),
    };
    return cmocka_run_group_tests(tests, write_data, NULL);
}
