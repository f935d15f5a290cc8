/* Gradients that outgrow their exact sums: the update is repeated with other exponents, to the same
 * bytes on any number of workers, and the log says so. And rows that are touched rarely, under an
 * optimizer that would blow up any noise in them.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "numerics/training.h"

static const int counts[] = {1, 2, 3, 5, 8};
enum { COUNTS = sizeof counts / sizeof *counts };

/* ---- Exponents that do not fit --------------------------------------------------------------- */

static struct lockstep_solver *image_solver(void)
{
    return load_solver(
        "type: 'Nesterov' base_lr: 0.02 momentum: 0.9 lr_policy: 'fixed' max_iter: 20\n"
        "clip_gradients: 3 iter_size: 2 micro_batch: 6\n"
        "net_param {\n"
        "layer { name: 'drawn' type: 'Data' top: 'data' top: 'label'\n"
        "  transform_param { scale: 0.004 }\n"
        "  data_param { backend: SYNTHETIC batch_size: 50\n"
        "    synthetic_param { count: 500 height: 16 width: 16 } } }\n"
        "layer { name: 'conv1' type: 'Convolution' bottom: 'data' top: 'conv1'\n"
        "  convolution_param { num_output: 6 kernel_size: 5 stride: 2\n"
        "    weight_filler { type: 'xavier' } } }\n"
        "layer { name: 'relu1' type: 'ReLU' bottom: 'conv1' top: 'conv1' }\n"
        "layer { name: 'drop1' type: 'Dropout' bottom: 'conv1' top: 'conv1' }\n"
        "layer { name: 'ip1' type: 'InnerProduct' bottom: 'conv1' top: 'ip1'\n"
        "  inner_product_param { num_output: 10 weight_filler { type: 'xavier' } } }\n"
        "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip1' bottom: 'label' top: 'loss' }\n"
        "}\n");
}

/* Moves exponents out of what fits: sums that overflow, that are too coarse, or both. */
static void spoil_exponents(struct training *training, int which)
{
    struct ls_sums *sums = training->trainer->inner->store->sums;
    size_t count = lockstep_trainer_parameter_count(training->trainer);
    for (size_t i = 0; i < count; i++) {
        int way = which == 2 ? (int)(i % 3) : which;
        int by = way == 0 ? 25 : way == 1 ? -25 : 0;
        ls_sums_set_exponent(sums, (int)i, ls_sums_exponent(sums, (int)i) + by);
    }
}

static void test_forced_overflow(void **state)
{
    (void)state;
    struct lockstep_solver *solver = image_solver();
    struct training *undisturbed = start(solver, 1, NULL, NULL);
    step(undisturbed, 6);
    double loss = lockstep_trainer_loss(undisturbed->trainer);
    assert_int_equal(undisturbed->repeats, 0);
    int64_t micro_batches = count_micro_batches(undisturbed);
    finish(undisturbed);
    for (int which = 0; which < 3; which++) {
        struct bytes first = {0};
        for (int i = 0; i < COUNTS; i++) {
            struct training *training = start(solver, counts[i], NULL, NULL);
            step(training, 3);
            spoil_exponents(training, which);
            step(training, 1);
            assert_int_equal(training->repeats, 1);
            step(training, 2);
            assert_int_equal(training->repeats, 1);
            /* 100 samples in micro-batches of at most 6 */
            assert_int_equal(count_micro_batches(training), micro_batches + 18);
            assert_true(fabs(lockstep_trainer_loss(training->trainer) - loss) < 1e-5);
            struct bytes bytes = snapshot(training);
            if (i == 0)
                first = bytes;
            else
                check_same(first, bytes, "spoiled in way %d, %d workers", which, counts[i]);
            finish(training);
        }
        free(first.data);
    }
    lockstep_solver_free(solver);
}

/* ---- Gradients that jump --------------------------------------------------------------------- */

enum { JUMP_SAMPLES = 400, JUMP_SIDE = 4 };

static void write_idx(const char *images, const char *labels, uint32_t n, uint32_t height,
                      uint32_t width, const uint8_t *pixels, const uint8_t *names)
{
    size_t size = (size_t)n * height * width;
    uint8_t *bytes = calloc(16 + size, 1);
    bytes[2] = 8;
    bytes[3] = 3;
    put_u32(bytes + 4, n);
    put_u32(bytes + 8, height);
    put_u32(bytes + 12, width);
    memcpy(bytes + 16, pixels, size);
    ls_test_write(images, bytes, 16 + size);
    bytes[3] = 1;
    memcpy(bytes + 8, names, n);
    ls_test_write(labels, bytes, 8 + n);
    free(bytes);
}

