/* A test phase that cannot begin because memory runs out, at any allocation, leaves the training
 * as it was: training continues, even where the test has taken its memory for decoding.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/memory.h"
#include "trainings/training.h"

/* A test decodes far more ahead than training does. */
static struct lockstep_solver *make_solver(void)
{
    return load_solver(
        "base_lr: 0.01 momentum: 0.9 lr_policy: 'fixed' max_iter: 1000 test_interval: 1000\n"
        "snapshot_after_train: false random_seed: 5 net_param {\n"
        "layer { name: 'train' type: 'Data' top: 'data' top: 'label' include { phase: TRAIN }\n"
        "  data_param { backend: IDX source: '%s' label_source: '%s' batch_size: 6 } }\n"
        "layer { name: 'test' type: 'Data' top: 'data' top: 'label' include { phase: TEST }\n"
        "  data_param { backend: IDX source: '%s' label_source: '%s' batch_size: 60 } }\n"
        "layer { name: 'ip' type: 'InnerProduct' bottom: 'data' top: 'ip'\n"
        "  inner_product_param { num_output: 10 weight_filler { type: 'xavier' } } }\n"
        "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label'\n"
        "  top: 'loss' } }\n",
        ls_test_path("images"), ls_test_path("labels"), ls_test_path("images"),
        ls_test_path("labels"));
}

static void training_goes_on_after_a_test_without_memory(void **state)
{
    (void)state;
    struct lockstep_solver *solver = make_solver();
    struct training *training = start(solver, 2, NULL, NULL), *untested;
    int64_t failures = 0;
    step(training, 1);
    for (long n = 0;; n++, failures++) {
        const struct lockstep_output *outputs;
        size_t count;
        ls_fail_allocations_after(n);
        int status =
            lockstep_trainer_evaluate(training->trainer, 0, &outputs, &count, training->error);
        ls_fail_allocations_after(-1);
        if (status == 0)
            break;
        assert_int_equal(status, LOCKSTEP_RESOURCE);
        step(training, 1);
    }
    assert_true(failures > 10);
    step(training, 2);
    untested = start(solver, 1, NULL, NULL);
    step(untested, failures + 3);
    struct bytes wanted = snapshot(untested);
    check_same(wanted, snapshot(training), "after %lld tests that failed", (long long)failures);
    free(wanted.data);
    finish(untested);
    finish(training);
    lockstep_solver_free(solver);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_goes_on_after_a_test_without_memory)};
    write_idx_pair(ls_test_path("images"), ls_test_path("labels"), 64, 12);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
