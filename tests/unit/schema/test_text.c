/* The text format: every notation, and the messages about mistakes.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "schema/text_format.h"
#include "support/support.h"

#define NET    (&lockstep__net_parameter__descriptor)
#define SOLVER (&lockstep__solver_parameter__descriptor)
#define LAYER  (&lockstep__layer_parameter__descriptor)
#define DATUM  (&lockstep__datum__descriptor)
#define BLOB   (&lockstep__blob_proto__descriptor)

struct example {
    const ProtobufCMessageDescriptor *type;
    const char *given, *wanted;
};

/* The canonical text of what was given, or what was reported about it. */
static char *read_example(const struct example *example)
{
    struct ls_error error = {0};
    struct ls_definition *definition;
    struct ls_text text = {0};
    int status = ls_text_read("f", example->given, strlen(example->given), example->type,
                              &definition, &error);
    assert_int_equal(status, error.count == 0 ? 0 : LOCKSTEP_DEFINITION);
    assert_int_equal(status == 0, definition != NULL);
    char *result = calloc(1, 8192);
    if (status == 0) {
        ls_text_write(definition->message, &text);
        snprintf(result, 8192, "%s", text.data);
    } else {
        ls_error_format(&error, result, 8192);
    }
    ls_text_free(&text);
    ls_definition_free(definition);
    return result;
}

/* A message of few fields names them. */
#define IN_NET                                                                                     \
    "in NetParameter. hint: its fields are name, layers, input, input_dim, force_backward, "       \
    "state, debug_info, input_shape, layer, bn_stats_batch_size, block"

static void check(const struct example *examples, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char *result = read_example(&examples[i]);
        if (strcmp(result, examples[i].wanted) != 0)
            fail_msg("%s\nread as\n%s\nand not\n%s", examples[i].given, result, examples[i].wanted);
        free(result);
    }
}

#define CHECK(list) check((list), sizeof(list) / sizeof(list)[0])

static void notations(void **state)
{
    (void)state;
    static const struct example examples[] = {
        {NET, "", ""},
        {NET, "# nothing\n  # at all", ""},
        {NET, "\xef\xbb\xbfname: 'x'", "name: \"x\"\n"},
        {NET, "name:'x',force_backward:true;", "name: \"x\"\nforce_backward: true\n"},
        {NET, "state { level: 1 }", "state {\n  level: 1\n}\n"},
        {NET, "state: { level: 1 }", "state {\n  level: 1\n}\n"},
        {NET, "state <level: 1>", "state {\n  level: 1\n}\n"},
        {NET, "state: <level: 1;>;", "state {\n  level: 1\n}\n"},
        {NET, "input: ['a', \"b\"] input: 'c'", "input: \"a\"\ninput: \"b\"\ninput: \"c\"\n"},
        {NET, "input: []", ""},
        {NET, "layer [{name: 'a'}, <name: 'b'>]",
         "layer {\n  name: \"a\"\n}\nlayer {\n  name: \"b\"\n}\n"},
        {NET, "layer: [{}] layer: []", "layer {\n}\n"},
        {SOLVER, "solver_mode: 1", "solver_mode: GPU\n"},
        {SOLVER, "solver_mode: CPU", "solver_mode: CPU\n"},
        {SOLVER, "layer_wise_reduce: f snapshot_diff: True debug_info: 1 test_compute_loss: 0",
         "snapshot_diff: true\ntest_compute_loss: false\ndebug_info: true\n"
         "layer_wise_reduce: false\n"},
        /* what is written although it is the default stays written */
        {SOLVER, "type: 'SGD' test_interval: 0", "test_interval: 0\ntype: \"SGD\"\n"},
    };
    CHECK(examples);
}

