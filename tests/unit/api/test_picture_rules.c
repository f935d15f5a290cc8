/* What a net was trained on is what it predicts from: the deploy form makes of a picture the bits
 * that the data layer makes of it, or says what it cannot do.
 *
 * The blob that is predicted is the net's input itself.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "data/mean_file.h"
#include "data/picture_write.h"
#include "lockstep/lockstep.h"
#include "snapshot/archive.h"
#include "snapshot/catalog.h"
#include "support/support.h"
#include "support/turned_picture.h"

enum { NUMBERS_MAX = 3 * 64 * 64, PICTURES = 3 };

/* Behind the input. */
static const char layers[] = "layer { name: 'c' type: 'Convolution' bottom: 'data' top: 'c'\n"
                             "  convolution_param { num_output: 1 kernel_size: 1 } }\n"
                             "layer { name: 's' type: 'Silence' bottom: 'c' %s }\n"
                             "layer { name: 'p' type: 'Pooling' bottom: 'c' top: 'p'\n"
                             "  pooling_param { pool: AVE global_pooling: true } }\n"
                             "layer { name: 'flat' type: 'Flatten' bottom: 'data' top: 'flat' }\n";
static const char loss[] = "layer { name: 'loss' type: 'EuclideanLoss' bottom: 'p' bottom: 'p' "
                           "top: 'loss' }\n";

static int value_of(int x)
{
    return (int)((unsigned)x * 2654435761U >> 16) % 256;
}

static void write_picture(const char *name, int height, int width)
{
    uint8_t planes[3 * 64 * 64], *bytes;
    size_t size;
    for (int i = 0; i < 3 * height * width; i++)
        planes[i] = (uint8_t)((value_of(i) + 3 * value_of(i / 7 + height)) / 4);
    assert_int_equal(
        ls_picture_encode(planes, (const int64_t[]){3, height, width}, "png", &bytes, &size, NULL),
        0);
    ls_test_write(ls_test_path(name), bytes, size);
    ls_free(bytes);
}

static void write_mean(const char *name, int height, int width)
{
    float mean[3 * 64 * 64];
    for (int i = 0; i < 3 * height * width; i++)
        mean[i] = (float)value_of(i + 5000) / 2;
    assert_int_equal(
        ls_mean_write(ls_test_path(name), (const int64_t[]){3, height, width}, mean, NULL), 0);
}

static int prepare(void **state)
{
    (void)state;
    char cifar[2 * 3073];
    if (chdir(ls_test_directory()) != 0)
        return -1;
    for (size_t i = 0; i < sizeof cifar; i++)
        cifar[i] = i % 3073 == 0 ? 1 : (char)value_of((int)i);
    ls_test_write("cifar.bin", cifar, sizeof cifar);
    write_picture("a.png", 12, 14);
    write_picture("b.png", 12, 14);
    write_picture("c.png", 20, 16); /* as others are not */
    write_mean("mean.binaryproto", 12, 14);
    write_mean("mean10.binaryproto", 10, 10);
    ls_test_write_text("same.txt", "a.png 0\nb.png 1\n");
    ls_test_write_text("varied.txt", "a.png 0\nc.png 1\n");
    ls_test_write_text("windows.txt", "# 0\na.png\n3\n12\n14\n2\n1 0.9 1 1 9 8\n0 0.1 2 0 12 11\n"
                                      "# 1\nb.png\n3\n12\n14\n1\n1 1 0 0 13 11\n");
    return 0;
}

/* Trains for nothing on a data layer, and keeps the snapshot. */
static void train(const char *data)
{
    char text[4000];
    struct lockstep_error *error = lockstep_error_new();
    struct lockstep_train_options options;
    struct lockstep_solver *solver = NULL;
    struct lockstep_trainer *trainer = NULL;
    int length = snprintf(text, sizeof text, "%s\n", data);
    length += snprintf(text + length, sizeof text - (size_t)length, layers, "");
    snprintf(text + length, sizeof text - (size_t)length, "%s", loss);
    ls_test_write_text("train.prototxt", text);
    ls_test_write_text("solver.prototxt",
                       "net: 'train.prototxt' base_lr: 0 lr_policy: 'fixed' max_iter: 1 "
                       "snapshot_prefix: 'w'\n");
    lockstep_train_options_init(&options);
    options.workers = 1;
    int status = lockstep_solver_load("solver.prototxt", NULL, 0, &solver, error);
    if (status == 0)
        status = lockstep_trainer_create(solver, &options, &trainer, error);
    if (status == 0)
        status = lockstep_trainer_snapshot(trainer, "w.safetensors", error);
    if (status != 0)
        fail_msg("%s\n%s", data, lockstep_error_text(error));
    lockstep_trainer_free(trainer);
    lockstep_solver_free(solver);
    lockstep_error_free(error);
}