/* Half the samples are faint and want 1, the others are bright and want 255: the gradient of their
 * distance jumps by about 2^16 between the halves. */
static struct lockstep_solver *jumping_solver(void)
{
    static uint8_t pixels[JUMP_SAMPLES][JUMP_SIDE * JUMP_SIDE], labels[JUMP_SAMPLES];
    for (uint32_t i = 0; i < JUMP_SAMPLES; i++) {
        bool bright = i >= JUMP_SAMPLES / 2;
        labels[i] = bright ? 255 : 1;
        for (uint32_t k = 0; k < JUMP_SIDE * JUMP_SIDE; k++)
            pixels[i][k] = (uint8_t)((bright ? 254 : 0) + ls_random_below(3, i, k, 2));
    }
    write_idx(ls_test_path("jump-images"), ls_test_path("jump-labels"), JUMP_SAMPLES, JUMP_SIDE,
              JUMP_SIDE, pixels[0], labels);
    return load_solver(
        "base_lr: 1e-9 momentum: 0.9 lr_policy: 'fixed' max_iter: 30 micro_batch: 4\n"
        "net_param {\n"
        "layer { name: 'jump' type: 'Data' top: 'data' top: 'label'\n"
        "  data_param { backend: IDX source: '%s' label_source: '%s' batch_size: 40 } }\n"
        "layer { name: 'ip' type: 'InnerProduct' bottom: 'data' top: 'ip'\n"
        "  inner_product_param { num_output: 1\n"
        "    weight_filler { type: 'gaussian' std: 0.001 } } }\n"
        "layer { name: 'loss' type: 'EuclideanLoss' bottom: 'ip' bottom: 'label' top: 'loss' }\n"
        "}\n",
        ls_test_path("jump-images"), ls_test_path("jump-labels"));
}

/* Up after 5 updates, down after 10, up, down, up: an update is repeated each time. */
static void test_jumping_gradients(void **state)
{
    (void)state;
    struct lockstep_solver *solver = jumping_solver();
    struct bytes first = {0};
    for (int i = 0; i < COUNTS; i++) {
        int resumed_on = counts[COUNTS - 1 - i];
        struct training *training = start(solver, counts[i], NULL, NULL);
        step(training, 15);
        assert_int_equal(training->repeats, 2);
        const char *half = ls_test_path("half.safetensors");
        assert_int_equal(lockstep_trainer_snapshot(training->trainer, half, NULL), 0);
        struct training *resumed = start(solver, resumed_on, NULL, half);
        step(training, 12);
        step(resumed, 12);
        assert_int_equal(training->repeats, 5);
        assert_int_equal(resumed->repeats, 3);
        count_micro_batches(resumed);
        struct bytes bytes = snapshot(training);
        check_same(bytes, snapshot(resumed), "resumed on %d workers", resumed_on);
        if (i == 0)
            first = bytes;
        else
            check_same(first, bytes, "%d workers", counts[i]);
        finish(training);
        finish(resumed);
    }
    free(first.data);
    lockstep_solver_free(solver);
}

/* ---- Rows that are touched rarely ------------------------------------------------------------ */

enum {
    WORDS = 64,
    COMMON = 8, /* most samples are one of these words */
    CLASSES = 10,
    TEXTS = 640,
    BATCH = 64,
    UPDATES = 60
};

/* An embedding: a sample is one word, and the weights of a word move when it is seen only. Common
 * words count 200 times as much. */
struct embedding {
    uint8_t pixels[TEXTS][WORDS], labels[TEXTS];
    int word[TEXTS];
};

static void make_words(struct embedding *set)
{
    for (uint32_t i = 0; i < TEXTS; i++) {
        bool rare = i % 10 == 9; /* one rare word in each epoch: TEXTS / 10 of them */
        int word = rare ? COMMON + (int)(i / 10) % (WORDS - COMMON)
                        : (int)ls_random_below(5, 1, i, COMMON);
        set->word[i] = word;
        set->pixels[i][word] = rare ? 1 : 200;
        set->labels[i] = (uint8_t)(ls_random_below(5, 2, i, 5) == 0
                                       ? ls_random_below(5, 3, i, CLASSES)
                                       : ls_random_below(5, 4, (uint64_t)word, CLASSES));
    }
}

