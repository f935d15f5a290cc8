/* Predictions that are the input itself under another shape: they lie where the input lies.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "lockstep/lockstep.h"
#include "support/support.h"

enum { SAMPLES = 3, SIZE = 12 };

/* The convolution, which nobody reads, is there to have weights. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_view_of_input)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
