/* Fields of forks of Caffe: read over with one warning, taken under another name, or refused with
 * what to write instead; and unknown fields told in groups.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <string.h>

#include "schema/binary.h"
#include "schema/forks.h"
#include "schema/frameworks.h"
#include "schema/text_format.h"
#include "support/support.h"

#define NET    (&lockstep__net_parameter__descriptor)
#define SOLVER (&lockstep__solver_parameter__descriptor)

/* Reads `text` and holds its problems, its warning, and what was read against what is wanted. */
static void expect(const ProtobufCMessageDescriptor *type, const char *text, const char *problems,
                   const char *warning, const char *read)
{
    struct ls_error error = {0};
    struct ls_definition *definition = NULL;
    char found[4096];
    struct ls_text canonical = {0};
    int status = ls_text_read_partly("f", text, strlen(text), type, &definition, &error);
    ls_error_format(&error, found, sizeof found);
    assert_string_equal(found, problems);
    assert_int_equal(status, problems[0] == '\0' ? 0 : LOCKSTEP_DEFINITION);
    assert_non_null(definition);
    assert_string_equal(definition->warning != NULL ? definition->warning : "", warning);
    if (read != NULL) {
        ls_text_write(definition->message, &canonical);
        assert_string_equal(canonical.data, read);
    }
    ls_text_free(&canonical);
    ls_definition_free(definition);
}

static void one_field_in_many_layers(void **state)
{
    (void)state;
    expect(NET,
           "layer { name: 'a' zap { x: 1 } type: 'ReLU' }\n"
           "layer { zap { x: [2] } zap { } }\nlayer { type: 'TanH' convolution_param { zap: 3 } }",
           "f:1:19: unknown field 'zap' in LayerParameter of 2 layers, the first 'a' (ReLU)\n"
           "f:3:42: unknown field 'zap' in ConvolutionParameter of layer '' (TanH)",
           "", NULL);
    expect(NET, "layers { name: 'a' zap: 1 type: RELU }\nlayers { name: 'b' zap: 1 }",
           "f:1:20: unknown field 'zap' in V1LayerParameter of 2 layers, the first 'a' (RELU)", "",
           NULL);
    expect(SOLVER, "zap: 1 zap: 2", "f:1:1: unknown field 'zap' in SolverParameter, 2 times", "",
           NULL);
}

static void fields_that_change_nothing(void **state)
{
    (void)state;
    expect(NET,
           "default_forward_type: FLOAT16\n"
           "layer { quantization_param { bw: 8 fl: [1, 2] } }\n"
           "layer { engine: \"MKLDNN:CPU\" quantization_param { } convolution_param { engine: "
           "MKL2017 } }",
           "",
           "f:1:1: fields of forks that change no number are ignored: default_forward_type "
           "(NVIDIA Caffe; 1 time), quantization_param (Ristretto; 2 times), engine (Intel Caffe; "
           "1 time), engine MKL2017 (1 time)",
           "layer {\n}\nlayer {\n  convolution_param {\n    engine: DEFAULT\n  }\n}\n");
    /* an engine is any word, but no number */
    expect(NET, "layer { lrn_param { engine: 17 } }",
           "f:1:29: field 'engine' takes one of DEFAULT, CAFFE, CUDNN, found '17'", "", NULL);
}

/* MobileNet-YOLO draws one of several sizes. */
static void fields_that_are_repeated(void **state)
{
    (void)state;
    expect(
        NET,
        "layer { transform_param { resize_param { height: 3 } scale: 2 resize_param { width: 4 } "
        "} }",
        "", "",
        "layer {\n  transform_param {\n    scale: 2\n    resize_param {\n      height: 3\n"
        "    }\n  }\n}\n");
}

static void fields_of_other_names(void **state)
{
    (void)state;
    expect(NET, "layer { loss_param { class_weighting: 0.5 class_weighting: 2 } }", "", "",
           "layer {\n  loss_param {\n    class_weight: 0.5\n    class_weight: 2\n  }\n}\n");
}

static void fields_that_are_refused(void **state)
{
    (void)state;
    expect(NET, "layer { name: 'n' batch_norm_param { relu: true } }",
           "f:1:38: unknown field 'relu' in BatchNormParameter of layer 'n'. hint: it is of Intel "
           "Caffe: write a ReLU layer behind it",
           "", NULL);
    expect(NET, "layer { name: 'n' concat_param { per_fla_fuse: true } }",
           "f:1:34: unknown field 'per_fla_fuse' in ConcatParameter of layer 'n'. hint: it is of "
           "Intel Caffe: put Permute with order 0, 2, 3, 1 and Flatten before each bottom",
           "", NULL);
    /* what is known of a fork is said instead of a name that looks alike */
    const struct ls_fork_field *field = ls_fork_field("TransformationParameter", "scale_factors");
    assert_int_equal(field->effect, LS_FORK_REFUSED);
    assert_null(ls_fork_field("ConvolutionParameter", "scale_factors"));
    assert_non_null(ls_fork_type("ROIAlign"));
    assert_null(ls_fork_type("Convolution"));
    for (const struct ls_fork_type *type = ls_fork_types; type->type != NULL; type++)
        assert_true(type->fork[0] != '\0' && type->hint[0] != '\0');
}

