/* Sums absorb the ReLU behind them; sums of gradients absorb the ReLU that they pass.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "rewrites.h"

#define JOIN(name, a, b, out, rest)                                                                \
    "layer { name: '" name "' type: 'Eltwise' bottom: '" a "' bottom: '" b "' top: '" out          \
    "' " rest " }\n"
#define NET(body) TWO_CONVOLUTIONS(body)

static const struct rewrite_case cases[] = {
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
    {"another op reads the sum",
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
    if (!is_shown(op->kind))
        return;
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

static void relus_and_gates_are_taken_into_sums(void **state)
{
    (void)state;
    struct one_net one;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        open_case(&one, &cases[i], true, describe_op);
        close_net(&one);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(relus_and_gates_are_taken_into_sums)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
