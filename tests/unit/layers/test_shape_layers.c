/* Reshape, Slice, Tile, Reduction and ArgMax: shapes against Caffe's rules, where samples lie,
 * what is refused, which ops are emitted. Graphs here are for micro-batches of other sizes than the
 * definition's batches.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "one_layer.h"

#define LAYER(type)   "name: 'l' type: '" type "' "
#define XY            "bottom: 'x' top: 'y' "
#define RESHAPE(body) LAYER("Reshape") XY "reshape_param { " body " }"
#define SHAPE(dims)   RESHAPE("shape { dim: [" dims "] }")
#define SLICE(body)   LAYER("Slice") "bottom: 'x' top: 'a' top: 'b' slice_param { " body " }"
#define TILE(body)    LAYER("Tile") XY "tile_param { " body " }"
#define REDUCE(body)  LAYER("Reduction") XY "reduction_param { " body " }"
#define ARGMAX(body)  LAYER("ArgMax") XY "argmax_param { " body " }"

/* `batch`: of the definition's sources; 0: unknown, so that the micro-batch is taken for it. */
struct shape_case {
    int batch;
    const char *text, *bottoms, *tops;
};

static const struct shape_case shapes[] = {
    /* What Caffe's documentation shows. */
    {64, SHAPE("0, 0, -1"), "3x2x4x5", "3x2x20"},
    {64, SHAPE("0, -1"), "3x2x4x5!", "3x40!"},
    {64, RESHAPE("shape { dim: [4, 2] } axis: 1"), "3x8", "3x4x2"},
    {64, RESHAPE("shape { dim: [2, 4] } axis: -1 num_axes: 0"), "3x8x1x1",
     NULL}, /* 8 more elements for each */
    {64, RESHAPE("shape { dim: [1, 1] } axis: -1 num_axes: 0"), "3x8", "3x8x1x1"},
    {64, RESHAPE("shape { } axis: 2 num_axes: 1"), "3x8x1", "3x8"},
    {64, RESHAPE("shape { dim: 1 } axis: 1 num_axes: 0"), "3x8", "3x1x8"},
    {64, RESHAPE("shape { dim: [-1, 0] } axis: 1 num_axes: 2"), "3x2x4x5", "3x2x4x5"},
    {64, RESHAPE("shape { dim: [-1, 2] } axis: -3 num_axes: 2"), "3x2x4x5", "3x2x10x2"},
    /* The batch of the definition, written out, whatever the micro-batch is. */
    {64, SHAPE("64, 40"), "3x2x4x5", "3x40"},
    {64, SHAPE("64, -1"), "3x2x4x5", "3x40"},
    {64, SHAPE("-1, 40"), "3x2x4x5", "3x40"},
    {3, SHAPE("3, 4, 10"), "3x2x4x5", "3x4x10"},
    {0, SHAPE("3, 4, 10"), "3x2x4x5", "3x4x10"},
    {1, SHAPE("1, 40"), "3x2x4x5", "3x40"},
    /* Rows of a sample, and back. */
    {64, SHAPE("-1, 5"), "3x2x4x5", "24x5/8"},
    {64, SHAPE("512, 5"), "3x2x4x5", "24x5/8"},
    {64, SHAPE("64, -1, 5"), "24x5/8", "3x8x5"},
    {64, SHAPE("-1, 8, 5"), "24x5/8", "3x8x5"},
    {64, SHAPE("128, 20"), "24x5/8", "6x20/2"},
    {64, SHAPE("0, 5, 1"), "24x5/8", "24x5x1/8"},
    {64, SHAPE("-1"), "3x2x4", "24/8"},
    {4, SHAPE("8, 3"), "2x6", "4x3/2"},
    /* Samples behind leading ones. */
    {64, SHAPE("1, 64, 8"), "3x8", "1x3x8@1"},
    {64, RESHAPE("shape { dim: 1 } num_axes: 0"), "3x8", "1x3x8@1"},
    {1, RESHAPE("shape { dim: 1 } num_axes: 0"), "3x8", "1x3x8@1"},
    {1, SHAPE("1, 1, 8"), "3x8", "3x1x8"},
    {1, SHAPE("-1, 8"), "3x8", "3x8"},
    {1, SHAPE("-1, 4"), "3x8", "6x4/2"},
    {64, SHAPE("6, 4"), "3x8?", "6x4?"},
    {64, SHAPE("-1"), "3x8?", "24?"},

    {0, LAYER("Slice") "bottom: 'x' top: 'a' top: 'b' top: 'c'", "3x6x2!",
     "3x2x2!, 3x2x2!, 3x2x2!"},
    {0, SLICE("slice_point: 1"), "3x6x2", "3x1x2, 3x5x2"},
    {0, SLICE("slice_dim: 2"), "3x6x2", "3x6x1, 3x6x1"},
    {0, SLICE("axis: -1 slice_point: 1"), "6x2/2", "6x1/2, 6x1/2"},
    {0, LAYER("Slice") XY, "3x6", "3x6"},
    {0, SLICE("axis: 0"), "4x6?", "2x6?, 2x6?"},

    {0, TILE("tiles: 3"), "3x6x2!", "3x18x2!"},
    {0, TILE("tiles: 4 axis: -1"), "6x2/2", "6x8/2"},
    {0, TILE("tiles: 4 axis: 0"), "6x2?", "24x2?"},

    {0, REDUCE("axis: 1"), "3x6x2!", "3!"},
    {0, REDUCE("axis: -1 operation: ASUM"), "6x4x2/2", "6x4/2"},
    {0, REDUCE("axis: 2 operation: SUMSQ coeff: 2"), "3x6x2x5", "3x6"},
    {0, REDUCE("operation: MEAN"), "3x6!", "figure"},
    {0, LAYER("Reduction") XY, "3x6!/3", "figure"},
    {0, REDUCE("axis: 0"), "3x6?", "?"},

    {0, LAYER("ArgMax") XY, "3x10", "3x1x1"},
    {0, LAYER("ArgMax") XY, "3x10x2x2", "3x1x1x1"},
    {0, ARGMAX("top_k: 5"), "6x10!/2", "6x1x5/2!"},
    {0, ARGMAX("top_k: 5 out_max_val: true"), "3x10x4", "3x2x5"},
    {0, ARGMAX("axis: 1"), "3x10x4x4", "3x1x4x4"},
    {0, ARGMAX("axis: -1 top_k: 2 out_max_val: true"), "3x10x4", "3x10x2"},
    {0, ARGMAX("axis: 0"), "3x10?", "1x10?"},
};

