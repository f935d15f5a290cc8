/* Boxes that a net finds, held against boxes that are known: the net's weights are ones, it
 * reads places and scores from its data.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "lockstep/lockstep.h"
#include "snapshot/archive.h"
#include "support/npy_files.h"
#include "support/support.h"

enum { SAMPLES = 4, PRIORS = 2, CLASSES = 3, ROWS = 2, NUMBERS = PRIORS * (4 + CLASSES) };

/* The prior boxes are the whole picture: places are what is added to 0, 0, 1, 1. */
static const char net[] =
    "layer { name: 'data' type: 'Data' top: 'x0' top: 'truth'\n"
    "  data_param { backend: NPY source: '%s' source: '%s' tensor { name: 'x' }\n"
    "    tensor { name: 'rows' } batch_size: 2 } }\n"
    "layer { name: 'same' type: 'Scale' bottom: 'x0' top: 'x' }\n"
    "layer { name: 'cut' type: 'Slice' bottom: 'x' top: 'place' top: 'score'\n"
    "  slice_param { slice_point: 8 } }\n"
    "layer { name: 'prior' type: 'PriorBox' bottom: 'x' bottom: 'x' top: 'prior'\n"
    "  prior_box_param { min_size: 1 min_size: 1 variance: 1 } }\n"
    "layer { name: 'f1' type: 'Flatten' bottom: 'place' top: 'places' }\n"
    "layer { name: 'f2' type: 'Flatten' bottom: 'score' top: 'scores' }\n"
    "layer { name: 'found' type: 'DetectionOutput' bottom: 'places' bottom: 'scores'\n"
    "  bottom: 'prior' top: 'found' detection_output_param { num_classes: 3 keep_top_k: 4\n"
    "    code_type: CORNER confidence_threshold: 0.01\n"
    "    nms_param { nms_threshold: 0.99 top_k: 9 } } }\n"
    "layer { name: 'ap' type: 'DetectionEvaluate' bottom: 'found' bottom: 'truth' top: 'ap'\n"
    "  detection_evaluate_param { num_classes: 3 background_label_id: 0\n"
    "    evaluate_difficult_gt: false } }\n";

/* By sample two boxes (xmin, ymin, xmax, ymax), and their class and score. */
static const float boxes[SAMPLES][PRIORS][6] = {
    /* One that is right, and a second one of the same true box. */
    {{0, 0, 0.5F, 0.5F, 1, 0.75F}, {0, 0, 0.5F, 0.4375F, 1, 0.875F}},
    /* The wrong class; and a score that is too low. */
    {{0.5F, 0.5F, 1, 1, 2, 0.75F}, {0, 0, 0.25F, 0.25F, 1, 0.25F}},
    /* A difficult one, and one that overlaps less than by half. */
    {{0, 0, 0.5F, 0.5F, 1, 0.75F}, {0.5F, 0, 1, 0.375F, 2, 0.625F}},
    /* Nothing. */
    {{0, 0, 1, 1, 1, 0}, {0, 0, 1, 1, 1, 0}}};
/* Item, class, instance, corners, difficult. */
static const float truth[SAMPLES][ROWS][8] = {
    {{0, 1, 0, 0, 0, 0.5F, 0.5F, 0}, {-1, -1, -1, -1, -1, -1, -1, -1}},
    {{0, 1, 0, 0.5F, 0.5F, 1, 1, 0}, {-1, -1, -1, -1, -1, -1, -1, -1}},
    {{0, 1, 0, 0, 0, 0.5F, 0.5F, 1}, {0, 2, 0, 0.5F, 0, 1, 1, 0}},
    {{-1, -1, -1, -1, -1, -1, -1, -1}, {-1, -1, -1, -1, -1, -1, -1, -1}}};

static void write_ones(const char *path, int count)
{
    char bytes[8 + 80 + NUMBERS * 4] = {0};
    const float one = 1;
    const int length = snprintf(bytes + 8, 80,
                                "{\"same.scale\":{\"dtype\":\"F32\",\"shape\":[%d],"
                                "\"data_offsets\":[0,%d]}}",
                                count, count * 4);
    assert_true(length > 0 && length < 80);
    bytes[0] = (char)length;
    for (int i = 0; i < count; i++)
        memcpy(bytes + 8 + length + i * 4, &one, 4);
    ls_test_write(path, bytes, (size_t)(8 + length + count * 4));
}

static struct lockstep_model *open_net(const char *text, const char *weights)
{
    const char *path = ls_test_path("net.prototxt");
    struct lockstep_error *error = lockstep_error_new();
    struct lockstep_model_options options;
    struct lockstep_model *model;
    ls_test_write_text(path, text);
    lockstep_model_options_init(&options);
    options.workers = 2;
    if (lockstep_model_load(path, weights, &options, &model, error) != 0)
        fail_msg("%s", lockstep_error_text(error));
    lockstep_error_free(error);
    return model;
}