static char warnings[2000];

static void hear(void *user, const struct lockstep_event *event)
{
    (void)user;
    if (event->kind == LOCKSTEP_EVENT_WARNING && event->text != NULL)
        snprintf(warnings + strlen(warnings), sizeof warnings - strlen(warnings), "%s\n",
                 event->text);
}

static struct lockstep_model *load(const char *net, const struct lockstep_model_options *more)
{
    struct lockstep_error *error = lockstep_error_new();
    struct lockstep_model_options options;
    struct lockstep_model *model = NULL;
    if (more != NULL)
        options = *more;
    else
        lockstep_model_options_init(&options);
    options.workers = 1;
    options.output = "flat";
    options.callbacks.event = hear;
    warnings[0] = '\0';
    if (lockstep_model_load(net, "w.safetensors", &options, &model, error) != 0)
        fail_msg("%s: %s", net, lockstep_error_text(error));
    lockstep_error_free(error);
    return model;
}

/* The deploy form for an input of that shape; `input`: more of its layer. */
static void write_deploy(const int64_t shape[3], const char *input)
{
    char text[3000];
    int length = snprintf(text, sizeof text,
                          "layer { name: 'data' type: 'Input' top: 'data'\n"
                          "  input_param { shape { dim: [1, %d, %d, %d] } } %s }\n",
                          (int)shape[0], (int)shape[1], (int)shape[2], input);
    snprintf(text + length, sizeof text - (size_t)length, layers, "");
    ls_test_write_text("deploy.prototxt", text);
}

static int predict(struct lockstep_model *model, const char *picture, float *out, char *problem)
{
    struct lockstep_error *error = lockstep_error_new();
    assert_true(lockstep_model_output_size(model) <= NUMBERS_MAX);
    int status = lockstep_model_predict_picture(model, picture, out, error);
    snprintf(problem, 1000, "%s", status != 0 ? lockstep_error_text(error) : "");
    lockstep_error_free(error);
    return status;
}

static void assert_same(const char *data, struct lockstep_model *trained,
                        struct lockstep_model *deploy, const char *picture)
{
    static float a[NUMBERS_MAX], b[NUMBERS_MAX];
    char problem[1000];
    const size_t size = lockstep_model_output_size(trained);
    assert_int_equal(lockstep_model_output_size(deploy), size);
    if (predict(trained, picture, a, problem) != 0 || predict(deploy, picture, b, problem) != 0)
        fail_msg("%s\n%s", data, problem);
    for (size_t i = 0; i < size; i++)
        if (a[i] != b[i])
            fail_msg("%s: number %zu is %g, and %g in the deploy form", data, i, (double)a[i],
                     (double)b[i]);
}

/* Both forms agree on pictures of both sizes. */
static void assert_forms_agree(const char *data)
{
    int64_t shape[3];
    train(data);
    struct lockstep_model *trained = load("train.prototxt", NULL);
    lockstep_model_input_shape(trained, shape);
    write_deploy(shape, "");
    struct lockstep_model *deploy = load("deploy.prototxt", NULL);
    assert_same(data, trained, deploy, "a.png");
    assert_same(data, trained, deploy, "c.png");
    assert_string_equal(warnings, "");
    lockstep_model_free(trained);
    lockstep_model_free(deploy);
}

#define DATA(fields, transform)                                                                    \
    "layer { name: 'in' type: 'Data' top: 'data' data_param { batch_size: 2 " fields               \
    " }\n transform_param { " transform " } }"
#define IMAGES(more, transform) DATA("backend: IMAGES source: 'same.txt' " more, transform)
#define VARIED(transform)       DATA("backend: IMAGES source: 'varied.txt'", transform)

