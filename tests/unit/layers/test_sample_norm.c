/* MVN, GroupNorm, LayerNorm, RMSNorm and InstanceNorm: what they emit and ask for, and what they
 * refuse. SPDX-License-Identifier: BSD-2-Clause */
#include "layer_case.h"

#define LAYER(type) "name: 'l' type: '" type "' bottom: 'x' top: 'y' "
#define AFFINE      "normalize(x l.scale l.bias > y l.stats)"
#define PLAIN       "normalize(x > y l.stats)"
#define SUMS                                                                                       \
    "normalize backward sums(grad(y) x l.stats > grad(l.scale) grad(l.bias)); "                    \
    "accumulate(grad(l.scale)); accumulate(grad(l.bias))"
#define RMS_SUMS                                                                                   \
    "normalize backward sums(grad(y) x l.stats > grad(l.scale)); accumulate(grad(l.scale))"
#define DATA       "normalize backward data(grad(y) x l.stats > grad(x))"
#define SCALE_DATA "normalize backward data(grad(y) x l.stats l.scale > grad(x))"

static const struct layer_case cases[] = {
    {LAYER("GroupNorm") "group_norm_param { groups: 2 }", "4x6x5x5!", "4x6x5x5!", "scale 6, bias 6",
     AFFINE, SUMS "; " SCALE_DATA},
    {LAYER("GroupNorm"), "4x64", "4x64!", "scale 64, bias 64", AFFINE, SUMS},
    {LAYER("GroupNorm") "group_norm_param { groups: 3 affine: false }", "4x6x5!", "4x6x5!", "",
     PLAIN, DATA},
    {LAYER("GroupNorm") "group_norm_param { groups: 2 } param { lr_mult: 0 } param { lr_mult: 0 }",
     "4x6!", "4x6!", "scale 6, bias 6", AFFINE, SCALE_DATA},
    {LAYER("GroupNorm") "group_norm_param { groups: 2 } param { lr_mult: 0 }", "4x6", "4x6!",
     "scale 6, bias 6", AFFINE,
     "normalize backward sums(grad(y) x l.stats > - grad(l.bias)); accumulate(grad(l.bias))"},
    {LAYER("GroupNorm") "group_norm_param { groups: 2 }", "4x6!", "4x6!", "scale 6, bias 6",
     "normalize(x l.scale l.bias > y -)", NULL},
    {LAYER("InstanceNorm"), "4x6x5x5!", "4x6x5x5!", "", PLAIN, DATA},
    {LAYER("InstanceNorm"), "4x6x5x5", "4x6x5x5", "", "normalize(x > y -)", ""},
    {LAYER("InstanceNorm") "instance_norm_param { affine: true }", "4x6x5x5!", "4x6x5x5!",
     "scale 6, bias 6", AFFINE, SUMS "; " SCALE_DATA},
    {LAYER("LayerNorm"), "4x6x5!", "4x6x5!", "scale 6x5, bias 6x5", AFFINE, SUMS "; " SCALE_DATA},
    {LAYER("LayerNorm") "layer_norm_param { axis: -1 }", "4x6x5!", "4x6x5!", "scale 5, bias 5",
     AFFINE, SUMS "; " SCALE_DATA},
    {LAYER("LayerNorm") "layer_norm_param { affine: false }", "8x6/2!", "8x6/2!", "", PLAIN, DATA},
    {LAYER("RMSNorm"), "4x6x5!", "4x6x5!", "scale 5", "normalize(x l.scale > y l.stats)",
     RMS_SUMS "; " SCALE_DATA},
    {LAYER("RMSNorm") "rms_norm_param { axis: 1 }", "4x6x5", "4x6x5!", "scale 6x5",
     "normalize(x l.scale > y l.stats)", RMS_SUMS},
    {LAYER("RMSNorm") "param { lr_mult: 0 }", "4x6!", "4x6!", "scale 6",
     "normalize(x l.scale > y l.stats)", SCALE_DATA},
    {LAYER("RMSNorm") "rms_norm_param { affine: false }", "8x6/2!", "8x6/2!", "", PLAIN, DATA},
    {LAYER("MVN"), "4x6x5x5!", "4x6x5x5!", "", PLAIN, DATA},
    {LAYER("MVN") "mvn_param { normalize_variance: false across_channels: true }", "4x6!", "4x6!",
     "", PLAIN, DATA},
};

static void all_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_layer_case(&cases[i]);
}

#define EPS(value) "l: eps " value " must be a number above 0"

