/* Nets with layers that reduce a whole batch, or cut samples, and the tops of these layers.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "one_net.h"

#define NET                                                                                        \
    "layer { name: 'data' type: 'Data' top: 'data' top: 'label' data_param { source: 'x' "         \
    "batch_size: 64 backend: LMDB } }\n"                                                           \
    "layer { name: 'ip' type: 'InnerProduct' bottom: 'data' top: 'ip' inner_product_param { "      \
    "num_output: 6 } }\n"
#define SUM(rest) "layer { name: 'sum' type: 'Reduction' bottom: 'ip' top: 'sum' " rest " }\n"

static int count_ops(const struct ls_graph *graph, enum ls_op_kind kind)
{
    int count = 0;
    for (size_t i = 0; i < graph->op_count; i++)
        count += graph->ops[i]->kind == kind;
    return count;
}

static void check_figure(const char *text, float loss_weight, int backward)
{
    struct one_net one;
    open_net(&one, text, true, 5);
    if (one.status != 0)
        fail_msg("%s", one.error.problems[0].message);
    assert_int_equal(one.graph->metric_count, 1);
    assert_string_equal(one.graph->metrics[0].name, "sum");
    assert_true(one.graph->metrics[0].is_output);
    assert_true(one.graph->metrics[0].loss_weight == loss_weight);
    assert_int_equal(count_ops(one.graph, LS_OP_REDUCE_LOSS), 1);
    assert_int_equal(count_ops(one.graph, LS_OP_REDUCE_LOSS_BACKWARD), backward);
    assert_int_equal(count_ops(one.graph, LS_OP_SUM_LOSS), 0);
    assert_int_equal(count_ops(one.graph, LS_OP_ACCUMULATE), 2 * backward);
    close_net(&one);
}

/* With a weight the figure is a loss with a gradient; without, it is only reported. */
static void figures(void **state)
{
    (void)state;
    check_figure(NET SUM("loss_weight: 0.5"), 0.5F, 1);
    check_figure(NET SUM(""), 0, 0);
    check_figure(NET SUM("loss_weight: 2 reduction_param { operation: MEAN }"), 2, 1);
}

/* A number for each sample, with a weight, is a loss as any blob is. */
static void weighted_samples(void **state)
{
    (void)state;
    struct one_net one;
    open_net(&one, NET SUM("loss_weight: 0.5 reduction_param { axis: 1 }"), true, 5);
    assert_int_equal(one.status, 0);
    assert_int_equal(count_ops(one.graph, LS_OP_SUM_LOSS), 1);
    assert_int_equal(count_ops(one.graph, LS_OP_SUM_LOSS_BACKWARD), 1);
    assert_int_equal(count_ops(one.graph, LS_OP_REDUCE_BACKWARD), 1);
    close_net(&one);
}

static void check_refused(const char *text, const char *message)
{
    struct one_net one;
    open_net(&one, text, true, 5);
    assert_int_equal(one.status, LOCKSTEP_DEFINITION);
    if (strstr(one.error.problems[0].message, message) == NULL)
        fail_msg("%s", one.error.problems[0].message);
    close_net(&one);
}

static void refusals(void **state)
{
    (void)state;
    check_refused(NET SUM("") "layer { name: 'r' type: 'ReLU' bottom: 'sum' top: 'r' }\n",
                  "'sum' is a metric of the whole batch");
    check_refused(NET "layer { name: 'a' type: 'ArgMax' bottom: 'ip' top: 'a' loss_weight: 1 }\n",
                  "an ArgMax layer has no gradient");
    check_refused(NET "layer { name: 'f' type: 'Filter' bottom: 'ip' bottom: 'ip' top: 'f' }\n",
                  "must be one number a sample");
}

/* A part that belongs to no group has zeros for a gradient. */
static void unused_part(void **state)
{
    (void)state;
    struct one_net one;
    open_net(&one,
             NET "layer { name: 'cut' type: 'Slice' bottom: 'ip' top: 'a' top: 'b' top: 'c' }\n"
                 "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'b' bottom: 'label' }\n",
             true, 5);
    assert_int_equal(one.status, 0);
    assert_int_equal(count_ops(one.graph, LS_OP_SLICE), 1);
    assert_int_equal(count_ops(one.graph, LS_OP_FILL), 2);
    assert_int_equal(count_ops(one.graph, LS_OP_CONCAT), 1);
    close_net(&one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures),
        cmocka_unit_test(weighted_samples),
        cmocka_unit_test(refusals),
        cmocka_unit_test(unused_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
