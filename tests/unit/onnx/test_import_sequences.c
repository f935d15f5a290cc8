/* Import of recurrent operators, and of parts and places of blobs. SPDX-License-Identifier:
 * BSD-2-Clause */
#include <stdio.h>

#include "support/onnx_models.h"

enum { T = 4, N = 2, I = 3, H = 2 };

/* A layer of `parts` gates that reads x [T, N, I] itself. */
static struct model cells(const char *type, int64_t parts, const char *in)
{
    struct model m = begin(17);
    input(&m, "x", SHAPE(T, 0, I)); /* the samples may be open */
    weight(&m, "w", SHAPE(1, parts * H, I), 0);
    weight(&m, "r", SHAPE(1, parts * H, H), 100);
    weight(&m, "b", SHAPE(1, 2 * parts * H), 0);
    INTEGERS(&m, "one", 1);
    node(&m, type, in, "all");
    set_integer(&m, "hidden_size", H);
    return m;
}

static void an_lstm_has_its_parts_in_another_order(void **state)
{
    (void)state;
    struct model m = cells("LSTM", 4, "x w r b");
    node(&m, "Squeeze", "all one", "y");
    output(&m, "y");
    struct ls_onnx_net net = import(&m);
    expect_text(&net, "type: \"LSTM\"");
    expect_text(&net, "lr_mult: 2 decay_mult: 0.5");
    expect_text(&net, "clip_param { min: 0 max: 1 }"); /* cont */
    /* Samples first, in the net. */
    assert_int_equal(net.inputs[0].shape.dim[0], 1);
    assert_int_equal(net.inputs[0].shape.dim[1], T);
    assert_int_equal(net.output_shape.dim[1], T);
    /* i, o, f, c have become i, f, o, g. */
    const float *w = net.weights[0].numbers, *b = net.weights[1].numbers;
    assert_true(w[0] == 0 && w[H * I] == 4 * I && w[2 * H * I] == 2 * I && w[3 * H * I] == 6 * I);
    /* Both biases are one: 0 + 8 for the first number. */
    assert_true(b[0] == 8 && b[H] == 4 + 12);
    ls_onnx_net_free(&net);
}

static void a_gru_keeps_both_biases(void **state)
{
    (void)state;
    struct model m = cells("GRU", 3, "x w r b");
    set_integer(&m, "linear_before_reset", 1);
    node(&m, "Squeeze", "all one", "y");
    output(&m, "y");
    struct ls_onnx_net net = import(&m);
    assert_int_equal(net.weight_count, 4);
    assert_true(net.weights[0].numbers[0] == 2 * I); /* z, r, h have become r, z, n */
    assert_true(net.weights[3].numbers[0] == 8);
    ls_onnx_net_free(&net);
}

static void what_recurrent_layers_cannot(void **state)
{
    (void)state;
    struct model m = cells("GRU", 3, "x w r b");
    output(&m, "all");
    FAILS(&m, LOCKSTEP_DEFINITION, "without linear_before_reset");
    m = cells("RNN", 1, "x w r b");
    output(&m, "all");
    FAILS(&m, LOCKSTEP_DEFINITION, "multiplies its states again");
    m = cells("LSTM", 4, "x w r b");
    m.node->attribute[0]->i = -1;
    output(&m, "all");
    FAILS(&m, LOCKSTEP_DEFINITION, "hidden_size is out of range");
    m = cells("LSTM", 3, "x w r b");
    output(&m, "all");
    FAILS(&m, LOCKSTEP_DEFINITION, "weights do not fit");
    m = cells("LSTM", 4, "x w r b lengths");
    INTEGERS(&m, "lengths", T, T - 1);
    output(&m, "all");
    FAILS(&m, LOCKSTEP_DEFINITION, "different lengths");
}

