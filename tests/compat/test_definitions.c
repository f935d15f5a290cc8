/* One net in every form that Caffe's definitions have had: it trains to the same bytes, and
 * predicts the same numbers as a net for deployment.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lockstep/lockstep.h"
#include "support/case_data.h"
#include "support/nets.h"
#include "support/support.h"

static void check(int status, struct lockstep_error *error)
{
    if (status != 0)
        fail_msg("%s", lockstep_error_text(error));
}

/* ---- The net --------------------------------------------------------------------------------- */

#define FIGURES                                                                                    \
    "layer { name: 'accuracy' type: 'Accuracy' bottom: 'ip' bottom: 'label' top: 'accuracy'\n"     \
    "  include { phase: TEST } }\n"
#define LOSS                                                                                       \
    "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'loss' }\n"

#define END_V1                                                                                     \
    "layers { name: 'accuracy' type: ACCURACY bottom: 'ip' bottom: 'label' top: 'accuracy'\n"      \
    "  include: { phase: TEST } }\n"                                                               \
    "layers { name: 'loss' type: SOFTMAX_LOSS bottom: 'ip' bottom: 'label' top: 'loss' }\n"

#define RATES "base_lr: 0.05 momentum: 0.9 weight_decay: 0.01 max_iter: 20 random_seed: 3\n"
#define SOLVER                                                                                     \
    RATES "type: 'Nesterov' lr_policy: 'step' gamma: 0.5 stepsize: 2 test_interval: 100\n"         \
          "test_initialization: false micro_batch: 3\n"

/* A net of tests/nets, which is one net in one of its forms, between data and an end. */
static const char *net_of(const char *file, const char *data, const char *end)
{
    return ls_test_net(file, LS_TEST_VALUES({"data", data}, {"end", end}));
}

static const char *net_v2(void)
{
    return net_of("definitions_v2", ls_test_net("definitions_data_v2", NULL), FIGURES LOSS);
}

static const char *net_v1(void)
{
    return net_of("definitions_v1", ls_test_net("definitions_data_v1", NULL), END_V1);
}

/* ---- Training in each form ------------------------------------------------------------------- */

enum { UPDATES = 4, PARAMETERS = 4, FIGURES_MAX = 2 };

/* What a training comes to. */
struct result {
    float *weights;
    size_t count;
    double figures[FIGURES_MAX]; /* accuracy and loss on the test set */
};

static void make_data(void)
{
    if (chdir(ls_test_directory()) != 0)
        fail_msg("cannot enter the test directory");
    case_write_files("# idx: train.idx 34 14 13\n# idx: train-labels.idx 34 below 5\n"
                     "# idx: test.idx 30 14 13\n# idx: test-labels.idx 30 below 5\n");
}

static void read_weights(struct lockstep_trainer *trainer, struct result *result,
                         struct lockstep_error *error)
{
    size_t parameters = lockstep_trainer_parameter_count(trainer), count = 0;
    assert_int_equal(parameters, PARAMETERS);
    for (size_t i = 0; i < parameters; i++)
        count += lockstep_trainer_parameter_size(trainer, i);
    result->weights = calloc(count, sizeof(float));
    assert_non_null(result->weights);
    for (size_t i = 0; i < parameters; i++) {
        size_t size = lockstep_trainer_parameter_size(trainer, i);
        check(lockstep_trainer_read_parameter(trainer, i, result->weights + result->count, size,
                                              error),
              error);
        result->count += size;
    }
}

/* Trains the solver in `text`, tests, and writes a snapshot if `snapshot` is not NULL. */
static struct result train(const char *text, int test_net, const char *snapshot)
{
    struct lockstep_error *error = lockstep_error_new();
    struct lockstep_solver *solver;
    struct lockstep_trainer *trainer;
    struct lockstep_train_options options;
    struct result result = {0};
    const struct lockstep_output *outputs;
    size_t count;
    ls_test_write_text("solver.prototxt", text);
    lockstep_train_options_init(&options);
    options.workers = 2;
    check(lockstep_solver_load("solver.prototxt", NULL, 0, &solver, error), error);
    check(lockstep_trainer_create(solver, &options, &trainer, error), error);
    check(lockstep_trainer_step(trainer, UPDATES, error), error);
    check(lockstep_trainer_evaluate(trainer, test_net, &outputs, &count, error), error);
    assert_int_equal(count, FIGURES_MAX);
    for (size_t i = 0; i < count; i++)
        result.figures[i] = outputs[i].values[0];
    read_weights(trainer, &result, error);
    if (snapshot != NULL)
        check(lockstep_trainer_snapshot(trainer, snapshot, error), error);
    lockstep_trainer_free(trainer);
    lockstep_solver_free(solver);
    lockstep_error_free(error);
    return result;
}