static void deploy_forms_do_what_data_layers_do(void **state)
{
    (void)state;
    static const char *const all[] = {
        IMAGES("", ""),
        IMAGES("", "scale: 0.5 mean_value: 10 mean_value: 20 mean_value: 30"),
        IMAGES("", "mean_file: 'mean.binaryproto' scale: 0.25"),
        IMAGES("", "mean_file: 'mean.binaryproto' crop_size: 9"),
        IMAGES("", "mean_file: 'mean.binaryproto' pad: 2 crop_size: 13 pad_mode: REFLECT"),
        IMAGES("", "crop_size: 9 mirror: true brightness: 20 contrast_upper: 2"),
        IMAGES("", "pad: 3 scale: 0.1"),
        IMAGES("", "pad: 3 pad_mode: REFLECT"),
        IMAGES("", "standardize: true crop_size: 11"),
        IMAGES("", "resize_param { height: 8 width: 7 }"),
        IMAGES("", "resize_param { height: 8 width: 7 interp_mode: CUBIC } mean_value: 7"),
        IMAGES("", "resize_param { resize_mode: FIT_LARGE_SIZE_AND_PAD height: 10 width: 10\n"
                   "  pad_value: 9 interp_mode: NEAREST } mean_file: 'mean10.binaryproto'"),
        IMAGES("new_height: 6 new_width: 5", "scale: 2"),
        IMAGES("new_height: 6 new_width: 5 antialias: false", "scale: 2"),
        IMAGES("new_height: 10 new_width: 10", "mean_file: 'mean10.binaryproto' crop_size: 6"),
        IMAGES("is_color: false", "crop_size: 10 mean_value: 100"),
        VARIED("crop_size: 8 scale: 0.5"),
        VARIED("resize_param { height: 8 width: 7 }"),
        VARIED("resize_param { resize_mode: FIT_SMALL_SIZE height: 10 width: 10 } crop_size: 9"),
        DATA("backend: CIFAR source: 'cifar.bin'", "crop_size: 28 mean_value: [1, 2, 3]"),
        DATA("backend: IMAGES source: 'same.txt'",
             "resize_param { height: 9 width: 9 } distort_param { brightness_prob: 1 "
             "brightness_delta: 30 } expand_param { prob: 1 max_expand_ratio: 3 }"),
        "layer { name: 'in' type: 'ImageData' top: 'data' top: 'label'\n"
        "  image_data_param { source: 'same.txt' batch_size: 1 new_height: 5 new_width: 6 } }",
        "layer { name: 'in' type: 'WindowData' top: 'data' top: 'label'\n"
        "  transform_param { scale: 0.5 mean_value: 10 mean_value: 20 mean_value: 30 crop_size: 6 "
        "}\n"
        "  window_data_param { source: 'windows.txt' batch_size: 2 fg_fraction: 0.5 } }",
        "layer { name: 'in' type: 'WindowData' top: 'data' top: 'label'\n"
        "  transform_param { mean_file: 'mean.binaryproto' crop_size: 7 }\n"
        "  window_data_param { source: 'windows.txt' batch_size: 2 fg_fraction: 0.5 } }",
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        assert_forms_agree(all[i]);
}

/* The picture of the training is read as it was for the training. */
static void assert_sample_is_read_again(const char *data)
{
    static float a[NUMBERS_MAX], b[NUMBERS_MAX];
    char problem[1000];
    int64_t shape[3];
    train(data);
    struct lockstep_model *model = load("train.prototxt", NULL);
    assert_int_equal(lockstep_model_predict_sample(model, 0, shape, NULL, NULL, a, NULL), 0);
    if (predict(model, "a.png", b, problem) != 0)
        fail_msg("%s", problem);
    assert_memory_equal(a, b, lockstep_model_output_size(model) * sizeof *a);
    lockstep_model_free(model);
}

static void pictures_are_resized_as_samples_are(void **state)
{
    (void)state;
    assert_sample_is_read_again(IMAGES("new_height: 6 new_width: 5", ""));
    assert_sample_is_read_again(IMAGES("new_height: 6 new_width: 5 antialias: false", ""));
    assert_sample_is_read_again(VARIED("crop_size: 8"));
}

/* ---- Where training and the net do not fit --------------------------------------------------- */

static void assert_refused(const int64_t shape[3], const char *words, const char *hint)
{
    static float out[NUMBERS_MAX];
    char problem[1000];
    write_deploy(shape, "");
    struct lockstep_model *model = load("deploy.prototxt", NULL);
    assert_int_not_equal(predict(model, "a.png", out, problem), 0);
    if (strstr(problem, words) == NULL || strstr(problem, hint) == NULL)
        fail_msg("'%s' does not say '%s' and '%s'", problem, words, hint);
    lockstep_model_free(model);
}

static void what_does_not_fit_is_named(void **state)
{
    (void)state;
    train(IMAGES("", "crop_size: 9 pad: 1"));
    assert_refused((const int64_t[]){3, 8, 8}, "(of 12 x 14, pad 1, crop_size 9)", "--resize");
    train(IMAGES("", "mean_file: 'mean.binaryproto'"));
    assert_refused((const int64_t[]){3, 8, 8}, "a mean picture", "--resize");
    train(IMAGES("", ""));
    assert_refused((const int64_t[]){1, 12, 14}, "1 x 12 x 14 numbers, but pictures become 3 x 12",
                   "as they were");
    train("layer { name: 'in' type: 'WindowData' top: 'data' top: 'label'\n"
          "  transform_param { crop_size: 6 } window_data_param {\n"
          "  source: 'windows.txt' batch_size: 2 fg_fraction: 0.5 context_pad: 1 } }");
    assert_refused((const int64_t[]){3, 6, 6}, "context_pad cuts windows out", "--resize");
}

/* Writes the snapshot again with another mean picture, or without one (NULL). */
static void replace_mean(const float *mean, enum ls_dtype type, int rank)
{
    struct ls_archive whole, other = {0};
    const struct ls_shape shape = {.rank = rank, .dim = {3, 12, 14}};
    assert_int_equal(ls_archive_read("w.safetensors", LS_ARCHIVE_CHECK, &whole, NULL), 0);
    for (size_t i = 0; i < whole.tensor_count; i++) {
        struct ls_tensor tensor = whole.tensors[i];
        const bool is_mean = strncmp(tensor.name, "state.mean.", 11) == 0;
        if (is_mean && mean != NULL) {
            tensor.type = type;
            tensor.shape = shape;
            tensor.data = mean;
        }
        if (!is_mean || mean != NULL)
            assert_int_equal(
                ls_archive_add(&other, tensor.name, tensor.type, &tensor.shape, tensor.data, NULL),
                0);
    }
    for (size_t i = 0; i < whole.note_count; i++)
        if (strncmp(whole.notes[i].key, "lockstep.", 9) != 0)
            assert_int_equal(
                ls_archive_add_note(&other, whole.notes[i].key, whole.notes[i].value, NULL), 0);
    assert_int_equal(ls_archive_write(&other, "w.safetensors", NULL), 0);
    ls_archive_free(&other);
    ls_archive_free(&whole);
}

/* A snapshot of an older version names a mean picture, and does not have it. */
static void a_mean_picture_that_is_not_there_is_asked_for(void **state)
{
    (void)state;
    static float a[NUMBERS_MAX], b[NUMBERS_MAX];
    char problem[1000];
    struct lockstep_model_options options;
    train(IMAGES("", "mean_file: 'mean.binaryproto' crop_size: 9"));
    write_deploy((const int64_t[]){3, 9, 9}, "");
    struct lockstep_model *model = load("deploy.prototxt", NULL);
    assert_int_equal(predict(model, "c.png", a, problem), 0);
    lockstep_model_free(model);

    replace_mean(NULL, LS_F32, 0);
    assert_refused((const int64_t[]){3, 9, 9}, "mean picture", "--mean FILE");

    lockstep_model_options_init(&options);
    options.mean = "mean.binaryproto";
    write_deploy((const int64_t[]){3, 9, 9}, "");
    model = load("deploy.prototxt", &options);
    if (predict(model, "c.png", b, problem) != 0)
        fail_msg("%s", problem);
    assert_memory_equal(a, b, lockstep_model_output_size(model) * sizeof *a);
    lockstep_model_free(model);
}

static void assert_weights_refused(const char *words)
{
    struct lockstep_error *error = lockstep_error_new();
    struct lockstep_model_options options;
    struct lockstep_model *model = NULL;
    lockstep_model_options_init(&options);
    assert_int_equal(
        lockstep_model_load("deploy.prototxt", "w.safetensors", &options, &model, error),
        LOCKSTEP_WEIGHTS);
    if (strstr(lockstep_error_text(error), words) == NULL)
        fail_msg("'%s' does not say '%s'", lockstep_error_text(error), words);
    lockstep_error_free(error);
}

static void a_mean_picture_that_is_none_is_refused(void **state)
{
    (void)state;
    static float mean[3 * 12 * 14];
    train(IMAGES("", "mean_file: 'mean.binaryproto' crop_size: 9"));
    write_deploy((const int64_t[]){3, 9, 9}, "");
    replace_mean(mean, LS_I32, 3);
    assert_weights_refused("'state.mean.1' is no picture");
    replace_mean(mean, LS_F32, 2);
    assert_weights_refused("'state.mean.1' is no picture");
    mean[100] = NAN;
    replace_mean(mean, LS_F32, 3);
    assert_weights_refused("number 100 of tensor 'state.mean.1' is not finite");
}

/* Weights that say nothing of pictures. */
static void what_is_not_known_is_a_warning(void **state)
{
    (void)state;
    static float out[NUMBERS_MAX];
    char problem[1000];
    struct ls_archive whole, less = {0};
    train(IMAGES("", ""));
    assert_int_equal(ls_archive_read("w.safetensors", LS_ARCHIVE_CHECK, &whole, NULL), 0);
    for (size_t i = 0; i < whole.tensor_count; i++)
        if (strncmp(whole.tensors[i].name, "c.", 2) == 0)
            assert_int_equal(ls_archive_add(&less, whole.tensors[i].name, whole.tensors[i].type,
                                            &whole.tensors[i].shape, whole.tensors[i].data, NULL),
                             0);
    assert_int_equal(ls_archive_write(&less, "w.safetensors", NULL), 0);
    ls_archive_free(&less);
    ls_archive_free(&whole);
    write_deploy((const int64_t[]){3, 12, 14}, "");
    struct lockstep_model *model = load("deploy.prototxt", NULL);
    assert_int_equal(predict(model, "a.png", out, problem), 0);
    assert_int_equal(predict(model, "a.png", out, problem), 0);
    char *first = strstr(warnings, "neither the weights nor the definition say");
    assert_non_null(first);
    assert_null(strstr(first + 1, "neither"));
    lockstep_model_free(model);
}

/* ---- Input layers with a transformation ------------------------------------------------------ */

static void an_input_layer_transforms(void **state)
{
    (void)state;
    static float a[NUMBERS_MAX], b[NUMBERS_MAX];
    char problem[1000];
    train(IMAGES("", "crop_size: 9 scale: 0.5 mean_value: 3"));
    struct lockstep_model *model = load("train.prototxt", NULL);
    assert_int_equal(predict(model, "c.png", a, problem), 0);
    lockstep_model_free(model);

    /* The same one: nothing to say. */
    write_deploy((const int64_t[]){3, 9, 9},
                 "transform_param { crop_size: 9 scale: 0.5 mean_value: 3 mirror: true }");
    model = load("deploy.prototxt", NULL);
    assert_int_equal(predict(model, "c.png", b, problem), 0);
    assert_memory_equal(a, b, lockstep_model_output_size(model) * sizeof *a);
    assert_string_equal(warnings, "");
    lockstep_model_free(model);

    /* Another one is what counts, and said. */
    write_deploy((const int64_t[]){3, 9, 9},
                 "\n  transform_param { crop_size: 9 scale: 1 mean_value: 3 }");
    model = load("deploy.prototxt", NULL);
    assert_int_equal(predict(model, "c.png", b, problem), 0);
    for (size_t i = 0; i < lockstep_model_output_size(model); i++)
        assert_true(b[i] == 2 * a[i]);
    assert_non_null(
        strstr(warnings, "deploy.prototxt:3:3: mean, scale or standardize of layer 'data'"));
    lockstep_model_free(model);
}

/* A data layer of another scale or mean than the training's, and one that crops otherwise. */
static void another_data_layer_is_warned_of(void **state)
{
    (void)state;
    static const struct {
        const char *data;
        bool warned;
    } others[] = {{IMAGES("", "mean_file: 'mean.binaryproto' crop_size: 8 mirror: true"), false},
                  {IMAGES("", "mean_file: 'other.binaryproto' crop_size: 9"), true},
                  {IMAGES("", "crop_size: 9"), true},
                  {IMAGES("", "mean_file: 'mean.binaryproto' scale: 0.5 crop_size: 9"), true}};
    char text[3000];
    int64_t shape[3] = {3, 12, 14};
    float black[3 * 12 * 14] = {0};
    assert_int_equal(ls_mean_write("other.binaryproto", shape, black, NULL), 0);
    train(IMAGES("", "mean_file: 'mean.binaryproto' crop_size: 9"));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        int length = snprintf(text, sizeof text, "%s\n", others[i].data);
        snprintf(text + length, sizeof text - (size_t)length, layers, "");
        ls_test_write_text("other.prototxt", text);
        struct lockstep_model *model = load("other.prototxt", NULL);
        const char *found = strstr(warnings, "other.prototxt:2:2: mean, scale or standardize");
        assert_int_equal(found != NULL, others[i].warned);
        lockstep_model_free(model);
    }
}