static struct lockstep_model *load(bool judged)
{
    float numbers[SAMPLES][NUMBERS] = {{0}};
    char text[3000], x[512], rows[512];
    snprintf(x, sizeof x, "%s", ls_test_path("x.npy"));
    snprintf(rows, sizeof rows, "%s", ls_test_path("rows.npy"));
    for (int s = 0; s < SAMPLES; s++)
        for (int p = 0; p < PRIORS; p++) {
            for (int i = 0; i < 4; i++)
                numbers[s][4 * p + i] = boxes[s][p][i] - (i < 2 ? 0.0F : 1.0F);
            numbers[s][4 * PRIORS + CLASSES * p + (int)boxes[s][p][4]] = boxes[s][p][5];
        }
    write_npy(x, "<f4", "(4, 14, 1, 1)", numbers, sizeof numbers);
    write_npy(rows, "<f4", judged ? "(4, 2, 8)" : "(4, 16)", truth, sizeof truth);
    snprintf(text, sizeof text, net, x, rows);
    const char *weights = ls_test_path("w.safetensors");
    if (!judged)
        *strstr(text, "layer { name: 'ap'") = '\0';
    write_ones(weights, NUMBERS);
    return open_net(text, weights);
}

static const struct lockstep_boxed_sample *sample_of(const struct lockstep_found_boxes *found,
                                                     int64_t index)
{
    for (size_t i = 0; i < found->worst_count; i++)
        if (found->worst[i].index == index)
            return &found->worst[i];
    fail_msg("sample %lld is not there", (long long)index);
    return NULL;
}

/* Checks the kinds of a sample's boxes. */
static void check_kinds(const struct lockstep_boxed_sample *sample, int count,
                        const enum lockstep_box_kind *kinds)
{
    assert_int_equal(sample->box_count, count);
    for (int i = 0; i < count; i++)
        assert_int_equal(sample->boxes[i].kind, kinds[i]);
}

static void test_known(void **state)
{
    (void)state;
    struct lockstep_model *model = load(true);
    const struct lockstep_found_boxes *found;
    assert_true(lockstep_model_finds_boxes(model));
    assert_int_equal(lockstep_model_find_boxes(model, 0, 10, 0.5, &found, NULL), 0);
    assert_true(found->judged);
    assert_int_equal(found->samples, SAMPLES);
    assert_int_equal(found->worst_count, SAMPLES);
    assert_int_equal(found->worst[0].index, 1); /* nothing right; of equal ones the first */
    assert_int_equal(found->worst[1].index, 2);
    assert_int_equal(found->worst[3].index, 3); /* nothing to find, and nothing found */
    check_kinds(sample_of(found, 0), 2,
                (const enum lockstep_box_kind[]){LOCKSTEP_BOX_RIGHT, LOCKSTEP_BOX_WRONG});
    assert_float_equal(sample_of(found, 0)->score, 0.5, 0);
    assert_float_equal(sample_of(found, 0)->boxes[0].score, 0.875, 0);
    assert_float_equal(sample_of(found, 0)->boxes[0].ymax, 0.4375, 1e-6);
    check_kinds(sample_of(found, 1), 2,
                (const enum lockstep_box_kind[]){LOCKSTEP_BOX_WRONG, LOCKSTEP_BOX_MISSED});
    assert_true(isnan(sample_of(found, 1)->boxes[1].score));
    check_kinds(sample_of(found, 2), 3,
                (const enum lockstep_box_kind[]){LOCKSTEP_BOX_OPEN, LOCKSTEP_BOX_WRONG,
                                                 LOCKSTEP_BOX_MISSED});
    check_kinds(sample_of(found, 3), 0, NULL);
    /* Class 1: one of two found is right, one of two true ones is found. */
    assert_int_equal(found->classes, CLASSES);
    assert_float_equal(found->figures[1].precision, 0.5, 0);
    assert_float_equal(found->figures[1].recall, 0.5, 0);
    assert_int_equal(found->figures[2].predicted, 2);
    assert_int_equal(found->figures[2].count, 1);
    assert_float_equal(found->figures[2].recall, 0, 0);
    /* A lower score, fewer samples, fewer of the worst. */
    assert_int_equal(lockstep_model_find_boxes(model, 2, 1, 0.25, &found, NULL), 0);
    assert_int_equal(found->samples, 2);
    assert_int_equal(found->worst_count, 1);
    check_kinds(&found->worst[0], 3,
                (const enum lockstep_box_kind[]){LOCKSTEP_BOX_WRONG, LOCKSTEP_BOX_WRONG,
                                                 LOCKSTEP_BOX_MISSED});
    assert_int_equal(lockstep_model_find_boxes(model, -1, 1, 0.5, &found, NULL), LOCKSTEP_USAGE);
    assert_int_equal(lockstep_model_find_boxes(model, 1, 1, (double)NAN, &found, NULL),
                     LOCKSTEP_USAGE);
    lockstep_model_free(model);
}

