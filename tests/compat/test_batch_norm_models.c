/* Caffemodels of nets with BatchNorm and Scale: those of Caffe, whose blobs are sums to be divided
 * by a factor, give what the formula says; ours read back as what was trained.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lockstep/lockstep.h"
#include "snapshot/caffemodel.h"
#include "snapshot/weights.h"
#include "support/case_data.h"
#include "support/nets.h"
#include "support/support.h"

static void check(int status, struct lockstep_error *error)
{
    if (status != 0)
        fail_msg("%s", lockstep_error_text(error));
}

/* ---- Of Caffe -------------------------------------------------------------------------------- */

enum { CHANNELS = 3, POSITIONS = 4, NUMBERS = CHANNELS * POSITIONS };

static const char deploy[] =
    "layer { name: 'data' type: 'Input' top: 'data'"
    " input_param { shape { dim: 1 dim: 3 dim: 2 dim: 2 } } }\n"
    "layer { name: 'bn' type: 'BatchNorm' bottom: 'data' top: 'x' batch_norm_param { eps: 0.01 } "
    "}\n"
    "layer { name: 'scale' type: 'Scale' bottom: 'x' top: 'y' scale_param { bias_term: true } }\n";

static const float mean[CHANNELS] = {0.5F, -2, 10};
static const float variance[CHANNELS] = {0.25F, 4, 0.0625F};
static const float slope[CHANNELS] = {2, -0.5F, 1.25F};
static const float offset[CHANNELS] = {0.125F, 3, -1};

/* Blobs as Caffe leaves them: mean and variance times the factor, then the factor. */
static const char *write_model(float factor)
{
    static const char *const tops[] = {"data", "x", "y"};
    const struct ls_shape each = {.rank = 1, .dim = {CHANNELS}}, one = {.rank = 1, .dim = {1}};
    float means[CHANNELS], variances[CHANNELS];
    for (int c = 0; c < CHANNELS; c++) {
        means[c] = mean[c] * factor;
        variances[c] = variance[c] * factor;
    }
    const struct ls_caffemodel_blob averages[] = {{.shape = each, .data = means},
                                                  {.shape = each, .data = variances},
                                                  {.shape = one, .data = &factor}};
    const struct ls_caffemodel_blob learned[] = {{.shape = each, .data = slope},
                                                 {.shape = each, .data = offset}};
    const struct ls_caffemodel_layer layers[] = {
        {.name = "bn",
         .type = "BatchNorm",
         .bottoms = tops,
         .bottom_count = 1,
         .tops = tops + 1,
         .top_count = 1,
         .blobs = averages,
         .blob_count = 3},
        {.name = "scale",
         .type = "Scale",
         .bottoms = tops + 1,
         .bottom_count = 1,
         .tops = tops + 2,
         .top_count = 1,
         .blobs = learned,
         .blob_count = 2},
    };
    struct ls_error error = {0};
    const char *path = ls_test_path("factor.caffemodel");
    assert_int_equal(ls_caffemodel_write(path, "factor", layers, 2, &error), 0);
    return path;
}

static struct lockstep_model *load(const char *net, const char *weights)
{
    struct lockstep_error *error = lockstep_error_new();
    struct lockstep_model_options options;
    struct lockstep_model *model = NULL;
    lockstep_model_options_init(&options);
    options.workers = 2;
    check(lockstep_model_load(net, weights, &options, &model, error), error);
    lockstep_error_free(error);
    return model;
}

/* Whatever the factor is. */
static double expected(int c, float x)
{
    double normalised = ((double)x - (double)mean[c]) / sqrt((double)variance[c] + 0.01);
    return normalised * (double)slope[c] + (double)offset[c];
}

static void factors_of_caffe(void **state)
{
    (void)state;
    /* After one update; 10,000 updates of 0.999; some in between; a small and a large one. */
    static const float factors[] = {1, 999.95483F, 9.5617925F, 0.0625F, 999, 65536};
    struct lockstep_error *error = lockstep_error_new();
    const char *net = ls_test_path("deploy.prototxt");
    ls_test_write_text(net, deploy);
    for (size_t f = 0; f < sizeof factors / sizeof *factors; f++) {
        float input[NUMBERS], output[NUMBERS];
        struct lockstep_model *model = load(net, write_model(factors[f]));
        assert_int_equal(lockstep_model_output_size(model), NUMBERS);
        for (size_t i = 0; i < NUMBERS; i++)
            input[i] = case_weight(case_stream("input"), i, 4);
        check(lockstep_model_predict(model, input, 1, output, error), error);
        for (int i = 0; i < NUMBERS; i++) {
            double want = expected(i / POSITIONS, input[i]);
            if (!(fabs((double)output[i] - want) <= 2e-6 * (1 + fabs(want))))
                fail_msg("factor %g: number %d is %.9g, not %.9g", (double)factors[f], i,
                         (double)output[i], want);
        }
        lockstep_model_free(model);
    }
    lockstep_error_free(error);
}

/* ---- Of ours --------------------------------------------------------------------------------- */

