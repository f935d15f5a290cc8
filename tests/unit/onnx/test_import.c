/* Import of ONNX models: which layers and weights they become, what is refused, and files that are
 * damaged. SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "support/onnx_models.h"

/* Conv, BatchNormalization, Relu, pooling, Gemm, Softmax. */
static struct model classifier(void)
{
    struct model m = begin(17);
    input(&m, "x", SHAPE(0, 3, 8, 8));
    weight(&m, "body.conv.weight", SHAPE(2, 3, 3, 3), 0);
    const char *const norm[] = {"bn.weight", "bn.bias", "bn.mean", "bn.var"};
    for (int i = 0; i < 4; i++)
        weight(&m, norm[i], SHAPE(2), (float)(i + 1));
    weight(&m, "fc.weight", SHAPE(2, 5), 0);
    weight(&m, "fc.bias", SHAPE(5), 10);
    node(&m, "Conv", "x body.conv.weight", "a");
    set_list(&m, "pads", 4, (int64_t[]){1, 1, 1, 1});
    set_list(&m, "strides", 2, (int64_t[]){2, 2});
    node(&m, "BatchNormalization", "a bn.weight bn.bias bn.mean bn.var", "b");
    node(&m, "Relu", "b", "c");
    node(&m, "GlobalAveragePool", "c", "d");
    node(&m, "Flatten", "d", "e");
    node(&m, "Gemm", "e fc.weight fc.bias", "f");
    node(&m, "Softmax", "f", "y");
    output(&m, "y");
    return m;
}

static void a_classifier_is_imported(void **state)
{
    (void)state;
    struct model m = classifier();
    struct ls_onnx_net net = import(&m);
    expect_text(&net, "convolution_param { num_output: 2 kernel_size: 3 stride: 2 pad: 1 "
                      "bias_term: false }");
    expect_text(&net, "name: \"body.conv\"");
    expect_text(&net, "batch_norm_param { scale_bias: true eps: 1e-05 "
                      "moving_average_fraction: 0.9 }");
    expect_text(&net, "inner_product_param { num_output: 5 }");
    assert_string_equal(net.scores, "fc");
    assert_true(net.softmax_last);
    assert_int_equal(net.output_shape.dim[1], 5);
    assert_int_equal(net.inputs[0].shape.dim[0], 1);
    /* [in, out] has become [out, in]. */
    const float *product = find_weight(&net, "fc.weight");
    assert_true(product[0] == 0 && product[1] == 5 && product[2] == 1);
    /* The averages go on as they would have: ten times, to be divided by ten. */
    assert_true(*find_weight(&net, "bn.factor") == 10);
    assert_true(find_weight(&net, "bn.mean")[1] == 40);
    assert_true(find_weight(&net, "bn.variance")[0] == 40);
    assert_true(find_weight(&net, "bn.scale")[0] == 1);
    ls_onnx_net_free(&net);
}

static void shapes_are_worked_out(void **state)
{
    (void)state;
    struct model m = begin(13);
    input(&m, "x", SHAPE(4, 6, 5));
    m.graph->initializer[m.graph->n_initializer++] =
        ls_onnx_new_integers(m.arena, "zero", (int64_t[]){0}, 1);
    m.graph->initializer[m.graph->n_initializer++] =
        ls_onnx_new_integers(m.arena, "rest", (int64_t[]){2, -1}, 2);
    node(&m, "Shape", "x", "s");
    node(&m, "Gather", "s zero", "n");
    node(&m, "Concat", "n rest", "to");
    set_integer(&m, "axis", 0);
    node(&m, "Reshape", "x to", "y");
    output(&m, "y");
    struct ls_onnx_net net = import(&m);
    expect_text(&net, "reshape_param { shape { dim: 0 dim: 2 dim: 15 } }");
    ls_onnx_net_free(&net);
}

static void parts_of_other_values_are_laid_over_them(void **state)
{
    (void)state;
    struct model m = begin(17);
    input(&m, "x", SHAPE(2, 3, 4, 4));
    weight(&m, "gamma", SHAPE(3, 1, 1), 1);
    number(&m, "half", 0.5F);
    node(&m, "GlobalAveragePool", "x", "g");
    node(&m, "Mul", "g x", "gated");
    node(&m, "Mul", "gated gamma", "scaled");
    node(&m, "Div", "scaled half", "y");
    output(&m, "y");
    struct ls_onnx_net net = import(&m);
    expect_text(&net, "shape { dim: 0 dim: 3 }");
    expect_text(&net, "scale_param { axis: 0 }");
    expect_text(&net, "scale_param { axis: 1 num_axes: 1 }");
    expect_text(&net, "power_param { power: 1 scale: 2 shift: 0 }");
    ls_onnx_net_free(&net);
}

