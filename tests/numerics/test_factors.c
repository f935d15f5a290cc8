/* Inner products whose gradients are exchanged as factors: the same bytes on any number of
 * workers, with every solver, with clipping and ragged batches, and after a resume; the
 * gradients are those of exact sums.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "base/memory.h"
#include "trainings/training.h"
#include "trainings/weights.h"

enum { SAMPLES = 137 };

static const int counts[] = {1, 2, 3, 5};
enum { COUNTS = sizeof counts / sizeof *counts };

/* Inner products of 256 x 160, 160 x 256 (with transposed weights) and 256 x 10: the first two
 * are large enough for factors. `param` may name their weights and biases. */
static struct lockstep_solver *make_solver(const char *settings, const char *data,
                                           const char *const param[2])
{
    return load_solver("%s lr_policy: 'fixed' max_iter: 40 random_seed: 3\n"
                       "net_param { %s }\n",
                       settings,
                       ls_test_net("factors", LS_TEST_VALUES({"data", data}, {"first", param[0]},
                                                             {"second", param[1]})));
}

static const char *const unshared[2] = {"", ""};

static int setup(void **state)
{
    (void)state;
    write_idx_pair(ls_test_path("images"), ls_test_path("labels"), SAMPLES, 16);
    return 0;
}

static int factors_of(const struct training *training)
{
    return (int)ls_factors_count(training->trainer->inner->store->factors);
}

static void check_counts(const struct lockstep_solver *solver, int64_t updates, const char *what)
{
    struct bytes first = {0};
    for (int i = 0; i < COUNTS; i++) {
        struct training *training = start(solver, counts[i], NULL, NULL);
        assert_int_equal(factors_of(training), 2);
        step(training, updates);
        count_micro_batches(training);
        struct bytes bytes = snapshot(training);
        finish(training);
        if (i == 0)
            first = bytes;
        else
            check_same(first, bytes, "%s, %d workers", what, counts[i]);
    }
    free(first.data);
}

static const char *const solvers[] = {
    "base_lr: 0.05 momentum: 0.9 weight_decay: 0.001 ",
    "base_lr: 0.05 momentum: 0.9 weight_decay: 0.001 clip_gradients: 0.1 iter_size: 2 ",
    "type: 'Nesterov' base_lr: 0.02 momentum: 0.9 regularization_type: 'L1' weight_decay: 0.001 ",
    "type: 'Adam' base_lr: 0.002 momentum: 0.9 momentum2: 0.99 iter_size: 3 ",
    "type: 'AdamW' base_lr: 0.002 momentum: 0.9 weight_decay: 0.05 weight_average { decay: 0.9 } ",
    "type: 'AdaGrad' base_lr: 0.01 ",
    "type: 'RMSProp' base_lr: 0.001 rms_decay: 0.95 delta: 1e-4 ",
    "type: 'AdaDelta' base_lr: 1 momentum: 0.95 delta: 1e-5 ",
};
enum { SOLVERS = sizeof solvers / sizeof *solvers };

static void any_workers_give_same_bits_with_every_solver(void **state)
{
    (void)state;
    for (int i = 0; i < SOLVERS; i++) {
        struct lockstep_solver *solver =
            make_solver(solvers[i], "batch_size: 20 shuffle: true", unshared);
        check_counts(solver, 9, solvers[i]);
        lockstep_solver_free(solver);
    }
}

/* Batches that the data do not fill, and micro-batches of different sizes. */
static void any_workers_give_same_bits_with_ragged_batches(void **state)
{
    (void)state;
    static const char *const data[] = {"batch_size: 31 last_batch: PARTIAL",
                                       "batch_size: 29 last_batch: WRAP shuffle: true"};
    for (int i = 0; i < 2; i++) {
        struct lockstep_solver *solver =
            make_solver("base_lr: 0.05 momentum: 0.9 micro_batch: 3 ", data[i], unshared);
        check_counts(solver, 11, data[i]);
        lockstep_solver_free(solver);
    }
}

