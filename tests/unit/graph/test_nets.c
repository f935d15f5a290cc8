/* All layer types in small nets: shapes, forward and backward ops after the rewrites, parameters
 * and figures. SPDX-License-Identifier: BSD-2-Clause */
#include "one_net.h"
#include "support/nets.h"

#define DATA                                                                                       \
    "layer { name: 'data' type: 'Data' top: 'data' top: 'label' data_param { source: 'x' "         \
    "batch_size: 64 backend: LMDB } }\n"
#define SCORES                                                                                     \
    "layer { name: 'ip' type: 'InnerProduct' bottom: 'data' top: 'ip'\n"                           \
    "  inner_product_param { num_output: 10 } }\n"
#define LOSS                                                                                       \
    "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'loss' }\n"

struct net_case {
    const char *file; /* of tests/nets */
    const char *blobs, *forward, *backward, *parameters, *figures;
    bool training;
};

/* Convolution and inner product absorb the ReLU behind them; the data have no gradient; the
 * accuracy costs nothing backward. */
static const struct net_case lenet = {
    .training = true,
    .file = "graph_lenet",
    .blobs = "data 2x3x16x16\nlabel 2\nconv1 2x20x12x12\nconv1 2x20x12x12\npool1 2x20x6x6\n"
             "ip1 2x50\nip1 2x50\nip1 2x50\nip2 2x10\n",
    .forward = "conv1: convolution\npool1: pooling\nip1: inner product\ndrop: dropout\n"
               "ip2: inner product\naccuracy: accuracy\nloss: softmax loss\n",
    .backward = "loss: softmax loss backward\nip2: inner product backward weights\n"
                "ip2: accumulate\nip2: accumulate\nip2: inner product backward data\n"
                "drop: dropout\n"
                "ip1: inner product backward weights\nip1: accumulate\nip1: accumulate\n"
                "ip1: inner product backward data\nrelu1: activation backward\n"
                "pool1: pooling backward\nconv1: convolution backward weights\n"
                "conv1: accumulate\nconv1: accumulate\n",
    .parameters = "conv1.weight 1\nconv1.bias 1\nip1.weight 1\nip1.bias 1\nip2.weight 1\n"
                  "ip2.bias 1\n",
    .figures = "accuracy\nloss 1\n",
};

/* A deconvolution absorbs the ReLU behind its bias; not without a bias, and not with a slope
 * below zero, which needs x. */
static const struct net_case enlarged = {
    .file = "graph_enlarged",
    .blobs = "data 2x3x16x16\nlabel 2\nup1 2x4x17x17\nup1 2x4x17x17\nup2 2x4x18x18\n"
             "up2 2x4x18x18\nup3 2x4x19x19\nup3 2x4x19x19\nip 2x10\n",
    .forward = "up1: deconvolution\nup2: deconvolution\nrelu2: activation\nup3: deconvolution\n"
               "relu3: activation\nip: inner product\nloss: softmax loss\n",
    .backward = "",
    .parameters = "up1.weight 0\nup1.bias 0\nup2.weight 0\nup3.weight 0\nup3.bias 0\n"
                  "ip.weight 0\nip.bias 0\n",
    .figures = "loss 1\n",
};

/* The same in the test phase: nothing is dropped, kept or differentiated. */
static const struct net_case lenet_test = {
    .file = "graph_lenet_test",
    .blobs = "data 2x3x16x16\nlabel 2\nconv1 2x20x4x4\nconv1 2x20x4x4\nip 2x10\nprob 2x10\n",
    .forward = "conv1: convolution\nip: inner product\naccuracy: accuracy\nprob: softmax\n"
               "loss: softmax loss\n",
    .backward = "",
    .parameters = "conv1.weight 0\nconv1.bias 0\nip.weight 0\nip.bias 0\n",
    .figures = "accuracy\neach\nloss 1\n",
};