/* x (1 + erf(x / sqrt 2)) / 2, in both orders that are written. */
static void gelu_is_found(void **state)
{
    (void)state;
    for (int order = 0; order < 2; order++) {
        struct model m = begin(17);
        input(&m, "x", SHAPE(2, 3));
        number(&m, "root", 1.41421356F);
        number(&m, "one", 1);
        number(&m, "half", 0.5F);
        node(&m, "Div", "x root", "a");
        node(&m, "Erf", "a", "b");
        node(&m, "Add", "b one", "c");
        node(&m, "Mul", order == 0 ? "x c" : "x half", "d");
        node(&m, "Mul", order == 0 ? "d half" : "d c", "y");
        output(&m, "y");
        struct ls_onnx_net net = import(&m);
        expect_text(&net, "type: \"GELU\"");
        assert_null(strstr(net.layers.data, "Eltwise"));
        ls_onnx_net_free(&net);
    }
    struct model m = begin(17); /* another number than the root of 2: no GELU, and no Erf */
    input(&m, "x", SHAPE(2, 3));
    number(&m, "root", 1.5F);
    number(&m, "one", 1);
    number(&m, "half", 0.5F);
    node(&m, "Div", "x root", "a");
    node(&m, "Erf", "a", "b");
    node(&m, "Add", "b one", "c");
    node(&m, "Mul", "x c", "d");
    node(&m, "Mul", "d half", "y");
    output(&m, "y");
    FAILS(&m, LOCKSTEP_DEFINITION, "Erf");
}

static void unknown_operators_are_told_together(void **state)
{
    (void)state;
    struct model m = begin(17);
    input(&m, "x", SHAPE(2, 3));
    node(&m, "NonMaxSuppression", "x", "a");
    node(&m, "If", "a", "b");
    m.node->name = ls_arena_copy_string(m.arena, "branch");
    node(&m, "Relu", "b", "c");
    node(&m, "Relu", "c", "y");
    m.node->domain = ls_arena_copy_string(m.arena, "com.example");
    output(&m, "y");
    FAILS(&m, LOCKSTEP_DEFINITION, "NonMaxSuppression", "number 0", "If", "'branch'",
          "com.example.Relu");
}

static void broken_graphs_are_refused(void **state)
{
    (void)state;
    struct model m = begin(17);
    input(&m, "x", SHAPE(2, 3));
    node(&m, "Add", "x b", "a"); /* a circle */
    node(&m, "Relu", "a", "b");
    output(&m, "b");
    FAILS(&m, LOCKSTEP_WEIGHTS, "reads 'b', which nothing before it makes");
    m = begin(17);
    input(&m, "x", SHAPE(2, 3));
    node(&m, "Relu", "x", "x");
    output(&m, "x");
    FAILS(&m, LOCKSTEP_WEIGHTS, "'x' is made twice");
    m = begin(17);
    input(&m, "x", SHAPE(2, -3));
    node(&m, "Relu", "x", "y");
    output(&m, "y");
    FAILS(&m, LOCKSTEP_DEFINITION, "one below 1");
    m = begin(17);
    input(&m, "x", SHAPE(2, INT64_MAX / 2, INT64_MAX / 2));
    node(&m, "Relu", "x", "y");
    output(&m, "y");
    FAILS(&m, LOCKSTEP_DEFINITION, "too large");
    m = begin(17);
    input(&m, "x", SHAPE(2, 0));
    node(&m, "Relu", "x", "y");
    output(&m, "y");
    FAILS(&m, LOCKSTEP_DEFINITION, "leaves axis 1 of its input 'x' open");
    m = begin(99);
    node(&m, "Relu", "x", "y");
    FAILS(&m, LOCKSTEP_DEFINITION, "version 99");
    m = begin(17);
    input(&m, "x", SHAPE(2, 3, 4, 4));
    weight(&m, "w", SHAPE(2, 5, 3, 3), 0);
    node(&m, "Conv", "x w", "y");
    output(&m, "y");
    FAILS(&m, LOCKSTEP_DEFINITION, "do not fit 3 channels");
    m = begin(17);
    m.graph->initializer[m.graph->n_initializer++] =
        ls_onnx_new_integers(m.arena, "s", (int64_t[]){1 << 20, 1 << 19}, 2);
    node(&m, "ConstantOfShape", "s", "y");
    output(&m, "y");
    FAILS(&m, LOCKSTEP_DEFINITION, "2 GiB");
}

/* Whatever a file says, the import says no or yes. */
static void damaged_files_are_survived(void **state)
{
    (void)state;
    struct model m = classifier();
    const char *path = ls_test_path("whole.onnx"), *other = ls_test_path("damaged.onnx");
    struct ls_error *error = calloc(1, sizeof *error);
    size_t size, refused = 0;
    write_model(&m, path);
    char *bytes = ls_test_read(path, &size);
    for (size_t i = 0; i < size; i += 2 + i % 5) {
        struct ls_onnx_net net;
        ls_error_clear(error);
        ls_test_write(other, bytes, i);
        refused += ls_onnx_import(other, &(struct ls_onnx_import){0}, &net, error) != 0;
        ls_onnx_net_free(&net);
        bytes[i] ^= (char)(1 << i % 8);
        ls_test_write(other, bytes, size);
        ls_error_clear(error);
        (void)ls_onnx_import(other, &(struct ls_onnx_import){0}, &net, error);
        ls_onnx_net_free(&net);
        bytes[i] ^= (char)(1 << i % 8);
    }
    assert_true(refused > size / 4);
    free(bytes);
    free(error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_classifier_is_imported),
        cmocka_unit_test(shapes_are_worked_out),
        cmocka_unit_test(parts_of_other_values_are_laid_over_them),
        cmocka_unit_test(gelu_is_found),
        cmocka_unit_test(unknown_operators_are_told_together),
        cmocka_unit_test(broken_graphs_are_refused),
        cmocka_unit_test(damaged_files_are_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
