/* Element types of values in layers that compute with bf16 (graph/precision.c).
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "rewrites.h"

#include "ir/op_type.h"

#define BF16 "precision: BF16 "
#define CONV_BF16(name, in, out)                                                                   \
    LAYER(name, "Convolution", in, out, BF16 "convolution_param { num_output: 4 kernel_size: 1 }")
#define NET(body)                                                                                  \
    DATA body LAYER("ip", "InnerProduct", "y", "ip",                                               \
                    BF16 "inner_product_param { num_output: 10 }") LOSS_OF("ip")

/* The ops of InnerProduct and loss, which all nets end with: forward, then backward; `star` is that
 * of y. */
#define OF_IP(star)                                                                                \
    "ip: inner product(y" star " ip.weight ip.bias > ip*) bf16\n"                                  \
    "loss: softmax loss(ip* label > loss.prob)\n"                                                  \
    "loss: softmax loss backward(loss.prob label > grad(ip)*)\n"                                   \
    "ip: inner product backward weights(y" star                                                    \
    " grad(ip)* > grad(ip.weight) grad(ip.bias)) bf16\n"                                           \
    "ip: accumulate(grad(ip.weight))\n"                                                            \
    "ip: accumulate(grad(ip.bias))\n"                                                              \
    "ip: inner product backward data(grad(ip)* ip.weight > grad(y)" star ") bf16\n"
#define IP_OF_BF16 OF_IP("*")
#define IP_OF_FP32 OF_IP("")
/* The last ones, of the weights of Convolution c, which reads `in`. */
#define OF_C(in)                                                                                   \
    "c: convolution backward weights(" in " grad(c)* > grad(c.weight) grad(c.bias)) bf16\n"        \
    "c: accumulate(grad(c.weight))\n"                                                              \
    "c: accumulate(grad(c.bias))\n"
#define C_OF_DATA OF_C("data")
#define C_OF_W    OF_C("w")

/* "conv1: convolution(data conv1.weight conv1.bias > conv1*) bf16": a star stands for bf16. */
static void describe(struct ls_text *text, const struct ls_op *op)
{
    ls_text_format(text, "%s: %s(", op->layer->name, ls_op_kind_name(op->kind));
    for (int i = 0; i < op->inputs; i++)
        if (op->input[i] != NULL)
            ls_text_format(text, "%s%s%s", i > 0 ? " " : "", op->input[i]->name,
                           op->input[i]->type == LS_BF16 ? "*" : "");
    for (int i = 0; i < op->outputs; i++)
        if (op->output[i] != NULL)
            ls_text_format(text, "%s%s%s", i > 0 ? " " : " > ", op->output[i]->name,
                           op->output[i]->type == LS_BF16 ? "*" : "");
    ls_text_format(text, ")%s\n", op->bf16 ? " bf16" : "");
}