/* Two branches are joined; both losses count with their weights. */
static const struct net_case branches = {
    .training = true,
    .file = "graph_branches",
    .blobs = "data 2x3x16x16\nlabel 2\na 2x4x16x16\nb 2x2x16x16\njoin 2x6x16x16\n"
             "norm 2x6x16x16\naux 2x10\nip 2x10\n",
    .forward = "a: convolution\nb: convolution\njoin: concat\nnorm: local response normalisation\n"
               "aux: inner product\nloss1: softmax loss\nip: inner product\nloss: softmax loss\n",
    .backward = "loss: softmax loss backward\nip: inner product backward weights\nip: accumulate\n"
                "ip: inner product backward data\nloss1: softmax loss backward\n"
                "aux: inner product backward weights\naux: accumulate\n"
                "aux: inner product backward data\n"
                "norm: local response normalisation backward\njoin: slice\njoin: eltwise\n"
                "b: convolution backward weights\nb: accumulate\n"
                "a: convolution backward weights\na: accumulate\n",
    .parameters = "a.weight 1\nb.weight 1\naux.weight 1\nip.weight 1\n",
    .figures = "loss 1\nloss1 0.3\n",
};

/* A residual block with explicit Split: the sum's gradient is both branches' gradient. */
static const struct net_case residual = {
    .training = true,
    .file = "graph_residual",
    .blobs = "data 2x3x16x16\nlabel 2\nc1 2x4x16x16\ns1 2x4x16x16\ns2 2x4x16x16\nc2 2x4x16x16\n"
             "sum 2x4x16x16\nsum 2x4x16x16\npool 2x4x1x1\nflat 2x4\n",
    .forward = "c1: convolution\nc2: convolution\nsum: eltwise\npool: pooling\n"
               "flat: view\nloss: softmax loss\n",
    .backward = "loss: softmax loss backward\nflat: view\npool: pooling backward\n"
                "relu: activation backward\nc2: convolution backward weights\nc2: accumulate\n"
                "c2: convolution backward data\nc2: eltwise\nc1: convolution backward weights\n"
                "c1: accumulate\n",
    .parameters = "c1.weight 1\nc2.weight 1\n",
    .figures = "loss 1\n",
};

/* An autoencoder: the input is the target; one loss only watches. */
static const struct net_case autoencoder = {
    .training = true,
    .file = "graph_autoencoder",
    .blobs = "data 2x3x16x16\nflat 2x768\nencode 2x5\nsig 2x5\nsig 2x5\ndecode 2x768\nout 2x768\n",
    .forward = "flat: view\nencode: inner product\nsig: activation\ntanh: activation\n"
               "decode: inner product\ncross: sigmoid cross-entropy loss\nout: activation\n"
               "distance: euclidean loss\n",
    .backward = "cross: sigmoid cross-entropy loss backward\n"
                "decode: inner product backward weights\ndecode: accumulate\ndecode: accumulate\n"
                "decode: inner product backward data\ntanh: activation backward\n"
                "sig: activation backward\nencode: inner product backward weights\n"
                "encode: accumulate\nencode: accumulate\n",
    .parameters = "encode.weight 1\nencode.bias 1\ndecode.weight 1\ndecode.bias 1\n",
    .figures = "cross 1\ndistance 0\n",
};

/* Made-up data, a net of probabilities, labels that are counted, and tops that are silenced. */
static const struct net_case sources = {
    .training = true,
    .file = "graph_sources",
    .blobs = "in 2x6\nlabel 2\nunused 2x2\nip 2x3\nprob 2x3\n",
    .forward = "dummy: fill\ndummy: fill\nip: inner product\nprob: softmax loss\n"
               "valid: count labels\nvalid: softmax loss\n",
    .backward = "valid: softmax loss backward\nprob: softmax loss backward\n"
                "prob: eltwise\nip: inner product backward weights\nip: accumulate\n"
                "ip: accumulate\n",
    .parameters = "ip.weight 1\nip.bias 1\n",
    .figures = "(log 1)\nvalid 1\n",
};

/* One weight in two places has two contributions; where lr_mult is 0 there is none. */
static const struct net_case shared = {
    .training = true,
    .file = "graph_shared",
    .blobs = "data 2x3x16x16\nlabel 2\nip1 2x10\nip2 2x10\nproduct 2x10\n",
    .forward = "ip1: inner product\nip2: inner product\nproduct: eltwise\nloss: softmax loss\n",
    .backward = "loss: softmax loss backward\nproduct: eltwise backward\n"
                "product: eltwise backward\nip2: inner product backward weights\nip2: accumulate\n"
                "ip1: inner product backward weights\nip1: accumulate\n",
    .parameters = "ip1.weight 2\nip1.bias 0\n",
    .figures = "loss 1\n",
};

