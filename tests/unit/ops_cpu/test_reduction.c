/* Reductions against sums in double, and their gradients against differences.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/own_kernel.h"

#include "support/gradient.h"

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

static double reference(enum ls_reduction method, const double *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += method == LS_REDUCE_ASUM    ? fabs(x[i])
               : method == LS_REDUCE_SUMSQ ? x[i] * x[i]
                                           : x[i];
    return (double)coeff * (method == LS_REDUCE_MEAN ? sum / (double)n : sum);
}

static struct own *new_reduction(const struct ls_kernel *kernel, enum ls_reduction method, int axis)
{
    struct own *own = own_new(kernel);
    own->op.attr.reduction = (struct ls_reduction_attr){
        .axis = axis, .method = method, .coeff = coeff, .normalizer = -1};
    return own;
}

static void test_forward(void **state)
{
    (void)state;
    for (int c = 0; c < CASES; c++)
        for (int m = 0; m < METHODS; m++) {
            struct own *own = new_reduction(&ls_kernel_reduce, methods[m], cases[c].axis);
            struct ls_shape top = cases[c].x;
            top.rank = cases[c].axis;
            struct ls_value *x = own_in(own, &cases[c].x, 5, 2), *y = own_out(own, &top);
            int64_t runs = ls_shape_size(&top), run = ls_shape_size(&cases[c].x) / runs;
            double *values = own_doubles(own_plain(own, x), runs * run);
            double *expected = malloc((size_t)runs * sizeof *expected);
            assert_non_null(expected);
            for (int64_t i = 0; i < runs; i++)
                expected[i] = reference(methods[m], values + i * run, run);
            own_run(own, &ls_layout_blocked16); /* refused: plain */
            own_near(own, y, expected, 1e-7);
            free(values);
            free(expected);
            own_free(own);
        }
}

/* ---- Gradients ------------------------------------------------------------------------------- */

struct function {
    enum ls_reduction method;
    int64_t runs, run;
    const double *dy; /* NULL: one figure of all, times `scale` */
    double scale;
};

static double value_of(const double *x, void *data)
{
    const struct function *f = data;
    double sum = 0;
    for (int64_t i = 0; i < f->runs; i++)
        sum += (f->dy != NULL ? f->dy[i] : f->scale) * reference(f->method, x + i * f->run, f->run);
    return sum;
}

/* Away from 0, where |x| has no slope. */
static void push_away(struct own *own, const struct ls_value *x)
{
    for (int64_t i = 0; i < ls_shape_size(&x->shape); i++) {
        float *at = &own->plain[x->index][i];
        *at += *at < 0 ? -0.25F : 0.25F;
    }
}

static void check_slopes(struct own *own, const struct ls_value *x, const struct ls_value *dx,
                         struct function *function)
{
    int64_t n = ls_shape_size(&x->shape);
    double *values = own_doubles(own_plain(own, x), n);
    double *gradient = own_doubles(own_plain(own, dx), n);
    check_gradient(value_of, function, values, (size_t)n, gradient, 1e-5, "reduction");
    free(values);
    free(gradient);
}

static bool reads_x(enum ls_reduction method)
{
    return method == LS_REDUCE_ASUM || method == LS_REDUCE_SUMSQ;
}

static void test_backward(void **state)
{
    (void)state;
    const struct ls_shape shape = {4, {2, 3, 4, 5}};
    for (int axis = 1; axis < 4; axis++)
        for (int m = 0; m < METHODS; m++) {
            struct own *own = new_reduction(&ls_kernel_reduce_backward, methods[m], axis);
            struct ls_shape top = shape;
            top.rank = axis;
            const struct ls_value *dy = own_in(own, &top, 8, 1);
            struct ls_value *x = own_in(own, &shape, 6, 2);
            push_away(own, x);
            own->op.inputs = reads_x(methods[m]) ? 2 : 1;
            struct ls_value *dx = own_out(own, &shape);
            x->layout = &ls_layout_plain;
            own_run(own, &ls_layout_plain);
            double *weights = own_doubles(own_plain(own, dy), ls_shape_size(&top));
            struct function function = {.method = methods[m],
                                        .runs = ls_shape_size(&top),
                                        .run = 120 / ls_shape_size(&top),
                                        .dy = weights};
            check_slopes(own, x, dx, &function);
            free(weights);
            own_free(own);
        }
}

/* |x| is given the slope 0 where x is 0, as Caffe has it. */
static void test_sign_of_zero(void **state)
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

static void test_figure(void **state)
{
    (void)state;
    const struct ls_shape shape = {3, {4, 5, 6}};
    for (int m = 0; m < METHODS; m++) {
        struct own *own = new_reduction(&ls_kernel_reduce_loss, methods[m], 0);
        own->op.attr.reduction.metric_offset = 3;
        const struct ls_value *x = own_in(own, &shape, 5, 2);
        double *values = own_doubles(own_plain(own, x), 120);
        double expected = reference(methods[m], values, 120);
        own_run(own, &ls_layout_plain);
        double got = own->partials[3];
        if (methods[m] == LS_REDUCE_MEAN)
            got /= own->partials[4];
        assert_true(fabs(got - expected) < 1e-12 * (1 + fabs(expected)));
        assert_true(own->partials[4] == 120);
        free(values);
        own_free(own);
    }
}

/* MEAN is divided by the count of the update, which is larger than that of the micro-batch. */
static void test_figure_backward(void **state)
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
        struct ls_value *x = own_in(own, &shape, 5, 2);
        push_away(own, x);
        own->op.inputs = reads_x(methods[m]) ? 1 : 0;
        struct ls_value *dx = own_out(own, &shape);
        x->layout = &ls_layout_plain;
        own_run(own, &ls_layout_plain);
        struct function function = {
            .method = methods[m], .runs = 1, .run = 60, .scale = 1.5 * (mean ? 60.0 / 300 : 1)};
        check_slopes(own, x, dx, &function);
        own_free(own);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forward),         cmocka_unit_test(test_backward),
        cmocka_unit_test(test_sign_of_zero),    cmocka_unit_test(test_figure),
        cmocka_unit_test(test_figure_backward),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