/* ---- Orientation marks ----------------------------------------------------------------------- */

/* In training, by each path of predictions; once, with the number and the first. */
static void orientation_marks_are_warned_of(void **state)
{
    (void)state;
    static float out[NUMBERS_MAX];
    char problem[1000];
    uint8_t *bytes;
    size_t size = ls_turned_picture(12, 14, 6, false, &bytes);
    ls_test_write("turned.jpg", bytes, size);
    free(bytes);
    ls_test_write_text("turned.txt", "a.png 0\nturned.jpg 1\n");
    train(DATA("backend: IMAGES source: 'turned.txt'", ""));
    struct lockstep_model *model = load("train.prototxt", NULL);
    assert_non_null(strstr(warnings, "turned.txt: 1 of 2 pictures has an orientation mark"));
    assert_non_null(strstr(warnings, "(turned.jpg)"));
    lockstep_model_free(model);
    write_deploy((const int64_t[]){3, 12, 14}, "");
    model = load("deploy.prototxt", NULL);
    assert_int_equal(predict(model, "a.png", out, problem), 0);
    assert_string_equal(warnings, "");
    for (int i = 0; i < 2; i++)
        assert_int_equal(predict(model, "turned.jpg", out, problem), 0);
    const char *found = strstr(warnings, "1 of 1 input has an orientation mark (EXIF)");
    assert_non_null(found);
    assert_null(strstr(found + 1, "1 of 1"));
    lockstep_model_free(model);
}