/* Below the lowest parameter that learns, a bias here, there is no backward pass. */
static const struct net_case frozen = {
    .training = true,
    .file = "graph_frozen",
    .blobs = "data 2x3x16x16\nlabel 2\nconv1 2x4x14x14\npool 2x4x7x7\nip1 2x6\ntanh 2x6\n"
             "ip2 2x8\nip3 2x10\n",
    .forward = "conv1: convolution\npool: pooling\nip1: inner product\ntanh: activation\n"
               "ip2: inner product\nip3: inner product\nloss: softmax loss\n",
    .backward = "loss: softmax loss backward\nip3: inner product backward weights\n"
                "ip3: accumulate\nip3: accumulate\nip3: inner product backward data\n"
                "ip2: inner product backward weights\nip2: accumulate\n",
    .parameters = "conv1.weight 0\nconv1.bias 0\nip1.weight 0\nip1.bias 0\nip2.weight 0\n"
                  "ip2.bias 1\nip3.weight 1\nip3.bias 1\n",
    .figures = "loss 1\n",
};

static void compare(const char *what, const struct ls_text *got, const char *wanted)
{
    assert_false(got->failed);
    if (strcmp(got->data != NULL ? got->data : "", wanted) != 0)
        fail_msg("%s:\n%s\nnot:\n%s", what, got->data, wanted);
}

static void check_ops(const struct net_case *net, const struct ls_graph *graph)
{
    struct ls_text blobs = {0}, forward = {0}, backward = {0};
    describe_blobs(&blobs, graph);
    describe_kinds(&forward, graph, false);
    describe_kinds(&backward, graph, true);
    compare("blobs", &blobs, net->blobs);
    compare("forward", &forward, net->forward);
    compare("backward", &backward, net->backward);
    ls_text_free(&blobs);
    ls_text_free(&forward);
    ls_text_free(&backward);
}

/* Parameters with their numbers of uses; figures with their weight in the loss, in parentheses
 * those that are not printed. */
static void check_outputs(const struct net_case *net, const struct one_net *one)
{
    struct ls_text parameters = {0}, figures = {0};
    for (size_t i = 0; i < one->parameters->count; i++)
        ls_text_format(&parameters, "%s %d\n", one->parameters->items[i]->name,
                       one->parameters->items[i]->uses);
    for (size_t i = 0; i < one->graph->metric_count; i++) {
        const struct ls_metric *metric = &one->graph->metrics[i];
        char weight[40] = "";
        if (metric->layer->type->is_loss)
            snprintf(weight, sizeof weight, " %g", (double)metric->loss_weight);
        ls_text_format(&figures, metric->is_output ? "%s%s\n" : "(%s%s)\n", metric->name, weight);
    }
    compare("parameters", &parameters, net->parameters);
    compare("figures", &figures, net->figures);
    ls_text_free(&parameters);
    ls_text_free(&figures);
}

static void check_net(void **state)
{
    const struct net_case *net = *state;
    struct one_net one;
    open_net(&one, ls_test_net(net->file, NULL), net->training, 2);
    if (one.status != 0)
        fail_msg("%s: %s", one.error.problems[0].place, one.error.problems[0].message);
    check_ops(net, one.graph);
    check_outputs(net, &one);
    close_net(&one);
}

/* ---- Nets that are refused ------------------------------------------------------------------- */

/* All problems of a net in one report, each at its place, without those that follow from another
 * one. */
