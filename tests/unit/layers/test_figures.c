/* Losses and accuracies: records, divisors, figures; what the four normalizations divide by.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "one_layer.h"

#define LOSS(type) "name: 'l' type: '" type "' bottom: 'x' bottom: 'l' top: 'y' "

static const struct {
    const char *text, *bottoms;
    enum ls_normalization mode;
    int per_sample; /* 0: labels are counted */
} divisors[] = {
    /* Softmax: rows are what stands before the axis of classes, positions all but the classes. */
    {LOSS("SoftmaxWithLoss"), "4x10! 4", LS_NORM_VALID, 1},
    {LOSS("SoftmaxWithLoss"), "4x10x6x7! 4x6x7", LS_NORM_VALID, 42},
    {LOSS("SoftmaxWithLoss") "loss_param { normalization: FULL ignore_label: 3 }",
     "4x10x6x7! 4x6x7", LS_NORM_FULL, 42},
    {LOSS("SoftmaxWithLoss") "loss_param { normalization: BATCH_SIZE ignore_label: 3 }",
     "4x10x6x7! 4x6x7", LS_NORM_BATCH_SIZE, 1},
    {LOSS("SoftmaxWithLoss") "loss_param { normalization: NONE }", "4x10x6x7! 4x6x7", LS_NORM_NONE,
     42},
    {LOSS("SoftmaxWithLoss") "loss_param { normalization: VALID ignore_label: 0 }",
     "4x10x6x7! 4x6x7", LS_NORM_VALID, 0},
    {LOSS("SoftmaxWithLoss") "loss_param { ignore_label: -1 }", "4x10! 4", LS_NORM_VALID, 0},
    {LOSS("SoftmaxWithLoss") "loss_param { normalize: false }", "4x10x6x7! 4x6x7",
     LS_NORM_BATCH_SIZE, 1},
    {LOSS("SoftmaxWithLoss") "loss_param { normalize: true }", "4x10x6x7! 4x6x7", LS_NORM_VALID,
     42},
    {LOSS("SoftmaxWithLoss") "loss_param { normalize: false normalization: FULL }",
     "4x10x6x7! 4x6x7", LS_NORM_FULL, 42},
    {LOSS("SoftmaxWithLoss") "softmax_param { axis: 2 } loss_param { normalization: BATCH_SIZE }",
     "4x5x10x7! 4x5x7", LS_NORM_BATCH_SIZE, 5},
    {LOSS("SoftmaxWithLoss") "softmax_param { axis: 2 }", "12x5x10x7!/3 12x5x7/3", LS_NORM_VALID,
     105},
    {LOSS("SigmoidCrossEntropyLoss"), "4x10x3! 4x10x3", LS_NORM_BATCH_SIZE, 1},
    {LOSS("SigmoidCrossEntropyLoss"), "8x10x3!/2 8x10x3/2", LS_NORM_BATCH_SIZE, 2},
    {LOSS("SigmoidCrossEntropyLoss") "loss_param { normalization: VALID }", "4x10x3! 4x10x3",
     LS_NORM_VALID, 30},
    {LOSS("SigmoidCrossEntropyLoss") "loss_param { normalize: true }", "4x10x3! 4x10x3",
     LS_NORM_VALID, 30},
    {LOSS("SigmoidCrossEntropyLoss") "loss_param { ignore_label: 2 normalization: VALID }",
     "4x10x3! 4x10x3", LS_NORM_VALID, 0},
    {LOSS("SigmoidCrossEntropyLoss") "loss_param { ignore_label: 2 }", "4x10x3! 4x10x3",
     LS_NORM_BATCH_SIZE, 1},
    {LOSS("SoftmaxWithLoss") "loss_param { normalization: WEIGHTS class_weight: [1, 0, 0.5] }",
     "4x3! 4", LS_NORM_WEIGHTS, 0},
    {LOSS("SoftmaxWithLoss") "loss_param { class_weight: [1, 0, 0.5] }", "4x3! 4", LS_NORM_VALID,
     1},
    {LOSS("EuclideanLoss"), "4x10! 4x10", LS_NORM_BATCH_SIZE, 1},
    {LOSS("EuclideanLoss"), "12x10!/3 12x10/3", LS_NORM_BATCH_SIZE, 3},
    {LOSS("MultinomialLogisticLoss"), "4x10! 4", LS_NORM_BATCH_SIZE, 1},
    {LOSS("MultinomialLogisticLoss") "loss_param { ignore_label: 2 normalization: VALID }",
     "4x10! 4", LS_NORM_VALID, 0},
    {LOSS("MultinomialLogisticLoss") "loss_param { normalization: WEIGHTS class_weight: [1, 2] }",
     "4x2x1! 4", LS_NORM_WEIGHTS, 0},
};

