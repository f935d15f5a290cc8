/* Labels and indices that are known before anything is computed.
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

/* Random labels and places of sequences whose range is known, and is beyond what takes them. */
static void numbers_beyond_what_takes_them_are_refused(void **state)
{
    (void)state;
#define FILLED(filler, rest)                                                                       \
    "layer { name: 'data' type: 'DummyData' top: 'data' top: 'label' dummy_data_param { shape { "  \
    "dim: 4 dim: 3 } shape { dim: 4 } data_filler { type: 'uniform' } data_filler { " filler       \
    " } } }\n"                                                                                     \
    "layer { name: 'ip' type: 'InnerProduct' bottom: 'data' top: 'ip' inner_product_param { "      \
    "num_output: 3 } }\n" rest
#define PLACES(rows, more)                                                                         \
    "layer { name: 't' type: 'Input' top: 't' top: 's' input_param { shape { dim: [2, 6] } } }\n"  \
    "layer { name: 'places' type: 'Positions' bottom: 't' " more " top: 'p' }\n"                   \
    "layer { name: 'flat' type: 'Reshape' bottom: 'p' top: 'q' reshape_param { shape { dim: "      \
    "[0, 2, 3] } } }\n"                                                                            \
    "layer { name: 'table' type: 'Embed' bottom: 'q' top: 'e' embed_param { num_output: 4 "        \
    "input_dim: " rows " } }\n"
    static const struct {
        const char *net, *words; /* NULL: it is good */
    } nets[] = {
        {FILLED("type: 'integer' min: 0 max: 2", LOSS), NULL},
        {FILLED("type: 'integer' min: 0 max: 3", LOSS),
         "the numbers 0 to 3, which layer 'data' makes, for classes, and has 3, 0 to 2"},
        {FILLED("type: 'integer' min: -1 max: 2", LOSS),
         "the numbers -1 to 2, which layer 'data' makes, for classes, and has 3, 0 to 2"},
        {FILLED("type: 'integer' min: 255 max: 255", LOSS), NULL},
        {FILLED("type: 'integer' min: 254 max: 255", LOSS), "the numbers 254 to 255"},
        {FILLED("type: 'uniform' min: 0 max: 2.9", LOSS),
         "layer 'data' fills its labels with numbers that are not whole"},
        {FILLED("type: 'uniform' min: 0 max: 9", NUMBERS), NULL},
        {PLACES("6", ""), NULL},
        {PLACES("5", ""),
         "the numbers 0 to 5, which layer 'places' makes, for rows, and has 5, 0 to 4"},
        {PLACES("5", "bottom: 's'"), NULL}, /* they may begin anew */
        {PLACES("7", "positions_param { offset: 1 }"), NULL},
        {PLACES("6", "positions_param { offset: 1 }"), "the numbers 1 to 6, which"},
    };
    for (size_t i = 0; i < sizeof nets / sizeof nets[0]; i++) {
        struct one_net one;
        open_net(&one, nets[i].net, false, 2);
        assert_int_equal(one.status, nets[i].words == NULL ? 0 : LOCKSTEP_DEFINITION);
        if (nets[i].words != NULL && strstr(one.error.problems[0].message, nets[i].words) == NULL)
            fail_msg("'%s' is not in: %s", nets[i].words, one.error.problems[0].message);
        close_net(&one);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels_are_cut_off_as_in_caffe),
        cmocka_unit_test(constants_that_are_no_class_are_refused),
        cmocka_unit_test(numbers_beyond_what_takes_them_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
