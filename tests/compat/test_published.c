/* The networks of Caffe's examples, described independently and at a quarter of their width:
 * they have the shapes that their papers give, one update is the same on one and two workers,
 * and their figures have the expected names.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lockstep/lockstep.h"
#include "support/case_data.h"
#include "support/support.h"

/* ---- Writing definitions --------------------------------------------------------------------- */

static char text[1 << 17];
static size_t length;

static void add(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void add(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int more = vsnprintf(text + length, sizeof text - length, format, arguments);
    va_end(arguments);
    assert_true(more >= 0 && (size_t)more < sizeof text - length);
    length += (size_t)more;
}

static void data(const char *images, const char *labels, const char *phase, const char *transform)
{
    add("layer { name: 'data' type: 'Data' top: 'data' top: 'label' include { phase: %s }\n"
        "  transform_param { mean_value: [104, 117, 123] scale: 0.0078125 %s }\n"
        "  data_param { backend: IDX source: '%s' label_source: '%s' batch_size: 4 } }\n",
        phase, transform, images, labels);
}

static void convolution(const char *name, const char *bottom, int outputs, const char *window)
{
    add("layer { name: '%s' type: 'Convolution' bottom: '%s' top: '%s'\n"
        "  param { lr_mult: 1 decay_mult: 1 } param { lr_mult: 2 decay_mult: 0 }\n"
        "  convolution_param { num_output: %d %s weight_filler { type: 'xavier' }\n"
        "    bias_filler { type: 'constant' value: 0.2 } } }\n"
        "layer { name: '%s/relu' type: 'ReLU' bottom: '%s' top: '%s' }\n",
        name, bottom, name, outputs, window, name, name, name);
}

static void inner_product(const char *name, const char *bottom, int outputs)
{
    add("layer { name: '%s' type: 'InnerProduct' bottom: '%s' top: '%s'\n"
        "  inner_product_param { num_output: %d weight_filler { type: 'xavier' } } }\n",
        name, bottom, name, outputs);
}

static void pooling(const char *name, const char *bottom, const char *window)
{
    add("layer { name: '%s' type: 'Pooling' bottom: '%s' top: '%s' pooling_param { %s } }\n", name,
        bottom, name, window);
}

static void in_place(const char *name, const char *type, const char *blob, const char *more)
{
    add("layer { name: '%s' type: '%s' bottom: '%s' top: '%s' %s }\n", name, type, blob, blob,
        more);
}

static void norm(const char *name, const char *bottom)
{
    add("layer { name: '%s' type: 'LRN' bottom: '%s' top: '%s'\n"
        "  lrn_param { local_size: 5 alpha: 0.0001 beta: 0.75 } }\n",
        name, bottom, name);
}

/* The loss and accuracies of a classifier; `name` is put before each. */
static void classifier(const char *name, const char *scores, double weight)
{
    add("layer { name: '%sloss' type: 'SoftmaxWithLoss' bottom: '%s' bottom: 'label'\n"
        "  top: '%sloss' loss_weight: %g }\n",
        name, scores, name, weight);
    for (int k = 1; k <= 5; k += 4)
        add("layer { name: '%stop-%d' type: 'Accuracy' bottom: '%s' bottom: 'label'\n"
            "  top: '%stop-%d' include { phase: TEST } accuracy_param { top_k: %d } }\n",
            name, k, scores, name, k, k);
}

/* ---- Running them ---------------------------------------------------------------------------- */

static void check(int status, struct lockstep_error *error)
{
    if (status != 0)
        fail_msg("%s", lockstep_error_text(error));
}

struct session {
    struct lockstep_error *error;
    struct lockstep_solver *solver;
    struct lockstep_trainer *trainer;
    const struct lockstep_output *outputs;
    size_t count;
};

/* A solver for the definition written so far; one update must be the same on 1 and 2 workers. */
static struct session start(const char *solver)
{
    static const int workers[] = {1, 2};
    struct session session = {.error = lockstep_error_new()};
    struct lockstep_train_options options;
    lockstep_train_options_init(&options);
    options.workers = 2;
    ls_test_write_text("net.prototxt", text);
    ls_test_write_text("solver.prototxt", solver);
    check(lockstep_solver_load("solver.prototxt", NULL, 0, &session.solver, session.error),
          session.error);
    struct lockstep_verify_options verify;
    lockstep_verify_options_init(&verify);
    verify.workers = workers;
    verify.worker_count = 2;
    verify.iterations = 1;
    check(lockstep_verify(session.solver, &verify, session.error), session.error);
    check(lockstep_trainer_create(session.solver, &options, &session.trainer, session.error),
          session.error);
    return session;
}

static void finish(struct session *session)
{
    lockstep_trainer_free(session->trainer);
    lockstep_solver_free(session->solver);
    lockstep_error_free(session->error);
}

static size_t parameter_size(const struct session *session, const char *name)
{
    for (size_t i = 0; i < lockstep_trainer_parameter_count(session->trainer); i++)
        if (strcmp(lockstep_trainer_parameter_name(session->trainer, i), name) == 0)
            return lockstep_trainer_parameter_size(session->trainer, i);
    fail_msg("there is no parameter %s", name);
    return 0;
}

static void step(struct session *session, int64_t count)
{
    check(lockstep_trainer_step(session->trainer, count, session->error), session->error);
}

static void evaluate(struct session *session, int index)
{
    check(lockstep_trainer_evaluate(session->trainer, index, &session->outputs, &session->count,
                                    session->error),
          session->error);
}

static const struct lockstep_output *output(const struct session *session, const char *name)
{
    for (size_t i = 0; i < session->count; i++)
        if (strcmp(session->outputs[i].name, name) == 0)
            return &session->outputs[i];
    fail_msg("there is no output %s", name);
    return NULL;
}

static void enter(const char *files)
{
    length = 0;
    text[0] = '\0';
    if (chdir(ls_test_directory()) != 0)
        fail_msg("cannot enter the test directory");
    case_write_files(files);
}

static const char pictures[] = "# idx: pictures.idx 8 3 232 232\n# idx: classes.idx 8 below 20\n";
static const char solver[] = "net: 'net.prototxt' test_interval: 1000 base_lr: 0.001\n"
                             "lr_policy: 'step' gamma: 0.1 stepsize: 100000 momentum: 0.9\n"
                             "weight_decay: 0.0005 max_iter: 450000 test_initialization: false\n"
                             "average_loss: 40 random_seed: 1\n";

/* ---- AlexNet --------------------------------------------------------------------------------- */

/* The body of AlexNet (Krizhevsky, Sutskever, Hinton 2012) for 227 x 227 pixels. `norm_first`:
 * normalisation before pooling, as in the paper; Caffe's reference network does it after. */
static void alexnet(bool norm_first)
{
    static const char three[] = "pool: MAX kernel_size: 3 stride: 2";
    convolution("conv1", "data", 24, "kernel_size: 11 stride: 4");
    if (norm_first) {
        norm("norm1", "conv1");
        pooling("pool1", "norm1", three);
    } else {
        pooling("pool1", "conv1", three);
        norm("norm1", "pool1");
    }
    convolution("conv2", norm_first ? "pool1" : "norm1", 64, "pad: 2 kernel_size: 5 group: 2");
    pooling("pool2", "conv2", three);
    norm("norm2", "pool2");
    convolution("conv3", "norm2", 96, "pad: 1 kernel_size: 3");
    convolution("conv4", "conv3", 96, "pad: 1 kernel_size: 3 group: 2");
    convolution("conv5", "conv4", 64, "pad: 1 kernel_size: 3 group: 2");
    pooling("pool5", "conv5", three);
    inner_product("fc6", "pool5", 1024);
    in_place("relu6", "ReLU", "fc6", "");
    in_place("drop6", "Dropout", "fc6", "dropout_param { dropout_ratio: 0.5 }");
    inner_product("fc7", "fc6", 1024);
    in_place("relu7", "ReLU", "fc7", "");
    in_place("drop7", "Dropout", "fc7", "dropout_param { dropout_ratio: 0.5 }");
    inner_product("fc8", "fc7", 20);
}

static void run_alexnet(bool norm_first)
{
    enter(pictures);
    data("pictures.idx", "classes.idx", "TRAIN", "crop_size: 227 mirror: true");
    data("pictures.idx", "classes.idx", "TEST", "crop_size: 227");
    alexnet(norm_first);
    classifier("", "fc8", 1);
    struct session session = start(solver);
    assert_int_equal(lockstep_trainer_parameter_count(session.trainer), 16);
    assert_int_equal(parameter_size(&session, "conv1.weight"), 24 * 3 * 11 * 11);
    assert_int_equal(parameter_size(&session, "conv2.weight"), 64 * 12 * 5 * 5);
    assert_int_equal(parameter_size(&session, "conv4.weight"), 96 * 48 * 3 * 3);
    /* 227 -> 55 -> 27 -> 13 -> 6, by rounding up where windows reach beyond the end */
    assert_int_equal(parameter_size(&session, "fc6.weight"), 1024 * 64 * 6 * 6);
    step(&session, 1);
    assert_true(fabs(lockstep_trainer_loss(session.trainer) - log(20)) < 2);
    evaluate(&session, 0);
    assert_int_equal(session.count, 3);
    assert_true(output(&session, "top-5")->values[0] >= output(&session, "top-1")->values[0]);
    assert_true(output(&session, "loss")->loss_weight == 1);
    finish(&session);
}

static void alexnet_of_the_paper(void **state)
{
    (void)state;
    run_alexnet(true);
}

static void reference_network(void **state)
{
    (void)state;
    run_alexnet(false);
}

/* ---- GoogLeNet ------------------------------------------------------------------------------- */

/* Outputs of the branches: 1x1, 3x3 after its reduction, 5x5 after its own, pooling. */
struct inception {
    const char *name;
    int one, reduce3, three, reduce5, five, pool;
};

/* A module (Szegedy and others 2014) at a quarter of its width; its top is "<name>/output". */
static void inception(const struct inception *module, const char *bottom)
{
    char branch[8][64];
    static const char *const parts[] = {"1x1", "3x3_reduce", "3x3",  "5x5_reduce",
                                        "5x5", "pool_proj",  "pool", "output"};
    for (int i = 0; i < 8; i++)
        snprintf(branch[i], sizeof branch[i], "%s/%s", module->name, parts[i]);
    convolution(branch[0], bottom, module->one / 4, "kernel_size: 1");
    convolution(branch[1], bottom, module->reduce3 / 4, "kernel_size: 1");
    convolution(branch[2], branch[1], module->three / 4, "kernel_size: 3 pad: 1");
    convolution(branch[3], bottom, module->reduce5 / 4, "kernel_size: 1");
    convolution(branch[4], branch[3], module->five / 4, "kernel_size: 5 pad: 2");
    pooling(branch[6], bottom, "kernel_size: 3 stride: 1 pad: 1");
    convolution(branch[5], branch[6], module->pool / 4, "kernel_size: 1");
    add("layer { name: '%s' type: 'Concat' bottom: '%s' bottom: '%s' bottom: '%s' bottom: '%s'\n"
        "  top: '%s' }\n",
        branch[7], branch[0], branch[2], branch[4], branch[5], branch[7]);
}

/* A classifier beside the trunk, whose loss counts 0.3. */
static void side_classifier(const char *name, const char *bottom)
{
    char pool[32], conv[32], fc[32], scores[32], more[64];
    snprintf(pool, sizeof pool, "%save_pool", name);
    snprintf(conv, sizeof conv, "%sconv", name);
    snprintf(fc, sizeof fc, "%sfc", name);
    snprintf(scores, sizeof scores, "%sscores", name);
    pooling(pool, bottom, "pool: AVE kernel_size: 5 stride: 3");
    convolution(conv, pool, 32, "kernel_size: 1");
    inner_product(fc, conv, 256);
    snprintf(more, sizeof more, "%srelu", name);
    in_place(more, "ReLU", fc, "");
    snprintf(more, sizeof more, "%sdrop", name);
    in_place(more, "Dropout", fc, "dropout_param { dropout_ratio: 0.7 }");
    inner_product(scores, fc, 20);
    classifier(name, scores, 0.3);
}

static void googlenet(void)
{
    static const struct inception modules[] = {
        {"3a", 64, 96, 128, 16, 32, 32},     {"3b", 128, 128, 192, 32, 96, 64},
        {"4a", 192, 96, 208, 16, 48, 64},    {"4b", 160, 112, 224, 24, 64, 64},
        {"4c", 128, 128, 256, 24, 64, 64},   {"4d", 112, 144, 288, 32, 64, 64},
        {"4e", 256, 160, 320, 32, 128, 128}, {"5a", 256, 160, 320, 32, 128, 128},
        {"5b", 384, 192, 384, 48, 128, 128}};
    static const char half[] = "pool: MAX kernel_size: 3 stride: 2";
    char bottom[64] = "norm2";
    convolution("conv1", "data", 16, "pad: 3 kernel_size: 7 stride: 2");
    pooling("pool1", "conv1", half);
    norm("norm1", "pool1");
    convolution("conv2_reduce", "norm1", 16, "kernel_size: 1");
    convolution("conv2", "conv2_reduce", 48, "pad: 1 kernel_size: 3");
    norm("conv2/norm", "conv2");
    pooling("norm2", "conv2/norm", half);
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++) {
        const char *name = modules[i].name;
        inception(&modules[i], bottom);
        snprintf(bottom, sizeof bottom, "%s/output", name);
        if (strcmp(name, "4a") == 0 || strcmp(name, "4d") == 0)
            side_classifier(name[1] == 'a' ? "loss1/" : "loss2/", bottom);
        if (strcmp(name, "3b") == 0 || strcmp(name, "4e") == 0) {
            char pool[64];
            snprintf(pool, sizeof pool, "%s/half", name);
            pooling(pool, bottom, half);
            snprintf(bottom, sizeof bottom, "%s", pool);
        }
    }
    pooling("pool5", bottom, "pool: AVE kernel_size: 7 stride: 1");
    in_place("drop5", "Dropout", "pool5", "dropout_param { dropout_ratio: 0.4 }");
    inner_product("scores", "pool5", 20);
    classifier("loss3/", "scores", 1);
}

