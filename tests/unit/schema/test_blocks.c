/* Blocks: layers that repeat, written out when a net is read.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "schema/binary.h"
#include "schema/blocks.h"
#include "schema/net.h"
#include "schema/text_format.h"
#include "schema/upgrade.h"
#include "support/support.h"

static struct ls_definition *read_net(const char *text)
{
    struct ls_error error = {0};
    struct ls_definition *definition;
    if (ls_text_read("net", text, strlen(text), &lockstep__net_parameter__descriptor, &definition,
                     &error) != 0)
        fail_msg("%s: %s", error.problems[0].place, error.problems[0].message);
    return definition;
}

static Lockstep__NetParameter *net_of(const struct ls_definition *definition)
{
    return (Lockstep__NetParameter *)definition->message;
}

/* The layers of a net, one a line: "name: bottoms -> tops, param of these names". */
static char *describe(const Lockstep__NetParameter *net)
{
    struct ls_text text = {0};
    ls_text_add(&text, "");
    for (size_t i = 0; i < net->n_layer; i++) {
        const Lockstep__LayerParameter *layer = net->layer[i];
        ls_text_format(&text, "%s:", layer->name);
        for (size_t b = 0; b < layer->n_bottom; b++)
            ls_text_format(&text, " %s", layer->bottom[b]);
        ls_text_add(&text, " ->");
        for (size_t t = 0; t < layer->n_top; t++)
            ls_text_format(&text, " %s", layer->top[t]);
        for (size_t p = 0; p < layer->n_param; p++)
            ls_text_format(&text, " [%s]", layer->param[p]->name);
        ls_text_add(&text, "\n");
    }
    assert_false(text.failed);
    return text.data;
}

static void becomes(const char *text, const char *wanted)
{
    struct ls_error error = {0};
    struct ls_definition *definition = read_net(text);
    if (ls_net_upgrade(definition, net_of(definition), &error) != 0)
        fail_msg("%s: %s", error.problems[0].place, error.problems[0].message);
    assert_int_equal(net_of(definition)->n_block, 0);
    char *found = describe(net_of(definition));
    assert_string_equal(found, wanted);
    ls_free(found);
    ls_definition_free(definition);
}

static void values_go_from_copy_to_copy(void **state)
{
    (void)state;
    becomes("layer { name: 'in' top: 'x' top: 'mask' }"
            "block { name: 'h' repeat: 3 bottom: 'x' top: 'x'"
            " layer { name: 'a' bottom: 'x' bottom: 'mask' top: 'a' }"
            " layer { name: 'r' bottom: 'a' top: 'a' }"
            " layer { name: 'sum' bottom: 'x' bottom: 'a' top: 'x' } }"
            "layer { name: 'end' bottom: 'x' top: 'y' }"
            "layer { name: 'over' bottom: 'x' top: 'x' }"
            "layer { name: 'again' bottom: 'x' bottom: 'h.1.a' top: 'z' }",
            "in: -> x mask\n"
            "h.0.a: x mask -> h.0.a\n"
            "h.0.r: h.0.a -> h.0.a\n"
            "h.0.sum: x h.0.a -> h.0.x\n"
            "h.1.a: h.0.x mask -> h.1.a\n"
            "h.1.r: h.1.a -> h.1.a\n"
            "h.1.sum: h.0.x h.1.a -> h.1.x\n"
            "h.2.a: h.1.x mask -> h.2.a\n"
            "h.2.r: h.2.a -> h.2.a\n"
            "h.2.sum: h.1.x h.2.a -> h.2.x\n"
            "end: h.2.x -> y\n"
            "over: h.2.x -> h.2.x\n"
            "again: h.2.x h.1.a -> z\n");
}

static void order_is_that_of_the_text(void **state)
{
    (void)state;
    becomes("block { name: 'a' layer { name: 'l' top: 't' } }"
            "layer { name: 'm' top: 'm' }"
            "block { name: 'b' layer { name: 'l' top: 't' } }"
            "block { name: 'c' top: 't' layer { name: 'l' top: 't' } layer { name: 'n' } }"
            "layer { name: 'o' bottom: 't' }"
            "block { name: 'd' layer { name: 'l' top: 't' } }",
            "a.0.l: -> a.0.t\nm: -> m\nb.0.l: -> b.0.t\nc.0.l: -> c.0.t\nc.0.n: ->\n"
            "o: c.0.t ->\nd.0.l: -> d.0.t\n");
    becomes("input: 'x' input_shape { dim: 1 }"
            "block { name: 'a' repeat: 2 bottom: 'x' top: 'x' layer { name: 'l' bottom: 'x' "
            "top: 'x' } }",
            "input: -> x\na.0.l: x -> a.0.x\na.1.l: a.0.x -> a.1.x\n");
}