static const struct rewrite_case cases[] = {
    {"activations and their gradients, not weights and losses",
     NET(CONV_BF16("c", "data", "c") LAYER("r", "ReLU", "c", "c", BF16)
             LAYER("p", "Pooling", "c", "y", BF16 "pooling_param { kernel_size: 2 stride: 2 }")),
     "c: convolution(data c.weight c.bias > c*) bf16\n"
     "p: pooling(c* > y* p.index)\n" IP_OF_BF16 "r: activation backward(grad(y)* y* > grad(y)*)\n"
     "p: pooling backward(grad(y)* p.index > grad(c)*)\n" C_OF_DATA},
    {"a layer in fp32 behind one in bf16: a fused op has the type of its result",
     NET(CONV_BF16("c", "data", "c") LAYER("r", "ReLU", "c", "y", "precision: FP32")),
     "c: convolution(data c.weight c.bias > y) bf16\n" IP_OF_FP32
     "r: activation backward(grad(y) y > grad(c)*)\n" C_OF_DATA},
    {"batch norm: statistics and learned numbers are fp32",
     NET(CONV_BF16("c", "data", "c")
             LAYER("n", "BatchNorm", "c", "n", BF16 "batch_norm_param { scale_bias: true }")
                 LAYER("s", "Softmax", "n", "y", BF16)),
     "c: convolution(data c.weight c.bias > c*) bf16\n"
     "n: moments(c*)\n"
     "n: sync point()\n"
     "n: batch norm(c* n.scale n.bias > n*)\n"
     "s: softmax(n* > y)\n" IP_OF_FP32 "s: softmax backward(y grad(y) > grad(n)*)\n"
     "n: batch norm backward sums(grad(n)* c* > grad(n.scale) grad(n.bias))\n"
     "n: accumulate(grad(n.scale))\n"
     "n: accumulate(grad(n.bias))\n"
     "n: sync point()\n"
     "n: batch norm backward data(grad(n)* c* n.scale > grad(c)*)\n" C_OF_DATA},
    {"what only moves elements does not round, and what is not learned stays as it is",
     NET(LAYER("w", "Power", "data", "w", BF16 "power_param { scale: 0.5 }") CONV_BF16(
         "c", "w",
         "c") "layer { name: 'j' type: 'Concat' bottom: 'c' bottom: 'w' top: 'j' " BF16 "}\n"
              "layer { name: 't' type: 'Tile' bottom: 'c' top: 't' tile_param { tiles: 2 } }\n"
              "layer { name: 'k' type: 'Concat' bottom: 'j' bottom: 't' top: 'y' }\n"),
     "w: activation(data > w)\n"
     "c: convolution(w c.weight c.bias > c*) bf16\n"
     "j: concat(c* w > j)\n"
     "t: tile(c* > t*)\n"
     "k: concat(j t* > y)\n" IP_OF_FP32 "k: slice(grad(y) > grad(j) grad(t)*)\n"
     "t: tile backward(grad(t)* > grad(c)*)\n"
     "j: slice(grad(j) > grad(c)* grad(w))\n"
     "j: eltwise(grad(c)* grad(c)* > grad(c)*)\n" C_OF_W},
};

static void values_have_the_types_of_their_layers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct one_net one;
        open_case(&one, &cases[i], true, describe);
        close_net(&one);
    }
}

/* Inputs come as bf16 where all that read them would round them: not where something reads the
 * numbers themselves, shares their memory, or nothing reads them. */
static void inputs_are_rounded_where_all_readers_do(void **state)
{
    (void)state;
    static const struct {
        const char *net;
        bool rounded;
    } inputs[] = {
        {NET(CONV_BF16("y", "data", "y")), true},
        {NET(CONV_BF16("c", "data", "c") CONV_BF16(
             "d", "data",
             "d") "layer { name: 'y' type: 'Eltwise' bottom: 'c' bottom: 'd' top: 'y' }\n"),
         true},
        {NET(LAYER("y", "Convolution", "data", "y",
                   "convolution_param { num_output: 4 kernel_size: 1 }")),
         false},
        {NET(CONV_BF16("c", "data", "c") LAYER(
             "p", "Power", "data", "p",
             BF16) "layer { name: 'y' type: 'Concat' bottom: 'c' bottom: 'p' top: 'y' }\n"),
         false},
        {NET(LAYER("y", "Flatten", "data", "y", BF16)), false},
    };
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        struct one_net one;
        open_net(&one, inputs[i].net, true, 2);
        assert_int_equal(one.status, 0);
        ls_graph_round_inputs(one.graph);
        assert_int_equal(one.graph->input_count, 2);
        if (one.graph->inputs[0].value->type != (inputs[i].rounded ? LS_BF16 : LS_F32))
            fail_msg("net %zu: the data are %s", i,
                     ls_dtype_name(one.graph->inputs[0].value->type));
        assert_int_equal(one.graph->inputs[1].value->type, LS_F32);
        close_net(&one);
    }
}

