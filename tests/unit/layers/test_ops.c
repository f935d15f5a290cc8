/* Which ops each layer type emits, forward and backward, on which values.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "one_layer.h"

#define LAYER(type) "name: 'l' type: '" type "' "
#define XY          "bottom: 'x' top: 'y' "
#define CONV        LAYER("Convolution") XY
#define IP          LAYER("InnerProduct") XY
#define XL          "bottom: 'x' bottom: 'l' top: 'y' "

static const struct ops_case {
    const char *text, *bottoms, *forward, *backward;
} cases[] = {
    /* Weights before data, so that x is free when dx is written. */
    {CONV "convolution_param { num_output: 2 kernel_size: 3 }", "4x3x8x8!",
     "convolution(x l.weight l.bias > y)",
     "convolution backward weights(x grad(y) > grad(l.weight) grad(l.bias)); "
     "accumulate(grad(l.weight)); accumulate(grad(l.bias)); "
     "convolution backward data(grad(y) l.weight > grad(x))"},
    {CONV "convolution_param { num_output: 2 kernel_size: 3 bias_term: false }", "4x3x8x8",
     "convolution(x l.weight - > y)",
     "convolution backward weights(x grad(y) > grad(l.weight) -); accumulate(grad(l.weight))"},
    {CONV "convolution_param { num_output: 2 kernel_size: 3 } param { lr_mult: 1 } "
          "param { lr_mult: 0 }",
     "4x3x8x8", "convolution(x l.weight l.bias > y)",
     "convolution backward weights(x grad(y) > grad(l.weight) -); accumulate(grad(l.weight))"},
    {CONV "convolution_param { num_output: 2 kernel_size: 3 } param { lr_mult: 0 } "
          "param { lr_mult: 2 }",
     "4x3x8x8", "convolution(x l.weight l.bias > y)",
     "convolution backward weights(x grad(y) > grad(l.weight) grad(l.bias)); "
     "accumulate(grad(l.bias))"},
    {CONV "convolution_param { num_output: 2 kernel_size: 3 } param { lr_mult: 0 } "
          "param { lr_mult: 0 }",
     "4x3x8x8!", "convolution(x l.weight l.bias > y)",
     "convolution backward data(grad(y) l.weight > grad(x))"},
    {CONV "convolution_param { num_output: 2 kernel_size: 3 } propagate_down: false "
          "param { lr_mult: 0 } param { lr_mult: 0 }",
     "4x3x8x8!", "convolution(x l.weight l.bias > y)", ""},
    {LAYER("Convolution") "bottom: 'a' bottom: 'b' top: 'y' top: 'z' "
                          "convolution_param { num_output: 2 kernel_size: 3 bias_term: false }",
     "4x3x8x8 4x3x8x8!", "convolution(a l.weight - > y); convolution(b l.weight - > z)",
     "convolution backward weights(a grad(y) > grad(l.weight) -); accumulate(grad(l.weight)); "
     "convolution backward weights(b grad(z) > grad(l.weight) -); accumulate(grad(l.weight)); "
     "convolution backward data(grad(z) l.weight > grad(b))"},
    {IP "inner_product_param { num_output: 2 }", "4x3!", "inner product(x l.weight l.bias > y)",
     "inner product backward weights(x grad(y) > grad(l.weight) grad(l.bias)); "
     "accumulate(grad(l.weight)); accumulate(grad(l.bias)); "
     "inner product backward data(grad(y) l.weight > grad(x))"},
    {IP "inner_product_param { num_output: 2 bias_term: false transpose: true }", "4x3",
     "inner product(x l.weight - > y)",
     "inner product backward weights(x grad(y) > grad(l.weight) -); accumulate(grad(l.weight))"},
    {IP "inner_product_param { num_output: 2 } param { lr_mult: 0 }", "4x3",
     "inner product(x l.weight l.bias > y)",
     "inner product backward weights(x grad(y) > grad(l.weight) grad(l.bias)); "
     "accumulate(grad(l.bias))"},
    /* The index of the maxima is there only if a gradient will want it. */
    {LAYER("Pooling") XY "pooling_param { kernel_size: 2 }", "4x3x8x8!", "pooling(x > y l.index)",
     "pooling backward(grad(y) l.index > grad(x))"},
    {LAYER("Pooling") XY "pooling_param { kernel_size: 2 }", "4x3x8x8", "pooling(x > y -)", NULL},
    {LAYER("Pooling") XY "pooling_param { pool: AVE kernel_size: 2 }", "4x3x8x8!",
     "pooling(x > y -)", "pooling backward(grad(y) - > grad(x))"},
    {LAYER("ReLU") XY, "4x3!", "activation(x > y)", "activation backward(grad(y) y > grad(x))"},
    {LAYER("ReLU") XY "relu_param { negative_slope: -0.5 }", "4x3!", "activation(x > y)",
     "activation backward(grad(y) x > grad(x))"},
    {LAYER("ReLU") "bottom: 'x' top: 'x'", "4x3!", "activation(x > x)",
     "activation backward(grad(x) x > grad(x))"},
    {LAYER("Sigmoid") XY, "4x3!", "activation(x > y)", "activation backward(grad(y) y > grad(x))"},
    {LAYER("TanH") XY, "4x3!", "activation(x > y)", "activation backward(grad(y) y > grad(x))"},
    {LAYER("LRN") XY, "4x3x5x5!", "local response normalisation(x > y l.scale)",
     "local response normalisation backward(x y grad(y) l.scale > grad(x))"},
    {LAYER("LRN") XY, "4x3x5x5", "local response normalisation(x > y -)", NULL},
    {LAYER("LRN") XY "lrn_param { norm_region: WITHIN_CHANNEL }", "4x3x5x5!",
     "local response normalisation(x > y -)",
     "local response normalisation backward(x y grad(y) - > grad(x))"},
    {LAYER("Dropout") XY, "4x3!", "dropout(x > y)", "dropout(grad(y) > grad(x))"},
    {LAYER("Dropout") XY "dropout_param { dropout_ratio: 0 }", "4x3!", "", ""},
    {LAYER("Softmax") XY, "4x3!", "softmax(x > y)", "softmax backward(y grad(y) > grad(x))"},
    {LAYER("Flatten") XY, "4x3x5!", "view(x > y)", "view(grad(y) > grad(x))"},
    {LAYER("Concat") "bottom: 'a' bottom: 'b' top: 'y'", "4x3! 4x2", "concat(a b > y)",
     "slice(grad(y) > grad(a) grad(b))"},
    {LAYER("Concat") "bottom: 'a' top: 'y'", "4x3!", "", ""},
    /* A sum's gradient is the gradient of each operand; a bottom that is there twice has it twice.
     */
    {LAYER("Eltwise") "bottom: 'a' bottom: 'b' top: 'y'", "4x3! 4x3!", "eltwise(a b > y)", ""},
    {LAYER("Eltwise") "bottom: 'a' bottom: 'b' top: 'y' eltwise_param { coeff: [1, -2] }",
     "4x3! 4x3!", "eltwise(a b > y)", "eltwise backward(grad(y) > grad(b))"},
    {LAYER("Eltwise") "bottom: 'a' bottom: 'b' top: 'y' eltwise_param { operation: PROD "
                      "stable_prod_grad: false }",
     "4x3! 4x3!", "eltwise(a b > y)",
     "eltwise backward(grad(y) a b > grad(a)); eltwise backward(grad(y) a b > grad(b))"},
    {LAYER("Eltwise") "bottom: 'a' bottom: 'b' top: 'y' eltwise_param { operation: MAX }",
     "4x3 4x3!", "eltwise(a b > y)", "eltwise backward(grad(y) a b > grad(b))"},
    {LAYER("Split") "bottom: 'x' top: 'y' top: 'z'", "4x3!", "", ""},
    {LAYER("Split") "bottom: 'x' top: 'y' top: 'z' propagate_down: false", "4x3!",
     "view(x > y); view(x > z)", ""},
    {LAYER("Silence") "bottom: 'x'", "4x3!", "", ""},
    {LAYER("SoftmaxWithLoss") XL, "4x3! 4", "softmax loss(x l > l.prob)",
     "softmax loss backward(l.prob l > grad(x))"},
    {LAYER("SoftmaxWithLoss") XL "top: 'p' loss_weight: 2 loss_weight: 0", "4x3! 4",
     "softmax loss(x l > p)", "softmax loss backward(p l > grad(x))"},
    {LAYER("SoftmaxWithLoss") XL "loss_param { ignore_label: 255 }", "4x3! 4",
     "count labels(l); softmax loss(x l > l.prob)", "softmax loss backward(l.prob l > grad(x))"},
    {LAYER("SoftmaxWithLoss") XL "loss_weight: 0 loss_param { ignore_label: 255 }", "4x3! 4",
     "softmax loss(x l > l.prob)", ""},
    {LAYER("MultinomialLogisticLoss") XL, "4x3! 4", "log loss(x l)",
     "log loss backward(x l > grad(x))"},
    {LAYER("SigmoidCrossEntropyLoss") XL, "4x3! 4x3", "sigmoid cross-entropy loss(x l)",
     "sigmoid cross-entropy loss backward(x l > grad(x))"},
    {LAYER("SigmoidCrossEntropyLoss") XL "loss_param { ignore_label: -1 normalization: VALID }",
     "4x3! 4x3", "count labels(l); sigmoid cross-entropy loss(x l)",
     "sigmoid cross-entropy loss backward(x l > grad(x))"},
    {LAYER("EuclideanLoss") XL, "4x3! 4x3!", "euclidean loss(x l)",
     "euclidean loss backward(x l > grad(x)); euclidean loss backward(x l > grad(l))"},
    {LAYER("EuclideanLoss") XL, "4x3 4x3!", "euclidean loss(x l)",
     "euclidean loss backward(x l > grad(l))"},
    {LAYER("Accuracy") XL, "4x3! 4", "accuracy(x l)", ""},
    {LAYER("MeanIoU") XL, "4x3! 4", "mean intersection over union(x l)", ""},
    {LAYER("Input") "top: 'x' input_param { shape { dim: [1, 3] } }", "", "", NULL},
    {LAYER("DummyData") "top: 'x' top: 'z' dummy_data_param { shape { dim: [1, 3] } }", "",
     "fill( > x); fill( > z)", NULL},
};

