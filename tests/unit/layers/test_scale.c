/* Scale and Bias: shapes, blobs, ops, and what they refuse.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layer_case.h"

#define SCALE "name: 'l' type: 'Scale' bottom: 'x' top: 'y' "
#define BIAS  "name: 'l' type: 'Bias' bottom: 'x' top: 'y' "
#define WITH  "bottom: 'f' "

static const struct layer_case cases[] = {
    {SCALE, "4x3x5x6!", "4x3x5x6!", "scale 3", "scale(x l.scale - > y)",
     "scale backward sums(grad(y) x > grad(l.scale) -); accumulate(grad(l.scale)); "
     "scale(grad(y) l.scale - > grad(x))"},
    {SCALE "scale_param { bias_term: true }", "4x3x5x6!", "4x3x5x6!", "scale 3, bias 3",
     "scale(x l.scale l.bias > y)",
     "scale backward sums(grad(y) x > grad(l.scale) grad(l.bias)); accumulate(grad(l.scale)); "
     "accumulate(grad(l.bias)); scale(grad(y) l.scale - > grad(x))"},
    {SCALE "scale_param { bias_term: true } param { lr_mult: 0 }", "4x3x5x6", "4x3x5x6!",
     "scale 3, bias 3", "scale(x l.scale l.bias > y)",
     "scale backward sums(grad(y) - > - grad(l.bias)); accumulate(grad(l.bias))"},
    {SCALE "scale_param { bias_term: true } param { lr_mult: 0 } param { lr_mult: 0 }", "4x3x5x6!",
     "4x3x5x6!", "scale 3, bias 3", "scale(x l.scale l.bias > y)",
     "scale(grad(y) l.scale - > grad(x))"},
    {SCALE "scale_param { axis: 2 num_axes: -1 bias_term: true }", "4x3x5x6", "4x3x5x6!",
     "scale 5x6, bias 5x6", "scale(x l.scale l.bias > y)",
     "scale backward sums(grad(y) x > grad(l.scale) grad(l.bias)); accumulate(grad(l.scale)); "
     "accumulate(grad(l.bias))"},
    {SCALE "scale_param { axis: -3 num_axes: 2 }", "4x3x5x6", "4x3x5x6!", "scale 3x5",
     "scale(x l.scale - > y)",
     "scale backward sums(grad(y) x > grad(l.scale) -); accumulate(grad(l.scale))"},
    /* One number; it does not matter where the axis is. */
    {SCALE "scale_param { axis: 0 num_axes: 0 }", "4x3", "4x3!", "scale ", "scale(x l.scale - > y)",
     "scale backward sums(grad(y) x > grad(l.scale) -); accumulate(grad(l.scale))"},
    /* Two bottoms: weights of channels, sample by sample. */
    {SCALE WITH "scale_param { axis: 0 }", "4x3x5x6! 4x3!", "4x3x5x6!", "", "scale(x f - > y)",
     "scale backward sums(grad(y) x > grad(f) -); scale(grad(y) f - > grad(x))"},
    {SCALE WITH "scale_param { axis: 0 }", "4x3x5x6! 4", "4x3x5x6!", "", "scale(x f - > y)",
     "scale(grad(y) f - > grad(x))"},
    {SCALE WITH "scale_param { axis: 0 } propagate_down: false propagate_down: true", "8x3!/2 8!/2",
     "8x3/2!", "", "scale(x f - > y)", "scale backward sums(grad(y) x > grad(f) -)"},
    /* What belongs to no sample, from a learned tensor. */
    {SCALE WITH, "4x3x5x6 3x5?!", "4x3x5x6!", "", "scale(x f - > y)",
     "scale backward sums(grad(y) x > grad(f) -)"},
    {SCALE WITH "scale_param { bias_term: true }", "4x3x5x6 3?", "4x3x5x6!", "bias 3",
     "scale(x f l.bias > y)",
     "scale backward sums(grad(y) - > - grad(l.bias)); accumulate(grad(l.bias))"},
    {SCALE, "4x3x5x6", "4x3x5x6", "scale 3", "scale(x l.scale - > y)", NULL},

    {BIAS, "4x3x5x6!", "4x3x5x6!", "bias 3", "scale(x - l.bias > y)",
     "scale backward sums(grad(y) - > - grad(l.bias)); accumulate(grad(l.bias))"},
    {BIAS "bias_param { num_axes: 0 filler { type: 'gaussian' } }", "4x3", "4x3!", "bias ",
     "scale(x - l.bias > y)",
     "scale backward sums(grad(y) - > - grad(l.bias)); accumulate(grad(l.bias))"},
    {BIAS WITH "bias_param { axis: 0 }", "4x3x5! 4x3!", "4x3x5!", "", "scale(x - f > y)",
     "scale backward sums(grad(y) - > - grad(f))"},
};