static void normalizers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof divisors / sizeof *divisors; i++) {
        struct one_layer one;
        open_layer(&one, divisors[i].text, divisors[i].bottoms, true);
        if (run_forward(&one) != 0)
            fail_msg("%s: %s", divisors[i].text, one.error.problems[0].message);
        assert_int_equal(run_backward(&one), 0);
        assert_int_equal(one.graph->normalizer_count, 1);
        const struct ls_normalizer *normalizer = &one.graph->normalizers[0];
        if (normalizer->per_sample != divisors[i].per_sample)
            fail_msg("%s on %s: %d", divisors[i].text, divisors[i].bottoms,
                     (int)normalizer->per_sample);
        assert_int_equal(normalizer->none, divisors[i].mode == LS_NORM_NONE);
        assert_int_equal(normalizer->record_offset >= 0, divisors[i].per_sample == 0);
        for (size_t o = 0; o < one.graph->op_count; o++) {
            const struct ls_op *op = one.graph->ops[o];
            assert_int_equal(op->before, op->kind == LS_OP_COUNT_LABELS);
            assert_int_equal(op->attr.loss.normalizer, 0);
            if (op->kind == LS_OP_COUNT_LABELS)
                assert_int_equal(op->attr.loss.metric_offset, normalizer->record_offset);
            assert_int_equal(op->attr.loss.normalization, divisors[i].mode);
        }
        assert_int_equal(normalizer->sync, -1);
        assert_int_equal(one.graph->sync_count, 0);
        close_layer(&one);
    }
}

/* Labels that depend on learned parameters are counted in the pass; a sync point brings the count
 * before the gradient is computed. What divides by something else needs none. */
static void learned_labels(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool counted;
    } cases[] = {
        {"loss_param { ignore_label: 3 }", true},
        {"loss_param { normalization: WEIGHTS class_weight: [1, 2, 3] }", true},
        {"loss_param { ignore_label: 3 normalization: FULL }", false},
        {"", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[300];
        struct one_layer one;
        struct ls_text ops = {0};
        snprintf(text, sizeof text, "%s %s", LOSS("SoftmaxWithLoss"), cases[i].text);
        open_layer(&one, text, "4x3! 4!", true);
        one.layer->bottom[1]->needs_grad = false; /* as behind an ArgMax */
        assert_int_equal(run_forward(&one), 0);
        assert_int_equal(run_backward(&one), 0);
        describe_ops(&ops, one.graph, 0);
        assert_string_equal(ops.data,
                            cases[i].counted
                                ? "count labels(l); sync point(); softmax loss(x l > l.prob); "
                                  "softmax loss backward(l.prob l > grad(x))"
                                : "softmax loss(x l > l.prob); "
                                  "softmax loss backward(l.prob l > grad(x))");
        ls_text_free(&ops);
        const struct ls_normalizer *normalizer = &one.graph->normalizers[0];
        assert_int_equal(one.graph->normalizer_count, 1);
        assert_int_equal(one.graph->sync_count, cases[i].counted);
        assert_int_equal(normalizer->sync, cases[i].counted ? 0 : -1);
        if (cases[i].counted) {
            const struct ls_sync *sync = &one.graph->syncs[0];
            assert_int_equal(sync->kind, LS_SYNC_COUNT);
            assert_int_equal(sync->normalizer, 0);
            assert_int_equal(sync->grouping, -1);
            assert_false(sync->backward);
            assert_ptr_equal(sync->layer, one.layer);
            assert_false(one.graph->ops[0]->before);
            assert_int_equal(one.graph->ops[1]->attr.sync, 0);
            assert_int_equal(one.graph->grouping_count, 0);
            assert_int_equal(normalizer->per_sample, 0);
            assert_true(normalizer->record_offset >= 0);
        }
        close_layer(&one);
    }
}

