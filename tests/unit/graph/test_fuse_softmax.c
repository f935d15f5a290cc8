/* A softmax and the logarithmic loss behind it become one op, and so do their gradients.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "rewrites.h"

#define LOSS(name, p, rest)                                                                        \
    "layer { name: '" name "' type: 'MultinomialLogisticLoss' bottom: '" p                         \
    "' bottom: 'label' top: '" name "' " rest " }\n"
#define NET(body)                                                                                  \
    DATA LAYER("ip", "InnerProduct", "data", "ip", "inner_product_param { num_output: 10 }") body

static const struct rewrite_case cases[] = {
    {"a training", NET(LAYER("p", "Softmax", "ip", "p", "") LOSS("loss", "p", "")),
     "p: softmax loss(ip label > p)\np: softmax loss backward(p label > grad(ip))\n"},
    {"in place", NET(LAYER("p", "Softmax", "ip", "ip", "") LOSS("loss", "ip", "")),
     "p: softmax loss(ip label > ip)\np: softmax loss backward(ip label > grad(ip))\n"},
    {"an accuracy reads the softmax, too",
     NET(LAYER("p", "Softmax", "ip", "p", "") LAYER("a", "Accuracy", "p' bottom: 'label", "a", "")
             LOSS("loss", "p", "")),
     "p: softmax loss(ip label > p)\na: accuracy(p label)\n"
     "p: softmax loss backward(p label > grad(ip))\n"},

    /* What must stay apart. */
    {"two losses",
     NET(LAYER("p", "Softmax", "ip", "p", "") LOSS("one", "p", "") LOSS("two", "p", "")),
     "p: softmax loss(ip label > p)\ntwo: log loss(p label)\n"
     "two: log loss backward(p label > grad(p))\none: log loss backward(p label > grad(p))\n"
     "one: eltwise(grad(p) grad(p) > grad(p))\np: softmax backward(p grad(p) > grad(ip))\n"},
    {"the softmax is a loss itself",
     NET(LAYER("p", "Softmax", "ip", "p", "loss_weight: 2") LOSS("loss", "p", "")),
     "p: softmax loss(ip label > p)\np: sum loss(p)\n"
     "loss: log loss backward(p label > grad(p))\np: sum loss backward( > grad(p))\n"
     "p: eltwise(grad(p) grad(p) > grad(p))\np: softmax backward(p grad(p) > grad(ip))\n"},
    {"classes are not the last axis",
     NET(LAYER("c", "Convolution", "data", "c",
               "convolution_param { num_output: 4 kernel_size: 15 }")
             LAYER("p", "Softmax", "c", "p", "") LOSS("loss", "p", "")),
     "p: softmax(c > p)\nloss: log loss(p label)\nloss: log loss backward(p label > grad(p))\n"
     "p: softmax backward(p grad(p) > grad(c))\n"},
    {"the softmax has a mask",
     NET(LAYER("p", "Softmax", "ip' bottom: 'ip", "p", "propagate_down: [true, false]")
             LOSS("loss", "p", "")),
     "p: softmax(ip ip > p)\nloss: log loss(p label)\nloss: log loss backward(p label > grad(p))\n"
     "p: softmax backward(p grad(p) > grad(ip))\n"},
    {"something stands between",
     NET(LAYER("p", "Softmax", "ip", "p", "")
             LAYER("q", "Power", "p", "q", "power_param { scale: 0.5 }") LOSS("loss", "q", "")),
     "p: softmax(ip > p)\nq: activation(p > q)\nloss: log loss(q label)\n"
     "loss: log loss backward(q label > grad(q))\nq: activation backward(grad(q) p > grad(p))\n"
     "p: softmax backward(p grad(p) > grad(ip))\n"},
};

static const struct rewrite_case test_phase = {
    "a test", NET(LAYER("p", "Softmax", "ip", "p", "") LOSS("loss", "p", "")),
    "p: softmax loss(ip label > p)\n"};

static bool is_shown(enum ls_op_kind kind)
{
    return kind != LS_OP_INNER_PRODUCT && kind != LS_OP_INNER_PRODUCT_WEIGHTS &&
           kind != LS_OP_CONVOLUTION && kind != LS_OP_CONVOLUTION_WEIGHTS &&
           kind != LS_OP_ACCUMULATE;
}

static void describe_op(struct ls_text *text, const struct ls_op *op)
{
    if (!is_shown(op->kind))
        return;
    ls_text_format(text, "%s: %s(", op->layer->name, ls_op_kind_name(op->kind));
    for (int i = 0; i < op->inputs; i++)
        ls_text_format(text, "%s%s", i > 0 ? " " : "", op->input[i]->name);
    if (op->outputs > 0)
        ls_text_format(text, " > %s", op->output[0]->name);
    ls_text_add(text, ")\n");
    if (op->kind == LS_OP_SOFTMAX_LOSS || op->kind == LS_OP_SOFTMAX_LOSS_BACKWARD)
        assert_true(op->attr.loss.clamped && op->attr.loss.axis == 1);
}

static void softmax_and_log_loss_become_one_op(void **state)
{
    (void)state;
    struct one_net one;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        open_case(&one, &cases[i], true, describe_op);
        close_net(&one);
    }
    open_case(&one, &test_phase, false, describe_op);
    close_net(&one);
}

/* What the loss's definition says is kept. */
static void the_fused_loss_keeps_what_its_definition_says(void **state)
{
    (void)state;
    struct one_net one;
    open_net(&one,
             NET(LAYER("p", "Softmax", "ip", "p", "")
                     LOSS("loss", "p",
                          "loss_weight: 3 loss_param { ignore_label: 4 normalization: VALID }")),
             true, 2);
    int found = 0;
    for (size_t o = 0; o < one.graph->op_count; o++) {
        const struct ls_op *op = one.graph->ops[o];
        if (op->kind != LS_OP_SOFTMAX_LOSS && op->kind != LS_OP_SOFTMAX_LOSS_BACKWARD)
            continue;
        const struct ls_loss_attr *attr = &op->attr.loss;
        assert_true(attr->has_ignore && attr->ignore_label == 4 && attr->loss_weight == 3);
        assert_true(attr->normalization == LS_NORM_VALID && attr->normalizer == 0);
        found++;
    }
    assert_int_equal(found, 2);
    close_net(&one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(softmax_and_log_loss_become_one_op),
        cmocka_unit_test(the_fused_loss_keeps_what_its_definition_says)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
