/* BatchNorm and BN in all their forms: shapes, blobs, ops, sync points, and what they refuse.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layer_case.h"

#include <math.h>

#define NORM "name: 'l' type: 'BatchNorm' bottom: 'x' top: 'y' "
#define BN   "name: 'l' type: 'BN' bottom: 'x' top: 'y' "

#define AVERAGES   "mean 3~, variance 3~, factor 1~"
#define FORKS      "scale 1x3x1x1, bias 1x3x1x1, mean 1x3x1x1~, variance 1x3x1x1~"
#define BY_BATCH   "moments(x); sync point(); batch norm(x - - - "
#define BY_AVERAGE "batch norm(x l.mean l.variance l.factor "

static const struct layer_case cases[] = {
    {NORM, "4x3x5x6!", "4x3x5x6!", AVERAGES, BY_BATCH "- - > y)",
     "batch norm backward sums(grad(y) x - - - - > - -); sync point(); "
     "batch norm backward data(grad(y) x - - - - - > grad(x))"},
    {"name: 'l' type: 'SyncBN' bottom: 'x' top: 'y'", "4x3x5x6", "4x3x5x6", AVERAGES,
     BY_BATCH "- - > y)", ""},
    {"name: 'l' type: 'SyncBatchNorm' bottom: 'x' top: 'y' batch_norm_param { group: 2 }", "4x3",
     "4x3", AVERAGES, BY_BATCH "- - > y)", ""},
    {NORM, "4x3x5x6", "4x3x5x6", AVERAGES, BY_AVERAGE "- - > y)", NULL},
    {NORM "batch_norm_param { use_global_stats: false }", "4x3x5x6", "4x3x5x6", AVERAGES,
     BY_BATCH "- - > y)", NULL},
    /* Frozen, for fine-tuning. */
    {NORM "batch_norm_param { use_global_stats: true }", "4x3x5x6!", "4x3x5x6!", AVERAGES,
     BY_AVERAGE "- - > y)",
     "batch norm backward data(grad(y) x - l.mean l.variance l.factor - > grad(x))"},
    {NORM "batch_norm_param { use_global_stats: true }", "8x3/2", "8x3/2", AVERAGES,
     BY_AVERAGE "- - > y)", ""},
    /* NVIDIA's fork: scale and bias learn. */
    {NORM "batch_norm_param { scale_bias: true }", "4x3x5x6!", "4x3x5x6!",
     AVERAGES ", scale 3, bias 3", BY_BATCH "l.scale l.bias > y)",
     "batch norm backward sums(grad(y) x - - - - > grad(l.scale) grad(l.bias)); "
     "accumulate(grad(l.scale)); accumulate(grad(l.bias)); sync point(); "
     "batch norm backward data(grad(y) x - - - - l.scale > grad(x))"},
    {NORM "batch_norm_param { scale_filler { value: 2 } }", "4x3x5x6", "4x3x5x6!",
     AVERAGES ", scale 3, bias 3", BY_BATCH "l.scale l.bias > y)",
     "batch norm backward sums(grad(y) x - - - - > grad(l.scale) grad(l.bias)); "
     "accumulate(grad(l.scale)); accumulate(grad(l.bias))"},
    {NORM "batch_norm_param { scale_bias: true use_global_stats: true } param { } param { } "
          "param { } param { lr_mult: 0 } param { lr_mult: 1 }",
     "4x3x5x6!", "4x3x5x6!", AVERAGES ", scale 3, bias 3", BY_AVERAGE "l.scale l.bias > y)",
     "batch norm backward sums(grad(y) x - l.mean l.variance l.factor > - grad(l.bias)); "
     "accumulate(grad(l.bias)); "
     "batch norm backward data(grad(y) x - l.mean l.variance l.factor l.scale > grad(x))"},
    {NORM "batch_norm_param { scale_bias: true } propagate_down: false", "4x3x5x6!", "4x3x5x6!",
     AVERAGES ", scale 3, bias 3", BY_BATCH "l.scale l.bias > y)",
     "batch norm backward sums(grad(y) x - - - - > grad(l.scale) grad(l.bias)); "
     "accumulate(grad(l.scale)); accumulate(grad(l.bias))"},
    {NORM, "8x3/2", "8x3/2", AVERAGES, BY_BATCH "- - > y)", ""},
    /* One axis: one channel. */
    {NORM, "4!", "4!", "mean 1~, variance 1~, factor 1~",
     "view(x > x); moments(x); sync point(); batch norm(x - - - - - > y); view(y > y)",
     "view(grad(y) > grad(y)); batch norm backward sums(grad(y) x - - - - > - -); sync point(); "
     "batch norm backward data(grad(y) x - - - - - > grad(x)); view(grad(x) > grad(x))"},

    /* Saved variances can do without eps. */
    {NORM "batch_norm_param { eps: 0 use_global_stats: true }", "4x3x5x6", "4x3x5x6", AVERAGES,
     BY_AVERAGE "- - > y)", NULL},

    /* DeepLab and PSPNet. */
    {BN, "4x3x5x6!", "4x3x5x6!", FORKS, BY_BATCH "l.scale l.bias > y)",
     "batch norm backward sums(grad(y) x - - - - > grad(l.scale) grad(l.bias)); "
     "accumulate(grad(l.scale)); accumulate(grad(l.bias)); sync point(); "
     "batch norm backward data(grad(y) x - - - - l.scale > grad(x))"},
    {BN "bn_param { momentum: 0.95 slope_filler { value: 1 } }", "4x3x5x6", "4x3x5x6", FORKS,
     "batch norm(x l.mean l.variance - l.scale l.bias > y)", NULL},
    {BN "bn_param { frozen: true }", "4x3x5x6!", "4x3x5x6!",
     "scale 1x3x1x1=, bias 1x3x1x1=, mean 1x3x1x1~, variance 1x3x1x1~",
     "batch norm(x l.mean l.variance - l.scale l.bias > y)",
     "batch norm backward data(grad(y) x - l.mean l.variance - l.scale > grad(x))"},
    {BN "bn_param { frozen: true }", "4x3x5x6", "4x3x5x6",
     "scale 1x3x1x1=, bias 1x3x1x1=, mean 1x3x1x1~, variance 1x3x1x1~",
     "batch norm(x l.mean l.variance - l.scale l.bias > y)", ""},
    /* SegNet: by the batch in every phase. */
    {BN "bn_param { scale_filler { value: 1 } shift_filler { value: 0.001 } }", "4x3x5x6",
     "4x3x5x6!", "scale 1x3x1x1, bias 1x3x1x1", BY_BATCH "l.scale l.bias > y)",
     "batch norm backward sums(grad(y) x - - - - > grad(l.scale) grad(l.bias)); "
     "accumulate(grad(l.scale)); accumulate(grad(l.bias))"},
    {BN "bn_param { bn_mode: LEARN }", "4x3x5x6", "4x3x5x6", "scale 1x3x1x1, bias 1x3x1x1",
     BY_BATCH "l.scale l.bias > y)", NULL},
    {BN "bn_param { bn_mode: INFERENCE }", "4x3x5x6!", "4x3x5x6!", "scale 1x3x1x1, bias 1x3x1x1",
     "scale(x l.scale l.bias > y)",
     "scale backward sums(grad(y) x > grad(l.scale) grad(l.bias)); accumulate(grad(l.scale)); "
     "accumulate(grad(l.bias)); scale(grad(y) l.scale - > grad(x))"},
};