static void googlenet_trains(void **state)
{
    (void)state;
    enter(pictures);
    data("pictures.idx", "classes.idx", "TRAIN", "crop_size: 224 mirror: true");
    data("pictures.idx", "classes.idx", "TEST", "crop_size: 224");
    googlenet();
    struct session session = start(solver);
    /* 224 -> 112 -> 56 -> 28 -> 14 -> 7; the classifiers at the side see 14 -> 4. */
    assert_int_equal(parameter_size(&session, "loss1/fc.weight"), 256 * 32 * 4 * 4);
    assert_int_equal(parameter_size(&session, "scores.weight"), 20 * 256);
    /* 3 in front, 9 modules of 6, 3 + 3 + 1 in the classifiers; weights and biases */
    assert_int_equal(lockstep_trainer_parameter_count(session.trainer), 2 * (3 + 54 + 7));
    step(&session, 1);
    double total = lockstep_trainer_loss(session.trainer);
    assert_true(isfinite(total) && total > 1.6 * log(20) / 2);
    evaluate(&session, 0);
    assert_int_equal(session.count, 9);
    static const char *const losses[] = {"loss1/loss", "loss2/loss", "loss3/loss"};
    for (int i = 0; i < 3; i++)
        assert_float_equal(output(&session, losses[i])->loss_weight, i < 2 ? 0.3 : 1, 1e-6);
    finish(&session);
}