/* Whether the solver in `text` comes to the same bytes as the newest form of it. */
static void expect_same(const char *text, int test_net)
{
    make_data();
    ls_test_write_text("net.prototxt", net_v2());
    struct result want = train("net: 'net.prototxt'\n" SOLVER, 0, NULL);
    struct result got = train(text, test_net, NULL);
    assert_int_equal(got.count, want.count);
    assert_memory_equal(got.weights, want.weights, want.count * sizeof(float));
    assert_memory_equal(got.figures, want.figures, sizeof want.figures);
    free(want.weights);
    free(got.weights);
}

static void training_changes_bytes(void **state)
{
    (void)state;
    make_data();
    ls_test_write_text("net.prototxt", net_v2());
    struct result one = train("net: 'net.prototxt'\n" SOLVER, 0, NULL);
    struct result other = train("net: 'net.prototxt' clip_gradients: 0.01\n" SOLVER, 0, NULL);
    assert_int_equal(one.count, other.count);
    assert_true(memcmp(one.weights, other.weights, one.count * sizeof(float)) != 0);
    assert_true(one.figures[1] > 0 && one.figures[1] != other.figures[1]);
    free(one.weights);
    free(other.weights);
}

static void v1_layers(void **state)
{
    (void)state;
    make_data();
    ls_test_write_text("v1.prototxt", net_v1());
    expect_same("net: 'v1.prototxt'\n" SOLVER, 0);
}

static void net_within_the_solver(void **state)
{
    (void)state;
    expect_same(ls_test_text(SOLVER "net_param {\n%s}\n", net_v2()), 0);
}

static void v1_net_within_the_solver(void **state)
{
    (void)state;
    expect_same(ls_test_text(SOLVER "net_param: <\n%s>\n", net_v1()), 0);
}

static void solver_type_by_number(void **state)
{
    (void)state;
    expect_same("net: 'net.prototxt'\n" RATES "solver_type: NESTEROV lr_policy: \"st\" 'ep'\n"
                "gamma: .5 stepsize: 2 test_interval: 100 test_initialization: 0 micro_batch: 3\n",
                0);
}

static void one_file_for_each_phase(void **state)
{
    (void)state;
    make_data();
    ls_test_write_text("train.prototxt",
                       net_of("definitions_v2", ls_test_net("definitions_data_v2", NULL), LOSS));
    ls_test_write_text("test.prototxt", net_v1());
    expect_same("train_net: 'train.prototxt' test_net: 'test.prototxt' test_iter: 5\n" SOLVER, 0);
}

static void nets_for_each_phase_within_the_solver(void **state)
{
    (void)state;
    const char *train_net =
        net_of("definitions_v2", ls_test_net("definitions_data_v2", NULL), LOSS);
    expect_same(ls_test_text(SOLVER "test_iter: 5 test_iter: 1 train_net_param { %s }\n"
                                    "test_net_param { %s }\ntest_net_param { %s }\n",
                             train_net, net_v2(), net_v2()),
                0);
}

/* A source for each stage; the second test net is the one that the others test. */
static void stages_and_levels(void **state)
{
    (void)state;
    make_data();
    ls_test_write_text(
        "stages.prototxt",
        net_of("definitions_v2", ls_test_net("definitions_stages", NULL), FIGURES LOSS));
    expect_same("net: 'stages.prototxt' train_state { stage: ['big', 'more'] level: 2 }\n"
                "test_iter: 2 test_iter: 5\n"
                "test_state { stage: 'on-train' } test_state { stage: 'on-test' }\n" SOLVER,
                1);
}