static void all_problems(void **state)
{
    (void)state;
    static const char text[] =
        "layer { name: 'data' type: 'Data' top: 'data' top: 'label'\n"
        "  data_param { source: 'x' batch_size: 64 } }\n"
        "layer { name: 'conv1' type: 'Convolution' bottom: 'data' top: 'conv1'\n"
        "  convolution_param { kernel_size: 17 num_output: 0 } }\n"
        "layer { name: 'pool1' type: 'Pooling' bottom: 'data' top: 'pool1'\n"
        "  pooling_param { kernel_size: 17\n"
        "                  stride: 1 } }\n"
        "layer { name: 'ip' type: 'InnerProduct' bottom: 'conv1' top: 'ip'\n"
        "  inner_product_param { num_output: 10 axis: 0 } }\n"
        "layer { name: 'soft' type: 'Softmax' bottom: 'data' top: 'soft'\n"
        "  softmax_param { axis: 0 } }\n"
        "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'data' bottom: 'label' top: 'loss' "
        "}\n";
    static const char *const wanted[] = {
        "net.prototxt:4:39: conv1: num_output must be at least 1",
        "net.prototxt:4:23: conv1: the kernel covers 17 positions, more than the padded input's 16 "
        "(height)",
        "net.prototxt:6:19: pool1: kernel_size 17 is larger than the padded input 16 (height)",
        "net.prototxt:11:19: soft: axis 0 of 'data' runs over the samples of a batch; a result "
        "that mixes samples would depend on how the batch is cut into micro-batches",
        "net.prototxt:12:46: loss: 'label' has 2 labels, but 'data' has 512 positions to label "
        "(all "
        "its axes but axis 1, the classes)",
    };
    struct one_net one;
    open_net(&one, text, true, 2);
    assert_int_equal(one.status, LOCKSTEP_DEFINITION);
    assert_null(one.graph);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        char line[1200];
        assert_true((int)i < one.error.count);
        snprintf(line, sizeof line, "%s: %s", one.error.problems[i].place,
                 one.error.problems[i].message);
        assert_string_equal(line, wanted[i]);
    }
    assert_int_equal(one.error.count, 5);
    close_net(&one);
}

/* Multipliers that would make everything that they touch no number. */
static void multipliers_are_finite(void **state)
{
    (void)state;
    static const char text[] =
        "layer { name: 'data' type: 'Data' top: 'data' top: 'label'\n"
        "  data_param { source: 'x' batch_size: 64 } }\n"
        "layer { name: 'ip' type: 'InnerProduct' bottom: 'data' top: 'ip'\n"
        "  param { lr_mult: inf } inner_product_param { num_output: 10 } }\n"
        "layer { name: 'two' type: 'InnerProduct' bottom: 'data' top: 'two'\n"
        "  param { decay_mult: nan } inner_product_param { num_output: 10 } }\n"
        "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'data' bottom: 'label' top: 'loss'\n"
        "  loss_weight: nan }\n";
    static const char *const wanted[] = {
        "net.prototxt:4:11: ip: lr_mult must be a finite number",
        "net.prototxt:6:11: two: decay_mult must be a finite number",
        "net.prototxt:8:3: loss: loss_weight must be a finite number",
    };
    struct one_net one;
    open_net(&one, text, true, 2);
    assert_int_equal(one.error.count, 3);
    for (int i = 0; i < 3; i++) {
        char line[1200];
        snprintf(line, sizeof line, "%s: %s", one.error.problems[i].place,
                 one.error.problems[i].message);
        assert_string_equal(line, wanted[i]);
    }
    close_net(&one);
}

/* A type that is not there is one problem, not one for each reader of its tops. */
static void unknown_types(void **state)
{
    (void)state;
    struct one_net one;
    open_net(&one,
             "layer { name: 'a' type: 'Nothing' top: 'data' top: 'label' }\n"
             "layer { name: 'b' type: 'Relu' bottom: 'data' top: 'data' }\n" SCORES LOSS,
             true, 2);
    assert_int_equal(one.status, LOCKSTEP_DEFINITION);
    assert_int_equal(one.error.count, 2);
    assert_string_equal(one.error.problems[0].message,
                        "a: there is no layer type 'Nothing' in this version");
    assert_string_equal(one.error.problems[0].place, "net.prototxt:1:19");
    assert_string_equal(one.error.problems[1].hint, "did you mean 'ReLU'?");
    close_net(&one);
}

