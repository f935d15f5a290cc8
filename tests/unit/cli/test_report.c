/* Pages of logs, on a fake library.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "program.h"

static void test_report(void **state)
{
    (void)state;
    assert_int_equal(RUN("report", "a.json", "b.json", "-o", "page.html"), 0);
    assert_non_null(strstr(fake.calls, "log(a.json) log(b.json) page(page.html|2|-|a.json|-)"));
    const char *model = ls_test_path("net.prototxt");
    ls_test_write_text(model, "name: \"n\"");
    assert_int_equal(
        RUN("report", "a.json", "-o", "p", "--name", "first", "--title", "T", "--model", model), 0);
    assert_non_null(strstr(fake.calls, "page(p|1|T|first|net)"));
}

static void test_report_errors(void **state)
{
    (void)state;
    assert_int_equal(RUN("report", "a.json"), LOCKSTEP_USAGE);
    assert_non_null(strstr(messages, "-o FILE is missing"));
    assert_int_equal(RUN("report", "-o", "p"), LOCKSTEP_USAGE);
    assert_int_equal(RUN("report", "a", "-o", "p", "--name", "1", "--name", "2"), LOCKSTEP_USAGE);
    assert_int_equal(RUN("report", "1", "2", "3", "4", "5", "6", "7", "8", "9", "-o", "p"),
                     LOCKSTEP_USAGE);
    assert_int_equal(RUN("report", "bad.json", "-o", "p"), LOCKSTEP_DATA);
    assert_null(strstr(fake.calls, "page"));
    assert_int_equal(RUN("report", "a", "-o", "p", "--model", "/no/such/file"), LOCKSTEP_USAGE);
    fake.convert_status = LOCKSTEP_RESOURCE;
    assert_int_equal(RUN("report", "a.json", "-o", "p"), LOCKSTEP_RESOURCE);
}

/* The page never takes the place of what it is made of. */
static void test_report_keeps_inputs(void **state)
{
    (void)state;
    const char *log = ls_test_path("log.json");
    ls_test_write_text(log, "{}");
    assert_int_equal(RUN("report", log, "-o", log), LOCKSTEP_USAGE);
    assert_int_equal(RUN("report", "a", "-o", log, "--model", log), LOCKSTEP_USAGE);
    assert_string_equal(fake.calls, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_report), TEST(test_report_errors),
                                       TEST(test_report_keeps_inputs)};
    return cmocka_run_group_tests(tests, NULL, free_texts);
}