/* A net is portable where all products are in bf16 or PORTABLE, whatever else there is. */
static void portable_nets_have_declared_products_alone(void **state)
{
    (void)state;
#define CONV_WITH(more)                                                                            \
    LAYER("c", "Convolution", "data", "y",                                                         \
          "convolution_param { num_output: 4 kernel_size: 1 " more "}")
#define IP_NET(body, more)                                                                         \
    DATA body LAYER("ip", "InnerProduct", "y", "ip",                                               \
                    "inner_product_param { num_output: 10 " more "}") LOSS_OF("ip")
    static const struct {
        const char *net;
        bool portable;
    } nets[] = {
        {NET(CONV_BF16("y", "data", "y")), true},
        {NET(CONV_BF16("c", "data", "c") LAYER("p", "Power", "c", "y", "precision: FP32 ")), true},
        {NET(CONV_WITH("algorithm: PORTABLE ")), true},
        {NET(CONV_WITH("")), false},
        {IP_NET(CONV_WITH("algorithm: PORTABLE "), "algorithm: PORTABLE "), true},
        {IP_NET(CONV_WITH("algorithm: PORTABLE "), ""), false},
        {IP_NET(CONV_BF16("y", "data", "y"), ""), false},
        {IP_NET(CONV_WITH(""), ""), false},
    };
#undef CONV_WITH
#undef IP_NET
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
        struct one_net one;
        open_net(&one, nets[i].net, true, 2);
        assert_int_equal(one.status, 0);
        if (one.graph->portable != nets[i].portable)
            fail_msg("net %zu is%s portable", i, one.graph->portable ? "" : " not");
        close_net(&one);
    }
}

/* "ip: inner product" for each op that is in TF32. */
static void list_tf32(const struct ls_graph *graph, struct ls_text *text)
{
    for (size_t i = 0; i < graph->op_count; i++)
        if (graph->ops[i]->tf32)
            ls_text_format(text, "%s: %s\n", graph->ops[i]->layer->name,
                           ls_op_kind_name(graph->ops[i]->kind));
    ls_text_add(text, "");
}

/* Products alone; values stay as they are, and the net is not portable. */
static void layers_in_tf32_have_products_in_tf32(void **state)
{
    (void)state;
#define TF32 "precision: TF32 "
    struct one_net one;
    struct ls_text text = {0};
    open_net(&one,
             DATA LAYER("c", "Convolution", "data", "c",
                        TF32 "convolution_param { num_output: 4 kernel_size: 1 }")
                 LAYER("r", "PReLU", "c", "r", TF32)
                     LAYER("ip", "InnerProduct", "r", "ip",
                           "inner_product_param { num_output: 10 algorithm: PORTABLE }")
                         LOSS_OF("ip"),
             true, 2);
    assert_int_equal(one.status, 0);
    list_tf32(one.graph, &text);
    assert_string_equal(text.data, "c: convolution\nc: convolution backward weights\n");
    assert_false(one.graph->portable);
    const struct ls_precision_counts counts = ls_graph_count_precisions(one.graph);
    assert_int_equal(counts.tf32, 1); /* the PReLU layer rounds nothing */
    assert_int_equal(counts.bf16, 0);
    for (size_t i = 0; i < one.graph->value_count; i++)
        assert_int_not_equal(one.graph->values[i]->type, LS_BF16);
    ls_text_free(&text);
    close_net(&one);
}