/* Names of other frameworks, and the fields of a message where nothing is like the name. */
static void names_of_frameworks(void **state)
{
    (void)state;
    expect(SOLVER, "lr: 0.1 betas: 0.9 warmup_steps: 3 grad_clip: 1",
           "f:1:1: unknown field 'lr' in SolverParameter. hint: it is called 'base_lr' here\n"
           "f:1:9: unknown field 'betas' in SolverParameter. hint: momentum: 0.9 momentum2: 0.999\n"
           "f:1:20: unknown field 'warmup_steps' in SolverParameter. hint: it is called "
           "'warmup_iter' here\n"
           "f:1:36: unknown field 'grad_clip' in SolverParameter. hint: it is called "
           "'clip_gradients' here",
           "", NULL);
    expect(NET, "layer { convolution_param { precision: BF16 } }",
           "f:1:29: unknown field 'precision' in ConvolutionParameter. hint: it belongs to the "
           "layer: layer { precision: BF16 }",
           "", NULL);
    expect(NET,
           "layer { embed_param { bias: 1 zap: 2 nun_output: 3 } attention_param { mask: 1 } "
           "gelu_param { bias: 1 } }",
           "f:1:23: unknown field 'bias' in EmbedParameter. hint: it is called "
           "'bias_term' here\n"
           "f:1:31: unknown field 'zap' in EmbedParameter. hint: its fields are "
           "num_output, input_dim, bias_term, weight_filler, bias_filler\n"
           "f:1:38: unknown field 'nun_output' in EmbedParameter; did you mean "
           "'num_output'?\n"
           "f:1:72: unknown field 'mask' in AttentionParameter. hint: a mask is a "
           "further bottom, and extra says what it is: extra: KEY_MASK for [samples, keys]\n"
           "f:1:95: unknown field 'bias' in GELUParameter. hint: its fields are "
           "approximate",
           "", NULL);
    assert_non_null(strstr(ls_framework_type("Linear"), "InnerProduct"));
    assert_non_null(strstr(ls_framework_type("multiHeadAttention"), "Attention"));
    assert_null(ls_framework_type("InnerProduct"));
}

/* What belongs to a layer type by its name is no slip of the pen. */
static void parameters_of_own_types(void **state)
{
    (void)state;
    expect(NET, "layer { type: 'RegionLos' region_los_param { } }",
           "f:1:27: unknown field 'region_los_param' in LayerParameter of layer '' (RegionLos)", "",
           NULL);
    expect(NET, "layer { type: 'ROILog' roi_log_param { } }",
           "f:1:24: unknown field 'roi_log_param' in LayerParameter of layer '' (ROILog)", "",
           NULL);
    expect(NET, "layer { type: 'Other' region_los_param { } }",
           "f:1:23: unknown field 'region_los_param' in LayerParameter of layer '' (Other); did "
           "you mean 'region_loss_param'?",
           "", NULL);
}

/* Types that the older form of layers does not have are told once each. */
static void older_types(void **state)
{
    (void)state;
    expect(NET,
           "layers { name: 'a' type: CONVOLUTION3D }\nlayers { name: 'b' type: CONVOLUTION3D }\n"
           "layers { name: 'c' type: RELUU }\nlayers { name: 'd' type: ZAP_ZAP_ZAP }",
           "f:1:26: unknown older layer type 'CONVOLUTION3D' of 2 layers, the first 'a'. hint: it "
           "is of C3D: layer { type: \"Convolution\" } takes volumes, with kernel_size: [3, 5, 5], "
           "one for each axis\n"
           "f:3:26: unknown older layer type 'RELUU' of layer 'c'. hint: did you mean 'RELU'?\n"
           "f:4:26: unknown older layer type 'ZAP_ZAP_ZAP' of layer 'd'. hint: newer types are "
           "written layer { type: \"Name\" }",
           "", NULL);
    expect(NET, "layers { name: 'a' type: 'RELU' }\nlayers { name: 'b' type: \"InnerProduct\" }",
           "f:1:26: unknown older layer type 'RELU' of layer 'a'. hint: write RELU without "
           "quotes\n"
           "f:2:26: unknown older layer type 'InnerProduct' of layer 'b'. hint: newer types are "
           "written layer { type: \"Name\" }",
           "", NULL);
}

