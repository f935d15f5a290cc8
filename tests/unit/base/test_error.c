/* Collecting and printing problems. SPDX-License-Identifier: BSD-2-Clause */
#include "base/error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "support/support.h"

static struct ls_error error;

static int setup(void **state)
{
    (void)state;
    ls_error_clear(&error);
    return 0;
}

static void first_problem_gives_the_status(void **state)
{
    (void)state;
    char text[256];
    assert_int_equal(ls_error_format(&error, text, sizeof text), 0);
    assert_string_equal(text, "");
    assert_int_equal(ls_fail(&error, LOCKSTEP_DEFINITION, "net.prototxt:3:5", "say 'kernel_size'",
                             "unknown field '%s'", "kernal_size"),
                     LOCKSTEP_DEFINITION);
    assert_int_equal(ls_fail(&error, LOCKSTEP_DATA, NULL, NULL, "no data"), LOCKSTEP_DATA);
    assert_int_equal(error.status, LOCKSTEP_DEFINITION);
    assert_int_equal(error.count, 2);
    const char *expected = "net.prototxt:3:5: unknown field 'kernal_size'. hint: say 'kernel_size'"
                           "\nno data";
    assert_int_equal(ls_error_format(&error, text, sizeof text), strlen(expected));
    assert_string_equal(text, expected);
}

static void an_error_may_be_left_out(void **state)
{
    (void)state;
    ls_error_clear(NULL);
    assert_int_equal(ls_fail(NULL, LOCKSTEP_USAGE, "here", NULL, "%d", 1), LOCKSTEP_USAGE);
    assert_int_equal(ls_fail_memory(NULL, "a net"), LOCKSTEP_RESOURCE);
}

static void further_problems_are_counted(void **state)
{
    (void)state;
    for (int i = 0; i < LS_PROBLEMS_MAX + 5; i++)
        ls_fail(&error, LOCKSTEP_DATA, NULL, NULL, "problem %d", i);
    assert_int_equal(error.count, LS_PROBLEMS_MAX);
    assert_int_equal(error.dropped, 5);
    static char text[LS_PROBLEMS_MAX * 64];
    ls_error_format(&error, text, sizeof text);
    assert_non_null(strstr(text, "problem 23\n(and 5 more)"));
    assert_null(strstr(text, "problem 24"));
}

static void a_cleared_error_is_as_new(void **state)
{
    (void)state;
    char text[64];
    for (int i = 0; i < LS_PROBLEMS_MAX + 5; i++)
        ls_fail(&error, LOCKSTEP_DATA, "here", "do it", "problem %d", i);
    ls_error_clear(&error);
    assert_int_equal(error.status, 0);
    assert_int_equal(error.count, 0);
    assert_int_equal(error.dropped, 0);
    assert_string_equal(error.problems[0].message, "");
    assert_string_equal(error.problems[0].place, "");
    assert_string_equal(error.problems[0].hint, "");
    assert_int_equal(ls_error_format(&error, text, sizeof text), 0);
    ls_fail(&error, LOCKSTEP_USAGE, "here", NULL, "problem 1"); /* not one that was said before */
    ls_error_format(&error, text, sizeof text);
    assert_string_equal(text, "here: problem 1");
    assert_int_equal(error.status, LOCKSTEP_USAGE);
}

static void long_texts_end_in_dots(void **state)
{
    (void)state;
    static char longer[2000];
    memset(longer, 'x', sizeof longer - 1);
    /* A two-byte character across the point where the message is cut. */
    for (size_t i = 700; i + 1 < sizeof longer - 1; i += 2)
        memcpy(longer + i, "\xc3\xa4", 2);
    ls_fail(&error, LOCKSTEP_DATA, longer, longer, "%s", longer);
    const struct ls_problem *problem = &error.problems[0];
    size_t length = strlen(problem->message);
    assert_true(length < sizeof problem->message && length > sizeof problem->message - 8);
    assert_string_equal(problem->message + length - 3, "...");
    assert_int_not_equal((unsigned char)problem->message[length - 4], 0xc3);
    assert_string_equal(problem->place + strlen(problem->place) - 3, "...");
}

static void control_characters_cannot_forge_lines(void **state)
{
    (void)state;
    ls_fail(&error, LOCKSTEP_DATA, "a\nb", NULL, "layer '%s'", "x\033[2J\ny\x7f");
    char text[128];
    ls_error_format(&error, text, sizeof text);
    assert_string_equal(text, "a?b: layer 'x?[2J?y?'");
}

static void errno_is_explained(void **state)
{
    (void)state;
    errno = ENOENT;
    assert_int_equal(ls_fail_errno(&error, LOCKSTEP_DATA, "f", "cannot open"), LOCKSTEP_DATA);
    assert_string_equal(error.problems[0].message, "cannot open: No such file or directory");
    assert_int_equal(ls_fail_memory(&error, "a plan"), LOCKSTEP_RESOURCE);
    assert_string_equal(error.problems[1].message, "out of memory for a plan");
}

