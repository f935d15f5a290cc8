/* Layers that compute with bf16: what is rounded, and that nothing else is.
 *
 * The numbers of these nets are such that every sum is exact in fp32, so that a result does not
 * depend on the order of additions: it tells which numbers were rounded, and to what.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "ir/convert.h"
#include "lockstep/lockstep.h"
#include "support/support.h"

static const char *const devices[] = {"cpu", "reference"};
enum { DEVICES = sizeof devices / sizeof *devices };

static void write_weights(const char *path, const char *header, const float *weights, size_t count)
{
    char bytes[600];
    const size_t length = strlen(header);
    memset(bytes, 0, 8);
    bytes[0] = (char)(length & 0xff);
    bytes[1] = (char)(length >> 8);
    memcpy(bytes + 8, header, length);
    memcpy(bytes + 8 + length, weights, count * sizeof *weights);
    ls_test_write(path, bytes, 8 + length + count * sizeof *weights);
}

static void predict(const char *net, const char *device, const float *input, float *output,
                    size_t size)
{
    struct lockstep_error *error = lockstep_error_new();
    struct lockstep_model_options options;
    struct lockstep_model *model;
    ls_test_write_text(ls_test_path("net.prototxt"), net);
    lockstep_model_options_init(&options);
    options.workers = 1;
    options.device = device;
    if (lockstep_model_load(ls_test_path("net.prototxt"), ls_test_path("net.safetensors"), &options,
                            &model, error) != 0)
        fail_msg("%s", lockstep_error_text(error));
    assert_int_equal(lockstep_model_output_size(model), size);
    assert_int_equal(lockstep_model_predict(model, input, 1, output, error), 0);
    lockstep_model_free(model);
    lockstep_error_free(error);
}

/* ---- Products -------------------------------------------------------------------------------- */

#define INPUT "layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: [1, 2] } } }\n"
#define PRODUCT(precision)                                                                         \
    INPUT "layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'y' " precision                \
          " inner_product_param { num_output: 2 } }\n"

static const char product_header[] =
    "{\"ip.weight\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,16]},"
    "\"ip.bias\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[16,24]}}";

/* x becomes {1, 128}; the weights {{1, 2}, {3, 1}}, the biases stay what they are: the results are
 * 1 + 256 + 1.25 and 3 + 128 + 0.25, of which bf16 has neighbours that are 2 and 1 apart. */
static void products_round_their_operands_and_results(void **state)
{
    (void)state;
    const float x[] = {1 + 0x1p-10F, 128 + 0x1p-3F};
    const float weights[] = {1 - 0x1p-12F, 2 + 0x1p-9F, 3 + 0x1p-8F, 1 + 0x1p-9F, 1.25F, 0.25F};
    const float rounded[] = {258, 131};
    const float exact[] = {x[0] * weights[0] + x[1] * weights[1] + weights[4],
                           x[0] * weights[2] + x[1] * weights[3] + weights[5]};
    float y[2];
    write_weights(ls_test_path("net.safetensors"), product_header, weights, 6);
    for (int d = 0; d < DEVICES; d++) {
        predict(PRODUCT("precision: BF16"), devices[d], x, y, 2);
        assert_memory_equal(y, rounded, sizeof y);
        for (int k = 0; k < 2; k++) { /* FP32 is the default */
            predict(k == 0 ? PRODUCT("") : PRODUCT("precision: FP32"), devices[d], x, y, 2);
            for (int i = 0; i < 2; i++)
                assert_true(y[i] - exact[i] < 0x1p-14F && exact[i] - y[i] < 0x1p-14F);
        }
    }
}

/* A solver says it for all layers that do not say it themselves. */
static void layers_override_the_precision_of_the_solver(void **state)
{
    (void)state;
    const float x[] = {1 + 0x1p-10F, 128 + 0x1p-3F};
    const float weights[] = {1 - 0x1p-12F, 2 + 0x1p-9F, 3 + 0x1p-8F, 1 + 0x1p-9F, 1.25F, 0.25F};
    const float rounded[] = {258, 131};
    float y[2];
    write_weights(ls_test_path("net.safetensors"), product_header, weights, 6);
    predict("precision: BF16 base_lr: 1 lr_policy: 'fixed' net_param { " PRODUCT("") "}", "cpu", x,
            y, 2);
    assert_memory_equal(y, rounded, sizeof y);
    predict(
        "precision: BF16 base_lr: 1 lr_policy: 'fixed' net_param { " PRODUCT("precision: FP32") "}",
        "cpu", x, y, 2);
    assert_true(y[0] > 258.5F);
}

