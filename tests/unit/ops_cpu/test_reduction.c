/* Reductions and their gradients against the reference device.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/own_kernel.h"

static const enum ls_reduction methods[] = {LS_REDUCE_SUM, LS_REDUCE_ASUM, LS_REDUCE_SUMSQ,
                                            LS_REDUCE_MEAN};
enum { METHODS = 4 };

static const struct {
    struct ls_shape x;
    int axis;
} cases[] = {
    {{4, {3, 20, 5, 7}}, 1}, {{4, {2, 3, 4, 5}}, 2}, {{4, {2, 3, 4, 5}}, 3},
    {{2, {4, 1}}, 1},        {{2, {5, 9001}}, 1},    {{3, {2, 3, 4}}, 0},
};
enum { CASES = sizeof cases / sizeof *cases };

static const float coeff = -0.75F;

static struct own *new_reduction(const struct ls_kernel *kernel, enum ls_reduction method, int axis)
{
    struct own *own = own_new(kernel);
    own->op.attr.reduction = (struct ls_reduction_attr){
        .axis = axis, .method = method, .coeff = coeff, .normalizer = -1};
    return own;
}

static void sums_are_those_of_the_reference(void **state)
{
    (void)state;
    for (int c = 0; c < CASES; c++)
        for (int m = 0; m < METHODS; m++) {
            struct own *own = new_reduction(&ls_kernel_reduce, methods[m], cases[c].axis);
            struct ls_shape top = cases[c].x;
            top.rank = cases[c].axis;
            own_in(own, &cases[c].x, 5, 2);
            own_out(own, &top);
            own_run(own, &ls_layout_blocked16); /* refused: plain */
            own_near_reference(own, 1e-7);
            own_free(own);
        }
}

/* ---- Gradients ------------------------------------------------------------------------------- */

static bool reads_x(enum ls_reduction method)
{
    return method == LS_REDUCE_ASUM || method == LS_REDUCE_SUMSQ;
}

static void gradients_are_those_of_the_reference(void **state)
{
    (void)state;
    const struct ls_shape shape = {4, {2, 3, 4, 5}};
    for (int axis = 1; axis < 4; axis++)
        for (int m = 0; m < METHODS; m++) {
            struct own *own = new_reduction(&ls_kernel_reduce_backward, methods[m], axis);
            struct ls_shape top = shape;
            top.rank = axis;
            own_in(own, &top, 8, 1);
            if (reads_x(methods[m]))
                own_in(own, &shape, 6, 2);
            own_out(own, &shape);
            own_run(own, &ls_layout_plain);
            own_near_reference(own, 3e-7);
            own_free(own);
        }
}

/* |x| is given the slope 0 where x is 0, as Caffe has it. */
static void the_slope_of_a_magnitude_at_zero_is_zero(void **state)
{
    (void)state;
    const struct ls_shape shape = {2, {1, 4}}, top = {1, {1}};
    struct own *own = new_reduction(&ls_kernel_reduce_backward, LS_REDUCE_ASUM, 1);
    struct ls_value *dy = own_in(own, &top, 8, 1), *x = own_in(own, &shape, 6, 1);
    const float numbers[] = {0.0F, -0.0F, 3.0F, -1e-30F};
    memcpy(own->plain[x->index], numbers, sizeof numbers);
    own->plain[dy->index][0] = 2;
    struct ls_value *dx = own_out(own, &shape);
    own_run(own, &ls_layout_plain);
    const double expected[] = {0, 0, 2 * coeff, -2 * coeff};
    own_near(own, dx, expected, 0);
    own_free(own);
}

/* ---- A figure of the batch ------------------------------------------------------------------- */

static void figures_of_a_batch_are_those_of_the_reference(void **state)
{
    (void)state;
    const struct ls_shape shape = {3, {4, 5, 6}};
    for (int m = 0; m < METHODS; m++) {
        struct own *own = new_reduction(&ls_kernel_reduce_loss, methods[m], 0);
        own->op.attr.reduction.metric_offset = 3;
        own_in(own, &shape, 5, 2);
        own_run(own, &ls_layout_plain);
        own_near_reference(own, 1e-12);
        assert_true(own->partials[3] != 0);
        assert_true(own->partials[4] == 120); /* numbers */
        own_free(own);
    }
}

/* MEAN is divided by the count of the update, which is larger than that of the micro-batch. */
static void gradients_of_figures_are_those_of_the_reference(void **state)
{
    (void)state;
    const struct ls_shape shape = {3, {2, 5, 6}};
    static const double normalizers[] = {7, 300};
    for (int m = 0; m < METHODS; m++) {
        bool mean = methods[m] == LS_REDUCE_MEAN;
        struct own *own = new_reduction(&ls_kernel_reduce_loss_backward, methods[m], 0);
        own->op.attr.reduction.loss_weight = 1.5F;
        own->op.attr.reduction.normalizer = mean ? 1 : -1;
        own->context.normalizers = normalizers;
        if (reads_x(methods[m]))
            own_in(own, &shape, 5, 2);
        struct ls_value *dx = own_out(own, &shape);
        own_run(own, &ls_layout_plain);
        own_near_reference(own, 3e-7);
        for (int i = 0; mean && i < 60; i++)
            assert_true(own_plain(own, dx)[i] == 1.5F * coeff / 300);
        own_free(own);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_those_of_the_reference),
        cmocka_unit_test(gradients_are_those_of_the_reference),
        cmocka_unit_test(the_slope_of_a_magnitude_at_zero_is_zero),
        cmocka_unit_test(figures_of_a_batch_are_those_of_the_reference),
        cmocka_unit_test(gradients_of_figures_are_those_of_the_reference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
