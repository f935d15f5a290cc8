/* Batch norm absorbs the scale, the bias and the ReLU behind it, in both directions; it does not
 * where another op reads a value in between.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "rewrites.h"

#define NET(body)   DATA CONV("c", "data", "c") body LOSS_OF("y")
#define NORM(rest)  LAYER("n", "BatchNorm", "c", "n", rest)
#define SCALE(rest) LAYER("s", "Scale", "n", "s", "scale_param { bias_term: true } " rest)
#define RELU(in)    LAYER("r", "ReLU", in, "r", "")
#define IP(in)      LAYER("ip", "InnerProduct", in, "y", "inner_product_param { num_output: 10 }")

/* The ops that batch norm and the layers behind it became: values by name, ReLUs marked. */
static const struct rewrite_case cases[] = {
    {"all three", NET(NORM("") SCALE("") RELU("s") IP("r")),
     "n: moments(c)\n"
     "n: batch norm(c - - - s.scale s.bias > r) relu\n"
     "n: batch norm backward sums(grad(r) c - - - - s.scale s.bias > grad(s.scale) grad(s.bias)) "
     "relu\n"
     "n: batch norm backward data(grad(r) c - - - - s.scale s.bias > grad(c)) relu\n"},
    {"in place",
     NET(LAYER("n", "BatchNorm", "c", "c", "")
             LAYER("s", "Scale", "c", "c", "scale_param { bias_term: true }")
                 LAYER("r", "ReLU", "c", "c", "") IP("c")),
     "n: moments(c)\n"
     "n: batch norm(c - - - s.scale s.bias > c) relu\n"
     "n: batch norm backward sums(grad(c) c - - - - s.scale s.bias > grad(s.scale) grad(s.bias)) "
     "relu\n"
     "n: batch norm backward data(grad(c) c - - - - s.scale s.bias > grad(c)) relu\n"},
    {"no ReLU", NET(NORM("") SCALE("") IP("s")),
     "n: moments(c)\n"
     "n: batch norm(c - - - s.scale s.bias > s)\n"
     "n: batch norm backward sums(grad(s) c - - - - > grad(s.scale) grad(s.bias))\n"
     "n: batch norm backward data(grad(s) c - - - - s.scale > grad(c))\n"},
    {"no scale", NET(NORM("") RELU("n") IP("r")),
     "n: moments(c)\n"
     "n: batch norm(c - - - - - > r) relu\n"
     "n: batch norm backward sums(grad(r) c - - - - - - > - -) relu\n"
     "n: batch norm backward data(grad(r) c - - - - - - > grad(c)) relu\n"},
    {"a scale of its own", NET(NORM("batch_norm_param { scale_bias: true }") RELU("n") IP("r")),
     "n: moments(c)\n"
     "n: batch norm(c - - - n.scale n.bias > r) relu\n"
     "n: batch norm backward sums(grad(r) c - - - - n.scale n.bias > grad(n.scale) grad(n.bias)) "
     "relu\n"
     "n: batch norm backward data(grad(r) c - - - - n.scale n.bias > grad(c)) relu\n"},
    {"a bias alone", NET(NORM("") LAYER("s", "Bias", "n", "s", "") RELU("s") IP("r")),
     "n: moments(c)\n"
     "n: batch norm(c - - - - s.bias > r) relu\n"
     "n: batch norm backward sums(grad(r) c - - - - - s.bias > - grad(s.bias)) relu\n"
     "n: batch norm backward data(grad(r) c - - - - - s.bias > grad(c)) relu\n"},
    {"a bias behind the scale",
     NET(NORM("") LAYER("s", "Scale", "n", "s", "") LAYER("b", "Bias", "s", "b", "") IP("b")),
     "n: moments(c)\n"
     "n: batch norm(c - - - s.scale - > s)\n"
     "b: scale(s - b.bias > b)\n"
     "b: scale backward sums(grad(b) - > - grad(b.bias))\n"
     "n: batch norm backward sums(grad(b) c - - - - > grad(s.scale) -)\n"
     "n: batch norm backward data(grad(b) c - - - - s.scale > grad(c))\n"},
    {"a scale that does not learn",
     NET(NORM("") SCALE("param { lr_mult: 0 } param { lr_mult: 0 }") RELU("s") IP("r")),
     "n: moments(c)\n"
     "n: batch norm(c - - - s.scale s.bias > r) relu\n"
     "n: batch norm backward sums(grad(r) c - - - - s.scale s.bias > - -) relu\n"
     "n: batch norm backward data(grad(r) c - - - - s.scale s.bias > grad(c)) relu\n"},
    {"frozen averages",
     NET(NORM("batch_norm_param { use_global_stats: true }") SCALE("") RELU("s") IP("r")),
     "n: batch norm(c n.mean n.variance n.factor s.scale s.bias > r) relu\n"
     "n: batch norm backward sums(grad(r) c r n.mean n.variance n.factor > grad(s.scale) "
     "grad(s.bias)) relu\n"
     "n: batch norm backward data(grad(r) c r n.mean n.variance n.factor s.scale > grad(c)) "
     "relu\n"},
    {"no gradient wanted below", NET(NORM("propagate_down: false") SCALE("") RELU("s") IP("r")),
     "n: moments(c)\n"
     "n: batch norm(c - - - s.scale s.bias > r) relu\n"
     "n: batch norm backward sums(grad(r) c - - - - s.scale s.bias > grad(s.scale) grad(s.bias)) "
     "relu\n"},
    {"no gradient through the scale",
     NET(NORM("") SCALE("propagate_down: false") RELU("s") IP("r")),
     "n: moments(c)\n"
     "n: batch norm(c - - - s.scale s.bias > r) relu\n"
     "n: batch norm backward sums(grad(r) c - - - - s.scale s.bias > grad(s.scale) grad(s.bias)) "
     "relu\n"},
    {"a leaky ReLU",
     NET(NORM("") LAYER("r", "ReLU", "n", "r", "relu_param { negative_slope: 0.25 }") IP("r")),
     "n: moments(c)\n"
     "n: batch norm(c - - - - - > r) relu 0.25\n"
     "n: batch norm backward sums(grad(r) c - - - - - - > - -) relu 0.25\n"
     "n: batch norm backward data(grad(r) c - - - - - - > grad(c)) relu 0.25\n"},
    /* The gradient of a residual block's sum goes two ways; the ReLU is behind the sum. */
    {"a residual block",
     NET(NORM("") SCALE(
         "") "layer { name: 'e' type: 'Eltwise' bottom: 's' bottom: 'c' top: 'e' }\n" RELU("e")
             IP("r")),
     "n: moments(c)\n"
     "n: batch norm(c - - - s.scale s.bias > s)\n"
     "r: activation backward(grad(r) r > grad(e))\n"
     "n: batch norm backward sums(grad(e) c - - - - > grad(s.scale) grad(s.bias))\n"
     "n: batch norm backward data(grad(e) c - - - - s.scale > grad(c))\n"},

    /* What must stay apart. */
    {"another op reads what is normalised",
     NET(NORM("") SCALE(
         "") "layer { name: 'e' type: 'Eltwise' bottom: 's' bottom: 'n' top: 'e' }\n" IP("e")),
     "n: moments(c)\n"
     "n: batch norm(c - - - - - > n)\n"
     "s: scale(n s.scale s.bias > s)\n"
     "s: scale backward sums(grad(e) n > grad(s.scale) grad(s.bias))\n"
     "s: scale(grad(e) s.scale - > grad(n))\n"
     "n: batch norm backward sums(grad(n) c - - - - > - -)\n"
     "n: batch norm backward data(grad(n) c - - - - - > grad(c))\n"},
    {"another op reads what is scaled",
     NET(NORM("") SCALE("") RELU("s") "layer { name: 'e' type: 'Eltwise' bottom: 's' bottom: 'r' "
                                      "top: 'e' }\n" IP("e")),
     "n: moments(c)\n"
     "n: batch norm(c - - - s.scale s.bias > s)\n"
     "r: activation(s > r)\n"
     "r: activation backward(grad(e) r > grad(s))\n"
     "n: batch norm backward sums(grad(s) c - - - - > grad(s.scale) grad(s.bias))\n"
     "n: batch norm backward data(grad(s) c - - - - s.scale > grad(c))\n"},
    {"a factor for every position",
     NET(NORM("") LAYER("s", "Scale", "n", "s", "scale_param { num_axes: 3 }") IP("s")),
     "n: moments(c)\n"
     "n: batch norm(c - - - - - > n)\n"
     "s: scale(n s.scale - > s)\n"
     "s: scale backward sums(grad(s) n > grad(s.scale) -)\n"
     "s: scale(grad(s) s.scale - > grad(n))\n"
     "n: batch norm backward sums(grad(n) c - - - - > - -)\n"
     "n: batch norm backward data(grad(n) c - - - - - > grad(c))\n"},
    {"a factor from a layer",
     NET(NORM("")
             LAYER("pool", "Pooling", "c", "w4", "pooling_param { pool: AVE global_pooling: true }")
                 LAYER("w", "Flatten", "w4", "w",
                       "") "layer { name: 's' type: 'Scale' bottom: 'n' "
                           "bottom: 'w' top: 's' scale_param { axis: 0 } }\n" IP("s")),
     "n: moments(c)\n"
     "n: batch norm(c - - - - - > n)\n"
     "s: scale(n w - > s)\n"
     "s: scale backward sums(grad(s) n > grad(w) -)\n"
     "s: scale(grad(s) w - > grad(n))\n"
     "n: batch norm backward sums(grad(n) c - - - - > - -)\n"
     "n: batch norm backward data(grad(n) c - - - - - > grad(c))\n"},
    {"two scales: the second stays",
     NET(NORM("batch_norm_param { scale_bias: true }") SCALE("") IP("s")),
     "n: moments(c)\n"
     "n: batch norm(c - - - n.scale n.bias > n)\n"
     "s: scale(n s.scale s.bias > s)\n"
     "s: scale backward sums(grad(s) n > grad(s.scale) grad(s.bias))\n"
     "s: scale(grad(s) s.scale - > grad(n))\n"
     "n: batch norm backward sums(grad(n) c - - - - > grad(n.scale) grad(n.bias))\n"
     "n: batch norm backward data(grad(n) c - - - - n.scale > grad(c))\n"},
    {"a scale behind the ReLU", NET(NORM("") LAYER("r", "ReLU", "n", "n", "") SCALE("") IP("s")),
     "n: moments(c)\n"
     "n: batch norm(c - - - - - > n) relu\n"
     "s: scale(n s.scale s.bias > s)\n"
     "s: scale backward sums(grad(s) n > grad(s.scale) grad(s.bias))\n"
     "s: scale(grad(s) s.scale - > grad(n))\n"
     "n: batch norm backward sums(grad(n) c - - - - - - > - -) relu\n"
     "n: batch norm backward data(grad(n) c - - - - - - > grad(c)) relu\n"},
    /* The sign of y does not tell that of x. */
    {"a ReLU with a negative slope",
     NET(NORM("") LAYER("r", "ReLU", "n", "r", "relu_param { negative_slope: -1 }") IP("r")),
     "n: moments(c)\n"
     "n: batch norm(c - - - - - > n)\n"
     "r: activation(n > r)\n"
     "r: activation backward(grad(r) n > grad(n))\n"
     "n: batch norm backward sums(grad(n) c - - - - > - -)\n"
     "n: batch norm backward data(grad(n) c - - - - - > grad(c))\n"},
    {"another activation", NET(NORM("") LAYER("r", "TanH", "n", "r", "") IP("r")),
     "n: moments(c)\n"
     "n: batch norm(c - - - - - > n)\n"
     "r: activation(n > r)\n"
     "r: activation backward(grad(r) r > grad(n))\n"
     "n: batch norm backward sums(grad(n) c - - - - > - -)\n"
     "n: batch norm backward data(grad(n) c - - - - - > grad(c))\n"},
};