/* A snapshot of a solver that averages otherwise. */
static void write_snapshot(const char *path)
{
    struct ls_archive read, made = {0};
    assert_int_equal(ls_archive_read(path, LS_ARCHIVE_CHECK, &read, NULL), 0);
    assert_int_equal(ls_archive_add(&made, read.tensors[0].name, LS_F32, &read.tensors[0].shape,
                                    read.tensors[0].data, NULL),
                     0);
    assert_int_equal(ls_archive_add_note(&made, "definition", "ap_version: \"11point\"", NULL), 0);
    assert_int_equal(ls_archive_write(&made, path, NULL), 0);
    ls_archive_free(&made);
    ls_archive_free(&read);
}

static double mean_precision(struct lockstep_model *model)
{
    const struct lockstep_output *outputs;
    size_t count;
    int64_t samples;
    assert_int_equal(lockstep_model_test(model, &outputs, &count, &samples, NULL), 0);
    assert_int_equal(count, 1);
    const double value = outputs[0].values[0];
    lockstep_model_free(model);
    return value;
}

/* A net is tested by the rule of the training, which its solver has, and its snapshot. One of two
 * boxes of class 1 is found, without a wrong one before it; of class 2 none. */
static void precision_is_averaged_as_in_training(void **state)
{
    (void)state;
    char text[4096];
    const char *weights = ls_test_path("w.safetensors");
    assert_float_equal(mean_precision(load(true)), 0.5 / 2, 1e-6);
    snprintf(text, sizeof text, net, ls_test_path("x.npy"), ls_test_path("rows.npy"));
    write_ones(weights, NUMBERS);
    write_snapshot(weights);
    assert_float_equal(mean_precision(open_net(text, weights)), 6.0 / 11 / 2, 1e-6);
}

/* A sample as the net gets it: the centre of a picture, with mean and scale undone. */
static void test_picture(void **state)
{
    (void)state;
    enum { SIDE = 28, CROP = 20, EDGE = (SIDE - CROP) / 2 };
    const char *weights = ls_test_path("w.safetensors");
    write_ones(weights, 1);
    struct lockstep_model *model = open_net(
        "layer { name: 'data' type: 'Data' top: 'x' top: 'label'\n"
        "  transform_param { crop_size: 20 scale: 0.0078125 mean_value: 100 }\n"
        "  data_param { backend: SYNTHETIC batch_size: 2 synthetic_param { count: 4 } } }\n"
        "layer { name: 'same' type: 'Scale' bottom: 'x' top: 'y' }\n",
        weights);
    int64_t shape[3];
    float raw[SIDE * SIDE], shown[CROP * CROP];
    const struct lockstep_found_boxes *found;
    assert_int_equal(lockstep_model_predict_sample(model, 1, shape, raw, NULL, NULL, NULL), 0);
    assert_int_equal(shape[1] * shape[2], SIDE * SIDE);
    assert_int_equal(lockstep_model_sample_picture(model, 1, shape, NULL, NULL), 0);
    assert_int_equal(shape[1] * shape[2], CROP * CROP);
    assert_int_equal(lockstep_model_sample_picture(model, 1, shape, shown, NULL), 0);
    for (int y = 0; y < CROP; y++)
        for (int x = 0; x < CROP; x++)
            assert_float_equal(shown[y * CROP + x], raw[(y + EDGE) * SIDE + x + EDGE], 1e-3);
    assert_int_equal(lockstep_model_sample_picture(model, 4, shape, shown, NULL), LOCKSTEP_USAGE);
    assert_false(lockstep_model_finds_boxes(model));
    assert_int_equal(lockstep_model_find_boxes(model, 0, 1, 0.5, &found, NULL),
                     LOCKSTEP_DEFINITION);
    lockstep_model_free(model);
    model = load(true); /* no pictures */
    assert_int_equal(lockstep_model_sample_picture(model, 0, shape, NULL, NULL), LOCKSTEP_USAGE);
    lockstep_model_free(model);
    model = load(false); /* no true boxes */
    assert_int_equal(lockstep_model_find_boxes(model, 0, 9, 0.5, &found, NULL), 0);
    assert_false(found->judged);
    assert_int_equal(found->worst[0].index, 0);
    check_kinds(&found->worst[0], 2,
                (const enum lockstep_box_kind[]){LOCKSTEP_BOX_OPEN, LOCKSTEP_BOX_OPEN});
    lockstep_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_known),
                                       cmocka_unit_test(precision_is_averaged_as_in_training),
                                       cmocka_unit_test(test_picture)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
