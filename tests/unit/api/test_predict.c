/* Predictions that are the input itself in another shape, in the input's memory; and failures of
 * oneDNN.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <dnnl.h>

#include "lockstep/lockstep.h"
#include "support/npy_files.h"
#include "support/support.h"

enum { SAMPLES = 3, SIZE = 12 };

/* The convolution, whose output is not read, is there to have weights. */
static const char net[] =
    "layer { name: 'in' type: 'Input' top: 'data' input_param { shape { dim: [1, 3, 2, 2] } } }\n"
    "layer { name: 'c' type: 'Convolution' bottom: 'data' top: 'c'\n"
    "  convolution_param { num_output: 1 kernel_size: 1 bias_term: false } }\n"
    "layer { name: 's' type: 'Silence' bottom: 'c' }\n"
    "layer { name: 'flat' type: 'Flatten' bottom: 'data' top: 'flat' }\n";

static void write_weights(const char *path)
{
    static const char header[] =
        "{\"c.weight\":{\"dtype\":\"F32\",\"shape\":[1,3,1,1],\"data_offsets\":[0,12]}}";
    char bytes[8 + sizeof header - 1 + 12] = {(char)(sizeof header - 1)};
    memcpy(bytes + 8, header, sizeof header - 1);
    ls_test_write(path, bytes, sizeof bytes);
}

static void test_view_of_input(void **state)
{
    (void)state;
    struct lockstep_error *error = lockstep_error_new();
    struct lockstep_model_options options;
    struct lockstep_model *model;
    float input[SAMPLES * SIZE], output[SAMPLES * SIZE];
    ls_test_write_text(ls_test_path("net.prototxt"), net);
    write_weights(ls_test_path("net.safetensors"));
    lockstep_model_options_init(&options);
    options.workers = 2;
    if (lockstep_model_load(ls_test_path("net.prototxt"), ls_test_path("net.safetensors"), &options,
                            &model, error) != 0)
        fail_msg("%s", lockstep_error_text(error));
    assert_int_equal(lockstep_model_output_size(model), SIZE);
    for (int i = 0; i < SAMPLES * SIZE; i++)
        input[i] = (float)i + 0.5F;
    assert_int_equal(lockstep_model_predict(model, input, SAMPLES, output, error), 0);
    assert_memory_equal(output, input, sizeof input);
    lockstep_model_free(model);
    lockstep_error_free(error);
}

/* A model of `layers` behind input 'data', and a convolution of it to have weights. */
static struct lockstep_model *load_model(const char *input, const char *layers)
{
    char text[1500];
    struct lockstep_error *error = lockstep_error_new();
    struct lockstep_model_options options;
    struct lockstep_model *model;
    snprintf(text, sizeof text,
             "layer { name: 'in' type: 'Input' top: 'data' input_param { %s } }\n"
             "layer { name: 'pic' type: 'Input' top: 'pic' input_param { shape { dim: [2, 3, 1, 1] "
             "} } }\n"
             "layer { name: 'c' type: 'Convolution' bottom: 'pic' top: 'c'\n"
             "  convolution_param { num_output: 1 kernel_size: 1 bias_term: false } }\n"
             "layer { name: 's' type: 'Silence' bottom: 'c' }\n%s",
             input, layers);
    ls_test_write_text(ls_test_path("rows.prototxt"), text);
    write_weights(ls_test_path("net.safetensors"));
    lockstep_model_options_init(&options);
    options.workers = 2;
    if (lockstep_model_load(ls_test_path("rows.prototxt"), ls_test_path("net.safetensors"),
                            &options, &model, error) != 0)
        fail_msg("%s", lockstep_error_text(error));
    lockstep_error_free(error);
    return model;
}

