/* Which elements of a gradient share an exponent (engine/rows.h).
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/rows.h"
#include "support/support.h"

static bool are_elements(struct ls_shape shape)
{
    return ls_rows_are_elements(&shape);
}

static size_t rows(struct ls_shape shape)
{
    const struct ls_parameter parameter = {.shape = shape};
    return ls_rows_plain(&parameter);
}

static void rows_follow_from_shapes(void **state)
{
    (void)state;
    assert_true(are_elements((struct ls_shape){1, {1 << 20}}));
    assert_true(are_elements((struct ls_shape){2, {128, 255}}));
    assert_false(are_elements((struct ls_shape){2, {128, 256}}));
    assert_false(are_elements((struct ls_shape){4, {8, 1, 3, 3}}));
    assert_int_equal(rows((struct ls_shape){2, {128, 255}}), 128 * 255);
    assert_int_equal(rows((struct ls_shape){2, {128, 256}}), 128);
    assert_int_equal(rows((struct ls_shape){4, {1, 8, 3, 3}}), 8);
}

/* Numbers of rows are stored as fp32, which is exact up to 2^24: beyond that two rows would have
 * one number, or a row a number behind the last. */
static void numbers_of_rows_are_exact(void **state)
{
    (void)state;
    const int64_t most = 1 << 24;
    assert_false(are_elements((struct ls_shape){2, {most, 2}}));
    assert_true(are_elements((struct ls_shape){2, {most + 1, 2}}));
    assert_true(are_elements((struct ls_shape){4, {1, most + 1, 1, 1}}));
    assert_int_equal(rows((struct ls_shape){2, {most + 1, 2}}), 2 * (most + 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_follow_from_shapes),
        cmocka_unit_test(numbers_of_rows_are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
