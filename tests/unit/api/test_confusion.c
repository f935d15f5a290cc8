/* Which classes a net takes for which, held against the net's own figures and against predictions
 * one by one.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/lockstep.h"
#include "support/support.h"

enum { CLASSES = 10, PIXELS = 784, SAMPLES = 150 };

static const char net[] =
    "layer { name: 'digits' type: 'Data' top: 'data' top: 'label'\n"
    "  transform_param { scale: 0.00390625 }\n"
    "  data_param { backend: SYNTHETIC batch_size: 50 synthetic_param { count: 150 } } }\n"
    "layer { name: 'ip' type: 'InnerProduct' bottom: 'data' top: 'ip'\n"
    "  inner_product_param { num_output: %d bias_term: false } }\n"
    "%s";
static const char losses[] =
    "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'loss' }\n"
    "layer { name: 'a' type: 'Accuracy' bottom: 'ip' bottom: 'label' top: 'accuracy' }\n";

/* Weights of `classes` rows, anything but regular. */
static void write_weights(const char *path, int classes)
{
    char header[128];
    const int values = classes * PIXELS * (int)sizeof(float);
    const int length =
        snprintf(header, sizeof header,
                 "{\"ip.weight\":{\"dtype\":\"F32\",\"shape\":[%d,%d],\"data_offsets\":[0,%d]}}",
                 classes, PIXELS, values);
    char *bytes = calloc(1, (size_t)(8 + length + values));
    bytes[0] = (char)length;
    memcpy(bytes + 8, header, (size_t)length);
    for (int i = 0; i < classes * PIXELS; i++) {
        const float weight = (float)sin(i * 0.37 + i / PIXELS);
        memcpy(bytes + 8 + length + (size_t)i * sizeof weight, &weight, sizeof weight);
    }
    ls_test_write(path, bytes, (size_t)(8 + length + values));
    free(bytes);
}

static struct lockstep_model *load(int classes, const char *rest, int workers)
{
    char text[1500];
    struct lockstep_error *error = lockstep_error_new();
    struct lockstep_model_options options;
    struct lockstep_model *model;
    const char *path = ls_test_path("net.prototxt"), *weights = ls_test_path("net.safetensors");
    snprintf(text, sizeof text, net, classes, rest);
    ls_test_write_text(path, text);
    write_weights(weights, classes);
    lockstep_model_options_init(&options);
    options.workers = workers;
    if (lockstep_model_load(path, weights, &options, &model, error) != 0)
        fail_msg("%s", lockstep_error_text(error));
    lockstep_error_free(error);
    return model;
}

static size_t best_of(const float *scores)
{
    size_t best = 0;
    for (size_t c = 1; c < CLASSES; c++)
        best = scores[c] > scores[best] ? c : best;
    return best;
}

static void test_counts(void **state)
{
    (void)state;
    enum { WORST = 5 };
    struct lockstep_model *model = load(CLASSES, losses, 2);
    const struct lockstep_output *outputs;
    const struct lockstep_confusion *confusion;
    size_t count;
    assert_int_equal(lockstep_model_test(model, &outputs, &count, NULL, NULL), 0);
    double accuracy = NAN;
    for (size_t i = 0; i < count; i++)
        if (strcmp(outputs[i].name, "accuracy") == 0)
            accuracy = outputs[i].values[0];
    assert_int_equal(lockstep_model_confusion(model, 0, WORST, &confusion, NULL), 0);
    assert_int_equal(confusion->classes, CLASSES);
    assert_int_equal(confusion->samples, SAMPLES);
    assert_int_equal(confusion->counted, SAMPLES);
    assert_int_equal(confusion->left_out, 0);
    assert_float_equal(confusion->accuracy, accuracy, 1e-6);
    int64_t matrix[CLASSES][CLASSES] = {{0}}, shape[3];
    double scores[SAMPLES];
    for (int i = 0; i < SAMPLES; i++) {
        float output[CLASSES];
        int label;
        assert_int_equal(lockstep_model_predict_sample(model, i, shape, NULL, &label, output, NULL),
                         0);
        matrix[label][best_of(output)]++;
        scores[i] = (double)output[label];
    }
    assert_memory_equal(confusion->matrix, matrix, sizeof matrix);
    assert_int_equal(confusion->worst_count, WORST);
    for (int w = 0; w < WORST; w++) {
        int below = 0;
        for (int i = 0; i < SAMPLES; i++)
            below += scores[i] < confusion->worst[w].score;
        assert_int_equal(below, w);
        assert_true(scores[confusion->worst[w].index] == confusion->worst[w].score);
    }
    for (size_t c = 0; c < CLASSES; c++) {
        const struct lockstep_class_figures *figures = &confusion->figures[c];
        int64_t row = 0, column = 0;
        for (size_t i = 0; i < CLASSES; i++) {
            row += matrix[c][i];
            column += matrix[i][c];
        }
        assert_int_equal(figures->count, row);
        assert_int_equal(figures->predicted, column);
        assert_true(column > 0 ? figures->precision == (double)matrix[c][c] / (double)column
                               : isnan(figures->precision));
    }
    lockstep_model_free(model);
}

/* A part of the samples; the same on any number of workers. */
static void test_part(void **state)
{
    (void)state;
    struct lockstep_model *one = load(CLASSES, losses, 1), *three = load(CLASSES, losses, 3);
    const struct lockstep_confusion *first, *second;
    assert_int_equal(lockstep_model_confusion(one, 70, 3, &first, NULL), 0);
    assert_int_equal(lockstep_model_confusion(three, 70, 3, &second, NULL), 0);
    assert_int_equal(first->samples, 70);
    assert_memory_equal(first->matrix, second->matrix, CLASSES * CLASSES * sizeof(int64_t));
    for (int w = 0; w < 3; w++)
        assert_int_equal(first->worst[w].index, second->worst[w].index);
    lockstep_model_free(one);
    lockstep_model_free(three);
}

/* Labels beyond the classes are left out; what does not classify is refused. */
static void test_refused(void **state)
{
    (void)state;
    const struct lockstep_confusion *confusion;
    struct lockstep_error *error = lockstep_error_new();
    static const char output[] = "layer { name: 's' type: 'Silence' bottom: 'label' }\n"
                                 "layer { name: 'p' type: 'Softmax' bottom: 'ip' top: 'prob' }\n";
    struct lockstep_model *model = load(4, output, 1);
    assert_int_equal(lockstep_model_confusion(model, 0, 0, &confusion, error), 0);
    assert_true(confusion->left_out > 0);
    assert_int_equal(confusion->left_out + confusion->counted, SAMPLES);
    assert_int_equal(lockstep_model_confusion(model, -1, 0, &confusion, error), LOCKSTEP_USAGE);
    assert_int_equal(lockstep_model_confusion(model, 0, 100000, &confusion, error), LOCKSTEP_USAGE);
    lockstep_model_free(model);
    model = load(1, "layer { name: 's' type: 'Silence' bottom: 'label' }\n", 1);
    assert_int_equal(lockstep_model_confusion(model, 0, 0, &confusion, error), LOCKSTEP_DEFINITION);
    assert_non_null(strstr(lockstep_error_text(error), "the net gives 1 scores"));
    lockstep_model_free(model);
    lockstep_error_free(error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_counts), cmocka_unit_test(test_part),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
