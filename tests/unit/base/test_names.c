/* Numbers by name: a name that was set is found, the last number counts, and other names are not
 * found.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/names.h"

enum { COUNT = 3000 };
static char text[COUNT][16];

static void names_that_were_set_are_found(void **state)
{
    (void)state;
    struct ls_names names = {0};
    size_t number = 7;
    assert_false(ls_names_find(&names, "", &number));
    for (size_t i = 0; i < COUNT; i++) {
        snprintf(text[i], sizeof text[i], "%zu", i);
        assert_false(ls_names_find(&names, text[i], &number));
        assert_true(ls_names_set(&names, text[i], i));
        assert_int_equal(names.count, i + 1);
    }
    for (size_t i = 0; i < COUNT; i += 3)
        assert_true(ls_names_set(&names, text[i], 2 * i));
    assert_int_equal(names.count, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        char same[16];
        snprintf(same, sizeof same, "%zu", i);
        assert_true(ls_names_find(&names, same, &number));
        assert_int_equal(number, i % 3 == 0 ? 2 * i : i);
    }
    assert_false(ls_names_find(&names, "x", &number));
    assert_false(ls_names_find(&names, "", &number));
    assert_true(ls_names_set(&names, "", 5));
    assert_true(ls_names_find(&names, "", &number));
    assert_int_equal(number, 5);
    ls_names_free(&names);
    assert_false(ls_names_find(&names, "1", &number));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(names_that_were_set_are_found)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
