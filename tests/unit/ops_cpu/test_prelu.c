/* PReLU, its gradient and that of its slope, against the reference device; in every layout, the
 * same bits on every instruction set. SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/own_kernel.h"

static const struct ls_shape shapes[] = {
    {4, {2, 3, 5, 7}},     {4, {3, 20, 3, 9}}, {2, {5, 50}},        {2, {1, 1}},
    {5, {1, 20, 2, 3, 4}}, {3, {2, 17, 1}},    {4, {2, 8, 13, 11}}, {4, {2, 32, 4, 4}},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static struct ls_value *put_slope(struct own *own, const struct ls_shape *x, bool shared)
{
    const struct ls_shape shape = {.rank = shared ? 0 : 1, .dim = {x->dim[1]}};
    return own_in(own, &shape, 5, 0.7F);
}

/* An op over x, with a slope that channels share or not: by its inputs in their order. */
static void check(const struct ls_kernel *kernel, const struct ls_shape *shape,
                  const struct ls_layout *layout, bool shared)
{
    struct own *own = own_new(kernel);
    const struct ls_shape sums = {.rank = shared ? 0 : 1, .dim = {shape->dim[1]}};
    own->op.backward = kernel != &ls_kernel_prelu;
    if (own->op.backward)
        own_in(own, shape, 2, 1);
    struct ls_value *x = own_in(own, shape, 1, 2);
    if (kernel != &ls_kernel_prelu_slope)
        put_slope(own, shape, shared);
    struct ls_value *out = own_out(own, kernel == &ls_kernel_prelu_slope ? &sums : shape);
    own->plain[x->index][0] = 0; /* on the kink the slope counts, as in Caffe */
    own_run(own, layout);
    if (kernel == &ls_kernel_prelu)
        assert_ptr_equal(out->layout, layout);
    own_near_reference(own, 1e-7);
    own_free(own);
}

static void every_op_gives_what_the_reference_gives(void **state)
{
    (void)state;
    for (int s = 0; s < SHAPES; s++)
        for (int l = 0; l < OWN_LAYOUTS; l++)
            for (int shared = 0; shared < 2; shared++) {
                check(&ls_kernel_prelu, &shapes[s], own_layouts[l], shared == 1);
                check(&ls_kernel_prelu_data, &shapes[s], own_layouts[l], shared == 1);
                check(&ls_kernel_prelu_slope, &shapes[s], own_layouts[l], shared == 1);
            }
}

/* On the kink the slope counts, as in Caffe. */
static void at_zero_the_gradient_has_the_slope(void **state)
{
    (void)state;
    const struct ls_shape shape = {2, {1, 3}};
    struct own *own = own_new(&ls_kernel_prelu_data);
    const float numbers[] = {0, -0.0F, 2};
    own->op.backward = true;
    struct ls_value *dy = own_in(own, &shape, 2, 1), *x = own_in(own, &shape, 1, 1);
    struct ls_value *slope = put_slope(own, &shape, false), *dx = own_out(own, &shape);
    memcpy(own->plain[x->index], numbers, sizeof numbers);
    own_run(own, &ls_layout_plain);
    for (int i = 0; i < 3; i++)
        assert_true(own_plain(own, dx)[i] ==
                    own_plain(own, dy)[i] * (i < 2 ? own_plain(own, slope)[i] : 1));
    own_free(own);
}

/* A NaN stays one, and reaches the gradient of the slope. */
static void a_number_that_is_none_is_not_hidden(void **state)
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
        cmocka_unit_test(every_op_gives_what_the_reference_gives),
        cmocka_unit_test(at_zero_the_gradient_has_the_slope),
        cmocka_unit_test(a_number_that_is_none_is_not_hidden),
    };
    ls_set_float_mode();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