static void open_with_batch(struct one_layer *one, struct ls_source_shapes *sources,
                            const struct shape_case *c)
{
    open_layer(one, c->text, c->bottoms, true);
    *sources = (struct ls_source_shapes){.batch = c->batch};
    one->graph->sources = sources;
}

static void all_shapes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct one_layer one;
        struct ls_source_shapes sources;
        struct ls_text tops = {0};
        open_with_batch(&one, &sources, &shapes[i]);
        int status = run_forward(&one);
        if (status != 0 && shapes[i].tops != NULL)
            fail_msg("%s: %s", shapes[i].text, one.error.problems[0].message);
        if (status == 0) {
            describe_tops(&tops, &one);
            if (shapes[i].tops == NULL || strcmp(tops.data, shapes[i].tops) != 0)
                fail_msg("%s: %s, not %s", shapes[i].text, tops.data, shapes[i].tops);
        }
        ls_text_free(&tops);
        close_layer(&one);
    }
}

/* A reshape in the second position of the samples: [1,N,C] and back, and rows of it. */
static void samples_behind(void **state)
{
    (void)state;
    static const struct {
        const char *text, *bottom, *top;
    } cases[] = {
        {SHAPE("64, 8"), "5x3x8@1", NULL},           {SHAPE("0, 0, 2, 4"), "5x3x8@1", "5x3x2x4@1"},
        {SHAPE("0, -1, 4"), "5x3x8@1", "5x6x4@1/2"}, {SHAPE("0, 128, 4"), "5x3x8@1", "5x6x4@1/2"},
        {SHAPE("-1, 8"), "5x3x8@1", NULL},           {SHAPE("-1, 8"), "1x3x8@1", "3x8"},
        {SHAPE("0, -1"), "1x3x8@1", "1x24@1/8"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct shape_case open = {64, cases[i].text, cases[i].bottom, NULL};
        struct one_layer one;
        struct ls_source_shapes sources;
        struct ls_text tops = {0};
        open_with_batch(&one, &sources, &open);
        int status = run_forward(&one);
        if (status == 0)
            describe_tops(&tops, &one);
        if ((status == 0) != (cases[i].top != NULL) ||
            (status == 0 && strcmp(tops.data, cases[i].top) != 0))
            fail_msg("%s on %s: %s", cases[i].text, cases[i].bottom,
                     status == 0 ? tops.data : one.error.problems[0].message);
        ls_text_free(&tops);
        close_layer(&one);
    }
}

/* ---- Refusals -------------------------------------------------------------------------------- */

static const struct shape_case errors[] = {
    {64, SHAPE("32, 80"), "3x2x4x5",
     "l: a batch of 'x' has 64 samples along axis 0 of 64 2 4 5 (2560); as 32 80 (2560) it would "
     "have no axis that they lie along, so that it could not be cut into micro-batches"},
    {64, SHAPE("40, 64"), "3x2x4x5",
     "l: a batch of 'x' has 64 samples along axis 0 of 64 2 4 5 (2560); as 40 64 (2560) it would "
     "have no axis that they lie along, so that it could not be cut into micro-batches"},
    {100, SHAPE("64, 40"), "3x2x4x5",
     "l: 'x', in batches of 100 samples, is 100 2 4 5 (4000) and cannot be made 64 40 (2560)"},
    {64, SHAPE("0, 3, -1"), "3x2x4x5",
     "l: 'x', in batches of 64 samples, is 64 2 4 5 (2560) and cannot be made 64 3 1 (192) times "
     "anything"},
    {64, SHAPE("0, -1, -1"), "3x2x4x5", "l: an extent of -1 can be given only once"},
    {64, SHAPE("0, -2"), "3x2x4x5", "l: extent -2 is not possible"},
    {64, SHAPE("0, 0, 0"), "3x2", "l: extent 0 would copy axis 2, which 'x' does not have"},
    {64, SHAPE("0, 9223372036854775807"), "3x2",
     "l: the top would be 64 x 9223372036854775807, which is empty or larger than a tensor may be"},
    {64, SHAPE("0, 1, 1, 1, 1, 1, 1, 1, 1"), "3x2",
     "l: the top would have 9 axes; at most 8 are possible"},
    {64, RESHAPE("shape { dim: 2 } axis: 3"), "3x2",
     "l: axis 3 is out of range for 'x', which has 2 axes"},
    {64, RESHAPE("shape { dim: 2 } axis: -2147483648"), "3x2",
     "l: axis -2147483648 is out of range for 'x', which has 2 axes"},
    {64, RESHAPE("shape { dim: 2 } axis: 1 num_axes: 2"), "3x2",
     "l: num_axes 2 is not possible: 1 axes of 'x' begin at axis 1, and -1 means all of them"},
    {64, RESHAPE("shape { dim: 2 } num_axes: -2"), "3x2",
     "l: num_axes -2 is not possible: 2 axes of 'x' begin at axis 0, and -1 means all of them"},
    {2147483647, SHAPE("0, -1"), "3298534883328x1/1099511627776",
     "l: a batch of its bottom would be 9223372036854775807 x 1, which is empty or larger than a "
     "tensor may be"},
    {64, LAYER("Reshape") XY, "3x2",
     "l: 'x', in batches of 64 samples, is 64 2 (128) and cannot be made (1)"},

    {0, SLICE("axis: 0"), "4x6",
     "l: axis 0 of 'x' runs over the samples of a batch; a result that mixes samples would depend "
     "on how the batch is cut into micro-batches"},
    {0, SLICE("axis: 0 slice_point: 2"), "8x6/4",
     "l: axis 0 of 'x' runs over the samples of a batch; a result that mixes samples would depend "
     "on how the batch is cut into micro-batches"},
    {0, SLICE("axis: 1 slice_dim: 1"), "4x6", "l: axis and slice_dim cannot both be given"},
    {0, SLICE("slice_dim: 4294967295"), "4x6",
     "l: axis 8 is out of range for 'x' with shape 4 6 (24)"},
    {0, SLICE(""), "4x5", "l: axis 1 of 'x' has extent 5, which cannot be cut into 2 equal parts"},
    {0, SLICE("slice_point: [1, 2]"), "4x5", "l: 2 tops need 1 slice_points; there are 2"},
    {0, SLICE("slice_point: 0"), "4x5",
     "l: slice_points must increase, from 1 on, and stay below 5, the extent of axis 1 of 'x'"},
    {0, SLICE("slice_point: 5"), "4x5",
     "l: slice_points must increase, from 1 on, and stay below 5, the extent of axis 1 of 'x'"},
    {0, LAYER("Slice") "bottom: 'x' top: 'a' top: 'b' top: 'c' slice_param { slice_point: [2, 2] }",
     "4x5",
     "l: slice_points must increase, from 1 on, and stay below 5, the extent of axis 1 of 'x'"},

    {0, LAYER("Tile") XY, "4x5", "l: tiles is missing"},
    {0, TILE("tiles: 0"), "4x5", "l: tiles 0 must be at least 1"},
    {0, TILE("tiles: -1"), "4x5", "l: tiles -1 must be at least 1"},
    {0, TILE("tiles: 2 axis: 0"), "4x5",
     "l: axis 0 of 'x' runs over the samples of a batch; a result that mixes samples would depend "
     "on how the batch is cut into micro-batches"},
    {0, TILE("tiles: 2147483647"), "4x1000",
     "l: the top would be 4 x 2147483647000, which is empty or larger than a tensor may be"},
    {0, TILE("tiles: 2 axis: 2"), "4x5", "l: axis 2 is out of range for 'x' with shape 4 5 (20)"},

    {0, REDUCE("axis: 2"), "4x5", "l: axis 2 is out of range for 'x' with shape 4 5 (20)"},
    {0, REDUCE("axis: 1 coeff: nan"), "4x5", "l: coeff must be a finite number"},

    {0, ARGMAX("top_k: 0"), "4x5", "l: top_k 0 must be 1 to 5, the numbers that it is among"},
    {0, ARGMAX("top_k: 6"), "4x5", "l: top_k 6 must be 1 to 5, the numbers that it is among"},
    {0, ARGMAX("top_k: 6 axis: 2"), "4x9x5",
     "l: top_k 6 must be 1 to 5, the numbers that it is among"},
    {0, ARGMAX("axis: 0"), "4x5",
     "l: axis 0 of 'x' runs over the samples of a batch; a result that mixes samples would depend "
     "on how the batch is cut into micro-batches"},
    {0, LAYER("ArgMax") XY, "4x16777217",
     "l: the place of a maximum among 16777217 numbers does not fit into fp32; the limit is "
     "16777216"},
};

static void all_errors(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        struct one_layer one;
        struct ls_source_shapes sources;
        open_with_batch(&one, &sources, &errors[i]);
        assert_int_equal(run_forward(&one), LOCKSTEP_DEFINITION);
        const struct ls_problem *problem = &one.error.problems[0];
        if (strcmp(problem->message, errors[i].tops) != 0)
            fail_msg("%s:\n  %s\nnot\n  %s", errors[i].text, problem->message, errors[i].tops);
        assert_int_equal(strncmp(problem->place, "net.prototxt:1:", 15), 0);
        assert_int_equal(one.graph->op_count, 0);
        close_layer(&one);
    }
}

