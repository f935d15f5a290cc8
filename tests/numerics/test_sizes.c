/* Pictures that differ in size: a fully-convolutional net that trains on them gives the same
 * snapshot, byte for byte, on any number of workers; its gradients and figures are those of the
 * samples one by one, its batch statistics and divisors those of all their pixels. Memory does not
 * grow with the number of sizes, and neither do plans, and forgetting them changes nothing.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "numerics/training.h"
#include "unit/data/map_files.h"

static const int counts[] = {1, 2, 3, 5};
enum { COUNTS = sizeof counts / sizeof *counts, CLASSES = 4, IGNORED = 7 };

/* ---- Pictures -------------------------------------------------------------------------------- */

struct size {
    int height, width;
};

static const struct size sizes[] = {{12, 12}, {9, 14}, {16, 8}, {7, 7}, {11, 17}, {13, 10}};
enum { SIZES = sizeof sizes / sizeof *sizes, PICTURES = 27, PIXELS_MAX = 8192 };

static struct size size_of(int picture)
{
    return sizes[(picture * picture * 7 + picture / 3) % SIZES]; /* some neighbours are alike */
}

/* One pixel in nine is not to be counted. */
static uint8_t label_of(uint32_t picture, uint32_t at)
{
    uint32_t drawn = ls_random_below(4, picture, at, 9 * CLASSES);
    return (uint8_t)(drawn % 9 == 0 ? IGNORED : drawn / 9);
}

/* Brightness says something of the label, colours do not. */
static uint8_t pixel_of(uint32_t picture, uint32_t at, uint32_t channel)
{
    uint32_t noise = ls_random_below(5, picture, at * 3 + channel, 90);
    return (uint8_t)(noise + label_of(picture, at) % CLASSES * 40U);
}

static void write_png(const char *folder, int index, const uint8_t *pixels, struct size size,
                      int channels)
{
    char name[32];
    size_t bytes;
    snprintf(name, sizeof name, "%03d.png", index);
    uint8_t *file =
        png_file(pixels, (size_t)(size.width * channels), size.height, size.width,
                 channels == 3 ? PNG_COLOR_TYPE_RGB : PNG_COLOR_TYPE_GRAY, 8, false, &bytes);
    ls_test_write(map_at(folder, name), file, bytes);
    free(file);
}

/* Folder `name` with picture `index` of a size, folder "<name>_maps" with its map. */
static void write_pair(const char *name, int index, struct size size)
{
    static uint8_t pixels[3 * PIXELS_MAX], labels[PIXELS_MAX];
    char maps[64];
    uint32_t count = (uint32_t)(size.height * size.width);
    assert_true(count <= sizeof labels);
    for (uint32_t at = 0; at < count; at++) {
        labels[at] = label_of((uint32_t)index, at);
        for (uint32_t c = 0; c < 3; c++)
            pixels[3 * at + c] = pixel_of((uint32_t)index, at, c);
    }
    snprintf(maps, sizeof maps, "%s_maps", name);
    write_png(name, index, pixels, size, 3);
    write_png(maps, index, labels, size, 1);
}

/* ---- Nets ------------------------------------------------------------------------------------ */

#define CONVOLUTION(name, bottom, fields)                                                          \
    "layer { name: '" name "' type: 'Convolution' bottom: '" bottom "' top: '" name "'\n"          \
    "  convolution_param { weight_filler { type: 'msra' } " fields " } }\n"
#define NORM(name, fields)                                                                         \
    "layer { name: '" name "_n' type: 'BatchNorm' bottom: '" name "' top: '" name "'\n"            \
    "  batch_norm_param { moving_average_fraction: 0.9 " fields " } }\n"                           \
    "layer { name: '" name "_s' type: 'Scale' bottom: '" name "' top: '" name "'\n"                \
    "  scale_param { bias_term: true } }\n"
#define RELU(name) "layer { name: '" name "_r' type: 'ReLU' bottom: '" name "' top: '" name "' }\n"
#define POOL                                                                                       \
    "layer { name: 'pool' type: 'Pooling' bottom: 'c1' top: 'pool'\n"                              \
    "  pooling_param { kernel_size: 2 stride: 2 } }\n"
#define DECONVOLUTION                                                                              \
    "layer { name: 'up' type: 'Deconvolution' bottom: 'c2' top: 'up' convolution_param {\n"        \
    "  num_output: 5 kernel_size: 4 stride: 2 pad: 1 weight_filler { type: 'msra' } } }\n"         \
    "layer { name: 'crop' type: 'Crop' bottom: 'up' bottom: 'data' top: 'crop' }\n"
