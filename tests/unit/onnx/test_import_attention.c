/* Import of transformers: attention from its products, masks and softmax; sequences whose axes an
 * exporter has put in another order; learned rows; norms and functions of several nodes.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "support/onnx_models.h"

enum { PLACES = 4, HEADS = 2, DEPTH = 3, WIDTH = HEADS * DEPTH };

static void permute(struct model *m, const char *in, const char *out, size_t rank,
                    const int64_t *order)
{
    node(m, "Transpose", in, out);
    set_list(m, "perm", rank, order);
}
#define PERMUTE(m, in, out, ...)                                                                   \
    permute(m, in, out, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t),                        \
            (int64_t[]){__VA_ARGS__})

static int count(const struct ls_onnx_net *net, const char *text)
{
    int found = 0;
    for (const char *at = net->layers.data; (at = strstr(at, text)) != NULL; at++)
        found++;
    return found;
}

/* x [N, 4, 6] times weights, and its three parts as heads: q, k and v [N, 2, 4, 3]. */
static struct model heads(void)
{
    struct model m = begin(17);
    input(&m, "x", SHAPE(0, PLACES, WIDTH));
    weight(&m, "qkv.weight", SHAPE(WIDTH, 3 * WIDTH), 1);
    weight(&m, "qkv.bias", SHAPE(3 * WIDTH), 1);
    INTEGERS(&m, "heads", -1, PLACES, HEADS, DEPTH);
    INTEGERS(&m, "joined", -1, PLACES, WIDTH);
    node(&m, "MatMul", "x qkv.weight", "product");
    node(&m, "Add", "qkv.bias product", "biased");
    node(&m, "Split", "biased", "q1 k1 v1");
    set_integer(&m, "axis", 2);
    node(&m, "Reshape", "q1 heads", "q2");
    node(&m, "Reshape", "k1 heads", "k2");
    node(&m, "Reshape", "v1 heads", "v2");
    PERMUTE(&m, "q2", "q", 0, 2, 1, 3);
    PERMUTE(&m, "k2", "k", 0, 2, 3, 1);
    PERMUTE(&m, "v2", "v", 0, 2, 1, 3);
    return m;
}

/* The rest, from `scores` on. */
static void attend(struct model *m, const char *scores)
{
    node(m, "Softmax", scores, "weights");
    set_integer(m, "axis", -1);
    node(m, "MatMul", "weights v", "y1");
    PERMUTE(m, "y1", "y2", 0, 2, 1, 3);
    node(m, "Reshape", "y2 joined", "y");
    output(m, "y");
}

/* A mask [4, 4] of ones where the distance from key to query is in [low, high]. */
static void band(struct model *m, int low, int high)
{
    weight(m, "numbers", SHAPE(PLACES, PLACES), 0);
    float *numbers = m->graph->initializer[m->graph->n_initializer - 1]->float_data;
    uint8_t *raw = m->graph->initializer[m->graph->n_initializer - 1]->raw_data.data;
    for (int i = 0; i < PLACES * PLACES; i++) {
        const int distance = i / PLACES - i % PLACES;
        const float one = distance >= low && distance <= high ? 1 : 0;
        if (numbers != NULL)
            numbers[i] = one;
        else
            memcpy(raw + i * (int)sizeof one, &one, sizeof one);
    }
    number(m, "none", 0);
    number(m, "hidden", -INFINITY);
    node(m, "Equal", "numbers none", "hides");
}

static struct ls_onnx_net masked(int low, int high)
{
    struct model m = heads();
    node(&m, "MatMul", "q k", "s");
    band(&m, low, high);
    node(&m, "Where", "hides hidden s", "scores");
    attend(&m, "scores");
    return import(&m);
}

static void attention_is_one_layer(void **state)
{
    (void)state;
    struct model m = heads();
    number(&m, "root", sqrtf(DEPTH));
    node(&m, "MatMul", "q k", "s");
    node(&m, "Div", "s root", "scores");
    attend(&m, "scores");
    struct ls_onnx_net net = import(&m);
    assert_int_equal(count(&net, "layer {"), 2);
    expect_text(&net, "name: \"qkv\"\n  type: \"InnerProduct\"");
    expect_text(&net, "type: \"Attention\"\n  bottom: \"qkv\"\n");
    expect_text(&net, "attention_param { num_heads: 2 }");
    assert_int_equal(net.output_shape.dim[2], WIDTH);
    ls_onnx_net_free(&net);
}

static void the_scale_can_lie_anywhere(void **state)
{
    (void)state;
    struct model m = heads();
    number(&m, "half", 0.5F);
    node(&m, "Mul", "q half", "q3");
    node(&m, "Mul", "half k", "k3");
    node(&m, "MatMul", "q3 k3", "s");
    node(&m, "Mul", "s half", "scores");
    attend(&m, "scores");
    struct ls_onnx_net net = import(&m);
    expect_text(&net, "attention_param { num_heads: 2 scale: 0.125 }");
    assert_int_equal(count(&net, "Power"), 0);
    ls_onnx_net_free(&net);
}

