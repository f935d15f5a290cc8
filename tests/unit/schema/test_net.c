/* The layers of a net by phase, level and stages; nets that are read for use without a solver.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "schema/data_layers.h"
#include "schema/net.h"
#include "schema/text_format.h"
#include "support/support.h"

/* The names of the layers that are there, one after the other. */
static void names_of(const struct ls_net_definition *net, char out[256])
{
    out[0] = '\0';
    for (size_t i = 0; i < net->net->n_layer; i++)
        strncat(out, net->net->layer[i]->name, 255 - strlen(out));
}

static struct ls_definition *read_net(const char *text)
{
    struct ls_error error = {0};
    struct ls_definition *definition;
    assert_int_equal(ls_text_read("net", text, strlen(text), &lockstep__net_parameter__descriptor,
                                  &definition, &error),
                     0);
    return definition;
}

static void rules(void **state)
{
    (void)state;
    static const char text[] = "layer { name: 'a' }"
                               "layer { name: 'b' include { phase: TRAIN } }"
                               "layer { name: 'c' include { phase: TEST } }"
                               "layer { name: 'd' exclude { phase: TEST } }"
                               "layer { name: 'e' include { min_level: 1 } }"
                               "layer { name: 'f' include { max_level: 0 } }"
                               "layer { name: 'g' include { min_level: 1 max_level: 2 } }"
                               "layer { name: 'h' include { stage: 's' stage: 't' } }"
                               "layer { name: 'i' include { not_stage: 's' not_stage: 'u' } }"
                               "layer { name: 'j' include { phase: TEST } include { stage: 's' } }"
                               "layer { name: 'k' exclude { phase: TRAIN stage: 's' } }"
                               "layer { name: 'l' include {} }"
                               "layer { name: 'm' exclude {} }";
    static const char *const stages[] = {"s", "t"};
    static const struct {
        struct ls_net_state state;
        const char *wanted;
    } examples[] = {
        {{LOCKSTEP__PHASE__TRAIN, 0, NULL, 0}, "abdfikl"},
        {{LOCKSTEP__PHASE__TEST, 0, NULL, 0}, "acfijkl"},
        {{LOCKSTEP__PHASE__TRAIN, 1, NULL, 0}, "abdegikl"},
        {{LOCKSTEP__PHASE__TRAIN, 3, NULL, 0}, "abdeikl"},
        {{LOCKSTEP__PHASE__TRAIN, 0, stages, 1}, "abdfjl"},
        {{LOCKSTEP__PHASE__TRAIN, 0, stages, 2}, "abdfhjl"},
        {{LOCKSTEP__PHASE__TEST, 0, stages, 2}, "acfhjkl"},
    };
    struct ls_definition *definition = read_net(text);
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
        struct ls_error error = {0};
        struct ls_net_definition net;
        char names[256];
        assert_int_equal(ls_net_filter(definition, (Lockstep__NetParameter *)definition->message,
                                       &examples[i].state, &net, &error),
                         0);
        names_of(&net, names);
        assert_string_equal(names, examples[i].wanted);
        assert_int_equal(net.net->state->phase, examples[i].state.phase);
        for (size_t k = 0; k < net.net->n_layer; k++) {
            assert_true(net.net->layer[k]->has_phase);
            assert_int_equal(net.net->layer[k]->phase, examples[i].state.phase);
        }
    }
    ls_definition_free(definition);
}

/* Every layer has the net's phase; places are found through the copies; the original is untouched.
 */
static void copies(void **state)
{
    (void)state;
    struct ls_error error = {0};
    struct ls_definition *definition =
        read_net("name: 'n'\nlayer { name: 'a' phase: TRAIN }\nlayer {\nname: 'b' }");
    Lockstep__NetParameter *original = (Lockstep__NetParameter *)definition->message;
    struct ls_net_state train = {.phase = LOCKSTEP__PHASE__TRAIN};
    struct ls_net_definition net;
    char place[LS_PLACE_MAX];
    assert_int_equal(ls_net_filter(definition, original, &train, &net, &error), 0);
    assert_int_equal(net.net->layer[0]->phase, LOCKSTEP__PHASE__TRAIN);
    assert_int_equal(net.net->layer[1]->phase, LOCKSTEP__PHASE__TRAIN);
    assert_false(original->layer[1]->has_phase);
    ls_place(definition, net.net->layer[1], "name", place, sizeof place);
    assert_string_equal(place, "net:4:1");
    ls_place(definition, net.net->layer[1], "type", place, sizeof place);
    assert_string_equal(place, "net:3:1");
    ls_place(definition, net.net, "name", place, sizeof place);
    assert_string_equal(place, "net:1:1");
    ls_definition_free(definition);
}