static struct lockstep_solver *embedding_solver(const struct embedding *set)
{
    write_idx(ls_test_path("words"), ls_test_path("classes"), TEXTS, 1, WORDS, set->pixels[0],
              set->labels);
    return load_solver(
        "type: 'Adam' base_lr: 0.002 momentum: 0.9 momentum2: 0.99 delta: 1e-8\n"
        "lr_policy: 'fixed' max_iter: 100\n"
        "net_param {\n"
        "layer { name: 'text' type: 'Data' top: 'data' top: 'label'\n"
        "  data_param { backend: IDX source: '%s' label_source: '%s' batch_size: %d } }\n"
        "layer { name: 'embed' type: 'InnerProduct' bottom: 'data' top: 'embed'\n"
        "  inner_product_param { num_output: %d bias_term: false\n"
        "    weight_filler { type: 'gaussian' std: 0.001 } } }\n"
        "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'embed' bottom: 'label'\n"
        "  top: 'loss' }\n"
        "}\n",
        ls_test_path("words"), ls_test_path("classes"), BATCH, CLASSES);
}

/* Adds a sample's gradient to sums in double precision. */
static void add_sample(const struct embedding *set, int sample, const float *weights, double *sums)
{
    int word = set->word[sample];
    double x = set->pixels[sample][word], p[CLASSES], largest = -1e300, total = 0;
    for (int c = 0; c < CLASSES; c++) {
        p[c] = (double)weights[c * WORDS + word] * x;
        largest = p[c] > largest ? p[c] : largest;
    }
    for (int c = 0; c < CLASSES; c++)
        total += p[c] = exp(p[c] - largest);
    for (int c = 0; c < CLASSES; c++)
        sums[c * WORDS + word] += (p[c] / total - (c == set->labels[sample])) * x / BATCH;
}

/* The training in plain code: sums in double, the optimizer's own rule. */
struct simulation {
    float weights[CLASSES * WORDS], history[2][CLASSES * WORDS];
    int updates;
};

static void simulate(struct simulation *simulation, const struct embedding *set)
{
    static double sums[CLASSES * WORDS];
    static float gradient[CLASSES * WORDS];
    memset(sums, 0, sizeof sums);
    for (int i = 0; i < BATCH; i++)
        add_sample(set, (simulation->updates * BATCH + i) % TEXTS, simulation->weights, sums);
    for (int i = 0; i < CLASSES * WORDS; i++)
        gradient[i] = (float)sums[i];
    simulation->updates++;
    const struct ls_update_rule rule = {.kind = LS_UPDATE_ADAM,
                                        .rate = 0.002F,
                                        .momentum = 0.9F,
                                        .momentum2 = 0.99F,
                                        .delta = 1e-8F,
                                        .correction =
                                            ls_adam_correction(0.9F, 0.99F, simulation->updates),
                                        .gradient_scale = 1};
    ls_update_apply(&rule, &(struct ls_update_slice){
                               .n = CLASSES * WORDS,
                               .gradient = gradient,
                               .weight = simulation->weights,
                               .history = {simulation->history[0], simulation->history[1]}});
}

static void read_weights(struct training *training, float *weights)
{
    int status = lockstep_trainer_read_parameter(training->trainer, 0, weights, CLASSES * WORDS,
                                                 training->error);
    assert_int_equal(status, 0);
}

/* Words that have not been seen yet have exactly their first weights. */
static void check_unseen(const struct embedding *set, int samples, const float *first,
                         const float *now)
{
    bool seen[WORDS] = {false};
    for (int i = 0; i < samples && i < TEXTS; i++)
        seen[set->word[i]] = true;
    for (int i = 0; i < CLASSES * WORDS; i++)
        if (!seen[i % WORDS])
            assert_memory_equal(&first[i], &now[i], sizeof(float));
}

static void test_rare_rows(void **state)
{
    (void)state;
    static struct embedding set;
    static struct simulation simulation;
    static float first[CLASSES * WORDS], weights[CLASSES * WORDS];
    make_words(&set);
    struct lockstep_solver *solver = embedding_solver(&set);
    struct training *training = start(solver, 3, NULL, NULL);
    read_weights(training, first);
    memcpy(simulation.weights, first, sizeof first);
    double moved = 0;
    for (int update = 1; update <= UPDATES; update++) {
        step(training, 1);
        simulate(&simulation, &set);
        read_weights(training, weights);
        check_unseen(&set, update * BATCH, first, weights);
        for (int i = 0; i < CLASSES * WORDS; i++) {
            double error = fabs((double)weights[i] - (double)simulation.weights[i]);
            if (error > 2e-6)
                fail_msg("update %d: weight %d of word %d is off by %g", update, i / WORDS,
                         i % WORDS, error);
            moved = fmax(moved, fabs((double)weights[i] - (double)first[i]));
        }
    }
    assert_true(moved > 0.01);
    finish(training);
    lockstep_solver_free(solver);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forced_overflow),
        cmocka_unit_test(test_jumping_gradients),
        cmocka_unit_test(test_rare_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