/* ---- Export ---------------------------------------------------------------------------------- */

static bool file_has(const char *path, const void *bytes, size_t size)
{
    size_t length;
    char *text = ls_test_read(path, &length);
    bool found = false;
    for (size_t i = 0; i + size <= length && !found; i++)
        found = memcmp(text + i, bytes, size) == 0;
    free(text);
    return found;
}

static int export_to(const char *net, const char *path, char *problem)
{
    struct lockstep_error *error = lockstep_error_new();
    struct lockstep_onnx_options options;
    struct lockstep_model *model = load(net, NULL);
    lockstep_onnx_options_init(&options);
    options.preprocessing = 1;
    int status = lockstep_model_export_onnx(model, path, &options, error);
    snprintf(problem, 1000, "%s", status != 0 ? lockstep_error_text(error) : "");
    lockstep_model_free(model);
    lockstep_error_free(error);
    return status;
}

/* The centre of the mean picture is in the model, of both forms of the net. */
static void exports_have_the_mean_picture(void **state)
{
    (void)state;
    float mean[3 * 12 * 14];
    char problem[1000];
    for (int i = 0; i < 3 * 12 * 14; i++)
        mean[i] = (float)value_of(i + 5000) / 2;
    train(IMAGES("", "mean_file: 'mean.binaryproto' crop_size: 9"));
    write_deploy((const int64_t[]){3, 9, 9}, "");
    static const char *const forms[] = {"train.prototxt", "deploy.prototxt"};
    for (int f = 0; f < 2; f++) {
        if (export_to(forms[f], "m.onnx", problem) != 0)
            fail_msg("%s", problem);
        assert_true(file_has("m.onnx", &mean[1 * 14 + 2], 9 * sizeof *mean));
        assert_true(file_has("m.onnx", &mean[(2 * 12 + 9) * 14 + 2], 9 * sizeof *mean));
    }
    train(IMAGES("", "standardize: true"));
    write_deploy((const int64_t[]){3, 12, 14}, "");
    for (int f = 0; f < 2; f++) {
        assert_int_not_equal(export_to(forms[f], "m.onnx", problem), 0);
        assert_non_null(strstr(problem, "standardize"));
    }
}

