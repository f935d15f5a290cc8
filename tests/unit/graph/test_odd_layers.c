/* Layers that cannot be meant are told, and no others.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "graph/odd_layers.h"
#include "one_net.h"

#define DATA                                                                                       \
    "layer { name: 'd' type: 'Input' top: 'x' top: 'y' input_param { shape { dim: [4, 6] } "       \
    "shape { dim: [4] } } }\n"
#define SCORES(count)                                                                              \
    "layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 's' inner_product_param { "          \
    "num_output: " count " } }\n"
#define BEHIND(type) "layer { name: 'made' type: '" type "' bottom: 's' top: 'p' }\n"
#define FLAT         "layer { name: 'flat' type: 'Flatten' bottom: 'p' top: 'q' }\n"
#define LOSS(type, bottom, more)                                                                   \
    "layer { name: 'loss' type: '" type "' bottom: '" bottom "' bottom: 'y' top: 'l' " more " }\n"
#define TARGET                                                                                     \
    "layer { name: 't' type: 'Input' top: 'y' input_param { shape { dim: [4, 3] } } }\n"           \
    "layer { name: 'd' type: 'Input' top: 'x' input_param { shape { dim: [4, 6] } } }\n"

static void collect(void *user, const char *sentence)
{
    char *said = user;
    snprintf(said + strlen(said), 1000 - strlen(said), "%s; ", sentence);
}

static void odd_layers_are_told(void **state)
{
    (void)state;
    static const struct {
        const char *net, *words; /* NULL: nothing is said */
    } nets[] = {
        {DATA SCORES("3") LOSS("SoftmaxWithLoss", "s", ""), NULL},
        {DATA SCORES("3") BEHIND("Softmax") LOSS("SoftmaxWithLoss", "p", ""),
         "net.prototxt:4:1: loss: it applies a softmax itself, to what the Softmax layer 'made' "
         "has made already"},
        {DATA SCORES("3") BEHIND("Softmax") FLAT LOSS("SoftmaxWithLoss", "q", ""),
         "what the Softmax layer 'made' has made already"},
        {DATA SCORES("3") BEHIND("Sigmoid") LOSS("SoftmaxWithLoss", "p", ""),
         "what the Sigmoid layer 'made' has made already"},
        {DATA SCORES("3") BEHIND("ReLU") LOSS("SoftmaxWithLoss", "p", ""), NULL},
        {DATA SCORES("3") BEHIND("Softmax") LOSS("SoftmaxWithLoss", "s", ""), NULL},
        {TARGET SCORES("3") BEHIND("Sigmoid") LOSS("SigmoidCrossEntropyLoss", "p", ""),
         "it applies a sigmoid itself"},
        {DATA SCORES("3") BEHIND("Softmax") LOSS("MultinomialLogisticLoss", "p", ""), NULL},
        {DATA SCORES("3") LOSS("MultinomialLogisticLoss", "s", ""),
         "it takes probabilities, and gets the scores of layer 'ip'"},
        {DATA SCORES("1") LOSS("SoftmaxWithLoss", "s", ""),
         "loss: it has one class, so that its loss is 0"},
        {DATA SCORES("3") LOSS("SoftmaxWithLoss", "s", "loss_param { class_weight: [0, 0, 0] }"),
         "class_weight is 0 for each class"},
        {DATA SCORES("3") LOSS("SoftmaxWithLoss", "s", "loss_param { class_weight: [0, 0, 1] }"),
         NULL},
    };
    for (size_t i = 0; i < sizeof nets / sizeof nets[0]; i++) {
        struct one_net one;
        char said[1000] = "";
        open_net(&one, nets[i].net, true, 4);
        if (one.status != 0)
            fail_msg("net %zu: %s", i, one.error.problems[0].message);
        ls_graph_tell_odd(one.graph, collect, said);
        if (nets[i].words == NULL)
            assert_string_equal(said, "");
        else if (strstr(said, nets[i].words) == NULL)
            fail_msg("'%s' is not in: %s", nets[i].words, said);
        close_net(&one);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(odd_layers_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