static const struct refused_case refused[] = {
    {LAYER("GroupNorm") "group_norm_param { groups: 4 }", "4x6x5x5",
     "l: the 6 channels of 'x' cannot be divided into 4 groups", "1:"},
    {LAYER("GroupNorm"), "4x6", "l: the 6 channels of 'x' cannot be divided into 32 groups", NULL},
    {LAYER("GroupNorm") "group_norm_param { groups: 4294967295 }", "4x6",
     "l: the 6 channels of 'x' cannot be divided into 4294967295 groups", NULL},
    {LAYER("GroupNorm") "group_norm_param { groups: 0 }", "4x6", "l: groups must be at least 1",
     NULL},
    {LAYER("GroupNorm") "group_norm_param { groups: 5 eps: nan }", "4x6",
     "l: the 6 channels of 'x' cannot be divided into 5 groups\n" EPS("nan"), NULL},
    {LAYER("GroupNorm") "group_norm_param { groups: 2 affine: false scale_filler { } "
                        "bias_filler { } }",
     "4x6", "l: scale_filler is for affine: true only\nl: bias_filler is for affine: true only",
     NULL},
    {LAYER("GroupNorm"), "64",
     "l: its bottom 'x' must have at least 2 axes (samples, channels), but is 64 (64)", NULL},
    {LAYER("GroupNorm"), "4x64?", "l: ", NULL},
    {LAYER("InstanceNorm") "instance_norm_param { eps: 0 }", "4x6x5", EPS("0"), NULL},
    {LAYER("InstanceNorm") "instance_norm_param { scale_filler { } }", "4x6x5",
     "l: scale_filler is for affine: true only", NULL},
    {LAYER("LayerNorm") "layer_norm_param { axis: 0 }", "4x6",
     "l: axis 0 of 'x' runs over the samples of a batch", NULL},
    {LAYER("LayerNorm") "layer_norm_param { axis: -2 }", "4x6",
     "l: axis -2 of 'x' runs over the samples of a batch", NULL},
    {LAYER("LayerNorm") "layer_norm_param { axis: 2 }", "4x6",
     "l: axis 2 is out of range for 'x' with shape 4 6 (24)", NULL},
    {LAYER("LayerNorm") "layer_norm_param { eps: inf }", "4x6", EPS("inf"), NULL},
    {LAYER("RMSNorm") "rms_norm_param { axis: 0 }", "4x6",
     "l: axis 0 of 'x' runs over the samples of a batch", NULL},
    {LAYER("RMSNorm") "rms_norm_param { eps: 0 }", "4x6", EPS("0"), NULL},
    {LAYER("RMSNorm") "rms_norm_param { affine: false scale_filler { } }", "4x6",
     "l: scale_filler is for affine: true only", NULL},
    {LAYER("MVN") "mvn_param { eps: -1 }", "4x6", EPS("-1"), NULL},
    {LAYER("MVN") "mvn_param { eps: 1e-39 }", "4x6", "l: eps ", NULL},
    {LAYER("MVN") "mvn_param { normalize_variance: false eps: 1 }", "4x6",
     "l: eps has no effect without normalize_variance", NULL},
    {LAYER("MVN"), "4", "l: its bottom 'x' must have at least 2 axes", NULL},
};

static void all_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        check_refused_case(&refused[i]);
}

/* The attributes of all ops, which are the same, and the shape of the stats. */
static struct ls_normalize_attr attributes_of(const char *text, const char *bottoms,
                                              const char *stats)
{
    struct one_layer one;
    struct ls_text shape = {0};
    open_layer(&one, text, bottoms, true);
    assert_int_equal(run_forward(&one), 0);
    assert_int_equal(run_backward(&one), 0);
    struct ls_normalize_attr attr = one.graph->ops[0]->attr.normalize;
    for (size_t i = 1; i < one.graph->op_count; i++)
        if (one.graph->ops[i]->kind != LS_OP_ACCUMULATE)
            assert_memory_equal(&one.graph->ops[i]->attr.normalize, &attr, sizeof attr);
    describe_shape(&shape, one.graph->ops[0]->output[1]);
    same_text(text, "stats", &shape, stats);
    close_layer(&one);
    return attr;
}

static void attributes(void **state)
{
    (void)state;
    struct ls_normalize_attr attr = attributes_of(
        LAYER("GroupNorm") "group_norm_param { groups: 3 eps: 0.5 }", "4x6x5!", "4x12!");
    assert_true(attr.axis == 1 && attr.groups == 3 && attr.eps == 0.5F);
    assert_true(attr.variance && !attr.behind && !attr.elements);
    attr = attributes_of(LAYER("InstanceNorm"), "4x6x5!", "4x24!");
    assert_true(attr.axis == 1 && attr.groups == 6 && attr.eps == 1e-5F);
    attr =
        attributes_of(LAYER("LayerNorm") "layer_norm_param { axis: 2 }", "8x6x5x7/2!", "8x6x4/2!");
    assert_true(attr.axis == 2 && attr.groups == 1 && attr.elements && !attr.behind);
    attr = attributes_of(LAYER("RMSNorm"), "4x6x5!", "4x6x4!");
    assert_true(attr.axis == 2 && attr.groups == 1 && attr.elements && attr.around_zero);
    assert_true(attr.variance && !attr.behind && attr.eps == 1e-6F);
    attr = attributes_of(LAYER("MVN"), "4x6x5!", "4x24!");
    assert_true(attr.groups == 6 && attr.variance && attr.behind && attr.eps == 1e-9F);
    attr = attributes_of(LAYER("MVN") "mvn_param { across_channels: true }", "4x6x5!", "4x4!");
    assert_true(attr.groups == 1);
    attr = attributes_of(LAYER("MVN") "mvn_param { normalize_variance: false }", "4x6x5!", "4x24!");
    assert_true(!attr.variance);
}

static void fillers(void **state)
{
    (void)state;
    struct one_layer one;
    open_layer(&one, LAYER("LayerNorm"), "4x6!", true);
    assert_int_equal(run_forward(&one), 0);
    assert_true(one.layer->request[0].filler->value == 1);
    assert_null(one.layer->request[1].filler);
    close_layer(&one);
    open_layer(&one,
               LAYER("LayerNorm") "layer_norm_param { scale_filler { value: 2 } "
                                  "bias_filler { value: 3 } }",
               "4x6!", true);
    assert_int_equal(run_forward(&one), 0);
    assert_true(one.layer->request[0].filler->value == 2);
    assert_true(one.layer->request[1].filler->value == 3);
    close_layer(&one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_cases),
        cmocka_unit_test(all_refused),
        cmocka_unit_test(attributes),
        cmocka_unit_test(fillers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