/* Two records of 1 x 4 x 4 numbers. */
static void write_arrays(const char *name)
{
    char file[128 + 2 * 16 * 4] = "\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': "
                                  "False, 'shape': (2, 1, 4, 4), }";
    const size_t used = 10 + strlen(file + 10);
    memset(file + used, ' ', 127 - used);
    file[127] = '\n';
    ls_test_write(ls_test_path(name), file, sizeof file);
}

/* Training made nothing of pictures, so that an export cannot do it. */
static void arrays_say_nothing_of_pictures(void **state)
{
    (void)state;
    char problem[1000];
    write_arrays("x.npy");
    train("layer { name: 'in' type: 'Data' top: 'data'\n"
          "  data_param { batch_size: 2 backend: NPY source: 'x.npy' } }");
    write_deploy((const int64_t[]){1, 4, 4}, "");
    static const char *const forms[] = {"train.prototxt", "deploy.prototxt"};
    for (int f = 0; f < 2; f++) {
        assert_int_not_equal(export_to(forms[f], "m.onnx", problem), 0);
        assert_non_null(strstr(problem, "neither the weights nor the definition say"));
    }
}

/* ---- Pictures that are targets --------------------------------------------------------------- */

/* Whether a check finds a target that cannot be meant: a sigmoid loss takes `target`, of `numbers`
 * numbers. */