/* Samples along any axis, and of several rows: what comes out is all of a sample, in its order. */
static void all_rows_of_a_sample_are_predicted(void **state)
{
    (void)state;
    static const char *const nets[][2] = {
        {"shape { dim: [3, 2, 4] } sample_axis: 1",
         "layer { name: 'y' type: 'Power' bottom: 'data' top: 'y' power_param { scale: 2 } }"},
        {"shape { dim: [2, 3, 4] }",
         "layer { name: 'r' type: 'Reshape' bottom: 'data' top: 'r' "
         "reshape_param { shape { dim: [6, 4] } } }\n"
         "layer { name: 'y' type: 'Power' bottom: 'r' top: 'y' power_param { scale: 2 } }"},
        {"shape { dim: [3, 4, 2] } sample_axis: 2",
         "layer { name: 'y' type: 'Power' bottom: 'data' top: 'y' power_param { scale: 2 } }"},
    };
    float input[SAMPLES * SIZE], output[SAMPLES * SIZE];
    for (size_t n = 0; n < sizeof nets / sizeof *nets; n++) {
        struct lockstep_model *model = load_model(nets[n][0], nets[n][1]);
        int64_t shape[3];
        lockstep_model_input_shape(model, shape);
        assert_true(shape[0] == 3 && shape[1] == 4 && shape[2] == 1);
        assert_int_equal(lockstep_model_output_size(model), SIZE);
        assert_int_equal(lockstep_model_output_positions(model), 1);
        for (int i = 0; i < SAMPLES * SIZE; i++) {
            input[i] = (float)i + 0.5F;
            output[i] = -1;
        }
        assert_int_equal(lockstep_model_predict(model, input, SAMPLES, output, NULL), 0);
        for (int i = 0; i < SAMPLES * SIZE; i++)
            assert_true(output[i] == 2 * input[i]);
        lockstep_model_free(model);
    }
}

/* A prediction takes one input: one that depends on another is refused, and not made of zeros. */
static void test_two_inputs(void **state)
{
    (void)state;
    struct lockstep_error *error = lockstep_error_new();
    struct lockstep_model_options options;
    float input[12] = {0}, output[12];
    lockstep_model_options_init(&options);
    write_weights(ls_test_path("net.safetensors"));
    for (int joined = 0; joined < 2; joined++) {
        struct lockstep_model *model;
        char text[1024];
        snprintf(text, sizeof text,
                 "layer { name: 'in' type: 'Input' top: 'data' top: 'more' input_param { shape { "
                 "dim: [1, 3, 2, 2] } } }\n"
                 "layer { name: 'c' type: 'Convolution' bottom: 'data' top: 'c'\n"
                 "  convolution_param { num_output: 1 kernel_size: 1 bias_term: false } }\n"
                 "layer { name: 's' type: 'Silence' bottom: 'c' %s }\n"
                 "layer { name: 'sum' type: 'Eltwise' bottom: 'data' bottom: '%s' top: 'sum' }\n",
                 joined ? "" : "bottom: 'more'", joined ? "more" : "data");
        ls_test_write_text(ls_test_path("two.prototxt"), text);
        if (lockstep_model_load(ls_test_path("two.prototxt"), ls_test_path("net.safetensors"),
                                &options, &model, error) != 0)
            fail_msg("%s", lockstep_error_text(error));
        int status = lockstep_model_predict(model, input, 1, output, error);
        assert_int_equal(status, joined ? LOCKSTEP_DEFINITION : 0);
        if (joined && strstr(lockstep_error_text(error), "also depend on 'more'") == NULL)
            fail_msg("%s", lockstep_error_text(error));
        lockstep_model_free(model);
    }
    lockstep_error_free(error);
}

