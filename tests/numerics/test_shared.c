/* A parameter that two layers use in different ways: as it is and transposed, or whole and in
 * groups. Their kernels may ask for layouts between which there is no reorder. The gradient is
 * the sum of the gradients that separate parameters would have, and the bytes of a training do
 * not depend on the number of workers.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "trainings/training.h"

/* `filters` and `matrix` are the names of the second layers' weights; those of the first layers
 * are 'w' and 'v'. */
static struct lockstep_solver *make_solver(const char *filters, const char *matrix)
{
    return load_solver(
        "base_lr: 0.01 momentum: 0.9 lr_policy: 'fixed' max_iter: 100 random_seed: 3\n"
        "micro_batch: 3 clip_gradients: 1\n"
        "net_param { %s }\n",
        ls_test_net("shared",
                    LS_TEST_VALUES({"weights_of_c3", filters}, {"weights_of_ip2", matrix})));
}

static void any_workers_give_same_bits_with_shared_parameters(void **state)
{
    (void)state;
    struct lockstep_solver *solver = make_solver("w", "v");
    check_workers(solver, NULL, 4);
    lockstep_solver_free(solver);
}

/* ---- Sums of gradients ----------------------------------------------------------------------- */

static size_t find(const struct training *training, const char *name)
{
    size_t count = lockstep_trainer_parameter_count(training->trainer), i = 0;
    while (i < count && strcmp(lockstep_trainer_parameter_name(training->trainer, i), name) != 0)
        i++;
    if (i == count)
        fail_msg("there is no parameter '%s'", name);
    return i;
}

/* The parameter's values, or the gradient of the last update. */
static float *numbers_of(const struct training *training, const char *name, bool gradient,
                         size_t *size)
{
    size_t index = find(training, name);
    *size = lockstep_trainer_parameter_size(training->trainer, index);
    float *numbers = calloc(*size, sizeof *numbers);
    assert_non_null(numbers);
    assert_int_equal((gradient ? lockstep_trainer_read_gradient : lockstep_trainer_read_parameter)(
                         training->trainer, index, numbers, *size, training->error),
                     0);
    return numbers;
}

/* What `from` has under one name, `to` gets under another. */
static void copy(const struct training *from, const char *name, struct training *to,
                 const char *other)
{
    size_t size;
    float *numbers = numbers_of(from, name, false, &size);
    assert_int_equal(
        lockstep_trainer_write_parameter(to->trainer, find(to, other), numbers, size, to->error),
        0);
    free(numbers);
}

static void check_sum(const struct training *shared, const struct training *apart,
                      const char *first, const char *second)
{
    size_t size[3];
    float *sum = numbers_of(shared, first, true, &size[0]);
    float *one = numbers_of(apart, first, true, &size[1]);
    float *two = numbers_of(apart, second, true, &size[2]);
    double difference = 0, norms[2] = {0};
    assert_true(size[0] == size[1] && size[0] == size[2]);
    for (size_t i = 0; i < size[0]; i++) {
        difference += pow((double)sum[i] - (double)one[i] - (double)two[i], 2);
        norms[0] += pow((double)one[i], 2);
        norms[1] += pow((double)two[i], 2);
    }
    double least = sqrt(norms[0] < norms[1] ? norms[0] : norms[1]);
    assert_true(least > 0 && isfinite(least));
    if (!(sqrt(difference) < 1e-4 * least))
        fail_msg("the gradient of '%s' differs by %g from a sum of which a part is %g", first,
                 sqrt(difference), least);
    free(sum);
    free(one);
    free(two);
}

static void the_gradient_of_a_shared_parameter_is_the_sum_over_its_users(void **state)
{
    (void)state;
    struct lockstep_solver *solvers[] = {make_solver("w", "v"), make_solver("w2", "v2")};
    struct training *shared = start(solvers[0], 1, NULL, NULL);
    struct training *apart = start(solvers[1], 2, NULL, NULL);
    copy(shared, "c2.weight", apart, "c3.weight");
    copy(shared, "ip1.weight", apart, "ip2.weight");
    step(shared, 1);
    step(apart, 1);
    check_sum(shared, apart, "c2.weight", "c3.weight");
    check_sum(shared, apart, "ip1.weight", "ip2.weight");
    finish(shared);
    finish(apart);
    lockstep_solver_free(solvers[0]);
    lockstep_solver_free(solvers[1]);
}

static int set_up(void **state)
{
    (void)state;
    write_idx_pair(ls_test_path("images"), ls_test_path("labels"), 61, 15);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_workers_give_same_bits_with_shared_parameters),
        cmocka_unit_test(the_gradient_of_a_shared_parameter_is_the_sum_over_its_users),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