static void small_buffers_hold_the_beginning(void **state)
{
    (void)state;
    ls_fail(&error, LOCKSTEP_DATA, "place", "hint", "message");
    const char *whole = "place: message. hint: hint";
    for (size_t size = 0; size <= strlen(whole) + 2; size++) {
        char *text = malloc(size + 1); /* an overrun is seen by AddressSanitizer, or just below */
        assert_non_null(text);
        text[size] = '#';
        assert_int_equal(ls_error_format(&error, text, size), strlen(whole));
        assert_int_equal(text[size], '#');
        if (size > 0) {
            size_t kept = size - 1 < strlen(whole) ? size - 1 : strlen(whole);
            assert_int_equal(strlen(text), kept);
            assert_memory_equal(text, whole, kept);
        }
        free(text);
    }
}

static void problems_of_another_error_are_appended(void **state)
{
    (void)state;
    struct ls_error *more = calloc(1, sizeof *more);
    char text[256];
    ls_fail(&error, LOCKSTEP_USAGE, NULL, NULL, "first");
    ls_fail(more, LOCKSTEP_DATA, "file", "mend it", "100%% of %s", "it");
    ls_fail(more, LOCKSTEP_DATA, "file", NULL, "third");
    ls_error_add(&error, more);
    ls_error_add(NULL, more);
    ls_error_format(&error, text, sizeof text);
    assert_string_equal(text, "first\nfile: 100% of it. hint: mend it\nfile: third");
    assert_int_equal(error.status, LOCKSTEP_USAGE);
    free(more);
}

/* A problem without a place, which its finder does not know; nothing of it is left as it was. */
static void a_problem_is_set_without_a_place(void **state)
{
    (void)state;
    struct ls_problem problem;
    memset(&problem, '#', sizeof problem);
    assert_int_equal(ls_problem_set(&problem, LOCKSTEP_DATA, "mend it", "%d\n %s", 7, "bytes"),
                     LOCKSTEP_DATA);
    assert_int_equal(problem.status, LOCKSTEP_DATA);
    assert_string_equal(problem.place, "");
    assert_string_equal(problem.message, "7? bytes");
    assert_string_equal(problem.hint, "mend it");
    assert_int_equal(ls_problem_set(&problem, LOCKSTEP_RESOURCE, NULL, "%900s", "x"),
                     LOCKSTEP_RESOURCE);
    assert_string_equal(problem.message + strlen(problem.message) - 3, "...");
    assert_string_equal(problem.hint, "");
    assert_int_equal(ls_problem_set(NULL, LOCKSTEP_DATA, NULL, "not wanted"), LOCKSTEP_DATA);
}

static void what_copies_of_a_block_have_in_common_is_said_once(void **state)
{
    (void)state;
    for (int i = 9; i < 12; i++)
        ls_fail(&error, LOCKSTEP_DEFINITION, "net:3:1", NULL,
                "h.%d.a (copy %d of block 'h'): no '%d.x' for 'h.%d.x'", i, i, 7, i);
    assert_int_equal(error.count, 1);
    ls_fail(&error, LOCKSTEP_DEFINITION, "net:3:1", NULL,
            "h.9.a (copy 9 of block 'h'): no '7.x' for 'h.9.y'");
    ls_fail(&error, LOCKSTEP_DEFINITION, "net:3:1", NULL, "a: 3 bottoms");
    ls_fail(&error, LOCKSTEP_DEFINITION, "net:3:1", NULL, "a: 4 bottoms");
    ls_fail(&error, LOCKSTEP_DEFINITION, "net:3:1", NULL, "a: 0.5");
    ls_fail(&error, LOCKSTEP_DEFINITION, "net:3:1", NULL, "a: 0.25");
    ls_fail(&error, LOCKSTEP_DEFINITION, "net:4:1", NULL,
            "h.9.a (copy 9 of block 'h'): no '7.x' for 'h.9.y'");
    assert_int_equal(error.count, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(first_problem_gives_the_status, setup),
        cmocka_unit_test_setup(an_error_may_be_left_out, setup),
        cmocka_unit_test_setup(further_problems_are_counted, setup),
        cmocka_unit_test_setup(a_cleared_error_is_as_new, setup),
        cmocka_unit_test_setup(long_texts_end_in_dots, setup),
        cmocka_unit_test_setup(control_characters_cannot_forge_lines, setup),
        cmocka_unit_test_setup(errno_is_explained, setup),
        cmocka_unit_test_setup(problems_of_another_error_are_appended, setup),
        cmocka_unit_test_setup(a_problem_is_set_without_a_place, setup),
        cmocka_unit_test_setup(what_copies_of_a_block_have_in_common_is_said_once, setup),
        cmocka_unit_test_setup(small_buffers_hold_the_beginning, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