/* Where samples lie behind another axis. */
static void refused_behind(void **state)
{
    (void)state;
    static const char *const texts[] = {REDUCE("axis: 1"), LAYER("ArgMax") XY, ARGMAX("axis: 1"),
                                        TILE("tiles: 2"), SLICE("")};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct one_layer one;
        open_layer(&one, texts[i], "5x4x8@1", true);
        if (run_forward(&one) != LOCKSTEP_DEFINITION)
            fail_msg("%s was accepted", texts[i]);
        assert_non_null(strstr(one.error.problems[0].message, "samples"));
        close_layer(&one);
    }
}

/* ---- Ops ------------------------------------------------------------------------------------- */

static const struct {
    const char *text, *bottoms, *forward, *backward;
} ops[] = {
    {SHAPE("0, -1"), "4x3x2!", "view(x > y)", "view(grad(y) > grad(x))"},
    {SLICE(""), "4x6!", "slice(x > a b)", "concat(grad(a) grad(b) > grad(x))"},
    {LAYER("Slice") XY, "4x6!", "", ""},
    {TILE("tiles: 2"), "4x6!", "tile(x > y)", "tile backward(grad(y) > grad(x))"},
    {REDUCE("axis: 1"), "4x6!", "reduction(x > y)", "reduction backward(grad(y) > grad(x))"},
    {REDUCE("axis: 1 operation: MEAN"), "4x6!", "reduction(x > y)",
     "reduction backward(grad(y) > grad(x))"},
    {REDUCE("axis: 1 operation: ASUM"), "4x6!", "reduction(x > y)",
     "reduction backward(grad(y) x > grad(x))"},
    {REDUCE("axis: 1 operation: SUMSQ"), "4x6!", "reduction(x > y)",
     "reduction backward(grad(y) x > grad(x))"},
    {REDUCE("") "loss_weight: 2", "4x6!", "reduction of the batch(x)",
     "reduction of the batch backward( > grad(x))"},
    {REDUCE("operation: SUMSQ") "loss_weight: 2", "4x6!", "reduction of the batch(x)",
     "reduction of the batch backward(x > grad(x))"},
    {LAYER("ArgMax") XY, "4x6", "argmax(x > y)", ""},
};