static void check(const char *text, const char *what, const char *got, const char *wanted)
{
    if (strcmp(got != NULL ? got : "", wanted) != 0)
        fail_msg("%s, %s:\n  %s\nnot\n  %s", text, what, got, wanted);
}

static void all_ops(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct one_layer one;
        struct ls_text forward = {0}, backward = {0};
        open_layer(&one, cases[i].text, cases[i].bottoms, true);
        if (run_forward(&one) != 0)
            fail_msg("%s: %s", cases[i].text, one.error.problems[0].message);
        size_t forward_ops = one.graph->op_count;
        describe_ops(&forward, one.graph, 0);
        check(cases[i].text, "forward", forward.data, cases[i].forward);
        if (cases[i].backward != NULL) {
            if (run_backward(&one) != 0)
                fail_msg("%s: %s", cases[i].text, one.error.problems[0].message);
            describe_ops(&backward, one.graph, forward_ops);
            check(cases[i].text, "backward", backward.data, cases[i].backward);
        }
        for (size_t o = 0; o < one.graph->op_count; o++) {
            assert_ptr_equal(one.graph->ops[o]->layer, one.layer);
            assert_int_equal(one.graph->ops[o]->backward, o >= forward_ops);
        }
        ls_text_free(&forward);
        ls_text_free(&backward);
        close_layer(&one);
    }
}