static void values_of_several_names_go_on(void **state)
{
    (void)state;
    becomes("layer { name: 'in' top: 'x' top: 's' }"
            "block { name: 'h' repeat: 2 bottom: 'x' bottom: 's' top: 'y' top: 's' top: 'last'"
            " layer { name: 'a' bottom: 'x' bottom: 's' top: 'y' top: 's' top: 'last' } }"
            "layer { name: 'end' bottom: 'x' bottom: 'y' bottom: 's' bottom: 'last' }",
            "in: -> x s\n"
            "h.0.a: x s -> h.0.y h.0.s h.0.last\n"
            "h.1.a: h.0.y h.0.s -> h.1.y h.1.s h.1.last\n"
            "end: x h.1.y h.1.s h.1.last ->\n");
}

static void blocks_within_blocks(void **state)
{
    (void)state;
    becomes("layer { name: 'in' top: 'x' }"
            "block { name: 'g' repeat: 2 bottom: 'x' top: 'x'"
            " block { name: 'h' repeat: 2 bottom: 'x' top: 'x'"
            "  block { name: 'i' bottom: 'x' top: 'x' layer { name: 'l' bottom: 'x' top: 'x' } } }"
            " layer { name: 'd' bottom: 'x' top: 'x' } }"
            "layer { name: 'end' bottom: 'x' }",
            "in: -> x\n"
            "g.0.h.0.i.0.l: x -> g.0.h.0.i.0.x\n"
            "g.0.h.1.i.0.l: g.0.h.0.i.0.x -> g.0.h.1.i.0.x\n"
            "g.0.d: g.0.h.1.i.0.x -> g.0.h.1.i.0.x\n"
            "g.1.h.0.i.0.l: g.0.h.1.i.0.x -> g.1.h.0.i.0.x\n"
            "g.1.h.1.i.0.l: g.1.h.0.i.0.x -> g.1.h.1.i.0.x\n"
            "g.1.d: g.1.h.1.i.0.x -> g.1.h.1.i.0.x\n"
            "end: g.1.h.1.i.0.x ->\n");
}

static void parameters_are_of_a_copy_unless_shared(void **state)
{
    (void)state;
    becomes("block { name: 'g' repeat: 2 share: 'w' share: 'v'"
            " layer { name: 'o' param { name: 'w' } param { name: 'u' } param { name: '' } }"
            " block { name: 'h' repeat: 2 share: 'w' share: 'u'"
            "  layer { name: 'l' param { name: 'w' } param { name: 'u' } param { name: 'v' } } } }",
            "g.0.o: -> [w] [g.0.u] []\n"
            "g.0.h.0.l: -> [w] [g.0.u] [g.0.h.0.v]\n"
            "g.0.h.1.l: -> [w] [g.0.u] [g.0.h.1.v]\n"
            "g.1.o: -> [w] [g.1.u] []\n"
            "g.1.h.0.l: -> [w] [g.1.u] [g.1.h.0.v]\n"
            "g.1.h.1.l: -> [w] [g.1.u] [g.1.h.1.v]\n");
}

/* Rules, upgrades and places work on the copies as on other layers. */
static void copies_are_layers_like_others(void **state)
{
    (void)state;
    struct ls_error error = {0};
    struct ls_definition *definition =
        read_net("layer { name: 'in' top: 'x' }\n"
                 "block { name: 'h' repeat: 2 bottom: 'x' top: 'x'\n"
                 "layer { name: 'd' type: 'Data' top: 'd' include { phase: TRAIN }\n"
                 "data_param { source: 's' crop_size: 5 } }\n"
                 "layer {\nname: 'l' bottom: 'x' top: 'x' } }");
    struct ls_net_state test = {.phase = LOCKSTEP__PHASE__TEST},
                        train = {.phase = LOCKSTEP__PHASE__TRAIN};
    struct ls_net_definition net;
    char place[LS_PLACE_MAX];
    assert_int_equal(ls_net_upgrade(definition, net_of(definition), &error), 0);
    assert_int_equal(ls_net_filter(definition, net_of(definition), &test, &net, &error), 0);
    char *found = describe(net.net);
    assert_string_equal(found, "in: -> x\nh.0.l: x -> h.0.x\nh.1.l: h.0.x -> h.1.x\n");
    ls_free(found);
    ls_place(definition, net.net->layer[2], "name", place, sizeof place);
    assert_string_equal(place, "net:6:1");
    assert_string_equal(ls_definition_copy_of(definition, net.net->layer[2]),
                        "copy 1 of block 'h'");
    assert_null(ls_definition_copy_of(definition, net.net->layer[0]));
    assert_int_equal(ls_net_filter(definition, net_of(definition), &train, &net, &error), 0);
    assert_int_equal(net.net->n_layer, 5);
    for (size_t i = 1; i < 5; i += 2)
        assert_int_equal(net.net->layer[i]->transform_param->crop_size, 5);
    ls_definition_free(definition);
}