/* Many layers of a type that is not there are one problem; a Python layer is told by its class. */
static void unknown_types_in_groups(void **state)
{
    (void)state;
    struct one_net one;
    open_net(&one,
             "layer { name: 'd' type: 'Python' top: 'data' top: 'label'\n"
             "  python_param { module: 'voc_layers' layer: 'VOCSegDataLayer' } }\n"
             "layer { name: 'a' type: 'Zap' bottom: 'data' top: 'x' }\n"
             "layer { name: 'b' type: 'Zap' bottom: 'x' top: 'y' include { phase: TEST } }\n"
             "layer { name: 'c' type: 'Zap' bottom: 'x' top: 'z' }\n"
             "layer { name: 'e' bottom: 'x' top: 'w' }\n",
             true, 2);
    assert_int_equal(one.status, LOCKSTEP_DEFINITION);
    assert_int_equal(one.error.count, 3);
    assert_string_equal(one.error.problems[0].message,
                        "d: there is no layer type 'Python' in this version, which runs "
                        "'VOCSegDataLayer' of module 'voc_layers'");
    assert_non_null(strstr(one.error.problems[0].hint, "backend: IMAGE_PAIRS"));
    assert_string_equal(one.error.problems[1].message,
                        "a: there is no layer type 'Zap' in this version (3 layers have it)");
    assert_string_equal(one.error.problems[1].place, "net.prototxt:3:19");
    assert_non_null(strstr(one.error.problems[1].hint, "plugin"));
    assert_string_equal(one.error.problems[2].message, "e: the layer has no type");
    close_net(&one);
}

/* A bottom whose layer another stage or phase has. */
static void left_out_layers(void **state)
{
    (void)state;
    struct one_net one;
    open_net(&one,
             "layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: [2, 3] } } }\n"
             "layer { name: 'l1' type: 'ReLU' bottom: 'x' top: 'a'\n"
             "  include { stage: 'factored' stage: 'big' } include { phase: TRAIN } }\n"
             "layer { name: 'l2' type: 'ReLU' bottom: 'a' top: 'b' }\n",
             false, 2);
    assert_int_equal(one.status, LOCKSTEP_DEFINITION);
    assert_int_equal(one.error.count, 1);
    assert_string_equal(one.error.problems[0].message,
                        "l2: no layer above produces its bottom 'a' (index 0), for the state of "
                        "this net leaves layer 'l1' out");
    assert_string_equal(one.error.problems[0].hint,
                        "it is there with --stage factored,big, or with phase TRAIN");
    close_net(&one);
}

/* Sources of several states that make the same blob. */
static void left_out_sources(void **state)
{
    (void)state;
    struct one_net one;
    open_net(&one,
             "layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: [2, 3] } } }\n"
             "layer { name: 's1' type: 'Input' top: 'a' include { phase: TRAIN } }\n"
             "layer { name: 's2' type: 'Input' top: 'a' include { phase: TEST stage: 'other' } }\n"
             "layer { name: 'l' type: 'Eltwise' bottom: 'x' bottom: 'a' top: 'b' }\n",
             false, 2);
    assert_int_equal(one.status, LOCKSTEP_DEFINITION);
    assert_string_equal(one.error.problems[0].hint,
                        "it is there with phase TRAIN, or with --stage other");
    close_net(&one);
}

/* Parameters of another type are ignored, as in Caffe, and noted. */
static void ignored_parameters(void **state)
{
    (void)state;
    struct one_net one;
    open_net(&one,
             "layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: [2, 3] } } }\n"
             "layer { name: 'r' type: 'ReLU' bottom: 'x' top: 'a' pooling_param { stride: 2 }\n"
             "  relu_param { negative_slope: 0.5 } lrn_param { } }\n",
             false, 2);
    assert_int_equal(one.status, 0);
    assert_int_equal(one.graph->ignored_count, 2);
    assert_string_equal(one.graph->ignored[0].field, "lrn_param");
    assert_string_equal(one.graph->ignored[1].field, "pooling_param");
    assert_string_equal(one.graph->ignored[1].layer->name, "r");
    close_net(&one);
}