#define RESIZE                                                                                     \
    "layer { name: 'up' type: 'Interp' bottom: 'c2' top: 'up' interp_param { zoom_factor: 3 } }\n" \
    "layer { name: 'crop' type: 'Crop' bottom: 'up' bottom: 'data' top: 'crop'\n"                  \
    "  crop_param { offset: 0 } }\n"
#define SCORES CONVOLUTION("score", "crop", "num_output: 4 kernel_size: 1")
#define LOSS(fields)                                                                               \
    "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'score' bottom: 'label' top: 'loss'\n"   \
    "  loss_param { ignore_label: 7 " fields " } }\n"
#define FIGURES                                                                                    \
    "layer { name: 'a' type: 'Accuracy' bottom: 'score' bottom: 'label' top: 'accuracy'\n"         \
    "  include { phase: TEST } accuracy_param { ignore_label: 7 } }\n"                             \
    "layer { name: 'i' type: 'MeanIoU' bottom: 'score' bottom: 'label' top: 'iou'\n"               \
    "  include { phase: TEST } mean_iou_param { ignore_label: 7 } }\n"

#define NORMALISED(fields, up)                                                                     \
    CONVOLUTION("c1", "data", "num_output: 8 kernel_size: 3 pad: 1 bias_term: false")              \
    NORM("c1", fields)                                                                             \
    RELU("c1")                                                                                     \
    POOL CONVOLUTION("c2", "pool", "num_output: 16 kernel_size: 3 pad: 1") NORM("c2", fields)      \
        RELU("c2") up SCORES
#define BARE                                                                                       \
    CONVOLUTION("c1", "data", "num_output: 8 kernel_size: 3 pad: 1")                               \
    RELU("c1")                                                                                     \
    POOL CONVOLUTION("c2", "pool", "num_output: 16 kernel_size: 3 pad: 1") RELU("c2")              \
        DECONVOLUTION SCORES

#define SGD "base_lr: 0.05 momentum: 0.9 weight_decay: 0.0005 lr_policy: 'fixed'\n"

/* A solver for the pictures in folder `name`; `test` is a data layer for the test phase. */
static struct lockstep_solver *make_solver(const char *settings, const char *name, const char *data,
                                           const char *test, const char *net)
{
    return load_solver("%s random_seed: 11\n"
                       "net_param {\n"
                       "layer { name: 'd' type: 'Data' top: 'data' top: 'label'%s\n"
                       "  transform_param { scale: 0.02 mean_value: 90 mirror: true }\n"
                       "  data_param { backend: IMAGE_PAIRS source: '%s/%s'\n"
                       "    label_source: '%s/%s_maps' %s } }\n%s%s}\n",
                       settings, test[0] != '\0' ? " include { phase: TRAIN }" : "",
                       ls_test_directory(), name, ls_test_directory(), name, data, test, net);
}

static const char *test_layer(const char *name, const char *fields)
{
    static char text[2048];
    snprintf(text, sizeof text,
             "layer { name: 'td' type: 'Data' top: 'data' top: 'label' include { phase: TEST }\n"
             "  transform_param { scale: 0.02 mean_value: 90 }\n"
             "  data_param { backend: IMAGE_PAIRS source: '%s/%s' label_source: '%s/%s_maps'\n"
             "    %s } }\n",
             ls_test_directory(), name, ls_test_directory(), name, fields);
    return text;
}

/* ---- Any number of workers ------------------------------------------------------------------- */

struct variant {
    const char *what, *settings, *data, *net;
};

