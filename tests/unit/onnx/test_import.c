/* Import of ONNX models: which layers and weights they become, what is refused, and files that are
 * damaged. SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
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

/* What a value_info of torch.export says of an initializer. */
static void say(struct model *m, const char *name, const char *key, const char *value)
{
    Onnx__ValueInfoProto *info = message(m, &onnx__value_info_proto__descriptor);
    Onnx__StringStringEntryProto *entry = message(m, &onnx__string_string_entry_proto__descriptor);
    if (m->graph->value_info == NULL)
        m->graph->value_info =
            ls_arena_alloc(m->arena, TEST_MODEL_MOST, sizeof *m->graph->value_info);
    info->name = ls_arena_copy_string(m->arena, name);
    entry->key = ls_arena_copy_string(m->arena, key);
    entry->value = ls_arena_copy_string(m->arena, value);
    info->metadata_props = ls_arena_alloc(m->arena, 1, sizeof *info->metadata_props);
    info->metadata_props[info->n_metadata_props++] = entry;
    m->graph->value_info[m->graph->n_value_info++] = info;
}
#define FOLDED "pkg.onnxscript.optimizer.folded_from"

/* Numbers that are all one. */
static void fill(struct model *m, const char *name, int64_t count, float value)
{
    float *numbers = ls_arena_alloc(m->arena, (size_t)count, sizeof *numbers);
    for (int64_t i = 0; i < count; i++)
        numbers[i] = value;
    m->graph->initializer[m->graph->n_initializer++] =
        ls_onnx_new_floats(m->arena, name, SHAPE(count), numbers);
}

static void constant_node(struct model *m, const char *name, int64_t count, float value)
{
    node(m, "Constant", "", name);
    fill(m, name, count, value);
    attribute(m, "value")->t = m->graph->initializer[--m->graph->n_initializer];
}

#define FROZEN "  param { lr_mult: 0 decay_mult: 0 }\n"

/* Where exporters write ones and zeros for a norm without factors: by Constant nodes, and as
 * initializers. Weights that are ones and zeros learn. */
static void constants_of_norms_do_not_learn(void **state)
{
    (void)state;
    struct model m = begin(17);
    input(&m, "x", SHAPE(2, 3, 4, 4));
    weight(&m, "conv.weight", SHAPE(3, 3, 1, 1), 1);
    fill(&m, "one", 3, 1);
    fill(&m, "zero", 3, 0);
    fill(&m, "a.weight", 3, 1);
    fill(&m, "a.bias", 3, 0);
    fill(&m, "mean", 3, 0);
    fill(&m, "variance", 3, 1);
    fill(&m, "b.weight", 4, 1);
    node(&m, "Conv", "x conv.weight", "1");
    constant_node(&m, "c1", 3, 1);
    constant_node(&m, "c0", 3, 0);
    node(&m, "InstanceNormalization", "1 c1 c0", "2");
    node(&m, "InstanceNormalization", "2 a.weight a.bias", "3");
    node(&m, "BatchNormalization", "3 one zero mean variance", "4");
    node(&m, "LayerNormalization", "4 b.weight", "y"); /* has no bias */
    output(&m, "y");
    struct ls_onnx_net net = import(&m);
    expect_text(&net, "type: \"InstanceNorm\"\n  bottom: \"conv\"\n  top: "
                      "\"InstanceNormalization3\"\n  instance_norm_param {  affine: true eps: "
                      "1e-05 }\n" FROZEN FROZEN "}");
    expect_text(&net, "instance_norm_param {  affine: true eps: 1e-05 }\n}");
    expect_text(
        &net,
        "moving_average_fraction: 0.9 }\n  param { }\n  param { }\n  param { }\n" FROZEN FROZEN
        "}");
    expect_text(&net, "layer_norm_param { axis: 3 eps: 1e-05 }\n  param { }\n" FROZEN "}");
    assert_non_null(strstr(net.notes.data, "2 layers have constants of the model"));
    ls_onnx_net_free(&net);
}