/* ---- Other layers ---------------------------------------------------------------------------- */

/* One after the other, each rounds its result once; what is not learned is not rounded, and neither
 * is the softmax. */
static void each_layer_rounds_its_result_once(void **state)
{
    (void)state;
    static const char net[] = INPUT
        "layer { name: 'p' type: 'Power' bottom: 'x' top: 'p' precision: BF16 "
        "  power_param { shift: 0.0078125 } }\n" /* 2^-7 */
        "layer { name: 'ip' type: 'InnerProduct' bottom: 'p' top: 'y' precision: BF16 "
        "  inner_product_param { num_output: 2 } }\n"
        "layer { name: 's' type: 'Scale' bottom: 'y' top: 's' precision: BF16 "
        "  param { lr_mult: 0 } scale_param { filler { type: 'constant' value: 1.0078125 } } }"
        "layer { name: 'f' type: 'Power' bottom: 's' top: 'f' precision: FP32 "
        "  power_param { shift: 0.00390625 } }\n";
    static const char header[] =
        "{\"ip.weight\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,16]},"
        "\"ip.bias\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[16,24]},"
        "\"s.scale\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[24,32]}}";
    /* p = {1 + 2^-7 + 2^-8, 1}, which is rounded for the product alone: {1 + 2^-6, 1}. y = {1 +
     * 2^-6 + 2, 1}: the first is a tie and becomes 3 + 2^-6 (which bf16 has). s = y (1 + 2^-7):
     * 3.0392... and 1 + 2^-7. f = s + 2^-8 is not rounded. */
    const float x[] = {1 + 0x1p-8F, 1 - 0x1p-7F};
    const float weights[] = {1, 2, 0, 1, 0, 0, 1 + 0x1p-7F, 1 + 0x1p-7F};
    float y[2], s0 = (3 + 0x1p-6F) * (1 + 0x1p-7F);
    uint16_t rounded;
    ls_dtype_convert(LS_F32, &s0, LS_BF16, &rounded, 1);
    ls_dtype_convert(LS_BF16, &rounded, LS_F32, &s0, 1);
    const float expected[] = {s0 + 0x1p-8F, 1 + 0x1p-7F + 0x1p-8F};
    write_weights(ls_test_path("net.safetensors"), header, weights, 8);
    for (int d = 0; d < DEVICES; d++) {
        predict(net, devices[d], x, y, 2);
        assert_memory_equal(y, expected, sizeof y);
    }
}

/* ---- TF32 ------------------------------------------------------------------------------------ */

/* Devices without are told by name, with the layer's place; what has no product does not mind. */
static void tf32_is_refused_where_no_card_is(void **state)
{
    (void)state;
    const float weights[] = {1, 2, 3, 4, 5, 6};
    struct lockstep_error *error = lockstep_error_new();
    struct lockstep_model_options options;
    struct lockstep_model *model;
    write_weights(ls_test_path("net.safetensors"), product_header, weights, 6);
    ls_test_write_text(ls_test_path("net.prototxt"), PRODUCT("precision: TF32"));
    for (int d = 0; d < DEVICES; d++) {
        char message[100];
        snprintf(message, sizeof message, "the device %s has no products in TF32", devices[d]);
        lockstep_model_options_init(&options);
        options.device = devices[d];
        assert_int_not_equal(lockstep_model_load(ls_test_path("net.prototxt"),
                                                 ls_test_path("net.safetensors"), &options, &model,
                                                 error),
                             0);
        const char *text = lockstep_error_text(error);
        if (strstr(text, message) == NULL || strstr(text, "net.prototxt:2:") == NULL ||
            strstr(text, "--gpu") == NULL)
            fail_msg("%s", text);
    }
    lockstep_error_free(error);
    const float x[] = {-1, 2}, expected[] = {0, 2};
    float y[2];
    predict(INPUT "layer { name: 'r' type: 'ReLU' bottom: 'x' top: 'r' precision: TF32 }\n", "cpu",
            x, y, 2);
    assert_memory_equal(y, expected, sizeof y);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_round_their_operands_and_results),
        cmocka_unit_test(layers_override_the_precision_of_the_solver),
        cmocka_unit_test(each_layer_rounds_its_result_once),
        cmocka_unit_test(tf32_is_refused_where_no_card_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