static const struct refused_case refused[] = {
    {"name: 'l'\ntype: 'BatchNorm'\nbottom: 'x'\ntop: 'y'\nbatch_norm_param {\n  eps: 0\n"
     "  use_global_stats: false }",
     "4x3", "l: eps 0 must be a number above 0", "6:3"},
    {NORM "batch_norm_param { eps: nan moving_average_fraction: nan group: 4294967295 }", "4x3",
     "l: eps nan must be\nl: moving_average_fraction nan must be from 0 to 1\n"
     "l: group 4294967295 is more samples than a batch may have",
     NULL},
    {NORM "batch_norm_param { eps: inf }", "4x3", "l: eps inf must be", NULL},
    {NORM "batch_norm_param { eps: -1e-5 }", "4x3", "l: eps -1e-05 must be", NULL},
    {NORM "batch_norm_param { eps: 1e-42 }", "4x3", "l: eps 1", NULL},
    {NORM "batch_norm_param { moving_average_fraction: 1.5 }", "4x3",
     "l: moving_average_fraction 1.5 must be from 0 to 1", NULL},
    {NORM "batch_norm_param { moving_average_fraction: -0.5 }", "4x3",
     "l: moving_average_fraction -0.5 must be", NULL},
    {NORM "batch_norm_param { scale_bias: false bias_filler { } }", "4x3",
     "l: there is nothing to fill without scale_bias", NULL},
    {NORM, "4x3?", "l: axis 0 of its bottom 'x' does not hold the samples", NULL},
    {BN "bn_param { eps: 0 momentum: 2 }", "4x3",
     "l: eps 0 must be\nl: momentum 2 must be from 0 to 1", NULL},
    {BN "bn_param { scale_filler { } frozen: true slope_filler { } momentum: 0.9 bias_filler { } }",
     "4x3",
     "l: slope_filler belongs to the form of BN that keeps averages\nl: bias_filler belongs\n"
     "l: momentum belongs\nl: frozen belongs",
     NULL},
    {BN "bn_param { bn_mode: INFERENCE group: 2 }", "4x3", "l: group has no effect with bn_mode",
     NULL},
    {BN "bn_param { bn_mode: INFERENCE eps: 1e-5 }", "4x3", "l: eps has no effect with bn_mode",
     NULL},
    {BN "bn_param { bn_mode: INFERENCE }", "4", "l: its bottom 'x' must have at least 2 axes",
     NULL},
    {BN "bn_param { group: 4294967295 }", "4x3", "l: group 4294967295 is more", NULL},
};