static void all_ops(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        struct one_layer one;
        struct ls_text forward = {0}, backward = {0};
        open_layer(&one, ops[i].text, ops[i].bottoms, true);
        assert_int_equal(run_forward(&one), 0);
        size_t count = one.graph->op_count;
        describe_ops(&forward, one.graph, 0);
        assert_string_equal(forward.data != NULL ? forward.data : "", ops[i].forward);
        assert_int_equal(run_backward(&one), 0);
        describe_ops(&backward, one.graph, count);
        assert_string_equal(backward.data != NULL ? backward.data : "", ops[i].backward);
        ls_text_free(&forward);
        ls_text_free(&backward);
        close_layer(&one);
    }
}

/* Parts that no loss depends on have the gradient zero. */
static void slice_with_unused_part(void **state)
{
    (void)state;
    struct one_layer one;
    struct ls_text text = {0};
    open_layer(&one, SLICE(""), "4x6!", true);
    assert_int_equal(run_forward(&one), 0);
    one.graph->backward = true;
    one.layer->propagate[0] = true;
    ls_graph_add_gradient(one.graph, one.layer->top[1],
                          ls_graph_gradient_value(one.graph, one.layer->top[1]));
    assert_int_equal(one.layer->type->backward(one.layer, &one.error), 0);
    describe_ops(&text, one.graph, 1);
    assert_string_equal(text.data, "fill( > grad(a)); concat(grad(a) grad(b) > grad(x))");
    assert_null(one.graph->ops[1]->attr.fill.filler);
    assert_true(one.graph->ops[1]->attr.fill.value == 0);
    ls_text_free(&text);
    close_layer(&one);
}