/* Text as people write it by hand: no separators, all separators, comments, both kinds of
 * brackets. */
static void text_as_people_write_it(void **state)
{
    (void)state;
    expect_same("# a solver\nnet:'net.prototxt';base_lr:5e-2,momentum:0.9f\n"
                "weight_decay:0.01# decay\n\n\tmax_iter:20\r\nrandom_seed : 0x3 type:\"Nester\"\n"
                "  # and so on\n  'ov' lr_policy:'step'gamma:5.0E-1 stepsize:02\n"
                "test_interval:100 test_initialization:false micro_batch:3 stepvalue:[]",
                0);
}

/* ---- Nets for deployment --------------------------------------------------------------------- */

enum { SAMPLES = 3, SIZE = 144, CLASSES = 5 };

static void predict(const char *net, const char *weights, float *scores)
{
    struct lockstep_error *error = lockstep_error_new();
    struct lockstep_model *model;
    struct lockstep_model_options options;
    float input[SAMPLES * SIZE];
    int64_t shape[3];
    uint64_t stream = case_stream("input");
    for (size_t i = 0; i < SAMPLES * SIZE; i++)
        input[i] = case_weight(stream, i, 1);
    lockstep_model_options_init(&options);
    options.workers = 2;
    ls_test_write_text("deploy.prototxt", net);
    check(lockstep_model_load("deploy.prototxt", weights, &options, &model, error), error);
    lockstep_model_input_shape(model, shape);
    assert_true(shape[0] == 1 && shape[1] == 12 && shape[2] == 12);
    assert_int_equal(lockstep_model_output_size(model), CLASSES);
    check(lockstep_model_predict(model, input, SAMPLES, scores, error), error);
    lockstep_model_free(model);
    lockstep_error_free(error);
}

static void deployment(void **state)
{
    (void)state;
    static const char prob[] = "layer { name: 'prob' type: 'Softmax' bottom: 'ip' top: 'prob' }\n";
    const char *const nets[] = {
        net_v2(), /* its softmax is that of the loss */
        net_of("definitions_v2",
               "input: 'data' input_dim: 10 input_dim: 1 input_dim: 12 input_dim: 12\n", prob),
        net_of("definitions_v1", "input: 'data' input_shape { dim: 1 dim: 1 dim: 12 dim: 12 }\n",
               "layers { name: 'prob' type: SOFTMAX bottom: 'ip' top: 'prob' }\n"),
        net_of("definitions_v2",
               "layer { name: 'data' type: 'Input' top: 'data'\n"
               "  input_param { shape: { dim: [4, 1, 12, 12] } } }\n",
               prob),
        net_of("definitions_v0",
               "input: 'data' input_dim: 1 input_dim: 1 input_dim: 12 input_dim: 12\n",
               "layers { layer { name: 'prob' type: 'softmax' } bottom: 'ip' top: 'prob' }\n"),
    };
    float want[SAMPLES * CLASSES], got[SAMPLES * CLASSES];
    make_data();
    ls_test_write_text("net.prototxt", nets[0]);
    struct result result = train("net: 'net.prototxt'\n" SOLVER, 0, "trained.safetensors");
    free(result.weights);
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
        predict(nets[i], "trained.safetensors", i == 0 ? want : got);
        if (i > 0)
            assert_memory_equal(got, want, sizeof want);
    }
    double sum = 0;
    for (int c = 0; c < CLASSES; c++)
        sum += (double)want[c];
    assert_float_equal(sum, 1, 1e-5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_changes_bytes),
        cmocka_unit_test(v1_layers),
        cmocka_unit_test(net_within_the_solver),
        cmocka_unit_test(v1_net_within_the_solver),
        cmocka_unit_test(solver_type_by_number),
        cmocka_unit_test(one_file_for_each_phase),
        cmocka_unit_test(nets_for_each_phase_within_the_solver),
        cmocka_unit_test(stages_and_levels),
        cmocka_unit_test(text_as_people_write_it),
        cmocka_unit_test(deployment),
    };
    return cmocka_run_group_tests_name("definitions", tests, NULL, NULL);
}