static const struct refused_case refused[] = {
    {"name: 'l'\ntype: 'Scale'\nbottom: 'x'\ntop: 'y'\nscale_param {\n  axis: 0 }", "4x3",
     "l: axis 0 of 'x' runs over the samples of a batch", "6:3"},
    {SCALE "scale_param { axis: 4 }", "4x3x5x6", "l: axis 4 is out of range", NULL},
    {SCALE "scale_param { axis: -2147483648 }", "4x3", "l: axis -2147483648 is out of range", NULL},
    {SCALE "scale_param { num_axes: -2 }", "4x3", "l: num_axes -2 must be at least 0, or -1", NULL},
    {SCALE "scale_param { axis: 2 num_axes: 3 }", "4x3x5x6",
     "l: num_axes 3 from axis 2 on goes beyond the axes of 'x' with shape 4 3 5 6", NULL},
    {SCALE "scale_param { num_axes: 2147483647 }", "4x3x5x6",
     "l: num_axes 2147483647 from axis 1 on goes beyond", NULL},
    {SCALE "\nscale_param {\n bias_filler { value: 1 } }", "4x3",
     "l: bias_filler has no effect without bias_term", "3:2"},
    {SCALE WITH "scale_param { axis: 0 filler { } num_axes: 1 }", "4x3 4",
     "l: filler has no effect: the second\nl: num_axes has no effect: the second", NULL},
    /* Shapes that do not broadcast. */
    {SCALE WITH "scale_param { axis: 0 }", "4x3x5x6 4x2",
     "l: the axes of 'f' (4 2 (8)) must be those of 'x' (4 3 5 6 (360)) from axis 0 on", NULL},
    {SCALE WITH "scale_param { axis: 0 }", "4x3x5x6 4x3x1x1", "l: the axes of 'f'", NULL},
    {SCALE WITH "scale_param { axis: 1 }", "4x3 3x2?", "l: the axes of 'f'", NULL},
    /* Sample beside sample, or nothing. */
    {SCALE WITH "scale_param { axis: 1 }", "4x4 4",
     "l: 'f' from axis 1 of 'x' on would put other samples beside its samples", NULL},
    {SCALE WITH "scale_param { axis: 0 }", "4x3 4?", "l: 'f' from axis 0 of 'x' on would put",
     NULL},
    {SCALE WITH "scale_param { axis: 0 }", "4x3 4/2", "l: 'f' from axis 0 of 'x' on would put",
     NULL},
    {SCALE WITH "scale_param { axis: 0 bias_term: true }", "4x3 4",
     "l: axis 0 of 'x' runs over the samples", NULL},
    {BIAS "bias_param { axis: 0 }", "4x3", "l: axis 0 of 'x' runs over the samples", NULL},
    {BIAS WITH "bias_param { axis: 0 num_axes: 2 filler { } }", "4x3 4",
     "l: filler has no effect: the second\nl: num_axes has no effect: the second", NULL},
    {BIAS WITH, "4x3 4", "l: the axes of 'f'", NULL},
};

static void all_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_layer_case(&cases[i]);
}

static void all_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        check_refused_case(&refused[i]);
}

/* Where the factor lies, and what it begins with. */
static void attributes(void **state)
{
    (void)state;
    struct one_layer one;
    open_layer(&one, SCALE "scale_param { axis: 2 num_axes: 2 }", "4x3x5x6!", true);
    assert_int_equal(run_forward(&one), 0);
    assert_int_equal(run_backward(&one), 0);
    assert_int_equal(one.graph->op_count, 4);
    for (int i = 0; i < 4; i++) {
        if (one.graph->ops[i]->kind == LS_OP_ACCUMULATE)
            continue;
        assert_int_equal(one.graph->ops[i]->attr.scale.axis, 2);
        assert_int_equal(one.graph->ops[i]->attr.scale.axes, 2);
    }
    assert_string_equal(one.layer->request[0].filler->type, "constant");
    assert_true(one.layer->request[0].filler->value == 1);
    close_layer(&one);
    open_layer(&one, SCALE "scale_param { filler { value: 3 } bias_term: true }", "4x3", true);
    assert_int_equal(run_forward(&one), 0);
    assert_true(one.layer->request[0].filler->value == 3);
    assert_null(one.layer->request[1].filler);
    close_layer(&one);
    /* A bias hands the gradient on as it is. */
    open_layer(&one, BIAS, "4x3!", true);
    assert_int_equal(run_forward(&one), 0);
    assert_int_equal(run_backward(&one), 0);
    assert_ptr_equal(ls_graph_gradient(one.graph, one.layer->bottom[0]),
                     ls_graph_gradient(one.graph, one.layer->top[0]));
    close_layer(&one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_cases),
        cmocka_unit_test(all_refused),
        cmocka_unit_test(attributes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
