/* Constant labels of DummyData layers.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "one_net.h"

#define NET(value, rest)                                                                           \
    "layer { name: 'data' type: 'DummyData' top: 'data' top: 'label' dummy_data_param { shape { "  \
    "dim: 4 dim: 3 } shape { dim: 4 } data_filler { type: 'uniform' } data_filler { value: " value \
    " } } }\n"                                                                                     \
    "layer { name: 'ip' type: 'InnerProduct' bottom: 'data' top: 'ip' inner_product_param { "      \
    "num_output: 3 } }\n" rest
#define LOSS                                                                                       \
    "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'loss' "       \
    "loss_param { ignore_label: 255 } }\n"
#define NUMBERS                                                                                    \
    "layer { name: 'other' type: 'Power' bottom: 'label' top: 'other' power_param { scale: 2 } "   \
    "}\n"

/* What the label of a net is filled with. */
static float filled(const char *text)
{
    struct one_net one;
    float value = -1;
    open_net(&one, text, true, 2);
    if (one.status != 0)
        fail_msg("%s", one.error.problems[0].message);
    for (size_t i = 0; i < one.graph->op_count; i++)
        if (one.graph->ops[i]->kind == LS_OP_FILL && one.graph->ops[i]->attr.fill.filler == NULL)
            value = one.graph->ops[i]->attr.fill.value;
    close_net(&one);
    return value;
}

static void labels_are_cut_off_as_in_caffe(void **state)
{
    (void)state;
    assert_true(filled(NET("0.01", LOSS)) == 0);
    assert_true(filled(NET("2.9", LOSS)) == 2);
    assert_true(filled(NET("1", LOSS)) == 1);
    assert_true(filled(NET("255.5", LOSS)) == 255);
    /* a layer that reads them as numbers has them as they are */
    assert_true(filled(NET("1.5", LOSS NUMBERS)) == 1.5F);
    assert_true(filled(NET("7.5", NUMBERS)) == 7.5F);
}

static void constants_that_are_no_class_are_refused(void **state)
{
    (void)state;
    static const char *const nets[] = {NET("3", LOSS), NET("-1", LOSS), NET("nan", LOSS),
                                       NET("1e9", LOSS NUMBERS)};
    for (size_t i = 0; i < sizeof nets / sizeof nets[0]; i++) {
        struct one_net one;
        open_net(&one, nets[i], i % 2 == 0, 2);
        assert_int_equal(one.status, LOCKSTEP_DEFINITION);
        assert_int_equal(one.error.count, 1);
        assert_non_null(
            strstr(one.error.problems[0].message, "layer 'data' fills its labels with"));
        assert_non_null(strstr(one.error.problems[0].message, "none of its 3 classes, 0 to 2"));
        assert_int_equal(strncmp(one.error.problems[0].place, "net.prototxt:3:", 15), 0);
        close_net(&one);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels_are_cut_off_as_in_caffe),
        cmocka_unit_test(constants_that_are_no_class_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