static const struct variant variants[] = {
    {"deconvolution", SGD "micro_batch: 3 max_iter: 9", "batch_size: 12 shuffle: true",
     NORMALISED("", DECONVOLUTION) LOSS("")},
    {"two batches", SGD "micro_batch: 3 iter_size: 2 max_iter: 6", "batch_size: 12 shuffle: true",
     NORMALISED("", RESIZE) LOSS("normalization: FULL")},
    {"clipped", SGD "micro_batch: 3 clip_gradients: 0.5 max_iter: 9",
     "batch_size: 12 shuffle: true", NORMALISED("", DECONVOLUTION) LOSS("")},
    {"epochs", SGD "micro_batch: 3 iter_size: 2 clip_gradients: 0.5 max_iter: 9",
     "batch_size: 13 shuffle: true last_batch: PARTIAL", NORMALISED("", DECONVOLUTION) LOSS("")},
    {"groups of one", SGD "micro_batch: 3 max_iter: 9", "batch_size: 13 shuffle: true",
     NORMALISED("group: 1", DECONVOLUTION) LOSS("normalization: BATCH_SIZE")},
    {"groups", SGD "micro_batch: 4 iter_size: 2 max_iter: 6", "batch_size: 13 shuffle: true",
     NORMALISED("group: 5", RESIZE) LOSS("")},
    {"bare", "type: 'Adam' base_lr: 0.01 lr_policy: 'fixed' micro_batch: 3 max_iter: 9",
     "batch_size: 16 shuffle: true", BARE LOSS("")},
};
enum { VARIANTS = sizeof variants / sizeof *variants };

static struct lockstep_solver *variant_solver(const struct variant *variant)
{
    return make_solver(variant->settings, "p", variant->data, "", variant->net);
}

static void test_workers(void **state)
{
    (void)state;
    for (int v = 0; v < VARIANTS; v++) {
        struct lockstep_solver *solver = variant_solver(&variants[v]);
        struct bytes first = {0};
        int64_t micro_batches = 0;
        for (int i = 0; i < COUNTS; i++) {
            struct training *training = start(solver, counts[i], NULL, NULL);
            training->schedule.dawdler = (v + i) % counts[i];
            step(training, 6);
            int64_t total = count_micro_batches(training);
            struct bytes bytes = snapshot(training);
            finish(training);
            if (i == 0) {
                first = bytes;
                micro_batches = total;
                continue;
            }
            check_same(first, bytes, "%s, %d workers", variants[v].what, counts[i]);
            assert_int_equal(total, micro_batches);
        }
        free(first.data);
        lockstep_solver_free(solver);
    }
}

/* After a resume another size comes first: nothing may depend on that. */
static void test_resume(void **state)
{
    (void)state;
    for (int v = 0; v < VARIANTS; v++) {
        struct lockstep_solver *solver = variant_solver(&variants[v]);
        struct training *whole = start(solver, 2, NULL, NULL);
        step(whole, 6);
        struct bytes first = snapshot(whole);
        finish(whole);
        for (int at = 1; at < 6; at += 2) {
            struct training *training = start(solver, 1 + at % 3, NULL, NULL);
            const char *path = ls_test_path("middle.safetensors");
            step(training, at);
            assert_int_equal(lockstep_trainer_snapshot(training->trainer, path, training->error),
                             0);
            finish(training);
            training = start(solver, 1 + (at + 1) % 3, NULL, path);
            assert_int_equal(lockstep_trainer_iteration(training->trainer), at);
            step(training, 6 - at);
            check_same(first, snapshot(training), "%s, resumed at %d", variants[v].what, at);
            finish(training);
        }
        free(first.data);
        lockstep_solver_free(solver);
    }
}

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

static struct lockstep_solver *list_solver(int first, int end, const char *settings, int batch,
                                           const char *net)
{
    write_list(ls_test_path("list.txt"), first, end);
    return load_solver("%s lr_policy: 'fixed' base_lr: 0.1 max_iter: 3 random_seed: 11\n"
                       "net_param {\n"
                       "layer { name: 'd' type: 'Data' top: 'data' top: 'label'\n"
                       "  transform_param { scale: 0.02 mean_value: 90 }\n"
                       "  data_param { backend: IMAGE_PAIRS source: '%s' root_folder: '%s'\n"
                       "    batch_size: %d } }\n%s}\n",
                       settings, ls_test_path("list.txt"), ls_test_directory(), batch, net);
}

static void count_pixels(int first, int end, double *valid, double *all)
{
    *valid = *all = 0;
    for (int i = first; i < end; i++)
        for (int at = 0; at < size_of(i).height * size_of(i).width; at++) {
            *all += 1;
            *valid += label_of((uint32_t)i, (uint32_t)at) != IGNORED;
        }
}

/* Every sample by itself, each a data set of one size, nothing divided. */
static double sum_one_by_one(int first, int end, double *sum)
{
    double loss = 0;
    for (int i = first; i < end; i++)
        loss +=
            first_update(list_solver(i, i + 1, "", 1, BARE LOSS("normalization: NONE")), 1, sum);
    return loss;
}