static void numbers(void **state)
{
    (void)state;
    static const struct example examples[] = {
        {BLOB, "num: 0x1F channels: 017 height: -5 width: - 6",
         "num: 31\nchannels: 15\nheight: -5\nwidth: -6\n"},
        {BLOB, "num: 2147483647 channels: -2147483648 height: -0x80000000",
         "num: 2147483647\nchannels: -2147483648\nheight: -2147483648\n"},
        {BLOB, "data: [1, 1., .5, 1e3, 1E-3, 1.5f, 2F, 7e+2f]",
         "data: 1\ndata: 1\ndata: 0.5\ndata: 1000\ndata: 0.001\ndata: 1.5\ndata: 2\ndata: 700\n"},
        {BLOB, "data: inf data: -inf data: nan data: INFINITY data: - Inf",
         "data: inf\ndata: -inf\ndata: nan\ndata: inf\ndata: -inf\n"},
        {BLOB, "data: 16777217 double_data: 16777217", "data: 16777216\ndouble_data: 16777217\n"},
        {BLOB, "data: 3.4028235e38 data: 1.17549435e-38 data: 1e-45",
         "data: 3.4028235e+38\ndata: 1.1754944e-38\ndata: 1.4013e-45\n"},
        /* the float nearest to the decimal, not to the double nearest to it */
        {BLOB, "data: 1.00000005960464484", "data: 1.0000001\n"},
        {BLOB, "shape { dim: 9223372036854775807 dim: -9223372036854775808 dim: 00 }",
         "shape {\n  dim: 9223372036854775807\n  dim: -9223372036854775808\n  dim: 0\n}\n"},
    };
    CHECK(examples);
}

static void strings(void **state)
{
    (void)state;
    static const struct example examples[] = {
        {NET, "name: 'a' \"b\"\n# between\n'c'", "name: \"abc\"\n"},
        {NET, "name: 'it\\'s \"so\"'", "name: \"it's \\\"so\\\"\"\n"},
        {NET, "name: '\\a\\b\\f\\n\\r\\t\\v\\?\\\\'", "name: \"\\a\\b\\f\\n\\r\\t\\v?\\\\\"\n"},
        {NET, "name: '\\101\\1012\\x41g\\x0a1\\7'", "name: \"AA2Ag\\n1\\a\"\n"},
        {NET, "name: '\\u00e9\\U0001F600\\ud83d\\ude00'",
         "name: \"\\303\\251\\360\\237\\230\\200\\360\\237\\230\\200\"\n"},
        {NET, "name: '\xc3\xa9'", "name: \"\\303\\251\"\n"},
        {NET, "name: ''", "name: \"\"\n"},
        {DATUM, "data: 'a\\0b\\000'", "data: \"a\\000b\\000\"\n"},
    };
    CHECK(examples);
}

static void wrong_fields(void **state)
{
    (void)state;
    static const struct example examples[] = {
        {LAYER, "name: 'c'\nconvolution_param {\n  kernal_size: 5\n}",
         "f:3:3: unknown field 'kernal_size' in ConvolutionParameter of layer 'c'; did you mean "
         "'kernel_size'?"},
        {LAYER, "\tkernel_size: 3",
         "f:1:2: unknown field 'kernel_size' in LayerParameter. hint: it belongs into "
         "convolution_param or pooling_param"},
        {LAYER, "zzzzzz: 3", "f:1:1: unknown field 'zzzzzz' in LayerParameter"},
        {NET, "name: 'a'\nname: 'b'", "f:2:1: field 'name' is given twice; it was set at f:1:1"},
        {NET, "state {} state {}", "f:1:10: field 'state' is given twice; it was set at f:1:1"},
        {LAYER, "clip_param { max: 3 max: 3 min: 1 }",
         "f:1:21: field 'max' is given twice; it was set at f:1:14"},
        {LAYER, "clip_param { min: 1 }", "f:1:1: ClipParameter needs a value for 'max'"},
        {NET, "name: ['a']", "f:1:1: field 'name' takes one value, not a list"},
        {NET, "[a.b/c] { x: 1 }", "f:1:1: there are no extensions here"},
        /* everything is reported, and what is skipped does not disturb what follows */
        {NET, "aaa: 1 bbb { x: [1, {y: '}'}] } ccc <z: -3> ddd: 'x' 'y' eee: [inf] name: 3",
         "f:1:75: field 'name' takes a string in quotes, found '3'\n"
         "f:1:1: unknown field 'aaa' " IN_NET "\n"
         "f:1:8: unknown field 'bbb' " IN_NET "\n"
         "f:1:33: unknown field 'ccc' " IN_NET "\n"
         "f:1:45: unknown field 'ddd' " IN_NET "\n"
         "f:1:58: unknown field 'eee' " IN_NET},
        /* columns count characters, not bytes */
        {NET, "name: '\xc3\xa9\xc3\xa9' aaa: 1", "f:1:12: unknown field 'aaa' " IN_NET},
    };
    CHECK(examples);
}