/* Nor are they made from an input of whole numbers, which has other bits than the caller's. */
static void input_of_another_type_is_refused(void **state)
{
    (void)state;
    static const int32_t numbers[SIZE];
    struct lockstep_error *error = lockstep_error_new();
    struct lockstep_model_options options;
    struct lockstep_model *model;
    const float input[3] = {0};
    float output[SIZE];
    char text[1024];
    lockstep_model_options_init(&options);
    write_npy(ls_test_path("whole.npy"), "<i4", "(4, 3)", numbers, sizeof numbers);
    write_weights(ls_test_path("net.safetensors"));
    snprintf(text, sizeof text,
             "layer { name: 'in' type: 'Data' top: 'whole' data_param {\n"
             "  backend: NPY source: '%s' batch_size: 2 tensor { type: I32 } } }\n"
             "layer { name: 'pic' type: 'DummyData' top: 'pic' dummy_data_param {\n"
             "  shape { dim: [2, 3, 1, 1] } } }\n"
             "layer { name: 'c' type: 'Convolution' bottom: 'pic' top: 'c'\n"
             "  convolution_param { num_output: 1 kernel_size: 1 bias_term: false } }\n"
             "layer { name: 's' type: 'Silence' bottom: 'whole' }\n",
             ls_test_path("whole.npy"));
    ls_test_write_text(ls_test_path("whole.prototxt"), text);
    if (lockstep_model_load(ls_test_path("whole.prototxt"), ls_test_path("net.safetensors"),
                            &options, &model, error) != 0)
        fail_msg("%s", lockstep_error_text(error));
    assert_int_equal(lockstep_model_predict(model, input, 1, output, error), LOCKSTEP_DEFINITION);
    if (strstr(lockstep_error_text(error), "'whole' has elements of type I32") == NULL)
        fail_msg("%s", lockstep_error_text(error));
    lockstep_model_free(model);
    lockstep_error_free(error);
}

/* ---- oneDNN fails ---------------------------------------------------------------------------- */

static _Atomic bool dnnl_fails;
static _Atomic int dnnl_calls;

/* In the place of oneDNN's own, which has the same name. */
dnnl_status_t dnnl_primitive_execute(const_dnnl_primitive_t primitive, dnnl_stream_t stream,
                                     int count, const dnnl_exec_arg_t *arguments)
{
    dnnl_status_t (*execute)(const_dnnl_primitive_t, dnnl_stream_t, int, const dnnl_exec_arg_t *);
    *(void **)&execute = dlsym(RTLD_NEXT, "dnnl_primitive_execute");
    assert_non_null(execute);
    dnnl_calls++;
    return dnnl_fails ? dnnl_out_of_memory : execute(primitive, stream, count, arguments);
}

enum { PIXELS = 32 * 32, NUMBERS = 32 * PIXELS, WEIGHTS = 32 * 32 * 9 };

static void write_large(void)
{
    static char bytes[8 + 200 + WEIGHTS * sizeof(float)];
    char header[200];
    int length = snprintf(header, sizeof header,
                          "{\"c.weight\":{\"dtype\":\"F32\",\"shape\":[32,32,3,3],"
                          "\"data_offsets\":[0,%zu]}}",
                          WEIGHTS * sizeof(float));
    memset(bytes, 0, sizeof bytes);
    bytes[0] = (char)length;
    memcpy(bytes + 8, header, (size_t)length);
    ls_test_write(ls_test_path("large.safetensors"), bytes,
                  8 + (size_t)length + WEIGHTS * sizeof(float));
    ls_test_write_text(ls_test_path("large.prototxt"),
                       "layer { name: 'in' type: 'Input' top: 'data'\n"
                       "  input_param { shape { dim: [1, 32, 32, 32] } } }\n"
                       "layer { name: 'c' type: 'Convolution' bottom: 'data' top: 'c'\n"
                       "  convolution_param { num_output: 32 kernel_size: 3 pad: 1\n"
                       "    bias_term: false algorithm: DIRECT } }\n");
}

/* A failure is reported once, whether the caller asks for the reason or not, and forgotten by
 * the next call. */
static void test_failing_library(void **state)
{
    (void)state;
    static float input[2 * NUMBERS], output[2 * NUMBERS];
    struct lockstep_error *error = lockstep_error_new();
    struct lockstep_model_options options;
    struct lockstep_model *model;
    write_large();
    lockstep_model_options_init(&options);
    options.workers = 1;
    if (lockstep_model_load(ls_test_path("large.prototxt"), ls_test_path("large.safetensors"),
                            &options, &model, error) != 0)
        fail_msg("%s", lockstep_error_text(error));
    assert_int_equal(lockstep_model_output_size(model), NUMBERS);
    dnnl_calls = 0;
    assert_int_equal(lockstep_model_predict(model, input, 2, output, error), 0);
    bool library = dnnl_calls > 0;
    dnnl_fails = true;
    for (int i = 0; i < 3 && library; i++) {
        assert_int_equal(lockstep_model_predict(model, input, 2, output, i == 1 ? NULL : error),
                         LOCKSTEP_RESOURCE);
        const char *text = lockstep_error_text(error), *first = strstr(text, "could not carry out");
        assert_non_null(first);
        assert_null(strstr(first + 1, "could not carry out"));
    }
    dnnl_fails = false;
    assert_int_equal(lockstep_model_predict(model, input, 2, output, error), 0);
    lockstep_model_free(model);
    lockstep_error_free(error);
    if (!library)
        skip(); /* no kernel of oneDNN was chosen here */
}