/* What kernels get to see of loss_param. */
static void mixtures(void **state)
{
    (void)state;
    struct one_layer one;
    open_layer(&one,
               LOSS("SoftmaxWithLoss") "loss_param { label_smoothing: 0.25 normalization: WEIGHTS "
                                       "class_weight: [1, 0, 2.5] ignore_label: 7 }",
               "4x3! 4", true);
    assert_int_equal(run_forward(&one), 0);
    assert_int_equal(run_backward(&one), 0);
    assert_int_equal(one.graph->op_count, 3); /* count, loss, gradient */
    for (int i = 0; i < 3; i++) {
        const struct ls_loss_attr *attr = &one.graph->ops[i]->attr.loss;
        assert_true(attr->smoothing == 0.25f && attr->classes == 3);
        assert_true(attr->class_weight[0] == 1 && attr->class_weight[1] == 0);
        assert_true(attr->class_weight[2] == 2.5f);
        assert_true(attr->has_ignore && attr->ignore_label == 7);
    }
    close_layer(&one);

    open_layer(&one, LOSS("SoftmaxWithLoss"), "4x3! 4", true);
    assert_int_equal(run_forward(&one), 0);
    assert_null(one.graph->ops[0]->attr.loss.class_weight);
    assert_true(one.graph->ops[0]->attr.loss.smoothing == 0);
    close_layer(&one);
}

static void loss_weights(void **state)
{
    (void)state;
    struct one_layer one;
    open_layer(&one, LOSS("SoftmaxWithLoss") "loss_weight: 0.3", "4x10! 4", true);
    assert_int_equal(run_forward(&one), 0);
    assert_int_equal(run_backward(&one), 0);
    assert_true(one.graph->ops[1]->attr.loss.loss_weight == 0.3f);
    assert_true(one.graph->metrics[0].loss_weight == 0.3f);
    assert_int_equal(one.graph->ops[1]->attr.loss.axis, 1);
    close_layer(&one);

    /* Without weight: measured all the same, nothing to divide, no gradient. */
    open_layer(&one, LOSS("EuclideanLoss") "loss_weight: 0", "4x10! 4x10", true);
    assert_int_equal(run_forward(&one), 0);
    assert_int_equal(one.graph->op_count, 1);
    assert_int_equal(one.graph->normalizer_count, 0);
    assert_int_equal(one.graph->ops[0]->attr.loss.normalizer, -1);
    assert_int_equal(one.graph->metric_count, 1);
    close_layer(&one);
}

static void euclidean_signs(void **state)
{
    (void)state;
    struct one_layer one;
    open_layer(&one, LOSS("EuclideanLoss"), "4x10! 4x10!", true);
    assert_int_equal(run_forward(&one), 0);
    assert_int_equal(run_backward(&one), 0);
    assert_int_equal(one.graph->op_count, 3);
    assert_true(one.graph->ops[1]->attr.loss.scale == 1);
    assert_true(one.graph->ops[2]->attr.loss.scale == -1);
    close_layer(&one);
}

/* The gradient of what is computed from the probabilities joins that of the loss. */
static void gradient_through_probabilities(void **state)
{
    (void)state;
    struct one_layer one;
    struct ls_text ops = {0};
    open_layer(&one, LOSS("SoftmaxWithLoss") "top: 'p'", "4x10! 4", true);
    assert_int_equal(run_forward(&one), 0);
    ls_graph_add_gradient(one.graph, one.layer->top[1],
                          ls_graph_gradient_value(one.graph, one.layer->top[1]));
    assert_int_equal(run_backward(&one), 0);
    describe_ops(&ops, one.graph, 1);
    assert_string_equal(ops.data, "softmax loss backward(p l > grad(x)); "
                                  "softmax backward(p grad(p) > grad(x)); "
                                  "eltwise(grad(x) grad(x) > grad(x))");
    ls_text_free(&ops);
    close_layer(&one);
}

/* ---- Records and figures --------------------------------------------------------------------- */