static const struct rewrite_case test_phase = {
    "test phase", NET(NORM("") SCALE("") RELU("s") IP("r")),
    "n: batch norm(c n.mean n.variance n.factor s.scale s.bias > r) relu\n"};

static bool is_batch_norm(enum ls_op_kind kind)
{
    return kind == LS_OP_MOMENTS || kind == LS_OP_BATCH_NORM || kind == LS_OP_BATCH_NORM_SUMS ||
           kind == LS_OP_BATCH_NORM_BACKWARD;
}

static bool is_shown(enum ls_op_kind kind)
{
    return is_batch_norm(kind) || kind == LS_OP_SCALE || kind == LS_OP_SCALE_SUMS ||
           kind == LS_OP_ACTIVATION || kind == LS_OP_ACTIVATION_BACKWARD;
}

static void describe_values(struct ls_text *text, struct ls_value *const *values, int count)
{
    for (int i = 0; i < count; i++)
        ls_text_format(text, "%s%s", i > 0 ? " " : "", values[i] != NULL ? values[i]->name : "-");
}

static void describe_op(struct ls_text *text, const struct ls_op *op)
{
    if (!is_shown(op->kind))
        return;
    ls_text_format(text, "%s: %s(", op->layer->name, ls_op_kind_name(op->kind));
    describe_values(text, op->input, op->inputs);
    ls_text_add(text, op->outputs > 0 ? " > " : "");
    describe_values(text, op->output, op->outputs);
    ls_text_add(text, ")");
    if (is_batch_norm(op->kind) && op->attr.batch_norm.relu) {
        ls_text_add(text, " relu");
        if (op->attr.batch_norm.relu_slope != 0)
            ls_text_format(text, " %g", (double)op->attr.batch_norm.relu_slope);
    }
    ls_text_add(text, "\n");
}