static void resume_on_other_workers_gives_same_bits(void **state)
{
    (void)state;
    struct lockstep_solver *solver =
        make_solver(solvers[1], "batch_size: 20 shuffle: true", unshared);
    check_resumed(solver, 3, 5);
    lockstep_solver_free(solver);
}

static float *gradient_of(struct training *training, size_t index, size_t *size)
{
    const struct ls_parameter *parameter = training->trainer->inner->parameters->items[index];
    *size = (size_t)ls_shape_size(&parameter->shape);
    float *values = calloc(*size, sizeof *values);
    assert_int_equal(
        lockstep_trainer_read_gradient(training->trainer, index, values, *size, training->error),
        0);
    return values;
}

/* Named weights count as shared, even with a single user: their gradients are exact sums. */
static void gradients_from_factors_are_those_of_exact_sums(void **state)
{
    (void)state;
    static const char *const shared[2] = {"param { name: 'a' } param { name: 'b' }",
                                          "param { name: 'c' } param { name: 'd' }"};
    const char *settings = "base_lr: 0.05 momentum: 0.9 iter_size: 2 clip_gradients: 0.2 ";
    struct lockstep_solver *solver = make_solver(settings, "batch_size: 27", unshared);
    struct lockstep_solver *other = make_solver(settings, "batch_size: 27", shared);
    struct training *factors = start(solver, 3, NULL, NULL), *sums = start(other, 3, NULL, NULL);
    assert_int_equal(factors_of(factors), 2);
    assert_int_equal(factors_of(sums), 0);
    for (size_t p = 0; p < 6; p++) /* the same weights to begin with */
        memcpy(stored_weights(sums->trainer->inner->store, p),
               stored_weights(factors->trainer->inner->store, p),
               factors->trainer->inner->store->slots[p].elements * sizeof(float));
    step(factors, 1);
    step(sums, 1);
    for (size_t p = 0; p < 6; p++) {
        size_t size = 0;
        float *a = gradient_of(factors, p, &size), *b = gradient_of(sums, p, &size);
        double difference = 0, norm = 0;
        for (size_t i = 0; i < size; i++) {
            difference += pow((double)a[i] - (double)b[i], 2);
            norm += pow((double)b[i], 2);
        }
        assert_true(norm > 0);
        if (!(sqrt(difference / norm) < 1e-6))
            fail_msg("parameter %zu: the gradients differ by %g", p, sqrt(difference / norm));
        const float *x = stored_weights(factors->trainer->inner->store, p);
        const float *y = stored_weights(sums->trainer->inner->store, p);
        for (size_t i = 0; i < sums->trainer->inner->store->slots[p].elements; i++)
            assert_true(fabs((double)x[i] - (double)y[i]) < 1e-6);
        free(a);
        free(b);
    }
    finish(factors);
    finish(sums);
    lockstep_solver_free(solver);
    lockstep_solver_free(other);
}

/* A net without exact sums: no update is measured first, and none is repeated. */
static void a_net_without_sums_is_neither_measured_nor_repeated(void **state)
{
    (void)state;
    struct lockstep_solver *solver = load_solver(
        "base_lr: 0.05 momentum: 0.9 lr_policy: 'fixed' max_iter: 40\n"
        "net_param {\n"
        "layer { name: 'digits' type: 'Data' top: 'data' top: 'label'\n"
        "  transform_param { scale: 0.0078 }\n"
        "  data_param { backend: IDX source: '%s' label_source: '%s' batch_size: 24 } }\n"
        "layer { name: 'ip1' type: 'InnerProduct' bottom: 'data' top: 'ip1'\n"
        "  inner_product_param { num_output: 130 weight_filler { type: 'xavier' } } }\n"
        "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip1' bottom: 'label' top: 'loss' }\n"
        "}\n",
        ls_test_path("images"), ls_test_path("labels"));
    struct training *training = start(solver, 2, NULL, NULL);
    assert_int_equal(factors_of(training), 1);
    step(training, 1);
    double before = lockstep_trainer_loss(training->trainer);
    int64_t once = count_micro_batches(training);
    step(training, 5);
    assert_int_equal(count_micro_batches(training), 6 * once);
    assert_true(lockstep_trainer_loss(training->trainer) < before);
    finish(training);
    lockstep_solver_free(solver);
}

