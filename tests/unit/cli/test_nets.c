/* The commands that look at nets, and random data in place of a definition's, on a fake library.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "program.h"

static void test_shapes(void **state)
{
    (void)state;
    assert_int_equal(RUN("shapes", "--model", "n.prototxt"), 0);
    assert_non_null(strstr(fake.calls, "net(n.prototxt|-|0|-)"));
    assert_non_null(strstr(out, "Net \"a <net> & more\", TEST, batch 10\n"));
    assert_non_null(strstr(out, " 10 x 3 x 8 x 8\n"));
    assert_non_null(strstr(out, " label                    10\n"));
    assert_non_null(strstr(out, "weight 20 x 3 x 5 x 5, bias 20\n"));
    assert_non_null(strstr(out, " a figure\n"));
    assert_non_null(strstr(out, "\n1520 parameters; 0.024 million multiply-adds"));
    assert_int_equal(RUN("shapes", "--model", "n", "--phase", "TRAIN", "--level", "3", "--stage",
                         "deep", "--input", "data=1,3,4,4", "--json"),
                     0);
    assert_non_null(strstr(fake.calls, "dummy(0|data=1,3,4,4) net(n|TRAIN|3|deep)"));
    assert_non_null(strstr(messages, "lockstep: note: layer 'data': random data\n"));
    assert_non_null(strstr(out, "\"bottoms\": [\"conv1\", \"label\"]"));
    assert_non_null(strstr(out, "{\"name\": \"weight\", \"shape\": [20, 3, 5, 5]}"));
    assert_int_equal(RUN("shapes"), LOCKSTEP_USAGE);
    fake.load_status = LOCKSTEP_DEFINITION;
    fake.message = "n:1:2: wrong";
    assert_int_equal(RUN("shapes", "--model", "n"), LOCKSTEP_DEFINITION);
    assert_string_equal(messages, "lockstep: n:1:2: wrong\n");
}

static void test_time_of_a_net(void **state)
{
    (void)state;
    assert_int_equal(
        RUN("time", "--model", "n", "--level", "2", "--stage", "deep", "--input", "data=1,3,4,4"),
        0);
    assert_non_null(strstr(fake.calls, "net solver(n|2|deep) dummy(0|data=1,3,4,4) "));
    assert_int_equal(RUN("time"), LOCKSTEP_USAGE);
    assert_int_equal(RUN("time", "--model", "n", "--solver", "s"), LOCKSTEP_USAGE);
    assert_int_equal(RUN("time", "--model", "n", "--set", "base_lr=1"), LOCKSTEP_USAGE);
    assert_int_equal(RUN("time", "--solver", "s", "--stage", "deep"), LOCKSTEP_USAGE);
}

/* Only where that is said; notes go to stderr. */
static void test_dummy_data(void **state)
{
    (void)state;
    assert_int_equal(RUN("train", "--solver", "s"), 0);
    assert_null(strstr(fake.calls, "dummy"));
    assert_int_equal(RUN("train", "--solver", "s", "--dummy-data"), 0);
    assert_non_null(strstr(fake.calls, "load(s) dummy(1) "));
    assert_non_null(strstr(messages, "lockstep: note: layer 'data': random data\n"));
    fake_reset();
    assert_int_equal(RUN("verify", "--solver", "s", "--input", "a=1,2", "--input", "b=1"), 0);
    assert_non_null(strstr(fake.calls, "load(s) dummy(0|a=1,2|b=1) "));
    fake_reset();
    assert_int_equal(RUN("time", "--solver", "s", "--dummy-data"), 0);
    assert_non_null(strstr(fake.calls, "load(s) dummy(1) "));
    fake_reset();
    assert_int_equal(RUN("plan", "--solver", "s", "--input", "a=1"), 0);
    assert_non_null(strstr(fake.calls, "load(s) dummy(0|a=1) "));
    fake_reset();
    assert_int_equal(RUN("plan", "--model", "n", "--input", "a=1"), 0);
    assert_non_null(strstr(fake.calls, "dummy(0|a=1) plan(n|"));
    fake_reset();
    assert_int_equal(RUN("plan", "--solver", "s", "--input", "a=1", "--ranks", "2"), 0);
    assert_non_null(strstr(fake.calls, "load(s) dummy(0|a=1) "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_shapes, reset),
        cmocka_unit_test_setup(test_time_of_a_net, reset),
        cmocka_unit_test_setup(test_dummy_data, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
