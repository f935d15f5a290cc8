/* Pictures of different sizes: the gradient of an update is that of its samples one by one,
 * losses are divided by true counts over all samples, batch statistics are those of all pixels,
 * and the figures of a test are exact over the set.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "numerics/sizes.h"

static const int counts[] = {1, 2, 3, 5};
enum { COUNTS = sizeof counts / sizeof *counts };

/* ---- Gradients ------------------------------------------------------------------------------- */

enum { ELEMENTS = 8192 };

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

/* Adds `factor` times the gradient of the first update to `sum`; returns its loss. */
static double first_update(struct lockstep_solver *solver, double factor, double *sum)
{
    struct training *training = start(solver, 2, NULL, NULL);
    training->schedule.workers = 1; /* some have one micro-batch only */
    step(training, 1);
    add_gradient(training, factor, sum);
    double loss = lockstep_trainer_loss(training->trainer);
    finish(training);
    lockstep_solver_free(solver);
    return loss;
}

static void check_gradient(const double *gradient, const double *expected, double tolerance,
                           const char *what)
{
    double difference = 0, norm = 0;
    for (int i = 0; i < ELEMENTS; i++) {
        difference += (gradient[i] - expected[i]) * (gradient[i] - expected[i]);
        norm += expected[i] * expected[i];
    }
    assert_true(norm > 0);
    double off = sqrt(difference / norm);
    if (!(off <= tolerance))
        fail_msg("%s: the gradient is %g off", what, off);
}

/* The pairs of folder "p" with indices [first, end), as a list file. */
static void write_list(const char *path, int first, int end)
{
    char text[PICTURES * 64] = "";
    for (int i = first; i < end; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "p/%03d.png p_maps/%03d.png\n", i,
                 i);
    ls_test_write_text(path, text);
}

/* The net without norms on these pairs; `loss` has fields of the loss. */
static struct lockstep_solver *list_solver(int first, int end, const char *settings, int batch,
                                           const char *loss)
{
    write_list(ls_test_path("list.txt"), first, end);
    const char *data = ls_test_text("layer { name: 'd' type: 'Data' top: 'data' top: 'label'\n"
                                    "  transform_param { scale: 0.02 mean_value: 90 }\n"
                                    "  data_param { backend: IMAGE_PAIRS source: '%s'\n"
                                    "    root_folder: '%s' batch_size: %d } }\n",
                                    ls_test_path("list.txt"), ls_test_directory(), batch);
    const struct size_net net = {.file = "sizes_bare", .loss = loss};
    return load_solver("%s lr_policy: 'fixed' base_lr: 0.1 max_iter: 3 random_seed: 11\n"
                       "net_param { %s }\n",
                       settings, net_on(data, &net));
}

/* Every sample by itself, each a data set of one size, nothing divided. */
static double sum_one_by_one(int first, int end, double *sum)
{
    double loss = 0;
    for (int i = first; i < end; i++)
        loss += first_update(list_solver(i, i + 1, "", 1, "normalization: NONE"), 1, sum);
    return loss;
}

static void check_divisor(const char *fields, double loss, const double *sum, double divisor)
{
    static const struct {
        const char *settings;
        int batch;
    } splits[] = {{"micro_batch: 1", 20},
                  {"micro_batch: 3", 20},
                  {"micro_batch: 20", 20},
                  {"micro_batch: 3 iter_size: 2", 10},
                  {"micro_batch: 2 iter_size: 5", 4}};
    for (size_t i = 0; i < sizeof splits / sizeof *splits; i++) {
        double gradient[ELEMENTS] = {0};
        double other = first_update(list_solver(0, 20, splits[i].settings, splits[i].batch, fields),
                                    divisor, gradient);
        if (!(fabs(other * divisor - loss) <= 2e-6 * fabs(loss)))
            fail_msg("divisor %g, %s: the loss is %.9g, not %.9g", divisor, splits[i].settings,
                     other, loss / divisor);
        check_gradient(gradient, sum, 2e-6, splits[i].settings);
    }
}

