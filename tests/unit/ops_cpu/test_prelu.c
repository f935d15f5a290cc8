/* PReLU, its gradient and that of its slope, against a plain reference in double, itself checked by
 * finite differences; in every layout, the same bits on every instruction set.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/own_kernel.h"

#include "support/gradient.h"

static const struct ls_shape shapes[] = {
    {4, {2, 3, 5, 7}},     {4, {3, 20, 3, 9}}, {2, {5, 50}},        {2, {1, 1}},
    {5, {1, 20, 2, 3, 4}}, {3, {2, 17, 1}},    {4, {2, 8, 13, 11}}, {4, {2, 32, 4, 4}},
};
enum { SHAPES = sizeof shapes / sizeof *shapes, ELEMENTS_MAX = 3000 };

static double expected[ELEMENTS_MAX], slope_sum[64];

static int64_t channel_of(const struct ls_shape *shape, int64_t i)
{
    return i / ls_shape_count(shape, 2, shape->rank) % shape->dim[1];
}

static double reference(double x, double slope)
{
    return fmax(x, 0) + slope * fmin(x, 0);
}

static struct ls_value *put_slope(struct own *own, const struct ls_shape *x, bool shared)
{
    const struct ls_shape shape = {.rank = shared ? 0 : 1, .dim = {x->dim[1]}};
    return own_in(own, &shape, 5, 0.7F);
}

static void check_forward(const struct ls_shape *shape, const struct ls_layout *layout, bool shared)
{
    struct own *own = own_new(&ls_kernel_prelu);
    struct ls_value *x = own_in(own, shape, 1, 2), *slope = put_slope(own, shape, shared);
    struct ls_value *y = own_out(own, shape);
    own_run(own, layout);
    assert_ptr_equal(y->layout, layout);
    assert_ptr_equal(slope->layout, &ls_layout_plain);
    for (int64_t i = 0; i < ls_shape_size(shape); i++)
        expected[i] = reference((double)own_plain(own, x)[i],
                                (double)own_plain(own, slope)[shared ? 0 : channel_of(shape, i)]);
    own_near(own, y, expected, 1e-7);
    own_free(own);
}

static void check_data(const struct ls_shape *shape, const struct ls_layout *layout, bool shared)
{
    struct own *own = own_new(&ls_kernel_prelu_data);
    struct ls_value *dy = own_in(own, shape, 2, 1), *x = own_in(own, shape, 1, 2);
    struct ls_value *slope = put_slope(own, shape, shared), *dx = own_out(own, shape);
    own->op.backward = true;
    own->plain[x->index][0] = 0; /* on the kink the slope counts, as in Caffe */
    own_run(own, layout);
    for (int64_t i = 0; i < ls_shape_size(shape); i++) {
        double s = (double)own_plain(own, slope)[shared ? 0 : channel_of(shape, i)];
        expected[i] = (double)own_plain(own, dy)[i] * (own_plain(own, x)[i] > 0 ? 1 : s);
    }
    own_near(own, dx, expected, 1e-7);
    own_free(own);
}

static void check_slope(const struct ls_shape *shape, const struct ls_layout *layout, bool shared)
{
    struct own *own = own_new(&ls_kernel_prelu_slope);
    const struct ls_shape sums = {.rank = shared ? 0 : 1, .dim = {shape->dim[1]}};
    struct ls_value *dy = own_in(own, shape, 2, 1), *x = own_in(own, shape, 1, 2);
    struct ls_value *slope = own_out(own, &sums);
    own->op.backward = true;
    own_run(own, layout);
    memset(slope_sum, 0, sizeof slope_sum);
    for (int64_t i = 0; i < ls_shape_size(shape); i++)
        slope_sum[shared ? 0 : channel_of(shape, i)] +=
            (double)own_plain(own, dy)[i] * fmin((double)own_plain(own, x)[i], 0);
    own_near(own, slope, slope_sum, 1e-7);
    own_free(own);
}

static void test_prelu(void **state)
{
    (void)state;
    for (int s = 0; s < SHAPES; s++)
        for (int l = 0; l < OWN_LAYOUTS; l++)
            for (int shared = 0; shared < 2; shared++) {
                check_forward(&shapes[s], own_layouts[l], shared == 1);
                check_data(&shapes[s], own_layouts[l], shared == 1);
                check_slope(&shapes[s], own_layouts[l], shared == 1);
            }
}

/* A sum of dy f(x, slope): by x, then by slope. */
struct sum {
    const double *x, *dy;
    double slope;
};

static double by_x(const double *x, void *data)
{
    const struct sum *sum = data;
    double total = 0;
    for (int i = 0; i < 20; i++)
        total += sum->dy[i] * reference(x[i], sum->slope);
    return total;
}

static double by_slope(const double *slope, void *data)
{
    struct sum at = *(const struct sum *)data;
    at.slope = slope[0];
    return by_x(at.x, &at);
}

static void test_reference(void **state)
{
    (void)state;
    double x[20], dy[20], dx[20], slope = 0.3, dslope = 0;
    for (uint64_t i = 0; i < 20; i++) {
        x[i] = (double)own_random(7, i);
        dy[i] = (double)own_random(8, i);
        dx[i] = dy[i] * (x[i] > 0 ? 1 : slope);
        dslope += dy[i] * fmin(x[i], 0);
    }
    struct sum sum = {x, dy, slope};
    check_gradient(by_x, &sum, x, 20, dx, 1e-7, "x");
    check_gradient(by_slope, &sum, &slope, 1, &dslope, 1e-7, "slope");
}

/* A NaN stays one, and reaches the gradient of the slope. */
static void test_not_finite(void **state)
{
    (void)state;
    const struct ls_shape shape = {2, {3, 5}}, sums = {1, {5}};
    struct own *own = own_new(&ls_kernel_prelu);
    struct ls_value *x = own_in(own, &shape, 1, 1);
    put_slope(own, &shape, false);
    struct ls_value *y = own_out(own, &shape);
    own->plain[x->index][7] = NAN;
    own_run(own, &ls_layout_plain);
    for (int i = 0; i < 15; i++)
        assert_int_equal(isnan(own_plain(own, y)[i]) != 0, i == 7);
    own_free(own);
    own = own_new(&ls_kernel_prelu_slope);
    own_in(own, &shape, 2, 1);
    x = own_in(own, &shape, 1, 1);
    struct ls_value *slope = own_out(own, &sums);
    own->plain[x->index][7] = NAN;
    own_run(own, &ls_layout_plain);
    for (int c = 0; c < 5; c++)
        assert_int_equal(isnan(own_plain(own, slope)[c]) != 0, c == 2);
    own_free(own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference),
        cmocka_unit_test(test_prelu),
        cmocka_unit_test(test_not_finite),
    };
    ls_set_float_mode();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
