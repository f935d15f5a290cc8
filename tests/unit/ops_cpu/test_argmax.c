/* ArgMax against the reference device, with ties and numbers that are none.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "kernels/own_kernel.h"

static void check(const struct ls_shape *shape, int axis, int64_t k, bool values, bool ties)
{
    struct own *own = own_new(&ls_kernel_argmax);
    own->op.attr.argmax = (struct ls_argmax_attr){.axis = axis, .top_k = k, .values = values};
    const struct ls_value *x = own_in(own, shape, 9, 1);
    float *numbers = own->plain[x->index];
    for (int64_t i = 0; ties && i < ls_shape_size(shape); i++)
        numbers[i] = i % 13 == 5 ? NAN : i % 7 == 2 ? -0.0F : truncf(3 * numbers[i]);
    struct ls_shape top = *shape;
    if (axis >= 0)
        top.dim[axis] = k;
    else
        top = (struct ls_shape){3, {shape->dim[0], values ? 2 : 1, k}};
    own_out(own, &top);
    own_run(own, &ls_layout_plain);
    own_same_as_reference(own);
    own_free(own);
}

static void all_axes_and_counts_give_what_the_reference_gives(void **state)
{
    (void)state;
    const struct ls_shape shape = {4, {2, 11, 3, 4}};
    for (int code = 0; code < 4; code++) {
        bool values = (code & 1) != 0, ties = (code & 2) != 0;
        const int64_t counts[] = {1, 2, 5, 11, 60, 132};
        for (int c = 0; c < 6; c++)
            check(&shape, -1, counts[c], values, ties);
        for (int axis = 0; axis < 4; axis++)
            for (int64_t k = 1; k <= shape.dim[axis]; k++)
                check(&shape, axis, k, values, ties);
    }
}

/* The three largest of five numbers. */
static void check_order(const float numbers[5], const float wanted[3])
{
    const struct ls_shape shape = {2, {1, 5}}, top = {3, {1, 1, 3}};
    struct own *own = own_new(&ls_kernel_argmax);
    own->op.attr.argmax = (struct ls_argmax_attr){.axis = -1, .top_k = 3};
    const struct ls_value *x = own_in(own, &shape, 1, 1);
    memcpy(own->plain[x->index], numbers, 5 * sizeof *numbers);
    const struct ls_value *y = own_out(own, &top);
    own_run(own, &ls_layout_plain);
    assert_memory_equal(own_plain(own, y), wanted, 3 * sizeof *wanted);
    own_free(own);
}

static void of_equal_numbers_the_later_one_comes_first(void **state)
{
    (void)state;
    check_order((const float[]){4, 7, 4, 7, 1}, (const float[]){3, 1, 2});
    check_order((const float[]){0, -0.0F, -1, 0, -2}, (const float[]){3, 1, 0});
}

static void a_number_that_is_none_comes_before_all_others(void **state)
{
    (void)state;
    check_order((const float[]){4, NAN, INFINITY, 7, NAN}, (const float[]){4, 1, 2});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_axes_and_counts_give_what_the_reference_gives),
        cmocka_unit_test(of_equal_numbers_the_later_one_comes_first),
        cmocka_unit_test(a_number_that_is_none_comes_before_all_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