/* A net of which a phase cannot be built says so with `wanted`. */
static void fails_with(const char *text, Lockstep__Phase phase, const char *wanted)
{
    struct ls_error error = {0};
    struct ls_definition *definition = read_net(text);
    struct ls_net_state state = {.phase = phase};
    struct ls_net_definition net;
    char problems[1024];
    assert_int_equal(ls_net_filter(definition, (Lockstep__NetParameter *)definition->message,
                                   &state, &net, &error),
                     LOCKSTEP_DEFINITION);
    ls_error_format(&error, problems, sizeof problems);
    assert_string_equal(problems, wanted);
    ls_definition_free(definition);
}

/* Caffe's data layers in the terms of Data and Input: what other code sees of them. */
static void data_layers_are_completed(void **state)
{
    (void)state;
    struct ls_error error = {0};
    struct ls_definition *definition = read_net(
        "layer { name: 'a' type: 'ImageData' data_param { cache: true }\nimage_data_param {\n"
        "source: 'list' rand_skip: 2\nnew_height: 4 } transform_param { scale: 2 } }\n"
        "layer { name: 'b' type: 'MemoryData' top: 'x' top: 'y'\nmemory_data_param { batch_size: "
        "2 channels: 3 height: 4 width: 5 } }\n"
        "layer { name: 'c' type: 'Data' data_param { source: 's' } }");
    const Lockstep__NetParameter *original = (Lockstep__NetParameter *)definition->message;
    struct ls_net_state train = {.phase = LOCKSTEP__PHASE__TRAIN};
    struct ls_net_definition net;
    char place[LS_PLACE_MAX];
    assert_int_equal(ls_net_filter(definition, original, &train, &net, &error), 0);
    const Lockstep__LayerParameter *image = net.net->layer[0];
    const Lockstep__DataParameter *data = image->data_param;
    assert_string_equal(image->type, "ImageData");
    assert_true(ls_data_layer_reads(image));
    assert_null(image->image_data_param);
    assert_int_equal(data->backend, LOCKSTEP__DATA_PARAMETER__DB__IMAGES);
    assert_int_equal(data->n_source, 1);
    assert_string_equal(data->source[0], "list");
    assert_true(data->has_batch_size && data->cache && !data->antialias && data->is_color);
    assert_int_equal(data->batch_size, 1);
    assert_int_equal(data->rand_skip, 2);
    ls_place(definition, data, "new_height", place, sizeof place);
    assert_string_equal(place, "net:4:1");
    ls_place(definition, data, "batch_size", place, sizeof place);
    assert_string_equal(place, "net:2:1");
    /* The definition itself is as it was: `upgrade` writes it. */
    assert_non_null(original->layer[0]->image_data_param);
    assert_false(original->layer[0]->data_param->has_backend);
    const Lockstep__LayerParameter *memory = net.net->layer[1];
    assert_true(ls_data_layer_takes_input(memory) && !ls_data_layer_reads(memory));
    assert_null(memory->memory_data_param);
    assert_int_equal(memory->input_param->n_shape, 2);
    assert_int_equal(memory->input_param->shape[0]->n_dim, 4);
    for (int i = 0; i < 4; i++)
        assert_int_equal(memory->input_param->shape[0]->dim[i], 2 + i);
    assert_int_equal(memory->input_param->shape[1]->n_dim, 1);
    assert_int_equal(memory->input_param->shape[1]->dim[0], 2);
    ls_place(definition, memory->input_param, NULL, place, sizeof place);
    assert_string_equal(place, "net:6:1");
    assert_ptr_equal(net.net->layer[2]->data_param, original->layer[2]->data_param);
    ls_definition_free(definition);
}

static void fields_of_two_messages_are_refused(void **state)
{
    (void)state;
    fails_with("layer { name: 'a' type: 'ImageData' image_data_param { source: 'l' }\n"
               "data_param {\nbatch_size: 3 } }",
               LOCKSTEP__PHASE__TRAIN,
               "net:3:1: layer 'a': data_param has batch_size, which is image_data_param's here. "
               "hint: in such a layer data_param is for what Caffe does not have: cache, "
               "on_bad_record, prefetch, split");
}

static void both_kinds_of_rules_are_refused(void **state)
{
    (void)state;
    fails_with("layer { name: 'a' include {}\nexclude {} }\nlayer { name: 'b' include {}\n"
               " exclude {} }",
               LOCKSTEP__PHASE__TRAIN,
               "net:2:1: layer 'a' has both include and exclude rules. hint: say it with one kind "
               "of rule\n"
               "net:4:2: layer 'b' has both include and exclude rules. hint: say it with one kind "
               "of rule");
}