static void masks_by_place_become_fields(void **state)
{
    (void)state;
    struct ls_onnx_net net = masked(0, PLACES);
    expect_text(&net, "num_heads: 2 scale: 1 causal: true }");
    ls_onnx_net_free(&net);
    net = masked(0, 1);
    expect_text(&net, "num_heads: 2 scale: 1 causal: true window: 2 }");
    ls_onnx_net_free(&net);
    net = masked(-1, 1);
    expect_text(&net, "num_heads: 2 scale: 1 window: 2 }");
    ls_onnx_net_free(&net);
    net = masked(-PLACES, PLACES);
    expect_text(&net, "num_heads: 2 scale: 1 }");
    ls_onnx_net_free(&net);
    net = masked(-1, 0); /* no field says this */
    expect_text(&net, "num_heads: 2 scale: 1 extra: MASK }");
    const struct ls_onnx_net_weight *mask = &net.weights[net.weight_count - 1];
    assert_int_equal(ls_shape_size(&mask->shape), PLACES * PLACES);
    assert_true(mask->numbers[0] == 1 && mask->numbers[1] == 1 && mask->numbers[2] == 0 &&
                mask->numbers[4] == 0);
    ls_onnx_net_free(&net);
}

/* What is added to the scores of each head. */
static void numbers_that_are_added_are_a_mask(void **state)
{
    (void)state;
    struct model m = heads();
    weight(&m, "bias", SHAPE(1, HEADS, PLACES, PLACES), -3);
    node(&m, "MatMul", "q k", "s");
    node(&m, "Add", "bias s", "scores");
    attend(&m, "scores");
    struct ls_onnx_net net = import(&m);
    expect_text(&net, "parameter_param { shape { dim: 1 dim: 2 dim: 4 dim: 4 } }");
    expect_text(&net, "num_heads: 2 scale: 1 extra: ADDED_MASK }");
    assert_true(net.weights[net.weight_count - 1].numbers[31] == 28);
    ls_onnx_net_free(&net);
}

/* (1 - mask) times a large number below zero, of an input [N, 4]. */
static void an_input_says_which_keys_count(void **state)
{
    (void)state;
    struct model m = heads();
    input(&m, "mask", SHAPE(0, PLACES));
    INTEGERS(&m, "axes", 1, 2);
    number(&m, "one", 1);
    number(&m, "low", -1e30F);
    node(&m, "Unsqueeze", "mask axes", "m1");
    node(&m, "Sub", "one m1", "m2");
    node(&m, "Mul", "m2 low", "m3");
    node(&m, "MatMul", "q k", "s");
    node(&m, "Add", "s m3", "scores");
    attend(&m, "scores");
    struct ls_onnx_net net = import(&m);
    expect_text(&net, "bottom: \"mask\"");
    expect_text(&net, "num_heads: 2 scale: 1 extra: KEY_MASK }");
    assert_int_equal(count(&net, "Power"), 0);
    ls_onnx_net_free(&net);
}

/* Weights that something else reads, too, are made by layers of their own. */
static void weights_that_are_read_elsewhere_are_layers(void **state)
{
    (void)state;
    struct model m = heads();
    node(&m, "MatMul", "q k", "scores");
    attend(&m, "scores");
    m.graph->output[0]->name = ls_arena_copy_string(m.arena, "weights");
    struct ls_onnx_net net = import(&m);
    expect_text(&net, "type: \"Attention\"");
    assert_int_equal(count(&net, "\"MatMul\""), 1);
    assert_int_equal(count(&net, "\"Softmax\""), 1);
    assert_int_equal(net.output_shape.dim[3], PLACES);
    ls_onnx_net_free(&net);
}