static const char solver_text[] =
    "net: 'net.prototxt' base_lr: 0.05 lr_policy: 'fixed' momentum: 0.9 max_iter: 3\n"
    "test_iter: 0 test_interval: 100 test_initialization: false random_seed: 4 micro_batch: 3\n"
    "snapshot_prefix: 'trained' snapshot_format: BINARYPROTO\n";

/* The lines "# idx:" of its net are for case_write_files. */
static struct lockstep_trainer *make_trainer(const char *weights)
{
    struct lockstep_error *error = lockstep_error_new();
    struct lockstep_solver *solver = NULL;
    struct lockstep_trainer *trainer = NULL;
    struct lockstep_train_options options;
    lockstep_train_options_init(&options);
    options.overwrite = 1;
    options.workers = 2;
    options.weights = weights;
    check(lockstep_solver_load("solver.prototxt", NULL, 0, &solver, error), error);
    check(lockstep_trainer_create(solver, &options, &trainer, error), error);
    lockstep_solver_free(solver);
    lockstep_error_free(error);
    return trainer;
}

/* The two figures of the test net, accuracy and loss in the order of the outputs. */
static void keep_figures(const struct lockstep_output *outputs, size_t count, double figures[2])
{
    assert_int_equal(count, 2);
    for (size_t i = 0; i < 2; i++)
        figures[i] = outputs[i].values[0];
}

static void evaluate(struct lockstep_trainer *trainer, double figures[2])
{
    struct lockstep_error *error = lockstep_error_new();
    const struct lockstep_output *outputs;
    size_t count;
    check(lockstep_trainer_evaluate(trainer, 0, &outputs, &count, error), error);
    keep_figures(outputs, count, figures);
    lockstep_error_free(error);
}

static void test_model(const char *weights, double figures[2])
{
    struct lockstep_error *error = lockstep_error_new();
    const struct lockstep_output *outputs;
    size_t count;
    int64_t samples;
    struct lockstep_model *model = load("net.prototxt", weights);
    check(lockstep_model_test(model, &outputs, &count, &samples, error), error);
    assert_int_equal(samples, 20);
    keep_figures(outputs, count, figures);
    lockstep_model_free(model);
    lockstep_error_free(error);
}

/* Three blobs as Caffe has them; the factor is that of three updates: 1 + 0.999 + 0.999^2. */
static void check_blobs(const char *path)
{
    struct ls_weights weights;
    struct ls_error error = {0};
    int found = 0;
    assert_int_equal(ls_weights_read(path, LS_WEIGHTS_BEST, &weights, &error), 0);
    for (size_t i = 0; i < weights.layer_count; i++) {
        const struct ls_weight_layer *layer = &weights.layers[i];
        bool bn = strcmp(layer->name, "bn") == 0;
        if (!bn && strcmp(layer->name, "scale") != 0)
            continue;
        assert_int_equal(layer->blob_count, bn ? 3 : 2);
        for (int b = 0; b < layer->blob_count; b++) {
            assert_int_equal(layer->blobs[b].shape.rank, 1);
            assert_int_equal(layer->blobs[b].shape.dim[0], b < 2 ? 18 : 1);
        }
        if (bn)
            assert_float_equal(layer->blobs[2].data[0], 1 + 0.999 + 0.998001, 1e-6);
        found++;
    }
    assert_int_equal(found, 2);
    ls_weights_free(&weights);
}

static void trained_reads_back(void **state)
{
    (void)state;
    double trained[2], read[2];
    struct lockstep_error *error = lockstep_error_new();
    assert_int_equal(chdir(ls_test_directory()), 0);
    ls_test_write_text("solver.prototxt", solver_text);
    ls_test_write_text("net.prototxt", ls_test_net("batch_norm_model", NULL));
    case_write_files(ls_test_net("batch_norm_model", NULL));
    struct lockstep_trainer *trainer = make_trainer(NULL);
    check(lockstep_trainer_run(trainer, -1, error), error);
    evaluate(trainer, trained);
    lockstep_trainer_free(trainer);
    check_blobs("trained_iter_3.caffemodel");

    /* A test without the solver cuts batches otherwise, which may round a row of an inner product
     * otherwise where oneDNN computes it; but both files give the same bits. */
    double other[2];
    test_model("trained_iter_3.safetensors", read);
    assert_float_equal(read[0], trained[0], 1e-6);
    assert_float_equal(read[1], trained[1], 1e-6);
    test_model("trained_iter_3.caffemodel", other);
    assert_memory_equal(other, read, sizeof read);
    trainer = make_trainer("trained_iter_3.caffemodel");
    evaluate(trainer, read);
    assert_memory_equal(read, trained, sizeof read);
    /* They are the figures of these weights: an update changes them. */
    check(lockstep_trainer_step(trainer, 1, error), error);
    evaluate(trainer, read);
    assert_memory_not_equal(read, trained, sizeof read);
    lockstep_trainer_free(trainer);
    lockstep_error_free(error);
    assert_int_equal(chdir("/"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(factors_of_caffe),
        cmocka_unit_test(trained_reads_back),
    };
    return cmocka_run_group_tests_name("batch norm models", tests, NULL, NULL);
}