/* Sums that are declared in fp32 cannot be TF32's; those of cells stay as they are declared. */
static void portable_products_in_tf32_are_refused(void **state)
{
    (void)state;
#define IP_TF32(more)                                                                              \
    DATA LAYER("ip", "InnerProduct", "data", "ip",                                                 \
               TF32 "inner_product_param { num_output: 10 " more "}") LOSS_OF("ip")
#define WINDOWS_TF32(type, more)                                                                   \
    DATA LAYER("w", type, "data", "y",                                                             \
               TF32 "convolution_param { num_output: 4 kernel_size: 3 " more "}")                  \
        LAYER("ip", "InnerProduct", "y", "ip", "inner_product_param { num_output: 10 }")           \
            LOSS_OF("ip")
    static const struct {
        const char *net, *message;
    } nets[] = {
        {IP_TF32(""), NULL},
        {IP_TF32("algorithm: PORTABLE "), "declared in fp32"},
        {WINDOWS_TF32("Convolution", ""), NULL},
        {WINDOWS_TF32("Convolution", "algorithm: PORTABLE "), "declared in fp32"},
        {WINDOWS_TF32("Convolution", "algorithm: WINOGRAD "), "in fp32 only"},
        {WINDOWS_TF32("Deconvolution", "algorithm: PORTABLE "), "declared in fp32"},
    };
#undef IP_TF32
#undef WINDOWS_TF32
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
        struct one_net one;
        open_net(&one, nets[i].net, true, 2);
        if ((one.status != 0) != (nets[i].message != NULL))
            fail_msg("net %zu is%s refused", i, one.status != 0 ? "" : " not");
        if (nets[i].message != NULL) {
            assert_non_null(strstr(one.error.problems[0].message, nets[i].message));
            assert_non_null(strstr(one.error.problems[0].place, "net.prototxt:2:"));
        }
        close_net(&one);
    }
#undef TF32
}

/* Which ops round is known of each kind: one that makes learned values says it. */
static void every_op_says_what_it_rounds(void **state)
{
    (void)state;
    static const enum ls_op_kind fp32[] = {
        LS_OP_DETECTION_OUTPUT, LS_OP_COL2IM,         LS_OP_CONSTANT,     LS_OP_EMBED,
        LS_OP_EMBED_BAG,        LS_OP_POSITIONS,      LS_OP_PLUGIN,       LS_OP_PICK,
        LS_OP_REGION_MAX,       LS_OP_REGION_AVERAGE, LS_OP_SOFTMAX,      LS_OP_REDUCE,
        LS_OP_ARGMAX,           LS_OP_FILL,           LS_OP_REORDER,      LS_OP_RECALL,
        LS_OP_YOLO_OUTPUT,      LS_OP_PROPOSAL,       LS_OP_SOFTMAX_EACH, LS_OP_SMOOTH_L1_EACH,
        LS_OP_HARDEST_REGIONS,  LS_OP_SELECT,         LS_OP_FILTER};
    for (int kind = 0; kind < LS_OP_KINDS; kind++) {
        const struct ls_op_type *type = ls_op_type((enum ls_op_kind)kind);
        bool backward = strstr(type->name, "backward") != NULL, known = false;
        for (size_t i = 0; i < sizeof fp32 / sizeof *fp32; i++)
            known |= kind == (int)fp32[i];
        bool writes = !backward && type->effect == LS_EFFECT_NONE && !known;
        if (writes != (type->outputs != LS_OUTPUTS_FP32))
            fail_msg("the record of '%s' does not say whether its output is rounded", type->name);
        /* What a plugin computes is its own affair; cells and softmaxes compute in fp32. */
        bool fp32_alone =
            kind == LS_OP_PLUGIN || kind == LS_OP_RECURRENT || kind == LS_OP_ATTENTION;
        if (type->heavy && type->rounded_inputs != 2 && !fp32_alone)
            fail_msg("the record of '%s' does not say that it is a product", type->name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_have_the_types_of_their_layers),
        cmocka_unit_test(inputs_are_rounded_where_all_readers_do),
        cmocka_unit_test(portable_nets_have_declared_products_alone),
        cmocka_unit_test(layers_in_tf32_have_products_in_tf32),
        cmocka_unit_test(portable_products_in_tf32_are_refused),
        cmocka_unit_test(every_op_says_what_it_rounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