static void wrong_values(void **state)
{
    (void)state;
    static const struct example examples[] = {
        {LAYER, "type: Convolution",
         "f:1:7: field 'type' takes a string in quotes, found 'Convolution'"},
        {LAYER, "phase: TRAINN", "f:1:8: field 'phase' takes one of TRAIN, TEST, found 'TRAINN'"},
        {LAYER, "phase: 7", "f:1:8: field 'phase' takes one of TRAIN, TEST, found '7'"},
        {LAYER, "phase: 'TEST'",
         "f:1:8: field 'phase' takes one of TRAIN, TEST without quotes, found ''TEST''"},
        {LAYER, "phase: -1", "f:1:9: field 'phase' takes one of TRAIN, TEST, found '1'"},
        {SOLVER, "max_iter: 1e3", "f:1:11: field 'max_iter' takes a whole number, found '1e3'"},
        {SOLVER, "max_iter: 2147483648",
         "f:1:11: the value 2147483648 of field 'max_iter' is out of range (32 bits)"},
        {SOLVER, "max_iter: -2147483649",
         "f:1:12: the value -2147483649 of field 'max_iter' is out of range (32 bits)"},
        {SOLVER, "random_seed: 99999999999999999999",
         "f:1:14: the value 99999999999999999999 of field 'random_seed' is out of range (64 bits)"},
        {LAYER, "data_param { batch_size: -1 }",
         "f:1:27: the value -1 of field 'batch_size' is out of range (0 to 4294967295)"},
        {LAYER, "data_param { synthetic_param { first: 18446744073709551616 } }",
         "f:1:39: the value 18446744073709551616 of field 'first' is out of range "
         "(0 to 18446744073709551615)"},
        {SOLVER, "base_lr: 'x' 'y' gamma: true",
         "f:1:10: field 'base_lr' takes a number, found ''x''\n"
         "f:1:25: field 'gamma' takes a number, found 'true'"},
        {SOLVER, "base_lr: 0x10", "f:1:10: field 'base_lr' takes a decimal number, found '0x10'"},
        {SOLVER, "base_lr: 1e39",
         "f:1:10: the value 1e39 of field 'base_lr' is out of range (at most about 3.4e38)"},
        {BLOB, "double_data: -1e309",
         "f:1:15: the value -1e309 of field 'double_data' is out of range (at most about 1.8e308)"},
        {SOLVER, "debug_info: yes", "f:1:13: field 'debug_info' takes true or false, found 'yes'"},
        {SOLVER, "debug_info: 2", "f:1:13: field 'debug_info' takes true or false, found '2'"},
        {NET, "name: 'a\\qb'", "f:1:7: field 'name': an escape that is not known"},
        {NET, "name: 'a\\0b'", "f:1:7: field 'name': a zero byte in a string"},
        {NET, "name: '\\400'", "f:1:7: field 'name': an octal escape beyond \\377"},
        {NET, "name: '\\xg'", "f:1:7: field 'name': \\x takes hexadecimal digits"},
        {NET, "name: '\\u12'", "f:1:7: field 'name': \\u takes four hexadecimal digits"},
        {NET, "name: '\\U0011ffff'",
         "f:1:7: field 'name': an escape that is not a Unicode character"},
        {NET, "name: '\\ud83d'", "f:1:7: field 'name': an escape that is not a Unicode character"},
    };
    CHECK(examples);
}