/* In the test phase nothing is kept for a backward pass and nothing is dropped. */
static void test_phase(void **state)
{
    (void)state;
    static const struct {
        const char *text, *bottoms, *forward;
    } test_cases[] = {
        {LAYER("Dropout") XY, "4x3", ""},
        {LAYER("Pooling") XY "pooling_param { kernel_size: 2 }", "4x3x8x8!", "pooling(x > y -)"},
        {LAYER("LRN") XY, "4x3x8x8!", "local response normalisation(x > y -)"},
        {LAYER("SoftmaxWithLoss") XL "loss_param { ignore_label: 3 }", "4x3! 4",
         "softmax loss(x l > l.prob)"},
    };
    for (size_t i = 0; i < sizeof test_cases / sizeof *test_cases; i++) {
        struct one_layer one;
        struct ls_text forward = {0};
        open_layer(&one, test_cases[i].text, test_cases[i].bottoms, false);
        assert_int_equal(run_forward(&one), 0);
        describe_ops(&forward, one.graph, 0);
        check(test_cases[i].text, "test phase", forward.data, test_cases[i].forward);
        assert_int_equal(one.graph->normalizer_count, 0);
        ls_text_free(&forward);
        close_layer(&one);
    }
}

/* ---- Attributes ------------------------------------------------------------------------------ */

