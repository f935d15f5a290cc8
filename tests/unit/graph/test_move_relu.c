/* Where gradients go back through a ReLU: behind joins and poolings, and together with dropout.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "rewrites.h"

#define RELU(name, in, out)  LAYER(name, "ReLU", in, out, "")
#define LEAKY(name, in, out) LAYER(name, "ReLU", in, out, "relu_param { negative_slope: 0.5 }")
#define POOL(name, in, out, method)                                                                \
    LAYER(name, "Pooling", in, out, "pooling_param { pool: " method " kernel_size: 3 stride: 2 }")
#define NET(body) TWO_CONVOLUTIONS(body)

static const struct rewrite_case cases[] = {
    {"dropout", NET(RELU("r", "a", "r") LAYER("d", "Dropout", "r", "y", "")),
     "d: dropout(grad(y) y > grad(a))\n"},
    {"max pooling", NET(RELU("r", "a", "r") POOL("p", "r", "y", "MAX")),
     "r: activation backward(grad(y) y > grad(y))\np: pooling backward(grad(y) > grad(a))\n"},
    {"two poolings", NET(RELU("r", "a", "r") POOL("p", "r", "p", "MAX") POOL("q", "p", "y", "MAX")),
     "r: activation backward(grad(y) y > grad(y))\nq: pooling backward(grad(y) > grad(p))\n"
     "p: pooling backward(grad(p) > grad(a))\n"},
    {"pooling and dropout",
     NET(RELU("r", "a", "r") POOL("p", "r", "p", "MAX") LAYER("d", "Dropout", "p", "y", "")),
     "d: dropout(grad(y) y > grad(p))\np: pooling backward(grad(p) > grad(a))\n"},
    {"a join",
     NET(RELU("r", "a", "r") RELU("s", "b", "s") LAYER("c", "Concat", "r' bottom: 's", "y", "")),
     "s: activation backward(grad(y) y > grad(y))\nc: slice(grad(y) > grad(a) grad(b))\n"},
    {"a join of leaky ones",
     NET(LEAKY("r", "a", "r") LEAKY("s", "b", "s") LAYER("c", "Concat", "r' bottom: 's", "y", "")),
     "s: activation backward(grad(y) y > grad(y))\nc: slice(grad(y) > grad(a) grad(b))\n"},
    {"a join, and a sum of gradients behind it",
     NET(RELU("r", "a", "r") RELU("s", "b", "s") LAYER("c", "Concat", "r' bottom: 's", "c", "")
             CONV("t", "c", "t") CONV("u", "c", "u")
                 LAYER("e", "Eltwise", "t' bottom: 'u", "y", "")),
     "t: eltwise(grad(c) grad(c) c > grad(c))\nc: slice(grad(c) > grad(a) grad(b))\n"},
    {"join, pooling, dropout",
     NET(RELU("r", "a", "r") RELU("s", "b", "s") LAYER("c", "Concat", "r' bottom: 's", "c", "")
             POOL("p", "c", "p", "MAX") LAYER("d", "Dropout", "p", "y", "")),
     "d: dropout(grad(y) y > grad(p))\np: pooling backward(grad(p) > grad(c))\n"
     "c: slice(grad(c) > grad(a) grad(b))\n"},

    /* What must stay. */
    {"average pooling", NET(RELU("r", "a", "r") POOL("p", "r", "y", "AVE")),
     "p: pooling backward(grad(y) > grad(r))\nr: activation backward(grad(r) r > grad(a))\n"},
    {"pooling behind a leaky ReLU", NET(LEAKY("r", "a", "r") POOL("p", "r", "y", "MAX")),
     "p: pooling backward(grad(y) > grad(r))\nr: activation backward(grad(r) r > grad(a))\n"},
    {"dropout behind a leaky ReLU", NET(LEAKY("r", "a", "r") LAYER("d", "Dropout", "r", "y", "")),
     "d: dropout(grad(y) > grad(r))\nr: activation backward(grad(r) r > grad(a))\n"},
    {"dropout behind a sigmoid",
     NET(LAYER("r", "Sigmoid", "a", "r", "") LAYER("d", "Dropout", "r", "y", "")),
     "d: dropout(grad(y) > grad(r))\nr: activation backward(grad(r) r > grad(a))\n"},
    {"a join with something else",
     NET(RELU("r", "a", "r") LAYER("c", "Concat", "r' bottom: 'b", "y", "")),
     "c: slice(grad(y) > grad(r) grad(b))\nr: activation backward(grad(r) r > grad(a))\n"},
    {"a join of two slopes",
     NET(RELU("r", "a", "r") LEAKY("s", "b", "s") LAYER("c", "Concat", "r' bottom: 's", "y", "")),
     "c: slice(grad(y) > grad(r) grad(s))\ns: activation backward(grad(s) s > grad(b))\n"
     "r: activation backward(grad(r) r > grad(a))\n"},
    {"another loss learns from the ReLU",
     NET(RELU("r", "a", "r") CONV("t", "r", "t") LAYER("d", "Dropout", "r", "d", "")
             LAYER("e", "Eltwise", "t' bottom: 'd", "y", "")),
     "d: dropout(grad(y) > grad(r))\nt: eltwise(grad(r) grad(r) r > grad(a))\n"},
};

static bool is_shown(const struct ls_op *op)
{
    return op->backward && (op->kind == LS_OP_ELTWISE || op->kind == LS_OP_ACTIVATION_BACKWARD ||
                            op->kind == LS_OP_DROPOUT || op->kind == LS_OP_POOLING_BACKWARD ||
                            op->kind == LS_OP_SLICE);
}

static void describe_op(struct ls_text *text, const struct ls_op *op)
{
    if (!is_shown(op))
        return;
    ls_text_format(text, "%s: %s(", op->layer->name, ls_op_kind_name(op->kind));
    for (int i = 0; i < op->inputs; i++)
        if (op->input[i] != NULL && op->input[i]->type == LS_F32)
            ls_text_format(text, "%s%s", i > 0 ? " " : "", op->input[i]->name);
    ls_text_add(text, " >");
    for (int i = 0; i < op->outputs; i++)
        ls_text_format(text, " %s", op->output[i]->name);
    ls_text_add(text, ")\n");
}

static void gradients_pass_relus_behind_joins_and_poolings(void **state)
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_pass_relus_behind_joins_and_poolings)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