static void pictures_one_by_one_give_the_gradient_of_the_batch(void **state)
{
    (void)state;
    double sum[ELEMENTS] = {0}, valid, all;
    double loss = sum_one_by_one(0, 20, sum);
    count_pixels(0, 20, &valid, &all);
    assert_true(valid < all);
    check_divisor("normalization: NONE", loss, sum, 1);
    check_divisor("normalization: VALID", loss, sum, valid);
    check_divisor("normalization: FULL", loss, sum, all);
    check_divisor("normalization: BATCH_SIZE", loss, sum, 20);
}

/* ---- Batch statistics ------------------------------------------------------------------------ */

enum { BATCH = 8 };

static int pixels_of_batch(void)
{
    int pixels = 0;
    for (int i = 0; i < BATCH; i++)
        pixels += size_of(i).height * size_of(i).width;
    return pixels;
}

/* All pixels of the batch in one picture of one line. */
static void rearrange(const char *folder)
{
    static uint8_t pixels[3 * PIXELS_MAX], labels[PIXELS_MAX];
    int count = pixels_of_batch(), n = 0;
    assert_true(count <= PIXELS_MAX);
    for (int i = 0; i < BATCH; i++)
        for (int at = 0; at < size_of(i).height * size_of(i).width; at++, n++) {
            labels[n] = label_of((uint32_t)i, (uint32_t)at);
            for (int c = 0; c < 3; c++)
                pixels[3 * n + c] = pixel_of((uint32_t)i, (uint32_t)at, (uint32_t)c);
        }
    char maps[64];
    snprintf(maps, sizeof maps, "%s_maps", folder);
    write_png(folder, 0, pixels, (struct size){1, count}, 3);
    write_png(maps, 0, labels, (struct size){1, count}, 1);
}

static struct lockstep_solver *pixel_solver(const char *folder, int batch, int micro_batch)
{
    char settings[128], data[64];
    snprintf(settings, sizeof settings,
             "lr_policy: 'fixed' base_lr: 0.1 max_iter: 3 micro_batch: %d", micro_batch);
    snprintf(data, sizeof data, "batch_size: %d", batch);
    return make_solver(settings, folder, data, "", (struct size_net){.file = "sizes_per_pixel"});
}

static void pixels_as_pictures_give_the_gradient_of_pictures(void **state)
{
    (void)state;
    double one[ELEMENTS] = {0};
    rearrange("flat");
    double loss = first_update(pixel_solver("flat", 1, 1), 1, one);
    for (int micro_batch = 1; micro_batch <= 3; micro_batch++) {
        double gradient[ELEMENTS] = {0};
        double other = first_update(pixel_solver("p", BATCH, micro_batch), 1, gradient);
        assert_true(fabs(other - loss) <= 2e-6 * fabs(loss));
        check_gradient(gradient, one, 1e-5, "pixels in pictures of different sizes");
    }
}

static void read_parameter(struct training *training, size_t index, float *values, size_t size)
{
    assert_int_equal(lockstep_trainer_parameter_size(training->trainer, index), size);
    assert_int_equal(
        lockstep_trainer_read_parameter(training->trainer, index, values, size, training->error),
        0);
}

/* Mean and variance of the batch's pixels, channel by channel (blue, green, red), in double. */
static void reference_moments(double mean[3], double variance[3])
{
    double n = pixels_of_batch();
    for (int pass = 0; pass < 2; pass++)
        for (int c = 0; c < 3; c++) {
            double sum = 0;
            for (int i = 0; i < BATCH; i++)
                for (int at = 0; at < size_of(i).height * size_of(i).width; at++) {
                    double x = pixel_of((uint32_t)i, (uint32_t)at, (uint32_t)(2 - c));
                    x = (x - 90) * 0.02;
                    sum += pass == 0 ? x : (x - mean[c]) * (x - mean[c]);
                }
            if (pass == 0)
                mean[c] = sum / n;
            else
                variance[c] = sum / (n - 1);
        }
}