static void assert_target(const char *transform, const char *target, int numbers, bool odd)
{
    char text[3000];
    struct lockstep_error *error = lockstep_error_new();
    struct lockstep_check_options options;
    snprintf(text, sizeof text,
             "layer { name: 'in' type: 'Data' top: 'data' data_param { batch_size: 2\n"
             "  backend: IMAGES source: 'same.txt' } transform_param { %s } }\n"
             "layer { name: 'flat' type: 'Flatten' bottom: 'data' top: 'flat' }\n"
             "layer { name: 'cut' type: 'Slice' bottom: 'data' top: 'first' top: 'rest'\n"
             "  slice_param { slice_point: 1 } }\n"
             "layer { name: 's' type: 'InnerProduct' bottom: 'data' top: 's'\n"
             "  inner_product_param { num_output: %d } }\n"
             "layer { name: 'loss' type: 'SigmoidCrossEntropyLoss' bottom: 's' bottom: '%s' }\n",
             transform, numbers, target);
    ls_test_write_text("target.prototxt", text);
    lockstep_check_options_init(&options);
    options.callbacks.event = hear;
    warnings[0] = '\0';
    if (lockstep_check_model("target.prototxt", &options, error) != 0)
        fail_msg("%s", lockstep_error_text(error));
    lockstep_error_free(error);
    if ((strstr(warnings, "is outside of 0 to 1") != NULL) != odd)
        fail_msg("%s, %s: '%s'", transform, target, warnings);
}

static void targets_are_looked_at_as_the_loss_gets_them(void **state)
{
    (void)state;
    assert_target("", "data", 504, true);
    assert_target("", "flat", 504, true);
    assert_target("scale: 0.003922", "flat", 504, false);
    assert_target("scale: 0.0039 mean_value: [0, 100, 0]", "flat", 504, true);
    assert_target("scale: 0.0039 mean_value: [0, 100, 0]", "first", 168, false);
    assert_target("scale: 0.0039 mean_value: [0, 100, 0]", "rest", 336, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deploy_forms_do_what_data_layers_do),
        cmocka_unit_test(pictures_are_resized_as_samples_are),
        cmocka_unit_test(what_does_not_fit_is_named),
        cmocka_unit_test(a_mean_picture_that_is_not_there_is_asked_for),
        cmocka_unit_test(a_mean_picture_that_is_none_is_refused),
        cmocka_unit_test(what_is_not_known_is_a_warning),
        cmocka_unit_test(an_input_layer_transforms),
        cmocka_unit_test(another_data_layer_is_warned_of),
        cmocka_unit_test(orientation_marks_are_warned_of),
        cmocka_unit_test(exports_have_the_mean_picture),
        cmocka_unit_test(arrays_say_nothing_of_pictures),
        cmocka_unit_test(targets_are_looked_at_as_the_loss_gets_them),
    };
    return cmocka_run_group_tests(tests, prepare, NULL);
}
