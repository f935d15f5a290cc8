/* Layers that are functions of one number, and PReLU: what they emit, with which attributes, and
 * what they refuse.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layer_case.h"

#include <math.h>

#define LAYER(type)   "name: 'l' type: '" type "' bottom: 'x' top: 'y' "
#define BY_X          "activation(x > y)", "activation backward(grad(y) x > grad(x))"
#define BY_Y          "activation(x > y)", "activation backward(grad(y) y > grad(x))"
#define PRELU_FORWARD "prelu(x l.slope > y)"
#define PRELU_SLOPE   "prelu backward slope(grad(y) x > grad(l.slope)); accumulate(grad(l.slope))"
#define PRELU_DATA    "prelu backward data(grad(y) x l.slope > grad(x))"

static const struct layer_case cases[] = {
    {LAYER("ELU"), "4x3x2!", "4x3x2!", "", BY_Y},
    {LAYER("ELU") "elu_param { alpha: -1 }", "4x3/2!", "4x3/2!", "", BY_X},
    {LAYER("Swish"), "4!", "4!", "", BY_X},
    {LAYER("GELU"), "4x3x2!", "4x3x2!", "", BY_X},
    {LAYER("GELU") "gelu_param { approximate: TANH }", "4x3/2!", "4x3/2!", "", BY_X},
    {LAYER("SiLU"), "4x3?!", "4x3?!", "", BY_X},
    {LAYER("AbsVal"), "4x3?!", "4x3?!", "", BY_X},
    {LAYER("BNLL"), "4x3!", "4x3!", "", BY_X},
    {LAYER("Exp") "exp_param { base: 2 scale: 3 shift: 1 }", "4x3!", "4x3!", "", BY_Y},
    {LAYER("Log") "log_param { base: 10 }", "4x3!", "4x3!", "", BY_X},
    {LAYER("Power") "power_param { power: 2 }", "4x3!", "4x3!", "", BY_X},
    {LAYER("Clip") "clip_param { min: -1 max: 6 }", "4x3!", "4x3!", "", BY_X},
    {LAYER("PReLU"), "4x3x5x5!", "4x3x5x5!", "slope 3", PRELU_FORWARD, PRELU_SLOPE "; " PRELU_DATA},
    {LAYER("PReLU"), "4x3", "4x3!", "slope 3", PRELU_FORWARD, PRELU_SLOPE},
    {LAYER("PReLU") "param { lr_mult: 0 }", "4x3!", "4x3!", "slope 3", PRELU_FORWARD, PRELU_DATA},
    {LAYER("PReLU") "prelu_param { channel_shared: true }", "4x3!", "4x3!", "slope ", PRELU_FORWARD,
     PRELU_SLOPE "; " PRELU_DATA},
    {LAYER("PReLU"), "4x3!", "4x3!", "slope 3", PRELU_FORWARD, NULL},
};

static void all_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_layer_case(&cases[i]);
}

static const struct refused_case refused[] = {
    {LAYER("ELU") "elu_param { alpha: nan }", "4x3", "l: alpha must be a finite number", "1:"},
    {LAYER("Swish") "swish_param { beta: inf }", "4x3", "l: beta must be a finite number", NULL},
    {LAYER("Threshold") "threshold_param { threshold: inf }", "4x3",
     "l: threshold must be a finite number", NULL},
    {LAYER("Clip"), "4x3", "l: min and max are missing", NULL},
    {LAYER("Clip") "clip_param { min: nan max: inf }", "4x3",
     "l: min must be a finite number\nl: max must be a finite number", NULL},
    {LAYER("Clip") "clip_param { min: 2 max: 1 }", "4x3", "l: min 2 is larger than max 1", NULL},
    {LAYER("Exp") "exp_param { base: 0 }", "4x3", "l: base 0 must be a number above 0, or -1 for e",
     NULL},
    {LAYER("Exp") "exp_param { base: -2 }", "4x3",
     "l: base -2 must be a number above 0, or -1 for e", NULL},
    {LAYER("Exp") "exp_param { base: inf }", "4x3",
     "l: base inf must be a number above 0, or -1 for e", NULL},
    {LAYER("Exp") "exp_param { scale: inf shift: nan }", "4x3",
     "l: scale must be a finite number\nl: shift must be a finite number", NULL},
    {LAYER("Exp") "exp_param { shift: 100 }", "4x3", "l: base ^ shift is out of range", NULL},
    {LAYER("Exp") "exp_param { base: 1e30 scale: 1e38 }", "4x3",
     "l: log(base) * scale is out of range", NULL},
    {LAYER("Log") "log_param { base: 1 }", "4x3", "l: there is no logarithm to the base 1", NULL},
    {LAYER("Log") "log_param { base: nan }", "4x3",
     "l: base nan must be a number above 0, or -1 for e", NULL},
    {LAYER("Log") "log_param { base: 1.1 scale: 3e38 }", "4x3",
     "l: scale / log(base) is out of range", NULL},
    {LAYER("Power") "power_param { power: nan scale: inf }", "4x3",
     "l: power must be a finite number\nl: scale must be a finite number", NULL},
    {LAYER("Power") "power_param { shift: -inf }", "4x3", "l: shift must be a finite number", NULL},
    {LAYER("Power") "power_param { power: 1e20 scale: 1e20 }", "4x3",
     "l: power * scale is out of range", NULL},
    {LAYER("Power") "power_param { power: 0.5 scale: 0 shift: -1 }", "4x3",
     "l: with scale 0 the result is shift ^ power, which is no finite number", NULL},
    {LAYER("Power") "power_param { power: -1 scale: 0 }", "4x3",
     "l: with scale 0 the result is shift ^ power, which is no finite number", NULL},
    {LAYER("PReLU"), "4",
     "l: its bottom 'x' must have at least 2 axes (samples, channels), but is 4 (4)", NULL},
    {LAYER("PReLU"), "4x3?", "l: ", NULL},
};

static void all_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        check_refused_case(&refused[i]);
}

static struct ls_activation_attr attributes_of(const char *text)
{
    struct one_layer one;
    open_layer(&one, text, "4x3!", true);
    assert_int_equal(run_forward(&one), 0);
    assert_int_equal(run_backward(&one), 0);
    struct ls_activation_attr attr = one.graph->ops[0]->attr.activation;
    for (size_t i = 1; i < one.graph->op_count; i++)
        assert_memory_equal(&one.graph->ops[i]->attr.activation, &attr, sizeof attr);
    close_layer(&one);
    return attr;
}

static void attributes(void **state)
{
    (void)state;
    struct ls_activation_attr attr = attributes_of(LAYER("ELU"));
    assert_true(attr.function == LS_ELU && attr.slope == 1);
    attr = attributes_of(LAYER("ELU") "elu_param { alpha: 0.5 }");
    assert_true(attr.slope == 0.5F);
    attr = attributes_of(LAYER("Swish"));
    assert_true(attr.function == LS_SWISH && attr.slope == 1);
    attr = attributes_of(LAYER("AbsVal"));
    assert_true(attr.function == LS_ABSOLUTE);
    attr = attributes_of(LAYER("BNLL"));
    assert_true(attr.function == LS_BNLL);
    attr = attributes_of(LAYER("Exp"));
    assert_true(attr.function == LS_EXP && attr.scale == 1 && attr.factor == 1);
    attr = attributes_of(LAYER("Exp") "exp_param { base: 2 scale: 3 shift: 4 }");
    assert_true(attr.scale == (float)(3 * log(2)) && fabsf(attr.factor - 16) < 1e-5F);
    attr = attributes_of(LAYER("Log"));
    assert_true(attr.function == LS_LOG && attr.scale == 1 && attr.shift == 0 && attr.factor == 1);
    attr = attributes_of(LAYER("Log") "log_param { base: 10 scale: 3 shift: 4 }");
    assert_true(attr.scale == 3 && attr.shift == 4 && attr.factor == (float)(1 / log(10)));
    attr = attributes_of(LAYER("Power") "power_param { power: 3 scale: 2 shift: 1 }");
    assert_true(attr.function == LS_POWER && attr.power == 3 && attr.scale == 2 && attr.shift == 1);
    attr = attributes_of(LAYER("Clip") "clip_param { min: -1 max: 6 }");
    assert_true(attr.function == LS_CLIP && attr.low == -1 && attr.high == 6);
    attr = attributes_of(LAYER("GELU"));
    assert_true(attr.function == LS_GELU);
    attr = attributes_of(LAYER("GELU") "gelu_param { approximate: TANH }");
    assert_true(attr.function == LS_GELU_TANH);
    attr = attributes_of(LAYER("SiLU"));
    assert_true(attr.function == LS_SWISH && attr.slope == 1);
    attr = attributes_of(LAYER("Threshold") "threshold_param { threshold: 0.5 }");
    assert_true(attr.function == LS_THRESHOLD && attr.low == 0.5F);
}

/* A Power that changes nothing is nothing; a Threshold ends the gradient. */
static void no_ops(void **state)
{
    (void)state;
    struct one_layer one;
    open_layer(&one, LAYER("Power"), "4x3!", true);
    assert_int_equal(run_forward(&one), 0);
    assert_int_equal(run_backward(&one), 0);
    assert_int_equal(one.graph->op_count, 0);
    assert_ptr_equal(one.layer->top[0], one.layer->bottom[0]);
    close_layer(&one);
    open_layer(&one, LAYER("Threshold"), "4x3!", true);
    assert_int_equal(run_forward(&one), 0);
    assert_int_equal(run_backward(&one), 0);
    assert_int_equal(one.graph->op_count, 1);
    assert_null(ls_graph_gradient(one.graph, one.layer->bottom[0]));
    close_layer(&one);
}

static void slopes_begin_at_a_quarter(void **state)
{
    (void)state;
    struct one_layer one;
    open_layer(&one, LAYER("PReLU"), "4x3!", true);
    assert_int_equal(run_forward(&one), 0);
    assert_string_equal(one.layer->request[0].filler->type, "constant");
    assert_true(one.layer->request[0].filler->value == 0.25F);
    close_layer(&one);
    open_layer(&one, LAYER("PReLU") "prelu_param { filler { value: 0.1 } }", "4x3!", true);
    assert_int_equal(run_forward(&one), 0);
    assert_true(one.layer->request[0].filler->value == 0.1F);
    close_layer(&one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_cases),
        cmocka_unit_test(all_refused),
        cmocka_unit_test(attributes),
        cmocka_unit_test(no_ops),
        cmocka_unit_test(slopes_begin_at_a_quarter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