static void broken_syntax(void **state)
{
    (void)state;
    static const struct example examples[] = {
        {NET, "layer {\n name: 'a'\n",
         "f:3:1: expected '}' for the message that begins at f:1:1, found the end of the text"},
        {NET, "layer { name: 'a' >", "f:1:19: expected the name of a field, found '>'"},
        {NET, "}", "f:1:1: expected the name of a field, found '}'"},
        {NET, "name 'a'", "f:1:6: expected ':' behind 'name', found ''a''"},
        {NET, "name:", "f:1:6: expected a value, found the end of the text"},
        {NET, "name: }", "f:1:7: expected a value, found '}'"},
        {NET, "name: -'a'", "f:1:7: expected a value, found '-'"},
        {NET, "layer: 3", "f:1:8: expected '{', found '3'"},
        {NET, "input: ['a' 'b', ]", "f:1:18: expected a value, found ']'"},
        {NET, "input: ['a'; 'b']", "f:1:12: expected ',' or ']', found ';'"},
        {NET, "zzz 3",
         "f:1:1: unknown field 'zzz' " IN_NET "\n"
         "f:1:5: expected ':' or '{', found '3'"},
        {NET, "zzz { [ }",
         "f:1:1: unknown field 'zzz' " IN_NET "\n"
         "f:1:9: expected ']', found '}'"},
        {NET, "zzz { ",
         "f:1:1: unknown field 'zzz' " IN_NET "\n"
         "f:1:7: expected the end of a block, found the end of the text"},
        {NET, "name: 'a\n'", "f:1:7: a string is not closed on its line"},
        {NET, "name: \"a", "f:1:7: a string is not closed on its line"},
        {NET, "name: \"a\\", "f:1:7: a string is not closed on its line"},
        {BLOB, "num: 08", "f:1:6: a number that begins with 0 is octal and cannot have 8 or 9"},
        {BLOB, "num: 0x", "f:1:6: a hexadecimal number has no digits"},
        {BLOB, "num: 12ab", "f:1:6: this is neither a number nor a name"},
        {BLOB, "data: 1.2.3", "f:1:7: this is neither a number nor a name"},
        {BLOB, "num: 1 @", "f:1:8: a character that cannot stand here"},
        {BLOB, "num: 1 \x01", "f:1:8: a character that cannot stand here"},
        {BLOB, "3: 1", "f:1:1: expected the name of a field, found '3'"},
    };
    CHECK(examples);
}

/* Deep nesting ends in an error, not in the end of the stack. */
static void nesting_is_limited(void **state)
{
    (void)state;
    enum { DEPTH = 100000 };
    char *text = malloc(DEPTH * 4 + 1), *at = text;
    for (int i = 0; i < DEPTH; i++)
        at += sprintf(at, "a {");
    struct ls_error error = {0};
    struct ls_definition *definition;
    char problems[1024];
    assert_int_equal(ls_text_read("f", text, (size_t)(at - text), NET, &definition, &error),
                     LOCKSTEP_DEFINITION);
    ls_error_format(&error, problems, sizeof problems);
    assert_non_null(strstr(problems, "expected fewer messages within messages"));
    free(text);
}

static void a_zero_byte_is_no_end(void **state)
{
    (void)state;
    struct ls_error error = {0};
    struct ls_definition *definition;
    assert_int_equal(ls_text_read("f", "name: 'a'\0x", 11, NET, &definition, &error),
                     LOCKSTEP_DEFINITION);
    assert_string_equal(error.problems[0].place, "f:1:10");
}

/* Numbers have a point in every locale; skipped where there is none with a comma. */
static void locale_does_not_matter(void **state)
{
    (void)state;
    if (setlocale(LC_NUMERIC, "de_DE.UTF-8") == NULL &&
        setlocale(LC_NUMERIC, "fr_FR.UTF-8") == NULL)
        ls_test_skip("there is no locale with a decimal comma");
    static const struct example examples[] = {{SOLVER, "base_lr: 0.25", "base_lr: 0.25\n"}};
    CHECK(examples);
    setlocale(LC_NUMERIC, "C");
}

static const char *place_in(const struct ls_definition *definition, const void *message,
                            const char *field, size_t index)
{
    static char place[LS_PLACE_MAX];
    return ls_place_index(definition, message, field, index, place, sizeof place);
}