/* Rows are treated where they lie, whatever the order of the axes in front of them. */
static void axes_in_another_order_cost_nothing(void **state)
{
    (void)state;
    struct model m = begin(17);
    input(&m, "x", SHAPE(3, PLACES, WIDTH));
    weight(&m, "fc.weight", SHAPE(WIDTH, 5), 1);
    weight(&m, "fc.bias", SHAPE(5), 1);
    INTEGERS(&m, "rows", 3 * PLACES, 5);
    INTEGERS(&m, "back", PLACES, 3, 5);
    PERMUTE(&m, "x", "t", 1, 0, 2);
    node(&m, "MatMul", "t fc.weight", "a");
    node(&m, "Add", "a fc.bias", "b");
    node(&m, "Reshape", "b rows", "c");
    node(&m, "Relu", "c", "d");
    node(&m, "Reshape", "d back", "e");
    node(&m, "Add", "e b", "f");
    PERMUTE(&m, "f", "y", 1, 0, 2);
    output(&m, "y");
    struct ls_onnx_net net = import(&m);
    assert_int_equal(count(&net, "layer {"), 3);
    expect_text(&net, "inner_product_param { num_output: 5 axis: 2 }");
    assert_int_equal(net.output_shape.dim[1], PLACES);
    ls_onnx_net_free(&net);
    m = begin(17); /* the net's output has samples in front, wherever the model's has them */
    input(&m, "x", SHAPE(3, PLACES, WIDTH));
    weight(&m, "w", SHAPE(WIDTH, 5), 1);
    PERMUTE(&m, "x", "t", 1, 0, 2);
    node(&m, "MatMul", "t w", "y");
    output(&m, "y");
    net = import(&m);
    assert_int_equal(net.output_shape.dim[0], 3);
    assert_int_equal(net.output_shape.dim[1], PLACES);
    assert_int_equal(count(&net, "layer {"), 1);
    ls_onnx_net_free(&net);
}

static void learned_rows_go_on_learning(void **state)
{
    (void)state;
    struct model m = begin(17);
    input(&m, "ids", SHAPE(0, PLACES));
    weight(&m, "wte.weight", SHAPE(9, WIDTH), 1);
    weight(&m, "wpe.weight", SHAPE(8, WIDTH), 1);
    weight(&m, "token", SHAPE(1, 1, WIDTH), 7);
    INTEGERS(&m, "places", 1, 2, 3, 4);
    node(&m, "Gather", "wte.weight ids", "a");
    node(&m, "Gather", "wpe.weight places", "b");
    node(&m, "Add", "a b", "c");
    node(&m, "Concat", "token c", "d");
    set_integer(&m, "axis", 1);
    PERMUTE(&m, "wte.weight", "turned", 1, 0);
    node(&m, "MatMul", "d turned", "y");
    output(&m, "y");
    struct ls_onnx_net net = import(&m);
    expect_text(&net, "positions_param { offset: 1 }");
    expect_text(&net, "name: \"wpe\"\n  type: \"Embed\"");
    expect_text(&net, "embed_param { input_dim: 1 num_output: 6 bias_term: false }");
    assert_true(find_weight(&net, "token.weight")[5] == 12);
    assert_true(find_weight(&net, "wpe.weight")[47] == 48); /* the whole table */
    assert_int_equal(count(&net, "param { name: \"wte.weight\" }"), 2);
    assert_int_equal(net.output_shape.dim[1], PLACES + 1);
    assert_int_equal(count(&net, "lr_mult: 0"), 0);
    ls_onnx_net_free(&net);
}

/* A part of a weight, and a weight that an exporter has repeated for each sample. */
static void parts_of_weights_go_on_learning(void **state)
{
    (void)state;
    struct model m = begin(17);
    input(&m, "x", SHAPE(3, PLACES, WIDTH));
    weight(&m, "positions", SHAPE(1, 7, WIDTH), 1);
    weight(&m, "offsets", SHAPE(1, PLACES, WIDTH), 5);
    INTEGERS(&m, "begin", 0);
    INTEGERS(&m, "end", PLACES);
    INTEGERS(&m, "axis", 1);
    INTEGERS(&m, "shape", 3, PLACES, WIDTH);
    node(&m, "Slice", "positions begin end axis", "few");
    node(&m, "Expand", "offsets shape", "many");
    node(&m, "Add", "x few", "a");
    node(&m, "Add", "many a", "y");
    output(&m, "y");
    struct ls_onnx_net net = import(&m);
    assert_int_equal(count(&net, "bias_param { axis: 1 num_axes: 2 }"), 2);
    assert_int_equal(count(&net, "lr_mult: 0"), 0);
    assert_int_equal(ls_shape_size(&net.weights[1].shape), PLACES * WIDTH);
    ls_onnx_net_free(&net);
}

/* x, normalised by several nodes; `centred`: the mean is taken away. */
static struct ls_onnx_net norm(bool centred, int64_t axis)
{
    struct model m = begin(13);
    input(&m, "x", SHAPE(0, PLACES, WIDTH));
    weight(&m, "norm.weight", SHAPE(WIDTH), 1);
    weight(&m, "norm.bias", SHAPE(WIDTH), 1);
    number(&m, "two", 2);
    number(&m, "eps", 1e-6F);
    node(&m, "ReduceMean", "x", "mean");
    set_list(&m, "axes", 1, &axis);
    node(&m, "Sub", "x mean", "d");
    node(&m, "Pow", centred ? "d two" : "x two", "square");
    node(&m, "ReduceMean", "square", "variance");
    set_list(&m, "axes", 1, &axis);
    node(&m, "Add", "variance eps", "v2");
    node(&m, "Sqrt", "v2", "root");
    node(&m, "Div", centred ? "d root" : "x root", "n");
    node(&m, "Mul", "n norm.weight", "scaled");
    node(&m, "Add", "scaled norm.bias", "y");
    output(&m, "y");
    return import(&m);
}