static void all_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_layer_case(&cases[i]);
}

static void all_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        check_refused_case(&refused[i]);
}

static void open_training(struct one_layer *one, const char *text)
{
    open_layer(one, text, "4x3x5x6!", true);
    assert_int_equal(run_forward(one), 0);
    assert_int_equal(run_backward(one), 0);
}

/* One sync point forward, one backward, both of the group that the definition asks for. */
static void sync_points(void **state)
{
    (void)state;
    struct one_layer one;
    open_training(&one, NORM "batch_norm_param { group: 20 eps: 0.25 }");
    const struct ls_graph *graph = one.graph;
    assert_int_equal(graph->sync_count, 2);
    assert_int_equal(graph->syncs[0].kind, LS_SYNC_MOMENTS);
    assert_int_equal(graph->syncs[1].kind, LS_SYNC_SUMS);
    assert_false(graph->syncs[0].backward);
    assert_true(graph->syncs[1].backward);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(graph->syncs[i].channels, 3);
        assert_int_equal(graph->groupings[graph->syncs[i].grouping], 20);
        assert_ptr_equal(graph->syncs[i].layer, one.layer);
    }
    assert_true(graph->syncs[0].eps == 0.25F);
    for (size_t i = 0; i < graph->op_count; i++) {
        const struct ls_op *op = graph->ops[i];
        if (op->kind == LS_OP_SYNC) {
            assert_int_equal(op->attr.sync, op->backward);
            continue;
        }
        assert_int_equal(op->attr.batch_norm.moments, 0);
        assert_int_equal(op->attr.batch_norm.sums, op->backward ? 1 : -1);
        assert_true(op->attr.batch_norm.eps == 0.25F);
        assert_false(op->attr.batch_norm.relu);
    }
    close_layer(&one);
    /* The averages alone: nothing to wait for. */
    open_training(&one, NORM "batch_norm_param { use_global_stats: true }");
    assert_int_equal(one.graph->sync_count, 0);
    assert_int_equal(one.graph->ops[0]->attr.batch_norm.moments, -1);
    assert_int_equal(one.graph->ops[1]->attr.batch_norm.sums, -1);
    close_layer(&one);
}