/* What the newer exporter of torch says of initializers. */
static void metadata_tell_weights_from_constants(void **state)
{
    (void)state;
    struct model m = begin(20);
    input(&m, "x", SHAPE(2, 3, 4, 4));
    weight(&m, "kernel", SHAPE(3, 1, 2, 2), 1);
    fill(&m, "val_1", 3, 1); /* of ones that the code makes */
    fill(&m, "val_2", 3, 0);
    fill(&m, "val_3", 3, 1); /* parameters under another shape */
    fill(&m, "val_4", 3, 0);
    fill(&m, "val_5", 1, 0.25F);
    const char *const kind = "pkg.torch.export.graph_signature.InputSpec.kind";
    say(&m, "kernel", kind, "BUFFER");
    say(&m, "val_1", FOLDED, "['val_0', 'a']");
    say(&m, "val_2", FOLDED, "['val_0']");
    say(&m, "val_3", FOLDED, "['weight', 'val_0']");
    say(&m, "val_4", FOLDED, "['norm.bias', 'val_0']");
    say(&m, "val_5", FOLDED, "['act.weight']");
    node(&m, "Conv", "x kernel", "a");
    set_integer(&m, "group", 3);
    node(&m, "InstanceNormalization", "a val_1 val_2", "b");
    node(&m, "InstanceNormalization", "b val_3 val_4", "c");
    node(&m, "PRelu", "c val_5", "y");
    output(&m, "y");
    struct ls_onnx_net net = import(&m);
    expect_text(&net, "group: 3 bias_term: false }\n" FROZEN "}");
    expect_text(&net, "eps: 1e-05 }\n" FROZEN FROZEN "}");
    expect_text(&net, "eps: 1e-05 }\n}");
    expect_text(&net, "channel_shared: true }\n}");
    ls_onnx_net_free(&net);
}

/* A Constant node as weights does not learn, unless the model has no others. */
static void constant_nodes_as_weights(void **state)
{
    (void)state;
    for (int others = 0; others < 2; others++) {
        struct model m = begin(17);
        input(&m, "x", SHAPE(2, 3));
        if (others)
            weight(&m, "w", SHAPE(3, 3), 1);
        constant_node(&m, "c", 9, 2);
        INTEGERS(&m, "shape", 3, 3);
        node(&m, "Reshape", "c shape", "k");
        node(&m, "MatMul", others ? "x w" : "x k", "a");
        node(&m, "MatMul", "a k", "y");
        output(&m, "y");
        struct ls_onnx_net net = import(&m);
        assert_int_equal(strstr(net.layers.data, FROZEN) != NULL, others);
        assert_int_equal(net.notes.length > 0 &&
                             strstr(net.notes.data, "a layer has constants of the model") != NULL,
                         others);
        ls_onnx_net_free(&net);
    }
}

/* Two products with the same weights, and what the file says of them. */
static struct model twice(const char *first, const char *second)
{
    struct model m = begin(17);
    input(&m, "x", SHAPE(2, 3));
    weight(&m, "a.weight", SHAPE(3, 3), 1);
    fill(&m, "a.bias", 3, 0);
    node(&m, "Gemm", "x a.weight a.bias", "b");
    m.node->name = ls_arena_copy_string(m.arena, first);
    node(&m, "Gemm", "b a.weight a.bias", "c");
    m.node->name = ls_arena_copy_string(m.arena, second);
    return m;
}