static void check_divisor(const char *net, double loss, const double *sum, double divisor)
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
        double other = first_update(list_solver(0, 20, splits[i].settings, splits[i].batch, net),
                                    divisor, gradient);
        if (!(fabs(other * divisor - loss) <= 2e-6 * fabs(loss)))
            fail_msg("divisor %g, %s: the loss is %.9g, not %.9g", divisor, splits[i].settings,
                     other, loss / divisor);
        check_gradient(gradient, sum, 2e-6, splits[i].settings);
    }
}

static void test_one_by_one(void **state)
{
    (void)state;
    double sum[ELEMENTS] = {0}, valid, all;
    double loss = sum_one_by_one(0, 20, sum);
    count_pixels(0, 20, &valid, &all);
    assert_true(valid < all);
    check_divisor(BARE LOSS("normalization: NONE"), loss, sum, 1);
    check_divisor(BARE LOSS("normalization: VALID"), loss, sum, valid);
    check_divisor(BARE LOSS("normalization: FULL"), loss, sum, all);
    check_divisor(BARE LOSS("normalization: BATCH_SIZE"), loss, sum, 20);
}

/* ---- Batch statistics ------------------------------------------------------------------------ */

/* What looks at each pixel by itself does not care how pixels are arranged in pictures. */
#define PER_PIXEL                                                                                  \
    NORM("data", "")                                                                               \
    CONVOLUTION("c1", "data", "num_output: 9 kernel_size: 1")                                      \
    NORM("c1", "")                                                                                 \
    RELU("c1")                                                                                     \
    CONVOLUTION("score", "c1", "num_output: 4 kernel_size: 1") LOSS("")

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
    return make_solver(settings, folder, data, "", PER_PIXEL);
}

static void test_pixels_alone(void **state)
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

static void test_moments(void **state)
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

/* Accuracy and overlap are exact, and so the same however samples are put together; so is the loss
 * to rounding; on any number of workers all are the same bits. */
static void test_figures(void **state)
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
            struct lockstep_solver *solver = make_solver(
                SGD "max_iter: 9 micro_batch: 3 test_interval: 100", "p", "batch_size: 12",
                test_layer("p", cuts[c]), NORMALISED("", DECONVOLUTION) LOSS("") FIGURES);
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

/* ---- Memory ---------------------------------------------------------------------------------- */

enum { MANY = 80, PLANS_KEPT = 64 };

/* Tests on pictures that are larger than any seen in training: the memory that both nets share
 * moves, and training goes on as if nothing had been. */
static void test_larger_tests(void **state)
{
    (void)state;
    struct bytes first = {0};
    for (int i = 0; i < 4; i++)
        write_pair("large", i, (struct size){20 + 20 * i, 30 + 20 * i});
    for (int workers = 1; workers <= 3; workers++)
        for (int tested = 0; tested < 2; tested++) {
            struct lockstep_solver *solver = make_solver(
                SGD "max_iter: 9 micro_batch: 3 test_interval: 100 weight_average { decay: 0.9 }",
                "p", "batch_size: 12 shuffle: true", test_layer("large", "batch_size: 2"),
                NORMALISED("", DECONVOLUTION) LOSS("") FIGURES);
            struct training *training = start(solver, workers, NULL, NULL);
            struct ls_engine *engine = training->trainer->inner->engine;
            for (int update = 0; update < 6; update++) {
                double figures[TEST_FIGURES];
                step(training, 1);
                size_t before = engine->arena_bytes;
                if (tested && update % 2 == 1)
                    evaluate(training, figures);
                if (tested && update == 1)
                    assert_true(engine->arena_bytes > before);
            }
            if (first.data == NULL)
                first = snapshot(training);
            else
                check_same(first, snapshot(training), "%d workers, tests: %d", workers, tested);
            finish(training);
            lockstep_solver_free(solver);
        }
    free(first.data);
}

static struct size size_of_many(int i)
{
    return (struct size){4 + i * 31 % MANY % 2, 3 + i * 31 % MANY};
}

static struct lockstep_solver *many_solver(void)
{
    return make_solver(SGD "max_iter: 60 micro_batch: 3 test_interval: 100 clip_gradients: 2",
                       "many", "batch_size: 12 shuffle: true", test_layer("many", "batch_size: 20"),
                       CONVOLUTION("c1", "data", "num_output: 8 kernel_size: 3 pad: 1")
                           NORM("c1", "") RELU("c1")
                               POOL CONVOLUTION("c2", "pool", "num_output: 5 kernel_size: 3 pad: 1")
                                   DECONVOLUTION SCORES LOSS("") FIGURES);
}