static void fails_with(const char *text, const char *wanted)
{
    struct ls_error error = {0};
    struct ls_definition *definition = read_net(text);
    char problems[2048];
    assert_int_equal(ls_net_upgrade(definition, net_of(definition), &error), LOCKSTEP_DEFINITION);
    ls_error_format(&error, problems, sizeof problems);
    assert_string_equal(problems, wanted);
    ls_definition_free(definition);
}

static void mistakes_are_named(void **state)
{
    (void)state;
    fails_with("block { repeat: 2 layer { name: 'a' } }",
               "net:1:1: a block needs a name. hint: name: \"h\" makes layers h.0.attn, "
               "h.1.attn, ...");
    fails_with("block { name: 'h'\n repeat: 0 layer { name: 'a' } }",
               "net:2:2: block 'h' is repeated 0 times. hint: leave the block out");
    fails_with("block { name: 'h' }", "net:1:1: block 'h' has no layers");
    fails_with("block { name: 'h' layer { name: 'a' } }\nblock { name: 'h' layer { name: 'b' } }",
               "net:2:9: another block is called 'h', too");
    fails_with("block { name: 'h' bottom: 'x'\nbottom: 'mask' top: 'x' layer { top: 'x' } }",
               "net:1:19: block 'h' has 2 bottoms but 1 tops. hint: a block names only what goes "
               "from copy to copy: each bottom with a top");
    fails_with("block { name: 'h' bottom: 'x' top: 'y' layer { bottom: 'x' top: 'x' } }",
               "net:1:31: no layer of block 'h' makes its top 'y'");
    fails_with("block { name: 'h' bottom: 'x' top: 'x' layer { bottom: 'x' top: 'y' } }",
               "net:1:31: no layer of block 'h' makes its top 'x'");
    fails_with("layer { top: 'x' }\nblock { name: 'h' repeat: 2\nlayer { bottom: 'x' top: 'x' } }",
               "net:3:21: block 'h' reads 'x' from outside and makes a value of that name later. "
               "hint: write it as bottom and top of the block if it goes from copy to copy, else "
               "give one of the two another name");
    fails_with("layer { top: 'x' }\nblock { name: 'h' top: 'x'\nlayer { top: 'x' } }",
               "net:2:19: the top 'x' of block 'h' is also a top of a layer above. hint: give one "
               "of the two another name");
    fails_with("layers { top: 'x' }\nblock { name: 'h' layer { top: 'x' } }",
               "net:1:1: a net with blocks cannot have layers of the older form, 'layers'. hint: "
               "write layer { ... type: \"InnerProduct\" ... } everywhere");
    fails_with("layer { name: 'a' } block { name: 'h' position: 7 layer { name: 'a' } }",
               "net:1:39: block 'h' stands behind 7 layers, but there are 1");
    fails_with("layer { name: 'a' } block { name: 'h' layer { name: 'a' } }"
               "block { name: 'g' position: 0 layer { name: 'a' } }",
               "net:1:78: block 'g' comes behind one that stands further on");
    fails_with("layer { top: 'x' }"
               "block { name: 'g' block { name: 'h' bottom: 'x' top: 'x' layer { name: 'l' "
               "bottom: 'x' top: 'x' } } }",
               "net:1:67: block 'g' reads 'x' from outside and makes a value of that name later. "
               "hint: write it as bottom and top of the block if it goes from copy to copy, else "
               "give one of the two another name");
    fails_with("layer { top: 'x' }\nblock { name: 'h' repeat: 2 bottom: 'z' top: 'y'\n"
               "layer { bottom: 'x' top: 'y' } }",
               "net:2:29: no layer of block 'h' reads its bottom 'z'. hint: what is the same for "
               "all copies need not be a bottom of the block");
    fails_with("block { name: 'h' bottom: 'x' top: 'x' layer { top: 'x' } layer { bottom: 'x' } }",
               "net:1:19: no layer of block 'h' reads its bottom 'x'. hint: what is the same for "
               "all copies need not be a bottom of the block");
    fails_with("block { name: 'h' bottom: 'x' bottom: 'x' top: 'x' top: 'y'\n"
               "layer { bottom: 'x' top: 'x' top: 'y' } }",
               "net:1:19: block 'h' has the bottom 'x' twice");
    fails_with("block { name: 'h' share: 'w' share: 'v'\n"
               "block { name: 'g' layer { param { } param { name: 'w' } } } }",
               "net:1:19: no layer of block 'h' has a parameter that is called 'v'. hint: param { "
               "name: \"w\" } in a layer names its parameter");
}