/* ---- An autoencoder ------------------------------------------------------------------------- */

static void encoder(const char *name, const char *bottom, int outputs, bool sigmoid)
{
    add("layer { name: '%s' type: 'InnerProduct' bottom: '%s' top: '%s'\n"
        "  param { lr_mult: 1 decay_mult: 1 } param { lr_mult: 1 decay_mult: 0 }\n"
        "  inner_product_param { num_output: %d\n"
        "    weight_filler { type: 'gaussian' std: 1 sparse: 15 } } }\n",
        name, bottom, name, outputs);
    if (sigmoid)
        add("layer { name: '%ss' type: 'Sigmoid' bottom: '%s' top: '%ss' }\n", name, name, name);
}

static void autoencoder_data(const char *source, const char *rule)
{
    add("layer { name: 'data' type: 'Data' top: 'data' include { %s }\n"
        "  transform_param { scale: 0.0039215684 }\n"
        "  data_param { backend: IDX source: '%s' batch_size: 20 } }\n",
        rule, source);
}

/* Hinton's and Salakhutdinov's (2006), as Caffe's example has it: data without labels, one test on
 * the training data and one on the test data, a figure that is no loss, a loss only in training. */
static void autoencoder(void **state)
{
    (void)state;
    enter("# idx: digits.idx 60 28 28\n# idx: more.idx 30 28 28\n");
    autoencoder_data("digits.idx", "phase: TRAIN");
    autoencoder_data("digits.idx", "phase: TEST stage: 'test-on-train'");
    autoencoder_data("more.idx", "phase: TEST stage: 'test-on-test'");
    add("layer { name: 'flat' type: 'Flatten' bottom: 'data' top: 'flat' }\n");
    encoder("encode1", "data", 250, true);
    encoder("encode2", "encode1s", 60, true);
    encoder("code", "encode2s", 16, false);
    encoder("decode2", "code", 60, true);
    encoder("decode1", "decode2s", 250, true);
    encoder("decode0", "decode1s", 784, false);
    add("layer { name: 'loss' type: 'SigmoidCrossEntropyLoss' bottom: 'decode0' bottom: 'flat'\n"
        "  top: 'cross_entropy' loss_weight: 1 }\n"
        "layer { name: 'sigmoid' type: 'Sigmoid' bottom: 'decode0' top: 'decode0s' }\n"
        "layer { name: 'error' type: 'EuclideanLoss' bottom: 'decode0s' bottom: 'flat'\n"
        "  top: 'l2_error' loss_weight: 0 }\n");
    struct session session =
        start("net: 'net.prototxt' test_state { stage: 'test-on-train' } test_iter: 3\n"
              "test_state { stage: 'test-on-test' } test_iter: 2 test_interval: 500\n"
              "test_compute_loss: true base_lr: 0.002 lr_policy: 'fixed' momentum: 0.9\n"
              "weight_decay: 0.0005 max_iter: 100 solver_mode: GPU type: 'Nesterov'\n"
              "test_initialization: false\n");
    double before[2], after[2];
    for (int i = 0; i < 2; i++) {
        evaluate(&session, i);
        assert_int_equal(session.count, 2);
        assert_true(output(&session, "l2_error")->loss_weight == 0);
        before[i] = output(&session, "l2_error")->values[0];
    }
    step(&session, 20);
    for (int i = 0; i < 2; i++) {
        evaluate(&session, i);
        after[i] = output(&session, "l2_error")->values[0];
        assert_true(after[i] < before[i]);
    }
    assert_true(before[0] != before[1] && after[0] != after[1]); /* two sets of data */
    finish(&session);
}

