/* Training with Winograd's algorithm: the same bits on any number of workers, and it learns what
 * the direct algorithm learns. What AUTO resolves to is the same training as what is written out.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "numerics/training.h"

#include "ops/cpu/environment.h"

enum { UPDATES = 15 };

/* In micro-batches of 4 the middle convolutions have 4 x 16 tiles. */
static struct lockstep_solver *make_solver(const char *algorithm)
{
    return load_solver(
        "base_lr: 0.0005 momentum: 0.9 weight_decay: 0.0005 lr_policy: 'fixed' max_iter: 1000\n"
        "random_seed: 3 micro_batch: 4 net_param {\n"
        "layer { name: 'digits' type: 'Data' top: 'data' top: 'label'\n"
        "  transform_param { scale: 0.0078 }\n"
        "  data_param { backend: IDX source: '%s' label_source: '%s' batch_size: 24 } }\n"
        "layer { name: 'c1' type: 'Convolution' bottom: 'data' top: 'c1' convolution_param {\n"
        "  num_output: 64 kernel_size: 3 pad: 1 weight_filler { type: 'msra' } } }\n"
        "layer { name: 'r1' type: 'ReLU' bottom: 'c1' top: 'c1' }\n"
        "layer { name: 'c2' type: 'Convolution' bottom: 'c1' top: 'c2' convolution_param {\n"
        "  num_output: 64 kernel_size: 3 pad: 1 weight_filler { type: 'msra' } %s } }\n"
        "layer { name: 'r2' type: 'ReLU' bottom: 'c2' top: 'c2' }\n"
        "layer { name: 'c3' type: 'Convolution' bottom: 'c2' top: 'c3' convolution_param {\n"
        "  num_output: 64 kernel_size: 3 pad: 1 weight_filler { type: 'msra' } %s } }\n"
        "layer { name: 'r3' type: 'ReLU' bottom: 'c3' top: 'c3' relu_param {\n"
        "  negative_slope: 0.1 } }\n"
        "layer { name: 'ip' type: 'InnerProduct' bottom: 'c3' top: 'ip' inner_product_param {\n"
        "  num_output: 10 weight_filler { type: 'xavier' } } }\n"
        "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'loss' }\n"
        "}\n",
        ls_test_path("images"), ls_test_path("labels"), algorithm, algorithm);
}

static bool is_there(void)
{
    const char *environment = ls_cpu_environment();
    return strstr(environment, "isa=avx512\n") != NULL && strstr(environment, "onednn=2.") != NULL;
}

static double train(const char *algorithm, int workers, struct bytes *bytes)
{
    struct lockstep_solver *solver = make_solver(algorithm);
    struct training *training = start(solver, workers, NULL, NULL);
    step(training, UPDATES);
    double loss = lockstep_trainer_loss(training->trainer);
    *bytes = snapshot(training);
    finish(training);
    lockstep_solver_free(solver);
    return loss;
}

static void workers(void **state)
{
    (void)state;
    if (!is_there())
        ls_test_skip("oneDNN does not have it");
    struct bytes first, other;
    train("algorithm: WINOGRAD", 1, &first);
    for (int count = 2; count <= 4; count++) {
        train("algorithm: WINOGRAD", count, &other);
        check_same(first, other, "%d workers", count);
    }
    free(first.data);
}

static void learns_the_same(void **state)
{
    (void)state;
    if (!is_there())
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

/* Where there is none, AUTO is the direct algorithm, to the bit but for the definition. */
static void what_auto_is(void **state)
{
    (void)state;
    struct bytes found, wanted;
    double a = train("", 2, &found), b = train("algorithm: DIRECT", 2, &wanted);
    if (is_there())
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
        cmocka_unit_test(workers),
        cmocka_unit_test(learns_the_same),
        cmocka_unit_test(what_auto_is),
    };
    return cmocka_run_group_tests(tests, write_data, NULL);
}
