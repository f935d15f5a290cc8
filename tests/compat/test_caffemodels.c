/* Weights that Caffe trained, in files of the old form (V1 layers, four extents) and the new
 * one: they classify as many test samples correctly as an independent program found, and the
 * files that Lockstep writes of them read back equal. The data sets and the weights come from
 * the data folder, where CIFAR-10 is packed by xz.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lockstep/lockstep.h"
#include "support/support.h"

static const char old_lenet[] = "caffemodels/bvlc_examples_2014/lenet_iter_10000.caffemodel";
static const char new_lenet[] = "caffemodels/lenet_2015/lenet_iter_10000.caffemodel";

static void check(int status, struct lockstep_error *error)
{
    if (status != 0)
        fail_msg("%s", lockstep_error_text(error));
}

/* A net with weights; `iterations` batches are tested (0: all samples). */
static struct lockstep_model *load(const char *net, const char *weights, int64_t iterations)
{
    struct lockstep_error *error = lockstep_error_new();
    struct lockstep_model *model = NULL;
    struct lockstep_model_options options;
    lockstep_model_options_init(&options);
    options.workers = 2;
    options.iterations = iterations;
    check(lockstep_model_load(net, weights, &options, &model, error), error);
    lockstep_error_free(error);
    return model;
}

static double figure(const struct lockstep_output *outputs, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(outputs[i].name, name) == 0)
            return outputs[i].values[0];
    fail_msg("there is no output %s", name);
    return 0;
}

/* `right` of the tested samples are classified correctly; another instruction set may decide
 * otherwise for one or two whose best classes are very close. */
static void expect_right(const char *net, const char *weights, int64_t iterations, int64_t tested,
                         int right)
{
    struct lockstep_error *error = lockstep_error_new();
    struct lockstep_model *model = load(net, weights, iterations);
    const struct lockstep_output *outputs;
    size_t count;
    int64_t samples;
    check(lockstep_model_test(model, &outputs, &count, &samples, error), error);
    assert_int_equal(samples, tested);
    double got = figure(outputs, count, "accuracy") * (double)samples;
    print_message("%.6g of %lld right\n", got, (long long)samples);
    if (!(fabs(got - right) < 2.5))
        fail_msg("%s: %.6g of %lld right, not %d", weights, got, (long long)tested, right);
    lockstep_model_free(model);
    lockstep_error_free(error);
}

/* ---- MNIST ----------------------------------------------------------------------------------- */

/* The example's definition finds the digits in the working directory. */
static const char *enter_mnist(void)
{
    ls_test_data_or_skip("mnist/t10k-images-idx3-ubyte.gz");
    assert_int_equal(chdir(ls_test_data_or_skip("mnist")), 0);
    return ls_test_source("examples/mnist/lenet_train_test.prototxt");
}

static void lenet_of_2014(void **state)
{
    (void)state;
    const char *weights = ls_test_data_or_skip(old_lenet);
    expect_right(enter_mnist(), weights, 0, 10000, 9905);
}

static void lenet_of_2015(void **state)
{
    (void)state;
    const char *weights = ls_test_data_or_skip(new_lenet);
    expect_right(enter_mnist(), weights, 0, 10000, 9914);
}

/* The same through a trainer that starts from them. */
static void training_starts_from_them(void **state)
{
    (void)state;
    struct lockstep_error *error = lockstep_error_new();
    struct lockstep_solver *solver;
    struct lockstep_trainer *trainer;
    struct lockstep_train_options options;
    const struct lockstep_output *outputs;
    size_t count;
    lockstep_train_options_init(&options);
    options.weights = ls_test_data_or_skip(old_lenet);
    options.workers = 2;
    enter_mnist();
    check(lockstep_solver_load(ls_test_source("examples/mnist/lenet_solver.prototxt"), NULL, 0,
                               &solver, error),
          error);
    check(lockstep_trainer_create(solver, &options, &trainer, error), error);
    check(lockstep_trainer_evaluate(trainer, 0, &outputs, &count, error), error);
    assert_float_equal(figure(outputs, count, "accuracy"), 0.9905, 2.5e-4);
    /* Digits that it knows: the first loss is small, and 10 updates do not spoil it. */
    check(lockstep_trainer_step(trainer, 1, error), error);
    assert_true(lockstep_trainer_loss(trainer) < 0.1);
    check(lockstep_trainer_step(trainer, 9, error), error);
    check(lockstep_trainer_evaluate(trainer, 0, &outputs, &count, error), error);
    assert_true(figure(outputs, count, "accuracy") > 0.985);
    lockstep_trainer_free(trainer);
    lockstep_solver_free(solver);
    lockstep_error_free(error);
}