/* Names must differ where weights or random numbers go by them, and only there. */
static void equal_names(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool fine;
    } cases[] = {
        {DATA SCORES LOSS "layer { name: 'loss' type: 'Softmax' bottom: 'ip' top: 'p' }", true},
        {DATA SCORES "layer { name: 'ip' type: 'InnerProduct' bottom: 'ip' top: 'two' "
                     "inner_product_param { num_output: 10 } }",
         false},
        {DATA "layer { name: 'd' type: 'Dropout' bottom: 'data' top: 'a' }\n"
              "layer { name: 'd' type: 'Dropout' bottom: 'data' top: 'b' }\n",
         false},
        {DATA SCORES "layer { name: 'ip' type: 'ReLU' bottom: 'ip' top: 'ip' }", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct one_net one;
        open_net(&one, cases[i].text, true, 2);
        assert_int_equal(one.status, cases[i].fine ? 0 : LOCKSTEP_DEFINITION);
        if (!cases[i].fine)
            assert_non_null(strstr(one.error.problems[one.error.count - 1].message,
                                   "another layer of this phase has the same name"));
        close_net(&one);
    }
}

/* Figures are known after all micro-batches, so that no layer can read them. */
static void figures_are_no_bottoms(void **state)
{
    (void)state;
    struct one_net one;
    open_net(&one,
             DATA SCORES LOSS "layer { name: 'more' type: 'ReLU' bottom: 'loss' top: 'more' }\n",
             true, 2);
    assert_int_equal(one.status, LOCKSTEP_DEFINITION);
    assert_non_null(strstr(one.error.problems[0].message, "'loss' is a metric of the whole batch"));
    close_net(&one);
}

static void learned_labels_are_refused(void **state)
{
    (void)state;
    struct one_net one;
    open_net(&one,
             DATA SCORES
             "layer { name: 'teacher' type: 'InnerProduct' bottom: 'data' top: 'teacher'\n"
             "  inner_product_param { num_output: 1 } }\n"
             "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'teacher' }\n",
             true, 2);
    assert_int_equal(one.status, LOCKSTEP_DEFINITION);
    assert_non_null(strstr(one.error.problems[0].message, "cannot backpropagate to its labels"));
    close_net(&one);
}

/* A failed allocation anywhere in the building of a graph is reported and leaves nothing behind. */
static void memory_runs_out(void **state)
{
    (void)state;
    const struct net_case *const nets[] = {&lenet, &residual, &sources, &shared, &frozen};
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
        for (long n = 0;; n++) {
            struct one_net one;
            open_net(&one, ls_test_net(nets[i]->file, NULL), true, 2);
            const struct ls_graph_options options = {.net = &one.net,
                                                     .phase = LOCKSTEP__PHASE__TRAIN,
                                                     .samples = 2,
                                                     .seed = 1,
                                                     .training = true,
                                                     .parameters = ls_parameter_set_new(),
                                                     .sources = &one_net_sources};
            struct ls_graph *graph = NULL;
            uint64_t before = ls_allocations();
            ls_fail_allocation_after(n);
            int status = ls_graph_build(&options, &graph, &one.error);
            ls_fail_allocation_after(-1);
            bool all = ls_allocations() - before <= (uint64_t)n;
            ls_graph_free(graph);
            ls_parameter_set_free(options.parameters);
            close_net(&one);
            if (all) {
                assert_int_equal(status, 0);
                break;
            }
            if (status != LOCKSTEP_RESOURCE)
                fail_msg("net %zu: allocation %ld failed and the status is %d", i, n, status);
        }
    }
}

int main(void)
{
#define NET(name)                                                                                  \
    {                                                                                              \
#name, check_net, NULL, NULL, (void *)&name                                                \
    }
    const struct CMUnitTest tests[] = {
        NET(lenet),
        NET(lenet_test),
        NET(enlarged),
        NET(branches),
        NET(residual),
        NET(autoencoder),
        NET(sources),
        NET(shared),
        NET(frozen),
        cmocka_unit_test(all_problems),
        cmocka_unit_test(multipliers_are_finite),
        cmocka_unit_test(unknown_types),
        cmocka_unit_test(unknown_types_in_groups),
        cmocka_unit_test(left_out_layers),
        cmocka_unit_test(left_out_sources),
        cmocka_unit_test(ignored_parameters),
        cmocka_unit_test(equal_names),
        cmocka_unit_test(figures_are_no_bottoms),
        cmocka_unit_test(learned_labels_are_refused),
        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
