/* Sums take in the ReLU behind them, sums of gradients that of the ReLU which they pass.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "one_net.h"

#define LAYER(name, type, in, out, rest)                                                           \
    "layer { name: '" name "' type: '" type "' bottom: '" in "' top: '" out "' " rest " }\n"
#define CONV(name, in, out)                                                                        \
    LAYER(name, "Convolution", in, out,                                                            \
          "convolution_param { num_output: 4 kernel_size: 1 bias_term: false }")
#define JOIN(name, a, b, out, rest)                                                                \
    "layer { name: '" name "' type: 'Eltwise' bottom: '" a "' bottom: '" b "' top: '" out          \
    "' " rest " }\n"
/* a and b, which `body` makes into y. */
#define NET(body)                                                                                  \
    "layer { name: 'data' type: 'Data' top: 'data' top: 'label' data_param { source: 'x' "         \
    "batch_size: 8 } }\n" CONV("a", "data", "a") CONV("b", "data", "b") body LAYER(                \
        "ip", "InnerProduct", "y", "ip",                                                           \
        "inner_product_param { num_output: 10 }") "layer { name: 'loss' type: 'SoftmaxWithLoss' "  \
                                                  "bottom: 'ip' bottom: 'label' top: 'loss' }\n"

struct fuse_case {
    const char *what, *text, *ops;
};

static const struct fuse_case cases[] = {
    {"a sum", NET(JOIN("e", "a", "b", "e", "") LAYER("r", "ReLU", "e", "y", "")),
     "e: eltwise(a b > y) relu\nr: activation backward(grad(y) y > grad(e))\n"},
    {"in place", NET(JOIN("e", "a", "b", "y", "") LAYER("r", "ReLU", "y", "y", "")),
     "e: eltwise(a b > y) relu\nr: activation backward(grad(y) y > grad(y))\n"},
    {"a leaky ReLU behind a maximum",
     NET(JOIN("e", "a", "b", "e", "eltwise_param { operation: MAX }")
             LAYER("r", "ReLU", "e", "y", "relu_param { negative_slope: 0.5 }")),
     "e: eltwise(a b > y) relu 0.5\nr: activation backward(grad(y) y > grad(e))\n"
     "e: eltwise backward(grad(e) a b > grad(a))\ne: eltwise backward(grad(e) a b > grad(b))\n"},
    {"a block behind a block: the gradient of the first ReLU is a sum",
     NET(JOIN("e", "a", "b", "e", "") LAYER("r", "ReLU", "e", "r", "") CONV("c", "r", "c")
             JOIN("f", "c", "r", "f", "") LAYER("s", "ReLU", "f", "y", "")),
     "e: eltwise(a b > r) relu\nf: eltwise(c r > y) relu\n"
     "s: activation backward(grad(y) y > grad(f))\n"
     "c: eltwise(grad(f) grad(r) r > grad(e)) gated\n"},
    {"the gradient behind a convolution with a ReLU",
     NET(LAYER("r", "ReLU", "a", "r", "relu_param { negative_slope: 0.5 }") CONV("c", "r", "c")
             JOIN("f", "c", "r", "y", "")),
     "f: eltwise(c r > y)\nc: eltwise(grad(y) grad(r) r > grad(a)) gated 0.5\n"},

    /* What must stay apart. */
    {"somebody else reads the sum",
     NET(JOIN("e", "a", "b", "e", "") LAYER("r", "ReLU", "e", "r", "")
             JOIN("f", "e", "r", "y", "")),
     "e: eltwise(a b > e)\nr: activation(e > r)\nf: eltwise(e r > y)\n"
     "r: activation backward(grad(y) r > grad(e))\nr: eltwise(grad(y) grad(e) > grad(e))\n"},
    {"a slope below zero",
     NET(JOIN("e", "a", "b", "e", "")
             LAYER("r", "ReLU", "e", "y", "relu_param { negative_slope: -1 }")),
     "e: eltwise(a b > e)\nr: activation(e > y)\nr: activation backward(grad(y) e > grad(e))\n"},
    {"another activation", NET(JOIN("e", "a", "b", "e", "") LAYER("r", "TanH", "e", "y", "")),
     "e: eltwise(a b > e)\nr: activation(e > y)\nr: activation backward(grad(y) y > grad(e))\n"},
    {"two ReLUs",
     NET(JOIN("e", "a", "b", "e", "") LAYER("r", "ReLU", "e", "r", "")
             LAYER("s", "ReLU", "r", "y", "")),
     "e: eltwise(a b > r) relu\ns: activation(r > y)\n"
     "s: activation backward(grad(y) y > grad(r))\nr: activation backward(grad(r) r > grad(e))\n"},
};

static bool is_shown(enum ls_op_kind kind)
{
    return kind == LS_OP_ELTWISE || kind == LS_OP_ELTWISE_BACKWARD || kind == LS_OP_ACTIVATION ||
           kind == LS_OP_ACTIVATION_BACKWARD;
}

static void describe_op(struct ls_text *text, const struct ls_op *op)
{
    ls_text_format(text, "%s: %s(", op->layer->name, ls_op_kind_name(op->kind));
    for (int i = 0; i < op->inputs; i++)
        ls_text_format(text, "%s%s", i > 0 ? " " : "", op->input[i]->name);
    ls_text_format(text, " > %s)", op->output[0]->name);
    const struct ls_eltwise_attr *attr = &op->attr.eltwise;
    bool taken_in = op->kind == LS_OP_ELTWISE && (attr->relu || attr->gated);
    if (taken_in)
        ls_text_add(text, attr->relu ? " relu" : " gated");
    if (taken_in && attr->relu_slope != 0)
        ls_text_format(text, " %g", (double)attr->relu_slope);
    ls_text_add(text, "\n");
}

static void all_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct one_net one;
        struct ls_text text = {0};
        open_net(&one, cases[i].text, true, 2);
        if (one.status != 0)
            fail_msg("%s: %s", cases[i].what, one.error.problems[0].message);
        for (size_t o = 0; o < one.graph->op_count; o++)
            if (is_shown(one.graph->ops[o]->kind))
                describe_op(&text, one.graph->ops[o]);
        if (strcmp(text.data, cases[i].ops) != 0)
            fail_msg("%s:\n%s\nnot\n%s", cases[i].what, text.data, cases[i].ops);
        ls_text_free(&text);
        close_net(&one);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_cases)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