/* Each backward sync point has its sums in front of it, and their readers behind it. */
static void check_syncs(const struct ls_graph *graph, const char *what)
{
    for (size_t s = 0; s < graph->sync_count; s++) {
        int seen = 0; /* 1: partial results are there, 2: they are merged */
        for (size_t i = 0; i < graph->op_count; i++) {
            const struct ls_op *op = graph->ops[i];
            if (op->kind == LS_OP_SYNC && op->attr.sync == (int)s) {
                if (seen != 1)
                    fail_msg("%s: nothing is there at sync point %zu", what, s);
                seen = 2;
            } else if (op->kind == LS_OP_BATCH_NORM_SUMS && op->attr.batch_norm.sums == (int)s) {
                assert_int_equal(seen, 0);
                seen = 1;
            } else if (op->kind == LS_OP_MOMENTS && op->attr.batch_norm.moments == (int)s) {
                seen = 1;
            } else if (op->kind == LS_OP_BATCH_NORM_BACKWARD &&
                       op->attr.batch_norm.sums == (int)s) {
                assert_int_equal(seen, 2);
            }
        }
        assert_int_equal(seen, 2);
    }
}

static void scales_and_relus_are_taken_into_batch_norms(void **state)
{
    (void)state;
    struct one_net one;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        open_case(&one, &cases[i], true, describe_op);
        check_syncs(one.graph, cases[i].what);
        close_net(&one);
    }
    open_case(&one, &test_phase, false, describe_op);
    close_net(&one);
}

