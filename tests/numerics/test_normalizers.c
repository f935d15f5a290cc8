/* Losses are divided by counts over the whole update. A batch whose ignored labels lie unevenly
 * over its micro-batches has the gradient of one large micro-batch: with several losses that
 * count differently, over several batches, and where the net computes the labels. It is the same
 * to the byte on any number of workers. Where no label counts, nothing changes.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "trainings/training.h"

enum { SIDE = 8, SAMPLES = 40, CHUNK = 5, CHUNKS = SAMPLES / CHUNK, IGNORED = 9, ELEMENTS = 4096 };

/* ---- Data ------------------------------------------------------------------------------------ */

/* How many samples of each chunk have a label that counts. */
static const int counted[CHUNKS] = {1, 5, 2, 5, 0, 5, 1, 4};

static uint8_t label_of(int sample)
{
    bool counts = sample % CHUNK < counted[sample / CHUNK % CHUNKS];
    return (uint8_t)(counts ? sample * 7 % 9 : IGNORED);
}

static void write_labels(const char *path, int first, int n, bool all_ignored)
{
    uint8_t bytes[8 + SAMPLES] = {0, 0, 8, 1};
    put_u32(bytes + 4, (uint32_t)n);
    for (int i = 0; i < n; i++)
        bytes[8 + i] = all_ignored ? IGNORED : label_of(first + i);
    ls_test_write(path, bytes, (size_t)(8 + n));
}

/* Pictures of samples [first, first + n); a constant is targets for a sigmoid. */
static void write_pictures(const char *path, int first, int n, int constant)
{
    static uint8_t bytes[16 + SAMPLES * SIDE * SIDE];
    uint8_t *pixels = bytes + 16;
    memset(bytes, 0, sizeof bytes);
    bytes[2] = 8;
    bytes[3] = 3;
    put_u32(bytes + 4, (uint32_t)n);
    put_u32(bytes + 8, SIDE);
    put_u32(bytes + 12, SIDE);
    for (int i = 0; i < n; i++)
        for (uint32_t k = 0; k < SIDE * SIDE; k++)
            *pixels++ = constant >= 0 ? (uint8_t)constant
                                      : pixel((uint32_t)(first + i), label_of(first + i), k, SIDE);
    ls_test_write(path, bytes, (size_t)(pixels - bytes));
}

static void write_data(int first, int n)
{
    write_pictures(ls_test_path("images"), first, n, -1);
    write_labels(ls_test_path("labels"), first, n, false);
}

/* ---- Nets ------------------------------------------------------------------------------------ */

/* Files of tests/nets. */
static const char three_losses[] = "losses", valid_labels[] = "losses_of_valid_labels",
                  learned_labels[] = "losses_of_learned_labels",
                  bright_labels[] = "losses_of_bright_labels";

static struct lockstep_solver *make_solver(const char *net, int batch, int iter_size,
                                           int micro_batch)
{
    return load_solver(
        "base_lr: 0.05 momentum: 0.9 lr_policy: 'fixed' max_iter: 100 random_seed: 3\n"
        "iter_size: %d micro_batch: %d\n"
        "net_param { %s }\n",
        iter_size, micro_batch,
        ls_test_net(net, LS_TEST_VALUES({"batch", ls_test_text("%d", batch)})));
}

/* ---- Gradients ------------------------------------------------------------------------------- */

/* Adds `factor` times the gradient of all parameters, one behind the other. */
static size_t add_gradient(struct training *training, double factor, double *sum)
{
    static float gradient[ELEMENTS];
    size_t at = 0, count = lockstep_trainer_parameter_count(training->trainer);
    for (size_t p = 0; p < count; p++) {
        size_t size = lockstep_trainer_parameter_size(training->trainer, p);
        assert_true(at + size <= ELEMENTS);
        assert_int_equal(
            lockstep_trainer_read_gradient(training->trainer, p, gradient, size, training->error),
            0);
        for (size_t i = 0; i < size; i++)
            sum[at++] += factor * (double)gradient[i];
    }
    return at;
}

/* The gradient of the first update, and its loss. */
static double first_update(const char *net, int batch, int iter_size, int micro_batch,
                           double factor, double *sum)
{
    struct lockstep_solver *solver = make_solver(net, batch, iter_size, micro_batch);
    struct training *training = start(solver, 1, NULL, NULL);
    step(training, 1);
    add_gradient(training, factor, sum);
    double loss = lockstep_trainer_loss(training->trainer);
    finish(training);
    lockstep_solver_free(solver);
    return loss;
}

/* |a - b| / |b| */
static double distance(const double *a, const double *b)
{
    double difference = 0, norm = 0;
    for (int i = 0; i < ELEMENTS; i++) {
        difference += (a[i] - b[i]) * (a[i] - b[i]);
        norm += b[i] * b[i];
    }
    assert_true(norm > 0);
    return sqrt(difference / norm);
}