static void batch_statistics_count_every_pixel_once(void **state)
{
    (void)state;
    double mean[3], variance[3];
    float means[3], variances[3], factor[1];
    reference_moments(mean, variance);
    for (int micro_batch = 1; micro_batch <= 3; micro_batch++) {
        struct lockstep_solver *solver = pixel_solver("p", BATCH, micro_batch);
        struct training *training = start(solver, 2, NULL, NULL);
        step(training, 1);
        read_parameter(training, 0, means, 3);
        read_parameter(training, 1, variances, 3);
        read_parameter(training, 2, factor, 1);
        assert_true(factor[0] == 1);
        for (int c = 0; c < 3; c++)
            if (!(fabs((double)means[c] - mean[c]) <= 1e-6) ||
                !(fabs((double)variances[c] - variance[c]) <= 1e-6 * variance[c]))
                fail_msg("channel %d: mean %.9g, not %.9g; variance %.9g, not %.9g", c,
                         (double)means[c], mean[c], (double)variances[c], variance[c]);
        finish(training);
        lockstep_solver_free(solver);
    }
}

/* ---- Tests ----------------------------------------------------------------------------------- */

enum { TEST_FIGURES = 3 };

static void evaluate(struct training *training, double figures[TEST_FIGURES])
{
    const struct lockstep_output *outputs;
    size_t count;
    if (lockstep_trainer_evaluate(training->trainer, 0, &outputs, &count, training->error) != 0)
        fail_msg("%s", lockstep_error_text(training->error));
    assert_int_equal(count, TEST_FIGURES);
    for (size_t i = 0; i < count; i++)
        figures[i] = outputs[i].values[0];
}

/* Accuracy and overlap are exact, and therefore the same for any batches; the loss is the same
 * within rounding. On any number of workers all have the same bits. */
static void figures_do_not_depend_on_how_samples_are_put_together(void **state)
{
    (void)state;
    static const char *const cuts[] = {"batch_size: 1", "batch_size: 7",
                                       "batch_size: 27 last_batch: PARTIAL"};
    double first[TEST_FIGURES] = {0}, valid, all;
    count_pixels(0, PICTURES, &valid, &all);
    for (int c = 0; c < 3; c++) {
        double alone[TEST_FIGURES];
        for (int i = 0; i < COUNTS; i++) {
            double figures[TEST_FIGURES];
            struct lockstep_solver *solver =
                make_solver(SGD "max_iter: 9 micro_batch: 3 test_interval: 100", "p",
                            "batch_size: 12", test_layer("p", cuts[c]),
                            (struct size_net){.file = "sizes_deconvolved", .more = FIGURES});
            struct training *training = start(solver, counts[i], NULL, NULL);
            step(training, 2);
            evaluate(training, figures);
            if (c == 0 && i == 0)
                memcpy(first, figures, sizeof first);
            if (i == 0)
                memcpy(alone, figures, sizeof alone);
            assert_memory_equal(figures, alone, sizeof alone);
            assert_true(figures[0] == first[0] && figures[1] == first[1]);
            assert_true(fabs(figures[2] - first[2]) <= 1e-6 * first[2]);
            finish(training);
            lockstep_solver_free(solver);
        }
    }
    double correct = first[0] * valid; /* of pixels that count */
    assert_true(fabs(correct - round(correct)) < 1e-6 && correct > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pictures_one_by_one_give_the_gradient_of_the_batch),
        cmocka_unit_test(pixels_as_pictures_give_the_gradient_of_pictures),
        cmocka_unit_test(batch_statistics_count_every_pixel_once),
        cmocka_unit_test(figures_do_not_depend_on_how_samples_are_put_together),
    };
    for (int i = 0; i < PICTURES; i++)
        write_pair("p", i, size_of(i));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