/* Two batch norms that share their scale, and two that follow each other. */
static void shared_and_successive_norms_are_fused(void **state)
{
    (void)state;
    struct one_net one;
    open_net(&one,
             NET(NORM("") LAYER("s", "Scale", "n", "s", "param { name: 'w' }")
                     LAYER("n2", "BatchNorm", "s", "n2", "")
                         LAYER("s2", "Scale", "n2", "s2", "param { name: 'w' }")
                             LAYER("r2", "ReLU", "s2", "r2", "") IP("r2")),
             true, 2);
    assert_int_equal(one.status, 0);
    int norms = 0, sums = 0;
    for (size_t i = 0; i < one.graph->op_count; i++) {
        const struct ls_op *op = one.graph->ops[i];
        assert_true(op->kind != LS_OP_SCALE && op->kind != LS_OP_SCALE_SUMS &&
                    op->kind != LS_OP_ACTIVATION && op->kind != LS_OP_ACTIVATION_BACKWARD);
        if (op->kind == LS_OP_BATCH_NORM) {
            assert_string_equal(op->input[4]->name, "s.scale");
            assert_int_equal(op->attr.batch_norm.relu, strcmp(op->layer->name, "n2") == 0);
            norms++;
        }
        sums += op->kind == LS_OP_BATCH_NORM_SUMS;
    }
    assert_int_equal(norms, 2);
    assert_int_equal(sums, 2);
    assert_int_equal(one.graph->sync_count, 4);
    check_order(one.graph, "shared");
    check_syncs(one.graph, "shared");
    assert_int_equal(ls_parameter_find(one.parameters, "s.scale")->uses, 2);
    close_net(&one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scales_and_relus_are_taken_into_batch_norms),
        cmocka_unit_test(shared_and_successive_norms_are_fused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