static const int splits[][3] = {/* batch, iter_size, micro_batch */
                                {40, 1, 5}, {40, 1, 7}, {20, 2, 20}, {20, 2, 5},
                                {20, 2, 3}, {8, 5, 8},  {4, 10, 1}};
enum { SPLITS = sizeof splits / sizeof *splits, SPLITS_OF_A_BATCH = 2 };

static void check_splits(const char *net, int count)
{
    double whole[ELEMENTS] = {0};
    write_data(0, SAMPLES);
    double loss = first_update(net, SAMPLES, 1, SAMPLES, 1, whole);
    for (int i = 0; i < count; i++) {
        double gradient[ELEMENTS] = {0};
        const int *split = splits[i];
        double other = first_update(net, split[0], split[1], split[2], 1, gradient);
        if (!(fabs(other - loss) <= 1e-6 * fabs(loss)))
            fail_msg("batch %d x %d, micro-batch %d: loss %.9g, not %.9g", split[0], split[1],
                     split[2], other, loss);
        double off = distance(gradient, whole);
        if (!(off <= 2e-6))
            fail_msg("batch %d x %d, micro-batch %d: the gradient is %g off", split[0], split[1],
                     split[2], off);
    }
}

static void splitting_a_batch_keeps_the_gradient(void **state)
{
    (void)state;
    check_splits(three_losses, SPLITS);
    check_splits(valid_labels, SPLITS);
}

static void splitting_a_batch_keeps_the_gradient_with_learned_labels(void **state)
{
    (void)state;
    check_splits(learned_labels, SPLITS);
}

static void splitting_a_batch_keeps_the_gradient_with_labels_by_statistics(void **state)
{
    (void)state;
    check_splits(bright_labels, SPLITS_OF_A_BATCH);
}

/* Otherwise the tests above would prove nothing: the average over micro-batches is far from the
 * gradient of the batch. */
static void the_average_over_micro_batches_is_another_gradient(void **state)
{
    (void)state;
    static const char *const nets[] = {three_losses, valid_labels, learned_labels};
    for (int i = 0; i < 3; i++) {
        double whole[ELEMENTS] = {0}, average[ELEMENTS] = {0};
        write_data(0, SAMPLES);
        first_update(nets[i], SAMPLES, 1, SAMPLES, 1, whole);
        for (int c = 0; c < CHUNKS; c++) {
            write_data(c * CHUNK, CHUNK);
            first_update(nets[i], CHUNK, 1, CHUNK, 1.0 / CHUNKS, average);
        }
        if (distance(average, whole) < 0.05)
            fail_msg("%s: the average of micro-batches is only %g off", nets[i],
                     distance(average, whole));
    }
}

/* ---- Workers --------------------------------------------------------------------------------- */

static void any_workers_give_same_bits(void **state)
{
    (void)state;
    static const char *const nets[] = {three_losses, learned_labels, bright_labels};
    write_data(0, SAMPLES);
    for (int i = 0; i < 3; i++) {
        struct bytes first = {0};
        for (int workers = 1; workers <= 3; workers++) {
            /* The third update has samples 32 to 39 and 0 to 7. */
            struct lockstep_solver *solver = make_solver(nets[i], 8, 2, 3);
            struct training *training = start(solver, workers, NULL, NULL);
            step(training, 6);
            count_micro_batches(training);
            if (workers == 1)
                first = snapshot(training);
            else
                check_same(first, snapshot(training), "%s, %d workers", nets[i], workers);
            finish(training);
            lockstep_solver_free(solver);
        }
        free(first.data);
    }
}

/* ---- Where nothing counts -------------------------------------------------------------------- */

static struct lockstep_solver *make_empty(bool all)
{
    static const char all_kinds[] =
        "layer { name: 'log' type: 'MultinomialLogisticLoss' bottom: 'prob'\n"
        "  bottom: 'label' top: 'log' loss_param { ignore_label: 9 } }\n"
        "layer { name: 'sigmoid' type: 'SigmoidCrossEntropyLoss' bottom: 'sig'\n"
        "  bottom: 'target' top: 'sigmoid'\n"
        "  loss_param { ignore_label: 2 normalization: VALID } }\n"
        "layer { name: 'a' type: 'Accuracy' bottom: 'ip' bottom: 'label' top: 'accuracy'\n"
        "  top: 'each' accuracy_param { ignore_label: 9 } }\n"
        "layer { name: 'i' type: 'MeanIoU' bottom: 'ip' bottom: 'label' top: 'iou'\n"
        "  top: 'ious' mean_iou_param { ignore_label: 9 } }\n";
    static const char unread[] =
        "layer { name: 's' type: 'Silence' bottom: 'sig' bottom: 'prob' bottom: 'target' }";
    return load_solver(
        "base_lr: 0.05 momentum: 0.9 lr_policy: 'fixed' max_iter: 100 random_seed: 3\n"
        "iter_size: 2 micro_batch: 3 test_interval: 50 test_initialization: false\n"
        "net_param { %s }\n",
        ls_test_net("losses_over_nothing", LS_TEST_VALUES({"more", all ? all_kinds : unread})));
}