/* A node that reads x [2, 6, 5] and integers. */
static struct model part(const char *type, const char *in)
{
    struct model m = begin(17);
    input(&m, "x", SHAPE(2, 6, 5));
    INTEGERS(&m, "zero", 0);
    INTEGERS(&m, "one", 1);
    INTEGERS(&m, "two", 2);
    INTEGERS(&m, "six", 6);
    INTEGERS(&m, "some", 5, -6, 1, 1);
    INTEGERS(&m, "pads", 0, -1, 2, 0, 0, -1);
    node(&m, type, in, "y");
    output(&m, "y");
    return m;
}

static void places_are_taken(void **state)
{
    (void)state;
    struct model m = part("Slice", "x zero six one two");
    struct ls_onnx_net net = import(&m);
    expect_text(&net, "gather_param { axis: 1 }");
    assert_int_equal(net.output_shape.dim[1], 3);
    assert_true(net.weights[0].numbers[2] == 4);
    ls_onnx_net_free(&net);
    m = part("Gather", "x some");
    set_integer(&m, "axis", 1);
    net = import(&m);
    assert_int_equal(net.output_shape.dim[1], 4);
    assert_true(net.weights[0].numbers[0] == 5 && net.weights[0].numbers[1] == 0);
    ls_onnx_net_free(&net);
    m = part("Pad", "x pads"); /* below 0: cut off */
    net = import(&m);
    assert_int_equal(net.output_shape.dim[1], 5);
    assert_int_equal(net.output_shape.dim[2], 6);
    expect_text(&net, "axis: 2 before: 2 after: 0");
    ls_onnx_net_free(&net);
}

static void samples_are_not_mixed(void **state)
{
    (void)state;
    const struct {
        const char *type, *in;
    } cases[] = {{"Slice", "x one two zero"}, {"Slice", "x zero two zero two"},
                 {"Gather", "x one"},         {"Softmax", "x"},
                 {"Concat", "x x"},           {"LogSoftmax", "x"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct model m = part(cases[i].type, cases[i].in);
        set_integer(&m, "axis", 0);
        FAILS(&m, LOCKSTEP_DEFINITION, "batch");
    }
    struct model m = part("Slice", "x zero six one zero");
    FAILS(&m, LOCKSTEP_DEFINITION, "step is out of range");
}

/* Many nodes of one name, and many operators that are none. */
static void many_nodes_are_read_in_time(void **state)
{
    (void)state;
    enum { NODES = 40000 };
    for (int unknown = 0; unknown < 2; unknown++) {
        struct model m = begin(17);
        input(&m, "x", SHAPE(2, 3));
        m.graph->node = ls_arena_alloc(m.arena, NODES, sizeof *m.graph->node);
        for (int i = 0; i < NODES; i++) {
            char in[24], out[24], type[24];
            snprintf(in, sizeof in, i == 0 ? "x" : "v%d", i - 1);
            snprintf(out, sizeof out, "v%d", i);
            snprintf(type, sizeof type, unknown ? "Other%d" : "Abs", i);
            Onnx__NodeProto *n = m.node = message(&m, &onnx__node_proto__descriptor);
            n->op_type = ls_arena_copy_string(m.arena, type);
            n->name = ls_arena_copy_string(m.arena, "same");
            n->input = ls_arena_alloc(m.arena, 1, sizeof *n->input);
            n->output = ls_arena_alloc(m.arena, 1, sizeof *n->output);
            n->input[0] = ls_arena_copy_string(m.arena, in);
            n->output[0] = ls_arena_copy_string(m.arena, out);
            n->n_input = n->n_output = 1;
            m.graph->node[m.graph->n_node++] = n;
        }
        output(&m, "v39999");
        if (unknown) {
            FAILS(&m, LOCKSTEP_DEFINITION, "Other0", "Other1");
            continue;
        }
        struct ls_onnx_net net = import(&m);
        expect_text(&net, "name: \"same_40000\"");
        ls_onnx_net_free(&net);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_lstm_has_its_parts_in_another_order),
        cmocka_unit_test(a_gru_keeps_both_biases),
        cmocka_unit_test(what_recurrent_layers_cannot),
        cmocka_unit_test(places_are_taken),
        cmocka_unit_test(samples_are_not_mixed),
        cmocka_unit_test(many_nodes_are_read_in_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
