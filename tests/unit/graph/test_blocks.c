/* Nets with blocks: the values are those of the layers written out, and a mistake is told once.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "one_net.h"

#define INPUT                                                                                      \
    "layer { name: 'in' type: 'Input' top: 'x' top: 'mask' input_param { shape { dim: 2 dim: 4 } " \
    "} }\n"

static void a_block_builds_its_layers(void **state)
{
    (void)state;
    struct one_net one;
    struct ls_text text = {0};
    open_net(&one,
             INPUT "block { name: 'h' repeat: 2 bottom: 'x' top: 'x'\n"
                   "layer { name: 'fc' type: 'InnerProduct' bottom: 'x' top: 'fc' "
                   "inner_product_param { num_output: 4 } }\n"
                   "layer { name: 'relu' type: 'ReLU' bottom: 'fc' top: 'fc' }\n"
                   "layer { name: 'sum' type: 'Eltwise' bottom: 'x' bottom: 'fc' top: 'x' } }\n"
                   "layer { name: 'end' type: 'InnerProduct' bottom: 'x' top: 'y' "
                   "inner_product_param { num_output: 3 } }",
             false, 2);
    if (one.status != 0)
        fail_msg("%s: %s", one.error.problems[0].place, one.error.problems[0].message);
    describe_blobs(&text, one.graph);
    assert_string_equal(text.data, "x 2x4\nmask 2x4\nh.0.fc 2x4\nh.0.fc 2x4\nh.0.x 2x4\n"
                                   "h.1.fc 2x4\nh.1.fc 2x4\nh.1.x 2x4\ny 2x3\n");
    ls_text_free(&text);
    close_net(&one);
}

static void fails_with(const char *text, const char *wanted)
{
    struct one_net one;
    char problems[2048];
    open_net(&one, text, false, 2);
    assert_int_equal(one.status, LOCKSTEP_DEFINITION);
    ls_error_format(&one.error, problems, sizeof problems);
    assert_string_equal(problems, wanted);
    close_net(&one);
}

static void mistakes_of_copies_are_told_once(void **state)
{
    (void)state;
    fails_with(INPUT "block { name: 'h' repeat: 12 bottom: 'x' top: 'x'\n"
                     "layer { name: 'a' type: 'Eltwise' bottom: 'x' bottom: 'maks' top: 'x' } }",
               "net.prototxt:3:35: h.0.a (copy 0 of block 'h'): no layer above produces its bottom "
               "'maks' (index 1). hint: did you mean 'mask'?");
    fails_with(INPUT "block { name: 'h' repeat: 12 bottom: 'x' top: 'x'\n"
                     "layer { name: 'a' type: 'TanH' bottom: 'x' bottom: 'mask' top: 'x' } }",
               "net.prototxt:3:32: h.0.a (copy 0 of block 'h'): its type TanH takes 1 bottom, not "
               "2");
    fails_with(INPUT "block { name: 'h' repeat: 12 bottom: 'x' top: 'x'\n"
                     "layer { name: 'a' type: 'TanHH' bottom: 'x' top: 'x' } }",
               "net.prototxt:3:19: h.0.a: there is no layer type 'TanHH' in this version (12 "
               "layers have it). hint: did you mean 'TanH'?");
    fails_with(
        INPUT "block { name: 'h' repeat: 12 bottom: 'x' top: 'x'\n"
              "layer { name: 'a' type: 'Split' bottom: 'x' top: 'a' top: 'b' }\n"
              "layer { name: 'fc' type: 'InnerProduct' bottom: 'a' top: 'x' "
              "inner_product_param { num_output: 0 } } }",
        "net.prototxt:4:84: h.0.fc (copy 0 of block 'h'): num_output must be 1 to 2147483647");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_block_builds_its_layers),
        cmocka_unit_test(mistakes_of_copies_are_told_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
