/* The writer and the readers of a value, and a layer's ops, after many changes: the same as a
 * search through all ops finds.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "one_net.h"

#include "graph/links.h"

enum { VALUES = 12, OPS = 40, LAYERS = 3, CHANGES = 3000 };

static struct ls_layer layers[LAYERS];

static uint64_t draw(uint64_t below)
{
    static uint64_t state;
    state = state * 6364136223846793005U + 1442695040888963407U;
    return (state >> 33) % below;
}

/* Any kind, direction, layer and inputs (some absent); what it writes no other op writes. */
static void fill(struct ls_graph *graph, struct ls_op *op, size_t number)
{
    static const enum ls_op_kind kinds[] = {LS_OP_CONVOLUTION, LS_OP_ACTIVATION, LS_OP_SCALE};
    op->kind = kinds[draw(3)];
    op->backward = draw(2) > 0;
    op->layer = draw(4) == 0 ? NULL : &layers[draw(LAYERS)];
    op->inputs = 0;
    for (uint64_t i = draw(4); i > 0; i--)
        ls_op_in(graph, op, draw(5) == 0 ? NULL : graph->values[draw(VALUES)]);
    if (op->outputs == 0)
        ls_op_out(graph, op, graph->values[VALUES + number]);
}

static struct ls_graph *make_graph(void)
{
    const struct ls_shape shape = {.rank = 1, .dim = {1}};
    struct ls_graph *graph = ls_graph_new();
    for (int i = 0; i < VALUES + OPS; i++)
        ls_graph_value(graph, "v", &shape, NULL);
    for (size_t i = 0; i < OPS; i++)
        fill(graph, ls_graph_op(graph, LS_OP_VIEW), i);
    graph->layer_count = LAYERS; /* the layers themselves are not the graph's */
    return graph;
}

static void check_value(const struct ls_links *links, const struct ls_value *value)
{
    static const enum ls_op_kind kinds[] = {LS_OP_CONVOLUTION, LS_OP_ACTIVATION, LS_OP_SCALE};
    struct ls_op *producer = NULL, *reader[3][2] = {{NULL}};
    int readers = 0;
    for (size_t o = 0; o < links->graph->op_count; o++) {
        struct ls_op *op = links->graph->ops[o];
        if (op == NULL)
            continue;
        producer = op->output[0] == value ? op : producer;
        for (int i = 0; i < op->inputs; i++) {
            readers += op->input[i] == value;
            for (int k = 0; k < 3; k++)
                if (op->input[i] == value && op->kind == kinds[k] && !reader[k][op->backward])
                    reader[k][op->backward] = op;
        }
    }
    assert_ptr_equal(ls_links_producer(links, value), producer);
    assert_int_equal(ls_links_readers(links, value), readers);
    for (int k = 0; k < 3; k++)
        for (int b = 0; b < 2; b++)
            assert_ptr_equal(ls_links_reader(links, value, kinds[k], b > 0), reader[k][b]);
}

static void check_layer(const struct ls_links *links, const struct ls_layer *layer)
{
    struct ls_op *first = NULL;
    for (size_t o = links->graph->op_count; o-- > 0;) {
        struct ls_op *op = links->graph->ops[o];
        if (op != NULL && op->layer == layer && op->kind == LS_OP_SCALE && op->backward)
            first = op;
    }
    assert_ptr_equal(ls_links_of_layer(links, layer, LS_OP_SCALE, true), first);
}

static void change(struct ls_links *links)
{
    struct ls_op *op = links->graph->ops[draw(OPS)], *other = links->graph->ops[draw(OPS)];
    if (op == NULL)
        return;
    if (draw(200) == 0) {
        ls_links_remove(links, op);
    } else if (draw(2) == 0 && other != NULL && other != op) {
        ls_links_swap(links, op, other);
    } else {
        ls_links_detach(links, op);
        fill(links->graph, op, 0);
        ls_links_attach(links, op);
    }
}

static void changes(void **state)
{
    (void)state;
    for (int i = 0; i < LAYERS; i++)
        layers[i].index = i;
    struct ls_graph *graph = make_graph();
    struct ls_links links;
    assert_true(ls_links_open(&links, graph));
    for (int i = 0; i < CHANGES; i++) {
        for (int v = 0; v < VALUES + OPS; v++)
            check_value(&links, graph->values[v]);
        for (int l = 0; l < LAYERS; l++)
            check_layer(&links, &layers[l]);
        change(&links);
    }
    size_t left = 0;
    for (size_t o = 0; o < graph->op_count; o++)
        left += graph->ops[o] != NULL;
    assert_true(left < OPS);
    ls_links_remove(&links, NULL);
    ls_links_close(&links);
    assert_int_equal(graph->op_count, left);
    for (size_t o = 0; o < left; o++)
        assert_non_null(graph->ops[o]);
    graph->layer_count = 0;
    ls_graph_free(graph);
}

/* Every ReLU of a deep net is taken in, and the ops keep their order. */
static void deep(void **state)
{
    (void)state;
    enum { DEPTH = 400 };
    struct ls_text text = {0};
    ls_text_add(&text, "layer { name: 'data' type: 'Data' top: 'data' top: 'label' data_param { "
                       "source: 'x' batch_size: 8 } }\n");
    for (int i = 0; i < DEPTH; i++)
        ls_text_format(&text,
                       "layer { name: 'c%d' type: 'Convolution' bottom: '%s%.0d' top: 'c%d' "
                       "convolution_param { num_output: 1 kernel_size: 1 } }\n"
                       "layer { name: 'r%d' type: 'ReLU' bottom: 'c%d' top: 'c%d' }\n",
                       i,
                       i == 0   ? "data"
                       : i == 1 ? "c0"
                                : "c",
                       i < 2 ? 0 : i - 1, i, i, i, i);
    struct one_net one;
    open_net(&one, text.data, false, 1);
    assert_int_equal(one.status, 0);
    assert_int_equal(one.graph->op_count, DEPTH);
    for (int i = 0; i < DEPTH; i++) {
        const struct ls_op *op = one.graph->ops[i];
        assert_true(op->kind == LS_OP_CONVOLUTION && op->attr.convolution.relu);
        assert_true(i == 0 || op->input[0] == one.graph->ops[i - 1]->output[0]);
    }
    ls_text_free(&text);
    close_net(&one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(changes), cmocka_unit_test(deep)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