/* A picture and regions of it: the inputs have different rows, and what is predicted is of regions.
 * Two batches of one picture and two regions each. */
static void regions_of_pictures_are_predicted_from_two_inputs(void **state)
{
    (void)state;
    enum { BATCHES = 2, AREA = 9, REGIONS = 2 };
    static const char text[] =
        "layer { name: 'in' type: 'Input' top: 'picture' top: 'regions' input_param {\n"
        "  shape { dim: [1, 1, 3, 3] } shape { dim: [2, 5] } } }\n"
        "layer { name: 'x3' type: 'Tile' bottom: 'picture' top: 'x3' tile_param { tiles: 3 } }\n"
        "layer { name: 'c' type: 'Convolution' bottom: 'x3' top: 'c'\n"
        "  convolution_param { num_output: 1 kernel_size: 1 bias_term: false } }\n"
        "layer { name: 's' type: 'Silence' bottom: 'c' }\n"
        "layer { name: 'y' type: 'ROIPooling' bottom: 'picture' bottom: 'regions' top: 'y'\n"
        "  roi_pooling_param { pooled_h: 1 pooled_w: 2 spatial_scale: 0.5 } }\n";
    struct lockstep_error *error = lockstep_error_new();
    struct lockstep_model_options options;
    struct lockstep_model *model;
    const float picture[BATCHES * AREA] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 1, 1, 1, 8, 1, 1, 1, 7};
    const float regions[BATCHES * REGIONS * 5] = {0, 0, 0, 4, 4, 0, 2, 0, 4, 2,
                                                  0, 0, 2, 2, 4, 0, 0, 0, 0, 0};
    const float wanted[BATCHES * REGIONS * 2] = {8, 9, 5, 6, 1, 8, 9, 9};
    float output[BATCHES * REGIONS * 2];
    const float *inputs[2] = {picture, regions};
    ls_test_write_text(ls_test_path("regions.prototxt"), text);
    write_weights(ls_test_path("net.safetensors"));
    lockstep_model_options_init(&options);
    options.workers = 2;
    if (lockstep_model_load(ls_test_path("regions.prototxt"), ls_test_path("net.safetensors"),
                            &options, &model, error) != 0)
        fail_msg("%s", lockstep_error_text(error));
    assert_int_equal(lockstep_model_input_count(model), 2);
    assert_string_equal(lockstep_model_input_name(model, 1), "regions");
    assert_null(lockstep_model_input_name(model, 2));
    assert_int_equal(lockstep_model_input_size(model, 0), AREA);
    assert_int_equal(lockstep_model_input_size(model, 1), REGIONS * 5);
    assert_int_equal(lockstep_model_output_size(model), REGIONS * 2);
    assert_int_equal(lockstep_model_predict_inputs(model, inputs, BATCHES, output, error), 0);
    assert_memory_equal(output, wanted, sizeof wanted);
    assert_int_equal(lockstep_model_predict(model, picture, 1, output, error), LOCKSTEP_DEFINITION);
    assert_non_null(strstr(lockstep_error_text(error), "lockstep_model_predict_inputs"));
    inputs[1] = NULL;
    assert_int_equal(lockstep_model_predict_inputs(model, inputs, 1, output, error),
                     LOCKSTEP_USAGE);
    assert_non_null(strstr(lockstep_error_text(error), "input 'regions' is missing"));
    lockstep_model_free(model);
    lockstep_error_free(error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(regions_of_pictures_are_predicted_from_two_inputs),
        cmocka_unit_test(test_view_of_input),
        cmocka_unit_test(all_rows_of_a_sample_are_predicted),
        cmocka_unit_test(test_two_inputs),
        cmocka_unit_test(input_of_another_type_is_refused),
        cmocka_unit_test(test_failing_library)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