/* LeNet as definitions of 2014 had it: V1 layers, an input of four numbers. */
static const char deploy[] = "name: 'LeNet'\n"
                             "input: 'data'\n"
                             "input_dim: 1 input_dim: 1 input_dim: 28 input_dim: 28\n"
                             "layers { name: 'conv1' type: CONVOLUTION bottom: 'data' top: 'conv1'"
                             " blobs_lr: 1 blobs_lr: 2"
                             " convolution_param { num_output: 20 kernel_size: 5 stride: 1 } }\n"
                             "layers { name: 'pool1' type: POOLING bottom: 'conv1' top: 'pool1'"
                             " pooling_param { pool: MAX kernel_size: 2 stride: 2 } }\n"
                             "layers { name: 'conv2' type: CONVOLUTION bottom: 'pool1' top: 'conv2'"
                             " convolution_param { num_output: 50 kernel_size: 5 } }\n"
                             "layers { name: 'pool2' type: POOLING bottom: 'conv2' top: 'pool2'"
                             " pooling_param { pool: MAX kernel_size: 2 stride: 2 } }\n"
                             "layers { name: 'ip1' type: INNER_PRODUCT bottom: 'pool2' top: 'ip1'"
                             " inner_product_param { num_output: 500 } }\n"
                             "layers { name: 'relu1' type: RELU bottom: 'ip1' top: 'ip1' }\n"
                             "layers { name: 'ip2' type: INNER_PRODUCT bottom: 'ip1' top: 'ip2'"
                             " inner_product_param { num_output: 10 } }\n";

static void scores_of_a_digit(void **state)
{
    (void)state;
    static const float want[10] = {-3.8173F, -1.0166F,  0.5979F,  5.2876F,  -3.1753F,
                                   -2.2874F, -11.7608F, 14.8582F, -1.2083F, 2.9904F};
    struct lockstep_error *error = lockstep_error_new();
    const char *weights = ls_test_data_or_skip(old_lenet);
    float pixels[28 * 28], scores[10];
    int64_t shape[3];
    int label;

    struct lockstep_model *model = load(enter_mnist(), weights, 0);
    check(lockstep_model_predict_sample(model, 0, shape, pixels, &label, NULL, error), error);
    assert_int_equal(label, 7);
    lockstep_model_free(model);

    ls_test_write_text(ls_test_path("deploy.prototxt"), deploy);
    model = load(ls_test_path("deploy.prototxt"), weights, 0);
    lockstep_model_input_shape(model, shape);
    assert_true(shape[0] == 1 && shape[1] == 28 && shape[2] == 28);
    assert_int_equal(lockstep_model_output_size(model), 10);
    for (size_t i = 0; i < 28 * 28; i++)
        pixels[i] /= 256;
    check(lockstep_model_predict(model, pixels, 1, scores, error), error);
    for (int i = 0; i < 10; i++)
        assert_float_equal(scores[i], want[i], 1e-4); /* they are known to four digits */
    lockstep_model_free(model);
    lockstep_error_free(error);
}

/* Pictures of digits that another program saved as PNG files named img_<label>_<n>. */
static void pictures_of_digits(void **state)
{
    (void)state;
    static const char *const names[] = {"0_10", "0_3", "1_2", "1_5", "2_1",
                                        "4_4",  "4_6", "7_0", "9_7", "9_9"};
    struct lockstep_error *error = lockstep_error_new();
    struct lockstep_model *model = load(enter_mnist(), ls_test_data_or_skip(new_lenet), 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char name[96];
        float scores[10];
        int best = 0;
        snprintf(name, sizeof name, "caffemodels/lenet_2015/samples/img_%s.png", names[i]);
        check(lockstep_model_predict_picture(model, ls_test_data_or_skip(name), scores, error),
              error);
        for (int c = 1; c < 10; c++)
            best = scores[c] > scores[best] ? c : best;
        assert_int_equal(best, names[i][0] - '0');
    }
    lockstep_model_free(model);
    lockstep_error_free(error);
}

/* ---- Writing --------------------------------------------------------------------------------- */

static void expect_same_files(const char *first, const char *second)
{
    size_t sizes[2];
    char *bytes[2] = {ls_test_read(first, &sizes[0]), ls_test_read(second, &sizes[1])};
    assert_int_equal(sizes[0], sizes[1]);
    assert_memory_equal(bytes[0], bytes[1], sizes[0]);
    free(bytes[0]);
    free(bytes[1]);
}

/* From Caffe's file, by way of each of our own formats, to the same bytes. */
static void what_we_write_reads_back(void **state)
{
    (void)state;
    struct lockstep_error *error = lockstep_error_new();
    char net[4096]; /* paths of the support library are valid for a while only */
    snprintf(net, sizeof net, "%s", enter_mnist());
    struct lockstep_model *model = load(net, ls_test_data_or_skip(old_lenet), 0);
    check(lockstep_model_save(model, ls_test_path("a.safetensors"), error), error);
    check(lockstep_model_save(model, ls_test_path("a.caffemodel"), error), error);
    lockstep_model_free(model);

    model = load(net, ls_test_path("a.caffemodel"), 0);
    check(lockstep_model_save(model, ls_test_path("b.safetensors"), error), error);
    check(lockstep_model_save(model, ls_test_path("b.caffemodel"), error), error);
    lockstep_model_free(model);
    expect_same_files(ls_test_path("a.safetensors"), ls_test_path("b.safetensors"));
    expect_same_files(ls_test_path("a.caffemodel"), ls_test_path("b.caffemodel"));

    model = load(net, ls_test_path("a.safetensors"), 0);
    check(lockstep_model_save(model, ls_test_path("c.caffemodel"), error), error);
    lockstep_model_free(model);
    expect_same_files(ls_test_path("a.caffemodel"), ls_test_path("c.caffemodel"));
    lockstep_error_free(error);
}

