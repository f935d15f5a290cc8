/* Shapes and layouts.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include "ir/layout.h"
#include "ir/shape.h"

static void elements_are_counted(void **state)
{
    (void)state;
    const struct ls_shape shape = {4, {2, 3, 5, 7}}, scalar = {0, {0}};
    assert_int_equal(ls_shape_size(&shape), 210);
    assert_int_equal(ls_shape_count(&shape, 1, 3), 15);
    assert_int_equal(ls_shape_count(&shape, 2, 2), 1);
    assert_int_equal(ls_shape_size(&scalar), 1);
    assert_int_equal(ls_shape_axis(&shape, -1), 3);
    assert_int_equal(ls_shape_axis(&shape, 3), 3);
    assert_int_equal(ls_shape_axis(&shape, -4), 0);
    assert_int_equal(ls_shape_axis(&shape, 4), -1);
    assert_int_equal(ls_shape_axis(&shape, -5), -1);
    assert_int_equal(ls_shape_axis(&scalar, 0), -1);
}

static void shapes_are_checked(void **state)
{
    (void)state;
    const int64_t huge = INT64_C(1) << 40;
    const struct ls_shape good = {4, {2, 3, 5, 7}}, scalar = {0, {0}}, zero = {2, {0, 3}};
    const struct ls_shape negative = {2, {3, -1}}, large = {1, {huge}}, larger = {1, {huge + 1}};
    const struct ls_shape product = {3, {1 << 20, 1 << 20, 2}}, wraps = {2, {huge, huge}};
    const struct ls_shape hidden = {3, {0, huge, 2}}, deep = {LS_RANK_MAX + 1, {1}};
    assert_true(ls_shape_valid(&good, false) && ls_shape_valid(&scalar, false));
    assert_true(ls_shape_valid(&zero, true));
    assert_false(ls_shape_valid(&zero, false));
    assert_false(ls_shape_valid(&negative, true));
    assert_true(ls_shape_valid(&large, false));
    assert_false(ls_shape_valid(&larger, false));
    assert_false(ls_shape_valid(&product, false));
    assert_false(ls_shape_valid(&wraps, false));
    assert_false(ls_shape_valid(&hidden, true));
    assert_false(ls_shape_valid(&deep, true));
}

static void shapes_are_compared(void **state)
{
    (void)state;
    const struct ls_shape a = {2, {3, 4, 9}}, b = {2, {3, 4, 8}}, c = {2, {3, 5}}, d = {1, {3}};
    assert_true(ls_shape_equal(&a, &b)); /* what is behind the rank does not count */
    assert_false(ls_shape_equal(&a, &c));
    assert_false(ls_shape_equal(&a, &d));
}

static void shapes_have_a_text(void **state)
{
    (void)state;
    char text[64];
    const struct ls_shape shape = {4, {10, 3, 32, 32}}, scalar = {0, {0}};
    assert_string_equal(ls_shape_text(&shape, text, sizeof text), "10 3 32 32 (30720)");
    assert_string_equal(ls_shape_text(&scalar, text, sizeof text), "(1)");
    for (size_t size = 1; size < 18; size++) {
        memset(text, 'x', sizeof text);
        assert_true(strlen(ls_shape_text(&shape, text, size)) < size);
        assert_true(text[size] == 'x');
    }
}

static void layouts_have_names_and_sizes(void **state)
{
    (void)state;
    const struct ls_shape image = {4, {2, 20, 3, 5}}, vector = {1, {7}}, matrix = {2, {3, 50}};
    const struct ls_layout opaque = {.name = "OIhw16i16o", .block = 0, .elements = 4096};
    assert_int_equal(ls_layout_elements(&ls_layout_plain, &image), 600);
    assert_int_equal(ls_layout_elements(&ls_layout_blocked8, &image), 2 * 24 * 15);
    assert_int_equal(ls_layout_elements(&ls_layout_blocked16, &image), 2 * 32 * 15);
    assert_int_equal(ls_layout_elements(&ls_layout_blocked16, &vector), 7);
    assert_int_equal(ls_layout_elements(&ls_layout_blocked16, &matrix), 3 * 64);
    assert_int_equal(ls_layout_elements(&ls_layout_channels_last, &image),
                     ls_layout_elements(&ls_layout_plain, &image));
    assert_int_equal(ls_layout_elements(&opaque, &matrix), 4096);
    assert_string_equal(ls_layout_name(&ls_layout_plain, 5), "plain");
    assert_string_equal(ls_layout_name(&ls_layout_blocked8, 2), "nC8c");
    assert_string_equal(ls_layout_name(&ls_layout_blocked16, 3), "nCw16c");
    assert_string_equal(ls_layout_name(&ls_layout_blocked8, 4), ls_layout_blocked8.name);
    assert_string_equal(ls_layout_name(&ls_layout_blocked16, 4), ls_layout_blocked16.name);
    assert_string_equal(ls_layout_name(&ls_layout_blocked16, 5), "nCdhw16c");
    assert_string_equal(ls_layout_name(&ls_layout_blocked16, 6), "nChw16c");
    assert_string_equal(ls_layout_name(&ls_layout_channels_last, 5), "ndhwc");
    assert_string_equal(ls_layout_name(&opaque, 5), "OIhw16i16o");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_are_counted),         cmocka_unit_test(shapes_are_checked),
        cmocka_unit_test(shapes_are_compared),          cmocka_unit_test(shapes_have_a_text),
        cmocka_unit_test(layouts_have_names_and_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