static const struct ls_op *emit_one(struct one_layer *one, const char *text, const char *bottoms)
{
    open_layer(one, text, bottoms, true);
    if (run_forward(one) != 0)
        fail_msg("%s: %s", text, one->error.problems[0].message);
    assert_true(one->graph->op_count > 0);
    return one->graph->ops[one->graph->op_count - 1];
}

/* Field by field: the bytes between them may be anything. */
static bool same_window(const struct ls_window *a, const struct ls_window *b)
{
    bool same = a->axes == b->axes;
    for (int i = 0; i < 3; i++)
        same &= a->kernel[i] == b->kernel[i] && a->stride[i] == b->stride[i] &&
                a->pad[i] == b->pad[i] && a->dilation[i] == b->dilation[i];
    return same;
}

static void convolution_attributes(void **state)
{
    (void)state;
    struct one_layer one;
    const struct ls_op *op =
        emit_one(&one,
                 CONV "convolution_param { num_output: 4 kernel_h: 5 kernel_w: 3 "
                      "stride: 2 pad_h: 1 pad_w: 2 dilation: [1, 3] group: 2 }",
                 "4x6x9x9");
    const struct ls_convolution_attr *attr = &op->attr.convolution;
    const struct ls_window expected = {.axes = 2,
                                       .kernel = {5, 3, 1},
                                       .stride = {2, 2, 1},
                                       .pad = {1, 2, 0},
                                       .dilation = {1, 3, 1}};
    assert_true(same_window(&attr->window, &expected));
    assert_int_equal(attr->group, 2);
    assert_true(attr->bias);
    assert_false(attr->relu);
    close_layer(&one);
}

static void pooling_attributes(void **state)
{
    (void)state;
    struct one_layer one;
    const struct ls_op *op = emit_one(
        &one, LAYER("Pooling") XY "pooling_param { pool: AVE global_pooling: true }", "4x6x9x7");
    const struct ls_window expected = {
        .axes = 2, .kernel = {9, 7, 1}, .stride = {1, 1, 1}, .dilation = {1, 1, 1}};
    assert_true(same_window(&op->attr.pooling.window, &expected));
    assert_int_equal(op->attr.pooling.method, LS_POOL_AVERAGE);
    close_layer(&one);
    op = emit_one(&one, LAYER("Pooling") XY "pooling_param { kernel_size: 2 }", "4x6x9x7!");
    assert_int_equal(op->attr.pooling.method, LS_POOL_MAX);
    assert_int_equal(op->output[1]->type, LS_I32);
    assert_false(op->output[1]->needs_grad);
    close_layer(&one);
}

static void other_attributes(void **state)
{
    (void)state;
    struct one_layer one;
    const struct ls_op *op =
        emit_one(&one, IP "inner_product_param { num_output: 7 axis: 2 }", "4x5x6x2");
    assert_int_equal(op->attr.inner_product.m, 20);
    assert_int_equal(op->attr.inner_product.k, 12);
    assert_int_equal(op->attr.inner_product.n, 7);
    close_layer(&one);

    op = emit_one(&one, LAYER("LRN") XY "lrn_param { local_size: 3 alpha: 5e-5 k: 2 }", "4x5x6x2");
    assert_int_equal(op->attr.lrn.size, 3);
    assert_true(op->attr.lrn.alpha == 5e-5f && op->attr.lrn.beta == 0.75f && op->attr.lrn.k == 2);
    assert_false(op->attr.lrn.within);
    close_layer(&one);

    op = emit_one(&one, LAYER("ReLU") XY "relu_param { negative_slope: 0.25 }", "4x5");
    assert_int_equal(op->attr.activation.function, LS_RELU);
    assert_true(op->attr.activation.slope == 0.25f);
    close_layer(&one);

    op = emit_one(&one, LAYER("TanH") XY, "4x5");
    assert_int_equal(op->attr.activation.function, LS_TANH);
    close_layer(&one);
    op = emit_one(&one, LAYER("Sigmoid") XY, "4x5");
    assert_int_equal(op->attr.activation.function, LS_SIGMOID);
    close_layer(&one);

    op = emit_one(&one, LAYER("Softmax") XY "softmax_param { axis: -2 }", "4x5x6");
    assert_int_equal(op->attr.axis, 1);
    close_layer(&one);
}