/* A mean over the batch is divided by all elements of the update; a sum by nothing. */
static void batch_figures(void **state)
{
    (void)state;
    for (int mean = 0; mean < 2; mean++) {
        struct one_layer one;
        open_layer(&one,
                   mean ? REDUCE("operation: MEAN") "loss_weight: 2" : REDUCE("") "loss_weight: 2",
                   "8x6x5!/2", true);
        assert_int_equal(run_forward(&one), 0);
        assert_int_equal(one.graph->metric_count, 1);
        const struct ls_metric *metric = &one.graph->metrics[0];
        assert_int_equal(metric->entries, 1);
        assert_int_equal(metric->count_offset, mean ? metric->offset + 1 : -1);
        assert_true(metric->loss_weight == 2);
        assert_int_equal(one.graph->normalizer_count, 1);
        assert_int_equal(one.graph->normalizers[0].none, !mean);
        if (mean)
            assert_int_equal(one.graph->normalizers[0].per_sample, 60);
        assert_true(ls_layer_is_loss(one.layer));
        close_layer(&one);
    }
}

/* A loss that would have to go through the places of maxima. */
static void argmax_has_no_gradient(void **state)
{
    (void)state;
    for (int stopped = 0; stopped < 2; stopped++) {
        struct one_layer one;
        open_layer(&one, stopped ? LAYER("ArgMax") XY "propagate_down: false" : LAYER("ArgMax") XY,
                   "4x6!", true);
        assert_int_equal(run_forward(&one), 0);
        assert_int_equal(run_backward(&one), stopped ? 0 : LOCKSTEP_DEFINITION);
        if (!stopped)
            assert_non_null(strstr(one.error.problems[0].message, "has no gradient"));
        close_layer(&one);
    }
}

static void costs(void **state)
{
    (void)state;
    struct one_layer one;
    struct ls_cost cost = {0};
    open_layer(&one, TILE("tiles: 3"), "4x6!", true);
    assert_int_equal(run_forward(&one), 0);
    assert_int_equal(run_backward(&one), 0);
    one.layer->type->cost(one.layer, &cost);
    assert_float_equal((float)cost.forward_bytes, 4.0F * (24 + 72), 0);
    assert_float_equal((float)cost.backward_data_flops, 72, 0);
    assert_float_equal((float)cost.backward_bytes, 4.0F * (24 + 72), 0);
    close_layer(&one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_shapes),    cmocka_unit_test(samples_behind),
        cmocka_unit_test(all_errors),    cmocka_unit_test(refused_behind),
        cmocka_unit_test(all_ops),       cmocka_unit_test(slice_with_unused_part),
        cmocka_unit_test(batch_figures), cmocka_unit_test(argmax_has_no_gradient),
        cmocka_unit_test(costs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