/* A field that the schema has is not looked up among those of forks; any message may have an
 * engine. */
static void check_fields(const ProtobufCMessageDescriptor *type, int depth)
{
    for (unsigned i = 0; i < type->n_fields && depth < 8; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        if (strcmp(field->name, "engine") != 0 &&
            ls_fork_field(type->short_name, field->name) != NULL)
            fail_msg("%s of %s is in the schema", field->name, type->short_name);
        if (field->type == PROTOBUF_C_TYPE_MESSAGE)
            check_fields(field->descriptor, depth + 1);
    }
}

static void fields_are_in_one_place(void **state)
{
    (void)state;
    check_fields(SOLVER, 0);
    check_fields(NET, 0);
}

/* The layers in which something was not understood are known. */
static void damage(void **state)
{
    (void)state;
    static const char text[] = "layer { name: 'a' quantization_param { } }\n"
                               "layer { name: 'b' zap: 1 }\n"
                               "layer { name: 'c' convolution_param { pad: 'x' } }";
    struct ls_definition *definition = NULL;
    assert_int_equal(ls_text_read_partly("f", text, strlen(text), NET, &definition, NULL),
                     LOCKSTEP_DEFINITION);
    const Lockstep__NetParameter *net = (const Lockstep__NetParameter *)definition->message;
    assert_false(ls_definition_is_damaged(definition, net->layer[0]));
    assert_true(ls_definition_is_damaged(definition, net->layer[1]));
    assert_true(ls_definition_is_damaged(definition, net->layer[2]));
    ls_definition_free(definition);
}

/* The keys of a plugin's parameters are its own. */
static void settings(void **state)
{
    (void)state;
    expect(NET, "layer { plugin_param { size: 3 mode: \"fa\" 'st' w: [1, -2.5e3, x] on: true } }",
           "", "",
           "layer {\n  plugin_param {\n"
           "    set {\n      key: \"size\"\n      value: \"3\"\n    }\n"
           "    set {\n      key: \"mode\"\n      value: \"fast\"\n    }\n"
           "    set {\n      key: \"w\"\n      value: \"1\"\n      value: \"-2.5e3\"\n      value: "
           "\"x\"\n    }\n"
           "    set {\n      key: \"on\"\n      value: \"true\"\n    }\n"
           "  }\n}\n");
    struct ls_definition *definition = NULL;
    static const char *const broken[] = {
        "layer { plugin_param { a { } } }", "layer { plugin_param { a: [1 2] } }",
        "layer { plugin_param { a: } }", "layer { plugin_param { a: [] } }"};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++)
        assert_int_equal(ls_text_read("f", broken[i], strlen(broken[i]), NET, &definition, NULL),
                         LOCKSTEP_DEFINITION);
}

/* In binary form there are numbers alone: a definition warns of those that are not known, other
 * files do without a word. */
static void numbers(void **state)
{
    (void)state;
    /* name: "n", field 500: 1, layer { name: "a", field 400: 2 } twice */
    static const unsigned char bytes[] = {0x0a, 1,    'n',  0xa0, 0x1f, 1,    0xa2, 0x06,
                                          6,    0x0a, 1,    'a',  0x80, 0x19, 2,    0xa2,
                                          0x06, 6,    0x0a, 1,    'b',  0x80, 0x19, 2};
    struct ls_definition *definition = NULL;
    assert_int_equal(
        ls_binary_read("f", bytes, sizeof bytes, NET, LOCKSTEP_DEFINITION, &definition, NULL), 0);
    assert_string_equal(definition->warning,
                        "f: fields of other versions or forks of Caffe, known by their numbers "
                        "alone, are ignored: NetParameter 500, LayerParameter 400");
    assert_int_equal(((const Lockstep__NetParameter *)definition->message)->n_layer, 2);
    ls_definition_free(definition);
    assert_int_equal(
        ls_binary_read("f", bytes, sizeof bytes, NET, LOCKSTEP_WEIGHTS, &definition, NULL), 0);
    assert_null(definition->warning);
    ls_definition_free(definition);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_field_in_many_layers),
        cmocka_unit_test(fields_that_change_nothing),
        cmocka_unit_test(fields_of_other_names),
        cmocka_unit_test(fields_that_are_refused),
        cmocka_unit_test(fields_are_in_one_place),
        cmocka_unit_test(names_of_frameworks),
        cmocka_unit_test(parameters_of_own_types),
        cmocka_unit_test(older_types),
        cmocka_unit_test(damage),
        cmocka_unit_test(fields_that_are_repeated),
        cmocka_unit_test(settings),
        cmocka_unit_test(numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