/* ---- CIFAR-10 -------------------------------------------------------------------------------- */

static const char *const records[] = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                      "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"};
enum { FILES = sizeof records / sizeof *records };

/* Starts xz; a child that cannot run it ends with 127. */
static pid_t unpack(const char *packed, const char *path)
{
    pid_t child = fork();
    if (child != 0)
        return child;
    int out = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (out < 0 || dup2(out, STDOUT_FILENO) < 0)
        _exit(126);
    execlp("xz", "xz", "-dc", packed, (char *)NULL);
    _exit(127);
}

static void unpack_records(void)
{
    pid_t children[FILES];
    int worst = 0;
    for (size_t i = 0; i < FILES; i++) {
        char name[64];
        snprintf(name, sizeof name, "cifar10/%s.xz", records[i]);
        const char *packed = ls_test_data_or_skip(name);
        children[i] = unpack(packed, ls_test_path(records[i]));
        assert_true(children[i] > 0);
    }
    for (size_t i = 0; i < FILES; i++) {
        int status = 0;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        int code = WIFEXITED(status) ? WEXITSTATUS(status) : 126;
        worst = code > worst ? code : worst;
    }
    if (worst == 127)
        ls_test_skip("needs xz to unpack CIFAR-10");
    assert_int_equal(worst, 0);
}

/* The mean picture of the 50,000 training pictures, as Caffe's examples subtract it. */
static void make_mean(void)
{
    struct lockstep_error *error = lockstep_error_new();
    struct lockstep_source_options source;
    double means[16];
    int channels;
    lockstep_source_options_init(&source);
    source.backend = "CIFAR";
    source.source = records;
    source.source_count = FILES - 1;
    check(lockstep_mean(&source, "mean.binaryproto", means, &channels, error), error);
    assert_int_equal(channels, 3);
    assert_float_equal(means[0], 125.307, 1e-3);
    assert_float_equal(means[1], 122.950, 1e-3);
    assert_float_equal(means[2], 113.865, 1e-3);
    lockstep_error_free(error);
}

/* An example's definition with the mean picture in place of the three means. */
static void write_net(const char *example, const char *path)
{
    size_t size;
    char *text = ls_test_read(ls_test_source(example), &size);
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    size_t replaced = 0;
    for (char *line = text, *next; line < text + size; line = next) {
        next = line + strcspn(line, "\n") + 1;
        if (strncmp(line, "    mean_value:", 15) == 0 && ++replaced > 0)
            fputs("    mean_file: \"mean.binaryproto\"\n", out);
        else
            fwrite(line, 1, (size_t)(next - line), out);
    }
    assert_int_equal(fclose(out), 0);
    assert_int_equal(replaced, 2);
    free(text);
}

static void cifar10_networks(void **state)
{
    (void)state;
    static const struct {
        const char *weights, *net;
        int right; /* of the first 2,500 test pictures */
    } nets[] = {
        {"cifar10_quick_iter_5000.caffemodel", "quick.prototxt", 1847},
        {"cifar10_quick_iter_4000.caffemodel", "quick.prototxt", 1680},
        {"cifar10_full_iter_70000.caffemodel", "full.prototxt", 2041},
        {"cifar10_full_iter_60000.caffemodel", "full.prototxt", 1970},
    };
    ls_test_data_or_skip("caffemodels/bvlc_examples_2014");
    unpack_records();
    assert_int_equal(chdir(ls_test_directory()), 0);
    make_mean();
    write_net("examples/cifar10/cifar10_quick_train_test.prototxt", "quick.prototxt");
    write_net("examples/cifar10/cifar10_full_train_test.prototxt", "full.prototxt");
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
        char name[128];
        snprintf(name, sizeof name, "caffemodels/bvlc_examples_2014/%s", nets[i].weights);
        expect_right(nets[i].net, ls_test_data_or_skip(name), 25, 2500, nets[i].right);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lenet_of_2014),
        cmocka_unit_test(lenet_of_2015),
        cmocka_unit_test(training_starts_from_them),
        cmocka_unit_test(scores_of_a_digit),
        cmocka_unit_test(pictures_of_digits),
        cmocka_unit_test(what_we_write_reads_back),
        cmocka_unit_test(cifar10_networks),
    };
    return cmocka_run_group_tests_name("caffemodels", tests, NULL, NULL);
}