static void eltwise_attributes(void **state)
{
    (void)state;
    struct one_layer one;
    const struct ls_op *op =
        emit_one(&one,
                 LAYER("Eltwise") "bottom: 'a' bottom: 'b' top: 'y' "
                                  "eltwise_param { operation: SUM coeff: [1, -2] }",
                 "4x3! 4x3!");
    assert_int_equal(op->attr.eltwise.method, LS_ELTWISE_SUM);
    assert_true(op->attr.eltwise.coefficients[0] == 1 && op->attr.eltwise.coefficients[1] == -2);
    assert_int_equal(run_backward(&one), 0);
    assert_int_equal(one.graph->ops[1]->attr.eltwise.which, 1);
    /* The first one's gradient is that of the top. */
    assert_ptr_equal(ls_graph_gradient(one.graph, one.layer->bottom[0]),
                     ls_graph_gradient(one.graph, one.layer->top[0]));
    close_layer(&one);
    op = emit_one(&one,
                  LAYER("Eltwise") "bottom: 'a' bottom: 'b' top: 'y' "
                                   "eltwise_param { coeff: [1, 1] }",
                  "4x3 4x3");
    assert_null(op->attr.eltwise.coefficients);
    close_layer(&one);
}

/* Dropout's numbers depend on seed and name, and the backward pass draws the same ones. */
static void dropout_keys(void **state)
{
    (void)state;
    struct one_layer one, other;
    const struct ls_op *op = emit_one(&one, LAYER("Dropout") XY, "4x3!");
    uint64_t key = op->attr.dropout.key;
    assert_true(op->attr.dropout.ratio == 0.5f);
    assert_int_equal(run_backward(&one), 0);
    assert_true(one.graph->ops[1]->attr.dropout.key == key);
    close_layer(&one);
    op = emit_one(&other, "name: 'other' type: 'Dropout' " XY, "4x3!");
    assert_true(op->attr.dropout.key != key);
    close_layer(&other);
}

static void dummy_fillers(void **state)
{
    (void)state;
    struct one_layer one;
    emit_one(&one,
             LAYER("DummyData") "top: 'a' top: 'b' top: 'c' top: 'd' dummy_data_param { "
                                "shape { dim: [32, 3] } data_filler { value: 2.5 } "
                                "data_filler { type: 'xavier' } data_filler { type: 'msra' } "
                                "data_filler { type: 'uniform' min: -1 max: 3 } }",
             "");
    struct ls_op *const *ops = one.graph->ops;
    assert_true(ops[0]->attr.fill.filler == NULL && ops[0]->attr.fill.value == 2.5f);
    assert_string_equal(ops[1]->attr.fill.filler->type, "xavier");
    assert_string_equal(ops[2]->attr.fill.filler->type, "msra");
    assert_true(ops[3]->attr.fill.filler->max == 3);
    for (int i = 1; i < 4; i++)
        assert_true(ops[i]->attr.fill.key != ops[i - 1]->attr.fill.key);
    assert_int_equal(one.layer->top[3]->sample_axis, 0);
    assert_int_equal(one.layer->top[3]->rows, 1);
    close_layer(&one);
}

/* A failed allocation, wherever it happens, is noticed and leaves nothing behind. */
static void memory_runs_out(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (long n = 0;; n++) {
            struct one_layer one;
            open_layer(&one, cases[i].text, cases[i].bottoms, true);
            uint64_t before = ls_allocations();
            ls_fail_allocation_after(n);
            int status = run_forward(&one);
            if (status == 0 && cases[i].backward != NULL)
                status = run_backward(&one);
            ls_fail_allocation_after(-1);
            bool all = ls_allocations() - before <= (uint64_t)n;
            close_layer(&one);
            if (all) {
                assert_int_equal(status, 0);
                break;
            }
            if (status != LOCKSTEP_RESOURCE)
                fail_msg("%s: allocation %ld failed and no error was returned", cases[i].text, n);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_ops),
        cmocka_unit_test(test_phase),
        cmocka_unit_test(convolution_attributes),
        cmocka_unit_test(pooling_attributes),
        cmocka_unit_test(other_attributes),
        cmocka_unit_test(eltwise_attributes),
        cmocka_unit_test(dropout_keys),
        cmocka_unit_test(dummy_fillers),
        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