static void metric_is(const struct ls_metric *metric, const char *name, int entries, int offset,
                      int count_offset)
{
    assert_string_equal(metric->name, name);
    assert_int_equal(metric->entries, entries);
    assert_int_equal(metric->offset, offset);
    assert_int_equal(metric->count_offset, count_offset);
}

static void loss_figures(void **state)
{
    (void)state;
    struct one_layer one;
    open_layer(&one, LOSS("SoftmaxWithLoss") "loss_param { ignore_label: 9 }", "4x10! 4", true);
    assert_int_equal(run_forward(&one), 0);
    metric_is(&one.graph->metrics[0], "y", 1, 0, 1);
    assert_int_equal(one.graph->record_size, 3); /* sum, count; labels counted before */
    close_layer(&one);
    open_layer(&one, LOSS("SoftmaxWithLoss") "loss_param { normalization: NONE }", "4x10! 4", true);
    assert_int_equal(run_forward(&one), 0);
    metric_is(&one.graph->metrics[0], "y", 1, 0, -1);
    close_layer(&one);
    open_layer(&one, "name: 'made up' type: 'EuclideanLoss' bottom: 'x' bottom: 'l'", "4x10! 4x10",
               false);
    assert_int_equal(run_forward(&one), 0);
    metric_is(&one.graph->metrics[0], "made up", 1, 0, 1);
    close_layer(&one);
}

static void accuracy_figures(void **state)
{
    (void)state;
    struct one_layer one;
    open_layer(&one,
               LOSS("Accuracy") "top: 'c' top: 'm' accuracy_param { top_k: 2 ignore_label: 7 "
                                "confusion_matrix: true }",
               "4x3x5 4x5", false);
    assert_int_equal(run_forward(&one), 0);
    const struct ls_accuracy_attr *attr = &one.graph->ops[0]->attr.accuracy;
    assert_int_equal(attr->axis, 1);
    assert_int_equal(attr->top_k, 2);
    assert_true(attr->has_ignore && attr->ignore_label == 7);
    assert_int_equal(attr->classes, 3);
    metric_is(&one.graph->metrics[0], "y", 1, 0, 1);
    metric_is(&one.graph->metrics[1], "c", 3, 2, 5);
    assert_true(one.graph->metrics[1].count_each && !one.graph->metrics[1].is_count);
    metric_is(&one.graph->metrics[2], "m", 9, 8, -1);
    assert_true(one.graph->metrics[2].is_count);
    assert_int_equal(attr->metric_offset, 0);
    assert_int_equal(attr->class_offset, 2);
    assert_int_equal(attr->confusion_offset, 8);
    assert_int_equal(one.graph->record_size, 2 + 6 + 9);
    close_layer(&one);

    open_layer(&one, LOSS("Accuracy"), "4x3 4", false);
    assert_int_equal(run_forward(&one), 0);
    assert_int_equal(one.graph->ops[0]->attr.accuracy.class_offset, -1);
    assert_int_equal(one.graph->ops[0]->attr.accuracy.confusion_offset, -1);
    assert_false(one.graph->ops[0]->attr.accuracy.has_ignore);
    assert_int_equal(one.graph->record_size, 2);
    close_layer(&one);

    open_layer(&one, LOSS("Accuracy") "top: 'm' accuracy_param { confusion_matrix: true }", "4x3 4",
               false);
    assert_int_equal(run_forward(&one), 0);
    assert_int_equal(one.graph->ops[0]->attr.accuracy.class_offset, -1);
    assert_int_equal(one.graph->ops[0]->attr.accuracy.confusion_offset, 2);
    close_layer(&one);
}

