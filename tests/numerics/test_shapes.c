/* Layers that cut, repeat, sum up, reshape and enlarge. The bytes of a training do not depend on
 * the number of workers; the cut into micro-batches changes results (also figures of the whole
 * batch) by rounding only. The last batch of an epoch is smaller than the batch that the
 * definition's shapes name.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "trainings/training.h"

enum { SAMPLES = 61 };

static struct lockstep_solver *make_solver(const char *net, int micro_batch)
{
    return load_solver(
        "base_lr: 0.01 momentum: 0.9 lr_policy: 'fixed' max_iter: 100 random_seed: 3\n"
        "iter_size: 2 micro_batch: %d test_interval: 100 test_initialization: false\n"
        "net_param { %s }\n",
        micro_batch, ls_test_net(net, NULL));
}

static void any_workers_give_same_bits_in_nets_that_reshape(void **state)
{
    (void)state;
    struct lockstep_solver *solver = make_solver("shapes", 3);
    check_workers(solver, NULL, 5);
    lockstep_solver_free(solver);
}

static void any_workers_give_same_bits_in_nets_that_enlarge(void **state)
{
    (void)state;
    struct lockstep_solver *solver = make_solver("unpooled", 3);
    check_workers(solver, NULL, 5);
    lockstep_solver_free(solver);
}

/* ---- Micro-batches --------------------------------------------------------------------------- */

struct result {
    double loss;
    float *gradients;
    size_t count;
};

/* The first update's loss and all gradients. */
static struct result first_update(int micro_batch)
{
    struct result result = {0};
    struct lockstep_solver *solver = make_solver("shapes", micro_batch);
    struct training *training = start(solver, 1, NULL, NULL);
    step(training, 1);
    result.loss = lockstep_trainer_loss(training->trainer);
    for (size_t p = 0; p < lockstep_trainer_parameter_count(training->trainer); p++) {
        size_t size = lockstep_trainer_parameter_size(training->trainer, p);
        result.gradients =
            realloc(result.gradients, (result.count + size) * sizeof *result.gradients);
        assert_non_null(result.gradients);
        int status = lockstep_trainer_read_gradient(
            training->trainer, p, result.gradients + result.count, size, training->error);
        assert_int_equal(status, 0);
        result.count += size;
    }
    finish(training);
    lockstep_solver_free(solver);
    return result;
}

static void the_cut_into_micro_batches_changes_gradients_by_rounding_only(void **state)
{
    (void)state;
    static const int sizes[] = {24, 1, 5};
    struct result whole = first_update(sizes[0]);
    for (int i = 1; i < 3; i++) {
        struct result other = first_update(sizes[i]);
        double difference = 0, norm = 0;
        assert_int_equal(whole.count, other.count);
        for (size_t k = 0; k < whole.count; k++) {
            difference += pow((double)whole.gradients[k] - (double)other.gradients[k], 2);
            norm += pow((double)whole.gradients[k], 2);
        }
        assert_true(norm > 0 && isfinite(norm));
        if (!(sqrt(difference) < 1e-5 * sqrt(norm)))
            fail_msg("micro-batches of %d: gradients differ by %g of %g", sizes[i],
                     sqrt(difference), sqrt(norm));
        assert_true(fabs(whole.loss - other.loss) < 1e-5 * fabs(whole.loss));
        free(other.gradients);
    }
    free(whole.gradients);
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
        cmocka_unit_test(any_workers_give_same_bits_in_nets_that_reshape),
        cmocka_unit_test(any_workers_give_same_bits_in_nets_that_enlarge),
        cmocka_unit_test(the_cut_into_micro_batches_changes_gradients_by_rounding_only),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