static void norms_of_several_nodes_are_found(void **state)
{
    (void)state;
    struct ls_onnx_net net = norm(true, -1);
    assert_int_equal(count(&net, "layer {"), 1);
    expect_text(&net, "name: \"norm\"\n  type: \"LayerNorm\"");
    expect_text(&net, "layer_norm_param { axis: -1 eps: 1e-06 }");
    assert_true(find_weight(&net, "norm.scale")[1] == 2);
    ls_onnx_net_free(&net);
    net = norm(false, 2);
    expect_text(&net, "rms_norm_param { axis: -1 eps: 1e-06 }");
    ls_onnx_net_free(&net);
}

/* 1/2 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), and x times its sigmoid. */
static void functions_of_several_nodes_are_found(void **state)
{
    (void)state;
    struct model m = begin(17);
    input(&m, "x", SHAPE(0, WIDTH));
    number(&m, "half", 0.5F);
    number(&m, "one", 1);
    number(&m, "small", 0.044715F);
    number(&m, "root", 0.79788456F);
    node(&m, "Mul", "x x", "a");
    node(&m, "Mul", "x a", "b");
    node(&m, "Mul", "small b", "c");
    node(&m, "Add", "x c", "d");
    node(&m, "Mul", "d root", "e");
    node(&m, "Tanh", "e", "f");
    node(&m, "Add", "one f", "g");
    node(&m, "Mul", "half g", "h");
    node(&m, "Mul", "x h", "gelu");
    node(&m, "Sigmoid", "gelu", "gate");
    node(&m, "Mul", "gelu gate", "y");
    output(&m, "y");
    struct ls_onnx_net net = import(&m);
    assert_int_equal(count(&net, "layer {"), 2);
    expect_text(&net, "gelu_param { approximate: TANH }");
    expect_text(&net, "type: \"SiLU\"");
    ls_onnx_net_free(&net);
}

/* What is a part of attention is refused in other places, all of it at once. */
static void other_uses_are_refused(void **state)
{
    (void)state;
    struct model m = begin(17);
    input(&m, "x", SHAPE(0, PLACES));
    number(&m, "zero", 0);
    node(&m, "IsNaN", "x", "a");
    node(&m, "Where", "a zero x", "y");
    node(&m, "Equal", "x x", "z");
    node(&m, "Sigmoid", "z", "w");
    output(&m, "y");
    output(&m, "w");
    FAILS(&m, LOCKSTEP_DEFINITION, "IsNaN", "Equal");
}

/* Whatever a file says, the import says no or yes. */
static void damaged_files_are_survived(void **state)
{
    (void)state;
    struct model m = heads();
    const char *path = ls_test_path("heads.onnx"), *other = ls_test_path("damaged.onnx");
    struct ls_error *error = calloc(1, sizeof *error);
    size_t size, refused = 0;
    node(&m, "MatMul", "q k", "s");
    band(&m, 0, PLACES);
    node(&m, "Where", "hides hidden s", "scores");
    attend(&m, "scores");
    write_model(&m, path);
    char *bytes = ls_test_read(path, &size);
    for (size_t i = 0; i < size; i += 3 + i % 5) {
        struct ls_onnx_net net;
        const char kept = bytes[i];
        bytes[i] ^= (char)(1 << i % 8);
        ls_test_write(other, bytes, size);
        ls_error_clear(error);
        refused += ls_onnx_import(other, &(struct ls_onnx_import){0}, &net, error) != 0;
        ls_onnx_net_free(&net);
        bytes[i] = kept;
    }
    assert_true(refused > 20);
    free(bytes);
    free(error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention_is_one_layer),
        cmocka_unit_test(the_scale_can_lie_anywhere),
        cmocka_unit_test(masks_by_place_become_fields),
        cmocka_unit_test(numbers_that_are_added_are_a_mask),
        cmocka_unit_test(an_input_says_which_keys_count),
        cmocka_unit_test(weights_that_are_read_elsewhere_are_layers),
        cmocka_unit_test(axes_in_another_order_cost_nothing),
        cmocka_unit_test(learned_rows_go_on_learning),
        cmocka_unit_test(parts_of_weights_go_on_learning),
        cmocka_unit_test(norms_of_several_nodes_are_found),
        cmocka_unit_test(functions_of_several_nodes_are_found),
        cmocka_unit_test(other_uses_are_refused),
        cmocka_unit_test(damaged_files_are_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