static size_t largest_arena(const struct ls_net *net)
{
    size_t most = 0;
    for (size_t i = 0; i < net->plan_count; i++)
        if (net->plans[i]->plan->arena_bytes > most)
            most = net->plans[i]->plan->arena_bytes;
    return most;
}

/* More sizes than plans are kept for: plans come and go, and come again. A run that starts in
 * between has others than one that has seen all. */
static void test_many_sizes(void **state)
{
    (void)state;
    struct bytes first = {0};
    double figures[2][TEST_FIGURES];
    for (int workers = 1; workers <= 3; workers++) {
        struct lockstep_solver *solver = many_solver();
        struct training *training = start(solver, workers, NULL, NULL);
        const struct ls_trainer *inner = training->trainer->inner;
        step(training, 10);
        assert_true(inner->train->plan_count == PLANS_KEPT);
        assert_true(inner->engine->arena_bytes >= largest_arena(inner->train));
        size_t before = inner->engine->arena_bytes;
        const char *middle = ls_test_path("middle.safetensors");
        assert_int_equal(lockstep_trainer_snapshot(training->trainer, middle, training->error), 0);
        step(training, 8);
        assert_true(inner->train->plan_count == PLANS_KEPT);
        /* All sizes were seen in less than two epochs. */
        assert_true(inner->engine->arena_bytes == before);
        evaluate(training, figures[workers > 1]);
        assert_memory_equal(figures[workers > 1], figures[0], sizeof figures[0]);
        evaluate(training, figures[1]); /* again, with other plans there */
        assert_memory_equal(figures[1], figures[0], sizeof figures[0]);
        step(training, 2);
        if (workers == 1)
            first = snapshot(training);
        else
            check_same(first, snapshot(training), "many sizes, %d workers", workers);
        finish(training);
        training = start(solver, 1 + workers % 3, NULL, middle);
        step(training, 10);
        check_same(first, snapshot(training), "many sizes, resumed");
        finish(training);
        lockstep_solver_free(solver);
    }
    free(first.data);
}

/* ---- No memory ------------------------------------------------------------------------------- */

/* One allocation after the other fails while updates see sizes for the first time. The update that
 * it happens to is tried again, and the weights are in the end what they would have been. */
static void test_no_memory(void **state)
{
    (void)state;
    struct lockstep_solver *solver = many_solver();
    struct training *undisturbed = start(solver, 2, NULL, NULL);
    step(undisturbed, 8);
    struct bytes first = snapshot(undisturbed);
    finish(undisturbed);
    struct training *training = start(solver, 2, NULL, NULL);
    long failed = 0, after = 0;
    while (lockstep_trainer_iteration(training->trainer) < 8) {
        int64_t before = lockstep_trainer_iteration(training->trainer);
        ls_fail_allocation_after(after);
        int status = lockstep_trainer_step(training->trainer, 1, training->error);
        ls_fail_allocation_after(-1);
        after += after < 40 ? 1 : 17;
        if (status == 0) {
            after = failed % 7; /* the next update has other sizes: begin again */
            continue;
        }
        failed++;
        if (status != LOCKSTEP_RESOURCE ||
            strstr(lockstep_error_text(training->error), "memory") == NULL)
            fail_msg("status %d: %s", status, lockstep_error_text(training->error));
        assert_int_equal(lockstep_trainer_iteration(training->trainer), before);
    }
    assert_true(failed > 100);
    check_same(first, snapshot(training), "after %ld failures", failed);
    finish(training);
    free(first.data);
    lockstep_solver_free(solver);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_workers),      cmocka_unit_test(test_resume),
        cmocka_unit_test(test_one_by_one),   cmocka_unit_test(test_pixels_alone),
        cmocka_unit_test(test_moments),      cmocka_unit_test(test_figures),
        cmocka_unit_test(test_larger_tests), cmocka_unit_test(test_many_sizes),
        cmocka_unit_test(test_no_memory),
    };
    if (getenv("LOCKSTEP_TEST_FILTER") != NULL)
        cmocka_set_test_filter(getenv("LOCKSTEP_TEST_FILTER"));
    for (int i = 0; i < PICTURES; i++)
        write_pair("p", i, size_of(i));
    for (int i = 0; i < MANY; i++)
        write_pair("many", i, size_of_many(i));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
