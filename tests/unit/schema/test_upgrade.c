/* Older forms become the newest, with the same meaning and the same places.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/text_format.h"
#include "schema/upgrade.h"
#include "support/support.h"

static struct ls_definition *read_net(const char *text)
{
    struct ls_error error = {0};
    struct ls_definition *definition;
    assert_int_equal(ls_text_read("net", text, strlen(text), &lockstep__net_parameter__descriptor,
                                  &definition, &error),
                     0);
    return definition;
}

/* Upgrades `old`, compares with the canonical text of `wanted`, returns the definition. */
static struct ls_definition *upgrades_to(const char *old, const char *wanted)
{
    struct ls_error error = {0};
    struct ls_definition *definition = read_net(old), *other = read_net(wanted);
    struct ls_text a = {0}, b = {0};
    assert_int_equal(
        ls_net_upgrade(definition, (Lockstep__NetParameter *)definition->message, &error), 0);
    ls_text_write(definition->message, &a);
    ls_text_write(other->message, &b);
    assert_string_equal(a.data, b.data);
    ls_text_free(&a);
    ls_text_free(&b);
    ls_definition_free(other);
    return definition;
}

static void is_refused(const char *old, const char *wanted)
{
    struct ls_error error = {0};
    struct ls_definition *definition = read_net(old);
    char problems[2048];
    assert_int_equal(
        ls_net_upgrade(definition, (Lockstep__NetParameter *)definition->message, &error),
        LOCKSTEP_DEFINITION);
    ls_error_format(&error, problems, sizeof problems);
    assert_string_equal(problems, wanted);
    ls_definition_free(definition);
}

static const Lockstep__LayerParameter *layer_of(const struct ls_definition *definition,
                                                size_t index)
{
    return ((const Lockstep__NetParameter *)definition->message)->layer[index];
}

static void place_is(const struct ls_definition *definition, const void *message, const char *field,
                     size_t index, const char *wanted)
{
    char place[LS_PLACE_MAX];
    assert_string_equal(ls_place_index(definition, message, field, index, place, sizeof place),
                        wanted);
}

static void new_nets_stay(void **state)
{
    (void)state;
    static const char net[] = "name: 'n' layer { name: 'a' type: 'Data' data_param { source: 'x' } "
                              "param { lr_mult: 1 } param {} param {} }";
    ls_definition_free(upgrades_to(net, net));
}

static void v1_layers(void **state)
{
    (void)state;
    struct ls_definition *definition = upgrades_to(
        "layers {\n"
        "  name: 'c' type: CONVOLUTION bottom: 'a' top: 'b'\n"
        "  blobs_lr: 1 blobs_lr: 2\n"
        "  weight_decay: 3\n"
        "  param: 'w' param: 'v' param: 'u' blob_share_mode: PERMISSIVE\n"
        "  convolution_param { num_output: 3 }\n"
        "  loss_weight: 2 include { stage: 's' } exclude { phase: TEST } blobs { num: 1 data: 5 }\n"
        "}\n"
        "layers { type: SOFTMAX_LOSS } layers { type: NONE } layers {}\n",
        "layer { name: 'c' type: 'Convolution' bottom: 'a' top: 'b'"
        "  param { name: 'w' share_mode: PERMISSIVE lr_mult: 1 decay_mult: 3 }"
        "  param { name: 'v' lr_mult: 2 } param { name: 'u' }"
        "  convolution_param { num_output: 3 }"
        "  loss_weight: 2 include { stage: 's' } exclude { phase: TEST } blobs { num: 1 data: 5 } }"
        "layer { type: 'SoftmaxWithLoss' } layer { type: '' } layer {}");
    const Lockstep__LayerParameter *layer = layer_of(definition, 0);
    place_is(definition, layer, NULL, 0, "net:1:1");
    place_is(definition, layer, "name", 0, "net:2:3");
    place_is(definition, layer, "type", 0, "net:2:13");
    place_is(definition, layer, "top", 0, "net:2:43");
    place_is(definition, layer->param[1], "lr_mult", 0, "net:3:15");
    place_is(definition, layer->param[0], "decay_mult", 0, "net:4:3");
    place_is(definition, layer->param[2], "name", 0, "net:5:25");
    place_is(definition, layer->param[2], NULL, 0, "net:1:1");
    place_is(definition, layer->convolution_param, "num_output", 0, "net:6:23");
    ls_definition_free(definition);
}

