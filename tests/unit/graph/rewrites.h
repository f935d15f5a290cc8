/* Nets whose graphs are rewritten, and the ops that they become, as text.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_GRAPH_REWRITES_H
#define LS_TESTS_GRAPH_REWRITES_H

#include "one_net.h"

#define LAYER(name, type, in, out, rest)                                                           \
    "layer { name: '" name "' type: '" type "' bottom: '" in "' top: '" out "' " rest " }\n"
#define CONV(name, in, out)                                                                        \
    LAYER(name, "Convolution", in, out,                                                            \
          "convolution_param { num_output: 4 kernel_size: 1 bias_term: false }")
#define DATA                                                                                       \
    "layer { name: 'data' type: 'Data' top: 'data' top: 'label' data_param { source: 'x' "         \
    "batch_size: 8 } }\n"
#define LOSS_OF(in)                                                                                \
    "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: '" in "' bottom: 'label' top: 'loss' "   \
    "}\n"
/* a and b, which `body` makes into y. */
#define TWO_CONVOLUTIONS(body)                                                                     \
    DATA CONV("a", "data", "a") CONV("b", "data", "b")                                             \
        body LAYER("ip", "InnerProduct", "y", "ip", "inner_product_param { num_output: 10 }")      \
            LOSS_OF("ip")

struct rewrite_case {
    const char *what, *text;
    const char *ops; /* those that the test shows, a line each */
};

/* Every value that is read was written before, by one op. */
static inline void check_order(const struct ls_graph *graph, const char *what)
{
    bool *written = calloc(graph->value_count, sizeof *written);
    assert_non_null(written);
    for (size_t i = 0; i < graph->op_count; i++) {
        const struct ls_op *op = graph->ops[i];
        for (int j = 0; j < op->inputs; j++) {
            const struct ls_value *value = op->input[j];
            if (value != NULL && value->storage == LS_STORE_ARENA && !written[value->index])
                fail_msg("%s: %s reads %s, which no op has written", what,
                         ls_op_kind_name(op->kind), value->name);
        }
        for (int j = 0; j < op->outputs; j++) {
            if (op->output[j] == NULL)
                continue;
            assert_false(written[op->output[j]->index]);
            written[op->output[j]->index] = true;
        }
    }
    free(written);
}

/* Builds the net of a case and compares its ops; `describe` adds the line of one, or nothing. */
static inline void open_case(struct one_net *one, const struct rewrite_case *one_case,
                             bool training,
                             void (*describe)(struct ls_text *text, const struct ls_op *op))
{
    struct ls_text text = {0};
    open_net(one, one_case->text, training, 2);
    if (one->status != 0)
        fail_msg("%s: %s: %s", one_case->what, one->error.problems[0].place,
                 one->error.problems[0].message);
    for (size_t o = 0; o < one->graph->op_count; o++)
        describe(&text, one->graph->ops[o]);
    if (text.data == NULL || strcmp(text.data, one_case->ops) != 0)
        fail_msg("%s:\n%s\nnot\n%s", one_case->what, text.data != NULL ? text.data : "",
                 one_case->ops);
    check_order(one->graph, one_case->what);
    ls_text_free(&text);
}

#endif