/* ---- LeNet with all its solvers ------------------------------------------------------------- */

static void lenet_with_every_solver(void **state)
{
    (void)state;
    static const char *const solvers[] = {
        "type: 'SGD' base_lr: 0.01 momentum: 0.9 weight_decay: 0.0005 lr_policy: 'inv'\n"
        "gamma: 0.0001 power: 0.75",
        "base_lr: 0.01 momentum: 0.9 weight_decay: 0.0005 lr_policy: 'multistep' gamma: 0.9\n"
        "stepvalue: 5000 stepvalue: 7000 stepvalue: 8000 stepvalue: 9000 stepvalue: 9500",
        "type: 'Adam' base_lr: 0.001 momentum: 0.9 momentum2: 0.999 lr_policy: 'fixed'",
        "solver_type: NESTEROV base_lr: 0.01 momentum: 0.95 lr_policy: 'poly' power: 0.5",
    };
    for (size_t i = 0; i < sizeof solvers / sizeof *solvers; i++) {
        char full[1024];
        enter("# idx: digits.idx 32 28 28 repeat 8\n# idx: names.idx 32 below 10 repeat 8\n");
        add("layer { name: 'mnist' type: 'Data' top: 'data' top: 'label'\n"
            "  transform_param { scale: 0.00390625 } data_param { backend: IDX\n"
            "  source: 'digits.idx' label_source: 'names.idx' batch_size: 16 } }\n");
        convolution("conv1", "data", 20, "kernel_size: 5");
        pooling("pool1", "conv1", "kernel_size: 2 stride: 2");
        convolution("conv2", "pool1", 50, "kernel_size: 5");
        pooling("pool2", "conv2", "kernel_size: 2 stride: 2");
        inner_product("ip1", "pool2", 500);
        in_place("relu1", "ReLU", "ip1", "");
        inner_product("ip2", "ip1", 10);
        classifier("", "ip2", 1);
        snprintf(full, sizeof full,
                 "%s\nnet: 'net.prototxt' max_iter: 10000 display: 100 snapshot: 5000\n"
                 "snapshot_prefix: 'lenet' random_seed: 1\n",
                 solvers[i]);
        struct session session = start(full);
        step(&session, 1);
        double first = lockstep_trainer_loss(session.trainer);
        step(&session, 30);
        assert_true(lockstep_trainer_loss(session.trainer) < first / 2); /* 8 digits by heart */
        finish(&session);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alexnet_of_the_paper),    cmocka_unit_test(reference_network),
        cmocka_unit_test(googlenet_trains),        cmocka_unit_test(autoencoder),
        cmocka_unit_test(lenet_with_every_solver),
    };
    return cmocka_run_group_tests_name("published", tests, NULL, NULL);
}