/* Every V1 type has a name; the parameters of V1 layers are all known to new ones. */
static void v1_types_and_parameters(void **state)
{
    (void)state;
    const ProtobufCFieldDescriptor *type = protobuf_c_message_descriptor_get_field_by_name(
        &lockstep__v1_layer_parameter__descriptor, "type");
    const ProtobufCEnumDescriptor *types = type->descriptor;
    assert_int_equal(types->n_values, 40);
    for (unsigned i = 0; i < types->n_values; i++) {
        char text[64];
        struct ls_error error = {0};
        snprintf(text, sizeof text, "layers { type: %s }", types->values[i].name);
        struct ls_definition *definition = read_net(text);
        assert_int_equal(
            ls_net_upgrade(definition, (Lockstep__NetParameter *)definition->message, &error), 0);
        bool none = strcmp(types->values[i].name, "NONE") == 0;
        assert_int_equal(layer_of(definition, 0)->type[0] == '\0', none);
        ls_definition_free(definition);
    }
    for (unsigned i = 0; i < lockstep__v1_layer_parameter__descriptor.n_fields; i++) {
        const char *name = lockstep__v1_layer_parameter__descriptor.fields[i].name;
        if (strstr(name, "_param") != NULL)
            assert_non_null(protobuf_c_message_descriptor_get_field_by_name(
                &lockstep__layer_parameter__descriptor, name));
    }
}

static void both_forms_are_refused(void **state)
{
    (void)state;
    is_refused("layer { name: 'a' }\nlayers { name: 'b' }",
               "net:2:1: a net has either 'layer' or the older 'layers', not both. hint: write all "
               "of them as layer { type: \"Name\" ... }");
}

static void v0_layers(void **state)
{
    (void)state;
    struct ls_definition *definition = upgrades_to(
        "layers { bottom: 'a' top: 'p' layer { name: 'pad' type: 'padding' pad: 2 } }\n"
        "layers { bottom: 'p' top: 'c'\n"
        "  layer { name: 'c' type: 'conv' num_output: 4\n"
        "    kernelsize: 5 stride: 2 group: 2 biasterm: false\n"
        "    weight_filler { type: 'xavier' } bias_filler { value: 1 }\n"
        "    blobs_lr: 1 weight_decay: 0 blobs { data: 7 } } }\n"
        "layers { bottom: 'c' top: 'm' layer { type: 'pool' pool: STOCHASTIC kernelsize: 3 } }\n"
        "layers { layer { type: 'lrn' local_size: 3 alpha: 1 beta: 2 k: 3 } }\n"
        "layers { layer { type: 'data' source: 's' batchsize: 3 scale: 2 meanfile: 'm'\n"
        "  cropsize: 4 mirror: true rand_skip: 1 } }\n"
        "layers { layer { type: 'concat' concat_dim: 2 } }\n"
        "layers { layer { type: 'hdf5_output' hdf5_output_param { file_name: 'h' } } }\n"
        "layers { name: 'new' type: RELU }\n",
        "layer { name: 'c' type: 'Convolution' bottom: 'a' top: 'c'"
        "  param { lr_mult: 1 decay_mult: 0 } blobs { data: 7 }"
        "  convolution_param { num_output: 4 pad: 2 kernel_size: 5 stride: 2 group: 2"
        "    bias_term: false weight_filler { type: 'xavier' } bias_filler { value: 1 } } }"
        "layer { type: 'Pooling' bottom: 'c' top: 'm'"
        "  pooling_param { pool: STOCHASTIC kernel_size: 3 } }"
        "layer { type: 'LRN' lrn_param { local_size: 3 alpha: 1 beta: 2 k: 3 } }"
        "layer { type: 'Data' data_param { source: 's' batch_size: 3 rand_skip: 1 }"
        "  transform_param { scale: 2 mean_file: 'm' crop_size: 4 mirror: true } }"
        "layer { type: 'Concat' concat_param { concat_dim: 2 } }"
        "layer { type: 'HDF5Output' hdf5_output_param { file_name: 'h' } }"
        "layer { name: 'new' type: 'ReLU' }");
    const Lockstep__LayerParameter *layer = layer_of(definition, 0);
    place_is(definition, layer, NULL, 0, "net:2:1");
    place_is(definition, layer, "name", 0, "net:3:11");
    place_is(definition, layer->convolution_param, "num_output", 0, "net:3:34");
    place_is(definition, layer->convolution_param, "kernel_size", 0, "net:4:5");
    place_is(definition, layer_of(definition, 3)->transform_param, "crop_size", 0, "net:10:3");
    ls_definition_free(definition);
}