static void hostile_counts_take_no_memory(void **state)
{
    (void)state;
    fails_with("block { name: 'h' repeat: 2147483648 layer { name: 'a' } }",
               "net:1:19: with 2147483648 times block 'h' there are more than 4096 layers");
    fails_with("block { name: 'h' repeat: 4294967295 block { name: 'g' repeat: 4294967295"
               " layer { name: 'a' } } }",
               "net:1:56: with 4294967295 times block 'g' there are more than 4096 layers");
    fails_with("block { name: 'a' repeat: 1000 block { name: 'b' repeat: 1000 block { name: 'c' "
               "repeat: 1000 layer { name: 'l' } } } }",
               "net:1:50: with 1000 times block 'b' there are more than 4096 layers");
    fails_with("layer { name: 'l' } block { name: 'h' repeat: 4096 layer { name: 'a' } }",
               "net:1:39: with 4096 times block 'h' there are more than 4096 layers");
    struct ls_error error = {0};
    struct ls_definition *most =
        read_net("layer { name: 'l' } block { name: 'h' repeat: 4095 layer { name: 'a' } }");
    assert_int_equal(ls_net_upgrade(most, net_of(most), &error), 0);
    assert_int_equal(net_of(most)->n_layer, 4096);
    ls_definition_free(most);
}

/* Names as long as a file may make them, 4,096 times: the limit of a definition's memory holds. */
static void hostile_names_are_refused(void **state)
{
    (void)state;
    struct ls_text text = {0};
    ls_text_add(&text, "block { repeat: 4096 layer { name: 'l' top: 't' } name: '");
    for (int i = 0; i < 1 << 20; i++)
        ls_text_add_bytes(&text, "x", 1);
    ls_text_add(&text, "' }");
    assert_false(text.failed);
    fails_with(text.data, "net: its blocks say far more than a definition can");
    ls_text_free(&text);
}

static void in_binary_form_a_block_says_where_it_stands(void **state)
{
    (void)state;
    static const char *const texts[] = {
        ("layer { name: 'a' } layer { name: 'b' } block { name: 'h' position: 1 repeat: 2 layer { "
         "name: 'l' } }"),
        "layer { name: 'a' } block { name: 'h' layer { name: 'l' } }",
        "block { name: 'h' layer { name: 'l' } }",
    };
    static const char *const wanted[] = {"a: ->\nh.0.l: ->\nh.1.l: ->\nb: ->\n", NULL,
                                         "h.0.l: ->\n"};
    for (size_t i = 0; i < 3; i++) {
        struct ls_error error = {0};
        struct ls_definition *definition = read_net(texts[i]), *back;
        uint8_t *bytes;
        size_t length;
        assert_int_equal(ls_binary_write(definition->message, &bytes, &length, &error), 0);
        assert_int_equal(ls_binary_read("net", bytes, length, &lockstep__net_parameter__descriptor,
                                        LOCKSTEP_DEFINITION, &back, &error),
                         0);
        int status = ls_net_upgrade(back, net_of(back), &error);
        assert_int_equal(status, wanted[i] != NULL ? 0 : LOCKSTEP_DEFINITION);
        if (wanted[i] != NULL) {
            char *found = describe(net_of(back));
            assert_string_equal(found, wanted[i]);
            ls_free(found);
        } else {
            assert_string_equal(
                error.problems[0].message,
                "in binary form block 'h' must say how many layers stand before it");
        }
        ls_free(bytes);
        ls_definition_free(back);
        ls_definition_free(definition);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_go_from_copy_to_copy),
        cmocka_unit_test(order_is_that_of_the_text),
        cmocka_unit_test(values_of_several_names_go_on),
        cmocka_unit_test(blocks_within_blocks),
        cmocka_unit_test(parameters_are_of_a_copy_unless_shared),
        cmocka_unit_test(copies_are_layers_like_others),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(hostile_counts_take_no_memory),
        cmocka_unit_test(hostile_names_are_refused),
        cmocka_unit_test(in_binary_form_a_block_says_where_it_stands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