static void places(void **state)
{
    (void)state;
    static const char text[] = "name: 'n'\n"
                               "layer {\n"
                               "  bottom: 'a' bottom: ['b',\n"
                               "    'c']\n"
                               "  pooling_param: { pad: 1 }\n"
                               "}";
    struct ls_error error = {0};
    struct ls_definition *d;
    assert_int_equal(ls_text_read("net", text, strlen(text), NET, &d, &error), 0);
    const Lockstep__NetParameter *net = (const Lockstep__NetParameter *)d->message;
    const Lockstep__LayerParameter *layer = net->layer[0];
    assert_string_equal(place_in(d, net, "name", 0), "net:1:1");
    assert_string_equal(place_in(d, net, "layer", 0), "net:2:1");
    assert_string_equal(place_in(d, layer, NULL, 0), "net:2:1");
    assert_string_equal(place_in(d, layer, "bottom", 0), "net:3:3");
    assert_string_equal(place_in(d, layer, "bottom", 1), "net:3:24");
    assert_string_equal(place_in(d, layer, "bottom", 2), "net:4:5");
    assert_string_equal(place_in(d, layer, "bottom", 9), "net:3:3");
    assert_string_equal(place_in(d, layer, "top", 0), "net:2:1");
    assert_string_equal(place_in(d, layer->pooling_param, NULL, 0), "net:5:3");
    assert_string_equal(place_in(d, layer->pooling_param, "pad", 0), "net:5:20");
    assert_string_equal(place_in(d, layer->pooling_param, "stride", 0), "net:5:3");
    assert_string_equal(place_in(d, NULL, "pad", 0), "net");
    assert_string_equal(place_in(d, net, NULL, 0), "net");
    ls_definition_free(d);
}

/* Every allocation that can fail does, once; each time there is an error and nothing leaks. */
static void memory_runs_out(void **state)
{
    (void)state;
    char text[2048] = "name: 'a' 'b' layer { type: 'x' bottom: ['1', '2', '3', '4', '5'] ";
    for (int i = 0; i < 30; i++)
        strcat(text, "loss_weight: 1 ");
    strcat(text, "pooling_param { pad: 1 } }");
    for (long n = 0;; n++) {
        struct ls_error error = {0};
        struct ls_definition *definition;
        ls_fail_allocation_after(n);
        int status = ls_text_read("f", text, strlen(text), NET, &definition, &error);
        ls_fail_allocation_after(-1);
        if (status == 0) {
            ls_definition_free(definition);
            assert_true(n > 4);
            return;
        }
        assert_int_equal(status, LOCKSTEP_RESOURCE);
        assert_null(definition);
        assert_int_equal(error.status, LOCKSTEP_RESOURCE);
    }
}

static void outermost_fields_tell_the_type(void **state)
{
    (void)state;
    static const char net[] = "name: 'x' layer { net: 3 } layer { base_lr: 1 }";
    static const char solver[] = "net: 'x' base_lr: 1 solver_mode: CPU";
    assert_int_equal(ls_text_affinity(net, strlen(net), NET), 3);
    assert_int_equal(ls_text_affinity(net, strlen(net), SOLVER), 0);
    assert_int_equal(ls_text_affinity(solver, strlen(solver), SOLVER), 3);
    assert_int_equal(ls_text_affinity(solver, strlen(solver), NET), 0);
    assert_int_equal(ls_text_affinity("'", 1, NET), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(notations),
        cmocka_unit_test(numbers),
        cmocka_unit_test(strings),
        cmocka_unit_test(wrong_fields),
        cmocka_unit_test(wrong_values),
        cmocka_unit_test(broken_syntax),
        cmocka_unit_test(nesting_is_limited),
        cmocka_unit_test(a_zero_byte_is_no_end),
        cmocka_unit_test(locale_does_not_matter),
        cmocka_unit_test(places),
        cmocka_unit_test(memory_runs_out),
        cmocka_unit_test(outermost_fields_tell_the_type),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