static void v0_mistakes(void **state)
{
    (void)state;
    is_refused("layers { layer { type: 'relu'\n num_output: 3\n alpha: 1 } }\n"
               "layers { layer { type: 'convv' } }",
               "net:2:2: field 'num_output' means nothing for a layer of type 'relu'\n"
               "net:3:2: field 'alpha' means nothing for a layer of type 'relu'\n"
               "net:4:18: unknown V0 layer type 'convv'; did you mean 'conv'?");
    is_refused("layers { top: 'p' bottom: 'a' layer { type: 'padding' pad: 1 } }\n"
               "layers { bottom: 'p' layer { type: 'relu' } }",
               "net:2:1: a padding layer must stand between one value and one convolution or "
               "pooling");
    is_refused("layers { layer { type: 'relu' }\n name: 'x' }",
               "net:2:2: field 'name' stands beside a V0 layer, which has no such field");
}

static void inputs(void **state)
{
    (void)state;
    struct ls_definition *definition = upgrades_to(
        "name: 'n'\ninput: 'a' input: 'b' input_shape { dim: 1 dim: 2 } input_shape { dim: 3 }"
        "layer { name: 'x' }",
        "name: 'n' layer { name: 'input' type: 'Input' top: 'a' top: 'b'"
        "  input_param { shape { dim: 1 dim: 2 } shape { dim: 3 } } } layer { name: 'x' }");
    place_is(definition, layer_of(definition, 0), NULL, 0, "net:2:1");
    place_is(definition, layer_of(definition, 0), "top", 1, "net:2:12");
    ls_definition_free(definition);
    ls_definition_free(upgrades_to("input: 'a' input_dim: [1, 2, 3, 4]",
                                   "layer { name: 'input' type: 'Input' top: 'a' input_param { "
                                   "shape { dim: [1, 2, 3, 4] } } }"));
    /* old weights name an input without a shape */
    ls_definition_free(upgrades_to("input: 'a' layer { name: 'x' }", "layer { name: 'x' }"));
    is_refused("input: 'a' input_shape {} input_shape {}",
               "net:1:1: 1 input but 2 input_shape: each input needs one");
    is_refused("input: 'a' input_dim: 3",
               "net:1:1: 1 input but 1 input_dim: each input needs four");
}