static void mean_iou_figures(void **state)
{
    (void)state;
    struct one_layer one;
    open_layer(&one, LOSS("MeanIoU") "top: 'c' mean_iou_param { axis: -1 ignore_label: 7 }",
               "4x5x3 4x5", false);
    assert_int_equal(run_forward(&one), 0);
    const struct ls_mean_iou_attr *attr = &one.graph->ops[0]->attr.mean_iou;
    assert_int_equal(attr->axis, 2);
    assert_int_equal(attr->classes, 3);
    assert_true(attr->has_ignore && attr->ignore_label == 7);
    assert_int_equal(attr->metric_offset, 0);
    metric_is(&one.graph->metrics[0], "y", 1, 0, -1);
    metric_is(&one.graph->metrics[1], "c", 3, 0, -1);
    assert_true(one.graph->metrics[0].mean && !one.graph->metrics[1].mean);
    assert_int_equal(one.graph->metrics[0].overlaps, 3);
    assert_int_equal(one.graph->metrics[1].overlaps, 3);
    assert_int_equal(one.graph->record_size, 9);
    close_layer(&one);

    open_layer(&one, LOSS("MeanIoU"), "2x21x6x7 2x1x6x7", true);
    assert_int_equal(run_forward(&one), 0);
    assert_int_equal(one.graph->ops[0]->attr.mean_iou.classes, 21);
    assert_false(one.graph->ops[0]->attr.mean_iou.has_ignore);
    assert_int_equal(one.graph->metric_count, 1);
    close_layer(&one);
}

/* Which of two values is the better one: what snapshot_best, sweeps and pages go by. */
static void better_figures(void **state)
{
    (void)state;
    static const struct {
        const char *text, *bottoms;
        enum ls_better better[3];
    } cases[] = {
        {LOSS("SoftmaxWithLoss"), "4x10! 4", {LS_BETTER_SMALLER}},
        {LOSS("SoftmaxWithLoss") "loss_weight: 0", "4x10 4", {LS_BETTER_SMALLER}},
        {LOSS("SoftmaxWithLoss") "loss_weight: -1", "4x10! 4", {LS_BETTER_LARGER}},
        {LOSS("EuclideanLoss") "loss_weight: 0", "4x10 4x10", {LS_BETTER_SMALLER}},
        {LOSS("HingeLoss") "loss_weight: 0", "4x10 4", {LS_BETTER_SMALLER}},
        {LOSS("SoftmaxWithLoss") "top: 'p' top: 'a' softmax_param { metric: PERPLEXITY metric: "
                                 "ACCURACY }",
         "4x10 4",
         {LS_BETTER_SMALLER, LS_BETTER_SMALLER, LS_BETTER_LARGER}},
        {"name: 'l' type: 'Accuracy' bottom: 'x' bottom: 'l' top: 'loss'",
         "4x10 4",
         {LS_BETTER_LARGER}},
        {LOSS("MeanIoU"), "2x21x6x7 2x1x6x7", {LS_BETTER_LARGER}},
        {"name: 'l' type: 'Reduction' bottom: 'x' top: 'y' reduction_param { operation: ASUM }",
         "4x10",
         {LS_BETTER_SMALLER}},
        {"name: 'l' type: 'Reduction' bottom: 'x' top: 'y' reduction_param { operation: SUMSQ "
         "coeff: "
         "-1 }",
         "4x10",
         {LS_BETTER_LARGER}},
        {"name: 'l' type: 'Reduction' bottom: 'x' top: 'y' reduction_param { operation: MEAN }",
         "4x10",
         {LS_BETTER_UNKNOWN}},
        {"name: 'l' type: 'Reduction' bottom: 'x' top: 'y' loss_weight: 1 reduction_param { "
         "operation: MEAN }",
         "4x10!",
         {LS_BETTER_SMALLER}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct one_layer one;
        open_layer(&one, cases[i].text, cases[i].bottoms, strchr(cases[i].bottoms, '!') != NULL);
        assert_int_equal(run_forward(&one), 0);
        for (size_t m = 0; m < one.graph->metric_count && m < 3; m++)
            assert_int_equal(one.graph->metrics[m].better, cases[i].better[m]);
        assert_true(one.graph->metric_count > 0);
        close_layer(&one);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(normalizers),      cmocka_unit_test(loss_weights),
        cmocka_unit_test(euclidean_signs),  cmocka_unit_test(gradient_through_probabilities),
        cmocka_unit_test(loss_figures),     cmocka_unit_test(accuracy_figures),
        cmocka_unit_test(learned_labels),   cmocka_unit_test(mixtures),
        cmocka_unit_test(mean_iou_figures), cmocka_unit_test(better_figures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
