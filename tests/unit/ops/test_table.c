/* The table of devices. SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <string.h>

#include <cmocka.h>
#include "ops/devices.h"

static void every_device_is_complete(void **state)
{
    (void)state;
    for (int i = 0; i < ls_device_count; i++) {
        const struct ls_device *found = NULL;
        assert_int_equal(ls_device_find(ls_devices[i]->name, &found, NULL), 0);
        assert_ptr_equal(found, ls_devices[i]);
    }
    assert_ptr_equal(ls_devices[0], ls_device_default());
}

static void what_a_device_lacks_is_named(void **state)
{
    (void)state;
    static const struct ls_device_environment environment;
    struct ls_error error = {0};
    struct ls_device device = *ls_device_default();
    device.merge = NULL;
    device.streams = NULL;
    device.environment = &environment;
    assert_int_equal(ls_device_check(&device, &error), LOCKSTEP_USAGE);
    assert_non_null(strstr(error.problems[0].message,
                           "has no streams, merge, environment.isa, environment.widest_isa, "
                           "environment.describe"));
}

static void optional_members_may_be_absent(void **state)
{
    (void)state;
    struct ls_device device = *ls_device_default();
    device.enter_thread = NULL;
    device.take_thread = NULL;
    device.give_thread_back = NULL;
    device.select_isa = NULL;
    device.describe = NULL;
    assert_int_equal(ls_device_check(&device, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_device_is_complete),
        cmocka_unit_test(what_a_device_lacks_is_named),
        cmocka_unit_test(optional_members_may_be_absent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