static void transformations(void **state)
{
    (void)state;
    struct ls_definition *definition =
        upgrades_to("layers { type: DATA data_param { source: 's'\n scale: 2 mirror: true } }\n"
                    "layers { type: IMAGE_DATA image_data_param { crop_size: 3 } transform_param { "
                    "scale: 1 } }",
                    "layer { type: 'Data' transform_param { scale: 2 mirror: true } data_param { "
                    "source: 's' } }"
                    "layer { type: 'ImageData' transform_param { scale: 1 crop_size: 3 } "
                    "image_data_param {} }");
    place_is(definition, layer_of(definition, 0)->transform_param, "scale", 0, "net:2:2");
    place_is(definition, layer_of(definition, 0)->transform_param, NULL, 0, "net:2:2");
    ls_definition_free(definition);
    ls_definition_free(upgrades_to("layer { data_param { mean_file: 'm' } }",
                                   "layer { transform_param { mean_file: 'm' } data_param {} }"));
}

static void batch_norm(void **state)
{
    (void)state;
    ls_definition_free(
        upgrades_to("layer { type: 'BatchNorm' param { lr_mult: 1 name: 'a' } param {} param {} }"
                    "layer { type: 'BatchNorm' param { lr_mult: 1 } }",
                    "layer { type: 'BatchNorm' param { lr_mult: 0 decay_mult: 0 name: 'a' }"
                    "  param { lr_mult: 0 decay_mult: 0 } param { lr_mult: 0 decay_mult: 0 } }"
                    "layer { type: 'BatchNorm' param { lr_mult: 1 } }"));
}

static void solver_types(void **state)
{
    (void)state;
    struct ls_error error = {0};
    struct ls_definition *definition;
    const char *text = "max_iter: 3\nsolver_type: NESTEROV";
    assert_int_equal(ls_text_read("a/b.prototxt", text, strlen(text),
                                  &lockstep__solver_parameter__descriptor, &definition, &error),
                     0);
    Lockstep__SolverParameter *solver = (Lockstep__SolverParameter *)definition->message;
    assert_int_equal(ls_solver_upgrade(definition, solver, &error), 0);
    assert_string_equal(solver->type, "Nesterov");
    assert_false(solver->has_solver_type);
    assert_string_equal(solver->snapshot_prefix, "a/b");
    place_is(definition, solver, "type", 0, "a/b.prototxt:2:1");
    solver->has_solver_type = 1; /* and both */
    assert_int_equal(ls_solver_upgrade(definition, solver, &error), LOCKSTEP_DEFINITION);
    ls_definition_free(definition);
}

/* The default of snapshot_prefix, and a folder. */
static void snapshot_prefixes(void **state)
{
    (void)state;
    const char *folder = ls_test_directory();
    char in_folder[512];
    snprintf(in_folder, sizeof in_folder, "%s/my.solver", folder);
    const char *const examples[][3] = {
        {"x/my.solver.prototxt", NULL, "x/my.solver"},
        {"my", NULL, "my"},
        {"./d.x/my", NULL, "./d.x/my"},
        {"x/.prototxt", NULL, "x/.prototxt"},
        {"x/my.solver.prototxt", "p", "p"},
        {"x/my.solver.prototxt", folder, in_folder},
    };
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
        struct ls_error error = {0};
        struct ls_definition *definition =
            ls_definition_new(examples[i][0], 1 << 20, &lockstep__solver_parameter__descriptor);
        Lockstep__SolverParameter *solver = (Lockstep__SolverParameter *)definition->message;
        solver->snapshot_prefix = (char *)(uintptr_t)examples[i][1];
        assert_int_equal(ls_solver_upgrade(definition, solver, &error), 0);
        assert_string_equal(solver->snapshot_prefix, examples[i][2]);
        ls_definition_free(definition);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(new_nets_stay),
        cmocka_unit_test(v1_layers),
        cmocka_unit_test(v1_types_and_parameters),
        cmocka_unit_test(both_forms_are_refused),
        cmocka_unit_test(v0_layers),
        cmocka_unit_test(v0_mistakes),
        cmocka_unit_test(inputs),
        cmocka_unit_test(transformations),
        cmocka_unit_test(batch_norm),
        cmocka_unit_test(solver_types),
        cmocka_unit_test(snapshot_prefixes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