static struct bytes weights_of(struct training *training)
{
    static float weights[ELEMENTS * 4];
    size_t at = 0, count = lockstep_trainer_parameter_count(training->trainer);
    for (size_t p = 0; p < count; p++) {
        size_t size = lockstep_trainer_parameter_size(training->trainer, p);
        assert_true(at + size <= ELEMENTS * 4);
        assert_int_equal(lockstep_trainer_read_parameter(training->trainer, p, weights + at, size,
                                                         training->error),
                         0);
        at += size;
    }
    struct bytes bytes = {malloc(at * sizeof *weights), at * sizeof *weights};
    assert_non_null(bytes.data);
    memcpy(bytes.data, weights, bytes.size);
    return bytes;
}

static void check_figures(struct training *training)
{
    const struct lockstep_output *outputs = NULL;
    size_t count = 0;
    assert_int_equal(
        lockstep_trainer_evaluate(training->trainer, 0, &outputs, &count, training->error), 0);
    assert_int_equal(count, 12);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < outputs[i].count; k++)
            if (outputs[i].values[k] != 0)
                fail_msg("%s is %g", outputs[i].name, outputs[i].values[k]);
}

/* Every divisor, every kind of loss: loss 0, gradient 0, weights as they were. */
static void updates_in_which_no_label_counts_change_nothing(void **state)
{
    (void)state;
    write_pictures(ls_test_path("images"), 0, SAMPLES, -1);
    write_pictures(ls_test_path("targets"), 0, SAMPLES, 2);
    write_labels(ls_test_path("labels"), 0, SAMPLES, true);
    struct lockstep_solver *solver = make_empty(true);
    struct training *training = start(solver, 2, NULL, NULL);
    struct bytes before = weights_of(training);
    for (int i = 0; i < 3; i++) {
        step(training, 1);
        assert_true(lockstep_trainer_loss(training->trainer) == 0);
        size_t count = lockstep_trainer_parameter_count(training->trainer);
        static float read[ELEMENTS * 4];
        for (size_t p = 0; p < count; p++) {
            size_t size = lockstep_trainer_parameter_size(training->trainer, p);
            assert_true(size <= ELEMENTS * 4);
            assert_int_equal(
                lockstep_trainer_read_gradient(training->trainer, p, read, size, training->error),
                0);
            for (size_t k = 0; k < size; k++)
                assert_true(read[k] == 0);
        }
    }
    check_same(before, weights_of(training), "nothing counts");
    check_figures(training);
    free(before.data);
    finish(training);
    lockstep_solver_free(solver);
}

/* Updates without labels that count, between others: training goes on with finite weights. */
static void updates_without_labels_between_others_keep_weights_finite(void **state)
{
    (void)state;
    write_pictures(ls_test_path("images"), 0, SAMPLES, -1);
    write_pictures(ls_test_path("targets"), 0, SAMPLES, 2);
    uint8_t labels[8 + SAMPLES] = {0, 0, 8, 1, 0, 0, 0, SAMPLES};
    for (int i = 0; i < SAMPLES; i++) /* an update has 10 samples; the first and the third: none */
        labels[8 + i] = (uint8_t)(i / 10 % 2 == 0 ? IGNORED : i % 9);
    ls_test_write(ls_test_path("labels"), labels, sizeof labels);
    struct bytes first = {0};
    for (int workers = 1; workers <= 3; workers++) {
        struct lockstep_solver *solver = make_empty(false);
        struct training *training = start(solver, workers, NULL, NULL);
        for (int i = 0; i < 8; i++) {
            step(training, 1);
            double loss = lockstep_trainer_loss(training->trainer);
            assert_true(isfinite(loss) && (loss == 0) == (i % 2 == 0));
        }
        if (workers == 1)
            first = snapshot(training);
        else
            check_same(first, snapshot(training), "now and then, %d workers", workers);
        finish(training);
        lockstep_solver_free(solver);
    }
    free(first.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(splitting_a_batch_keeps_the_gradient),
        cmocka_unit_test(splitting_a_batch_keeps_the_gradient_with_learned_labels),
        cmocka_unit_test(splitting_a_batch_keeps_the_gradient_with_labels_by_statistics),
        cmocka_unit_test(the_average_over_micro_batches_is_another_gradient),
        cmocka_unit_test(any_workers_give_same_bits),
        cmocka_unit_test(updates_in_which_no_label_counts_change_nothing),
        cmocka_unit_test(updates_without_labels_between_others_keep_weights_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