static const struct ls_averages *averages_of(const struct one_layer *one)
{
    assert_int_equal(one->graph->syncs[0].kind, LS_SYNC_MOMENTS);
    return &one->graph->syncs[0].averages;
}

static void check_averages(const struct one_layer *one, int mean, int factor, float keep, float add)
{
    const struct ls_averages *averages = averages_of(one);
    assert_ptr_equal(averages->mean, one->layer->blob[mean]);
    assert_ptr_equal(averages->variance, one->layer->blob[mean + 1]);
    assert_ptr_equal(averages->factor, factor >= 0 ? one->layer->blob[factor] : NULL);
    assert_true(fabsf(averages->keep - keep) < 1e-6F && fabsf(averages->add - add) < 1e-6F);
}

/* How averages advance: Caffe's sums with their factor, the forks' true averages, SegNet none. */
static void moving_averages(void **state)
{
    (void)state;
    struct one_layer one;
    open_training(&one, NORM);
    check_averages(&one, 0, 2, 0.999F, 1);
    assert_true(averages_of(&one)->add == 1);
    close_layer(&one);
    open_training(&one, NORM "batch_norm_param { moving_average_fraction: 0 scale_bias: true }");
    check_averages(&one, 0, 2, 0, 1);
    close_layer(&one);
    open_training(&one, BN);
    check_averages(&one, 2, -1, 0.9F, 0.1F);
    /* They begin as if nothing were normalised. */
    assert_null(one.layer->request[2].filler);
    assert_true(one.layer->request[3].filler->value == 1);
    close_layer(&one);
    open_training(&one, BN "bn_param { bn_mode: LEARN }");
    assert_null(averages_of(&one)->mean);
    assert_true(one.graph->syncs[0].eps == 1e-9F);
    close_layer(&one);
    open_training(&one, BN "bn_param { shift_filler { } eps: 1e-3 }");
    assert_true(one.graph->syncs[0].eps == 1e-3F);
    close_layer(&one);
    /* A test by the statistics of its batches leaves them alone. */
    open_layer(&one, NORM "batch_norm_param { use_global_stats: false }", "4x3", false);
    assert_int_equal(run_forward(&one), 0);
    assert_null(averages_of(&one)->mean);
    close_layer(&one);
}

static void fillers(void **state)
{
    (void)state;
    struct one_layer one;
    open_training(&one, NORM "batch_norm_param { scale_bias: true bias_filler { value: 4 } }");
    for (int i = 0; i < 3; i++)
        assert_null(one.layer->request[i].filler);
    assert_true(one.layer->request[3].filler->value == 1);
    assert_true(one.layer->request[4].filler->value == 4);
    close_layer(&one);
    open_training(&one, BN "bn_param { slope_filler { value: 2 } bias_filler { value: 3 } }");
    assert_true(one.layer->request[0].filler->value == 2);
    assert_true(one.layer->request[1].filler->value == 3);
    close_layer(&one);
    open_training(&one, BN "bn_param { scale_filler { value: 2 } shift_filler { value: 3 } }");
    assert_true(one.layer->request[0].filler->value == 2);
    assert_true(one.layer->request[1].filler->value == 3);
    close_layer(&one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_cases),   cmocka_unit_test(all_refused),
        cmocka_unit_test(sync_points), cmocka_unit_test(moving_averages),
        cmocka_unit_test(fillers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
