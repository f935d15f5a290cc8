/* Multipliers of parameters that layers share by name, as Caffe has it: the first layer that says
 * one decides, owner or not; another value is an error. And the ops of layers that share them.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "one_net.h"

#define DATA                                                                                       \
    "layer { name: 'data' type: 'Data' top: 'data' top: 'label'\n"                                 \
    "  data_param { source: 'x' batch_size: 64 } }\n"
#define IP(name, param)                                                                            \
    "layer { name: '" name "' type: 'InnerProduct' bottom: 'data' top: '" name "'\n  param { "     \
    "name: 'w' " param " }\n  inner_product_param { num_output: 10 bias_term: false } }\n"
#define LOSS                                                                                       \
    "layer { name: 'sum' type: 'Eltwise' bottom: 'a' bottom: 'b' bottom: 'c' top: 'sum' }\n"       \
    "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'sum' bottom: 'label' top: 'loss' }\n"

static void expect(const char *text, float lr, float decay)
{
    struct one_net one;
    open_net(&one, text, true, 2);
    if (one.status != 0)
        fail_msg("%s", one.error.problems[0].message);
    assert_int_equal(one.parameters->count, 1);
    assert_true(one.parameters->items[0]->lr_mult == lr);
    assert_true(one.parameters->items[0]->decay_mult == decay);
    assert_int_equal(one.parameters->items[0]->trained, lr != 0);
    close_net(&one);
}

static void the_first_that_says_one_decides(void **state)
{
    (void)state;
    expect(DATA IP("a", "") IP("b", "") IP("c", "") LOSS, 1, 1);
    expect(DATA IP("a", "lr_mult: 2") IP("b", "") IP("c", "lr_mult: 2") LOSS, 2, 1);
    expect(DATA IP("a", "") IP("b", "lr_mult: 3") IP("c", "decay_mult: 0") LOSS, 3, 0);
    expect(DATA IP("a", "decay_mult: 0.5") IP("b", "lr_mult: 0") IP("c", "") LOSS, 0, 0.5F);
}

static void refuse(const char *text, const char *place, const char *message)
{
    struct one_net one;
    open_net(&one, text, true, 2);
    assert_int_equal(one.status, LOCKSTEP_DEFINITION);
    assert_string_equal(one.error.problems[0].place, place);
    assert_string_equal(one.error.problems[0].message, message);
    close_net(&one);
}

static void other_values_are_refused(void **state)
{
    (void)state;
    refuse(DATA IP("a", "lr_mult: 2") IP("b", "lr_mult: 3") IP("c", "") LOSS, "net.prototxt:7:21",
           "b: shared parameter 'w' has lr_mult 3 here and 2 in a layer above");
    /* The default, said by the owner, is a value like others. */
    refuse(DATA IP("a", "lr_mult: 1") IP("b", "lr_mult: 3") IP("c", "") LOSS, "net.prototxt:7:21",
           "b: shared parameter 'w' has lr_mult 3 here and 1 in a layer above");
    refuse(DATA IP("a", "") IP("b", "decay_mult: 0") IP("c", "decay_mult: 1") LOSS,
           "net.prototxt:10:21",
           "c: shared parameter 'w' has decay_mult 1 here and 0 in a layer above");
}

static size_t count_ops(const struct ls_graph *graph, enum ls_op_kind kind)
{
    size_t count = 0;
    for (size_t i = 0; i < graph->op_count; i++)
        count += graph->ops[i]->kind == kind;
    return count;
}

#define LINEAR_LOSS                                                                                \
    "layer { name: 'z' type: 'LinearSoftmaxLoss' bottom: 'data' bottom: 'label' top: 'z'\n"        \
    "  param { name: 'w' } linear_softmax_loss_param { num_output: 10 axis: 1 } }\n"

/* A loss that is measured with its gradient is measured once, also where only a layer behind it
 * says that there is none. */
static void a_linear_loss_is_measured_once(void **state)
{
    (void)state;
    for (int trained = 0; trained < 2; trained++) {
        struct one_net one;
        open_net(&one,
                 trained ? DATA LINEAR_LOSS IP("a", "") IP("b", "") IP("c", "") LOSS
                         : DATA LINEAR_LOSS IP("a", "") IP("b", "lr_mult: 0") IP("c", "") LOSS,
                 true, 2);
        if (one.status != 0)
            fail_msg("%s", one.error.problems[0].message);
        assert_int_equal(count_ops(one.graph, LS_OP_LINEAR_LOSS), !trained);
        assert_int_equal(count_ops(one.graph, LS_OP_LINEAR_LOSS_GRADIENT), trained);
        close_net(&one);
    }
}

#define TABLE                                                                                      \
    "layer { name: 'e' type: 'Embed' bottom: 'label' top: 'e' param { name: 'w' share_mode: "      \
    "PERMISSIVE }\n  embed_param { input_dim: 768 num_output: 10 bias_term: false } }\n"           \
    "layer { name: 'sum' type: 'Reduction' bottom: 'e' top: 'sum' loss_weight: 1 "                 \
    "reduction_param { axis: 1 } }\n"

/* Gradients by rows are for a table that lies plain, which only an Embed in front of all others
 * asks for, whatever shapes they see. */
static void tables_of_other_shapes_have_no_rows(void **state)
{
    (void)state;
    for (int first = 0; first < 2; first++) {
        struct one_net one;
        open_net(&one,
                 first ? DATA TABLE IP("a", "share_mode: PERMISSIVE") : DATA IP("a", "") TABLE,
                 true, 2);
        if (one.status != 0)
            fail_msg("%s", one.error.problems[0].message);
        assert_int_equal(count_ops(one.graph, LS_OP_EMBED_ROWS), first);
        assert_int_equal(count_ops(one.graph, LS_OP_EMBED_WEIGHTS), !first);
        close_net(&one);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_that_says_one_decides),
        cmocka_unit_test(a_linear_loss_is_measured_once),
        cmocka_unit_test(tables_of_other_shapes_have_no_rows),
        cmocka_unit_test(other_values_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