static void weights_that_are_read_twice(void **state)
{
    (void)state;
    struct model m = twice("/a/Gemm", "/a_1/Gemm"); /* torch's older exporter: one module */
    output(&m, "c");
    struct ls_onnx_net net = import(&m);
    const char *const both = "  param { name: \"a.weight\" }\n  param { name: \"a.bias\" }\n}";
    const char *at = strstr(net.layers.data, both);
    assert_non_null(at);
    assert_non_null(strstr(at + 1, both));
    assert_int_equal(net.notes.length, 0);
    ls_onnx_net_free(&net);
    for (int tie = 0; tie < 2; tie++) { /* another program's: the user decides */
        struct ls_error *error = calloc(1, sizeof *error);
        const char *path = ls_test_path("twice.onnx");
        m = twice("one", "two");
        fill(&m, "n.weight", 3, 1); /* norms that have just begun are equal, and not one */
        fill(&m, "n.bias", 3, 0);
        node(&m, "LayerNormalization", "c n.weight n.bias", "d");
        node(&m, "LayerNormalization", "d n.weight n.bias", "e");
        output(&m, "e");
        write_model(&m, path);
        assert_int_equal(
            ls_onnx_import(path, &(struct ls_onnx_import){.tie = tie != 0}, &net, error), 0);
        at = strstr(net.layers.data, both);
        assert_int_equal(at != NULL && strstr(at + 1, both) != NULL, tie);
        assert_non_null(strstr(net.notes.data, tie ? "a layer begins with the weights of another"
                                                   : "2 layers begin with the weights of others"));
        ls_onnx_net_free(&net);
        free(error);
    }
}

/* The older exporter of torch writes equal numbers once, and says so by an Identity. */
static void an_identity_is_another_parameter(void **state)
{
    (void)state;
    struct model m = begin(17);
    input(&m, "x", SHAPE(2, 3));
    weight(&m, "a.weight", SHAPE(3, 3), 1);
    node(&m, "Identity", "a.weight", "b.weight");
    node(&m, "Gemm", "x a.weight", "b");
    m.node->name = ls_arena_copy_string(m.arena, "/a/Gemm");
    node(&m, "Gemm", "b b.weight", "c");
    m.node->name = ls_arena_copy_string(m.arena, "/b/Gemm");
    output(&m, "c");
    struct ls_onnx_net net = import(&m);
    assert_null(strstr(net.layers.data, "  param {"));
    expect_text(&net, "name: \"b\"");
    assert_int_equal(net.notes.length, 0);
    ls_onnx_net_free(&net);
}

static void folded_batch_norms_are_told(void **state)
{
    (void)state;
    static const struct {
        const char *node, *bias, *behind;
        bool told;
    } cases[] = {
        {"/c/Conv", "onnx::Conv_1", "Relu", true},       {"/c/Conv", "c.bias", "Relu", false},
        {"node_Conv_1", "c.bias", "Relu", true},         {"conv", "c.bias", "Softmax", false},
        {"conv", "c.bias", "BatchNormalization", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const bool norm = strcmp(cases[i].behind, "BatchNormalization") == 0;
        char inputs[80];
        struct model m = begin(17);
        input(&m, "x", SHAPE(2, 3, 4, 4));
        weight(&m, "w", SHAPE(3, 3, 1, 1), 1);
        weight(&m, cases[i].bias, SHAPE(3), 1);
        snprintf(inputs, sizeof inputs, "x w %s", cases[i].bias);
        node(&m, "Conv", inputs, "a");
        m.node->name = ls_arena_copy_string(m.arena, cases[i].node);
        node(&m, cases[i].behind, norm ? "a c.bias c.bias c.bias c.bias" : "a", "y");
        output(&m, "y");
        struct ls_onnx_net net = import(&m);
        assert_int_equal(net.notes.length > 0 && strstr(net.notes.data, "no BatchNorm") != NULL,
                         cases[i].told);
        ls_onnx_net_free(&net);
    }
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
        cmocka_unit_test(constants_of_norms_do_not_learn),
        cmocka_unit_test(metadata_tell_weights_from_constants),
        cmocka_unit_test(constant_nodes_as_weights),
        cmocka_unit_test(weights_that_are_read_twice),
        cmocka_unit_test(an_identity_is_another_parameter),
        cmocka_unit_test(folded_batch_norms_are_told),
        cmocka_unit_test(damaged_files_are_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