/* Which do: both large layers while an update has few enough rows. */
static void layers_use_factors_while_an_update_has_few_rows(void **state)
{
    (void)state;
    static const struct {
        int batch, iter_size, factors;
    } cases[] = {{20, 1, 2}, {98, 1, 2}, {99, 1, 0}, {49, 2, 2}, {50, 2, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char settings[128], data[64];
        snprintf(settings, sizeof settings, "base_lr: 0.01 iter_size: %d ", cases[i].iter_size);
        snprintf(data, sizeof data, "batch_size: %d", cases[i].batch);
        struct lockstep_solver *solver = make_solver(settings, data, unshared);
        struct training *training = start(solver, 1, NULL, NULL);
        assert_int_equal(factors_of(training), cases[i].factors);
        const struct ls_parameter *weight = training->trainer->inner->parameters->items[0];
        size_t bytes = cases[i].factors > 0
                           ? (size_t)(cases[i].batch * cases[i].iter_size) * (256 + 160) * 4
                           : 256 * 160 * 8;
        assert_int_equal(ls_parameter_exchange_bytes(weight), bytes);
        finish(training);
        lockstep_solver_free(solver);
    }
}

/* A number that is not finite ends the run before the weights change, with the same message on
 * any number of workers. (Finite factors whose product is not finite:
 * tests/unit/engine/test_factors.c.) */
static void check_divergence(float weight, float bias, const char *named)
{
    struct lockstep_solver *solver = make_solver("base_lr: 0.05 ", "batch_size: 20 ", unshared);
    char first[1024] = "";
    for (int i = 0; i < COUNTS; i++) {
        struct training *training = start(solver, counts[i], NULL, NULL);
        struct ls_store *store = training->trainer->inner->store;
        if (weight != 0) /* 0 times infinity would be none */
            stored_weights(store, 2)[7] = weight;
        stored_weights(store, 1)[0] = bias;
        float *before = ls_alloc_aligned(store->slots[0].elements * sizeof *before);
        memcpy(before, stored_weights(store, 0), store->slots[0].elements * sizeof *before);
        assert_int_equal(lockstep_trainer_step(training->trainer, 1, training->error),
                         LOCKSTEP_DIVERGED);
        const char *text = lockstep_error_text(training->error);
        if (strstr(text, named) == NULL)
            fail_msg("'%s' is not in: %s", named, text);
        if (i == 0)
            snprintf(first, sizeof first, "%s", text);
        assert_string_equal(text, first);
        assert_memory_equal(before, stored_weights(store, 0),
                            store->slots[0].elements * sizeof *before);
        ls_free_aligned(before);
        finish(training);
    }
    lockstep_solver_free(solver);
}

static void factors_that_are_not_finite_end_the_training(void **state)
{
    (void)state;
    check_divergence(NAN, 0, "the loss 'loss' of layer 'loss' is not finite");
    /* tanh makes a finite loss of it */
    check_divergence(0, INFINITY, "the gradient of 'ip2.weight' is not finite");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_workers_give_same_bits_with_every_solver),
        cmocka_unit_test(any_workers_give_same_bits_with_ragged_batches),
        cmocka_unit_test(resume_on_other_workers_gives_same_bits),
        cmocka_unit_test(gradients_from_factors_are_those_of_exact_sums),
        cmocka_unit_test(a_net_without_sums_is_neither_measured_nor_repeated),
        cmocka_unit_test(layers_use_factors_while_an_update_has_few_rows),
        cmocka_unit_test(factors_that_are_not_finite_end_the_training),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