/* A layer whose phase is not that of the net is refused; a layer that the phase leaves out is
 * not. */
static void another_phase_of_a_layer_is_refused(void **state)
{
    (void)state;
    fails_with("layer { name: 'a' phase: TEST }\n"
               "layer { name: 'b' phase: TEST include { phase: TEST } }",
               LOCKSTEP__PHASE__TRAIN,
               "net:1:19: layer 'a' has phase TEST in a net of phase TRAIN. hint: remove it, or "
               "write include { phase: TEST } for a layer of that phase only");
    fails_with("layer { name: 'a' phase: TEST }\nlayer { name: 'b' }\n"
               "layer { name: 'c' phase: TEST }",
               LOCKSTEP__PHASE__TRAIN,
               "net:1:19: layer 'a' has phase TEST in a net of phase TRAIN (2 layers have it). "
               "hint: remove it, or write include { phase: TEST } for a layer of that phase only");
    fails_with("layer { name: 'a'\nphase: TRAIN }", LOCKSTEP__PHASE__TEST,
               "net:2:1: layer 'a' has phase TRAIN in a net of phase TEST. hint: remove it, or "
               "write include { phase: TRAIN } for a layer of that phase only");
}

/* Reads `path` for a phase, compares the names and frees. */
static void reads_as(const char *path, struct ls_net_state wanted, const char *names_wanted,
                     const char *file)
{
    struct ls_error error = {0};
    struct ls_net_definition net;
    char names[256], problems[1024];
    int status = ls_net_read(path, &wanted, &net, &error);
    ls_error_format(&error, problems, sizeof problems);
    assert_string_equal(problems, "");
    assert_int_equal(status, 0);
    names_of(&net, names);
    assert_string_equal(names, names_wanted);
    assert_string_equal(net.definition->file, file);
    ls_definition_free(net.definition);
}

static void nets_of_files(void **state)
{
    (void)state;
    char net[512], solver[512], inside[512];
    strcpy(net, ls_test_path("net.prototxt"));
    strcpy(solver, ls_test_path("solver.prototxt"));
    strcpy(inside, ls_test_path("inside.prototxt"));
    ls_test_write_text(net, "name: 'n' state { level: 3 stage: 'p' }"
                            "layers { name: 'a' include { phase: TRAIN } }"
                            "layers { name: 'b' include { phase: TEST } }"
                            "layers { name: 'c' include { stage: 's' } }"
                            "layers { name: 'd' include { stage: 'o' } }"
                            "layers { name: 'e' include { min_level: 3 stage: 'p' } }");
    ls_test_write_text(solver, "net: 'net.prototxt' base_lr: 1 test_state { stage: 's' level: 2 }");
    ls_test_write_text(inside, "max_iter: 3 net_param { layer { name: 'x' } }"
                               "test_net_param { layer { name: 'y' } }");
    static const char *const own[] = {"o"};
    struct ls_net_state test = {.phase = LOCKSTEP__PHASE__TEST};
    reads_as(net, test, "be", net);
    reads_as(net, (struct ls_net_state){.phase = LOCKSTEP__PHASE__TRAIN}, "ae", net);
    reads_as(net, (struct ls_net_state){LOCKSTEP__PHASE__TEST, 1, own, 1}, "bd", net);
    reads_as(solver, test, "bc", net); /* its level 2 is over the net's */
    reads_as(solver, (struct ls_net_state){LOCKSTEP__PHASE__TEST, 4, own, 1}, "bcde", net);
    reads_as(inside, test, "y", inside);
}

static void files_that_are_no_nets(void **state)
{
    (void)state;
    struct ls_error error = {0};
    struct ls_net_state test = {.phase = LOCKSTEP__PHASE__TEST};
    struct ls_net_definition net;
    assert_int_equal(ls_net_read(ls_test_path("missing"), &test, &net, &error),
                     LOCKSTEP_DEFINITION);
    const char *path = ls_test_path("nothing.prototxt");
    ls_test_write_text(path, "base_lr: 1 max_iter: 3");
    ls_error_clear(&error);
    assert_int_equal(ls_net_read(path, &test, &net, &error), LOCKSTEP_DEFINITION);
    assert_string_equal(error.problems[0].message, "the solver names no net");
    assert_null(net.definition);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules),
        cmocka_unit_test(copies),
        cmocka_unit_test(data_layers_are_completed),
        cmocka_unit_test(fields_of_two_messages_are_refused),
        cmocka_unit_test(both_kinds_of_rules_are_refused),
        cmocka_unit_test(another_phase_of_a_layer_is_refused),
        cmocka_unit_test(nets_of_files),
        cmocka_unit_test(files_that_are_no_nets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
