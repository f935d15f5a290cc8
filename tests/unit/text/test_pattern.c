/* Matches of regular expressions in long texts: those that a look at the whole text finds, and an
 * end where all of them together would take time without measure.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "support/support.h"
#include "text/pattern.h"

static struct ls_pattern *compile(const char *text)
{
    struct ls_pattern *pattern;
    struct ls_problem problem = {0};
    if (ls_pattern_compile(text, LS_PATTERN_PCRE, &pattern, &problem) != 0)
        fail_msg("%s: %s", text, problem.message);
    return pattern;
}

static void add(struct ls_text *text, const char *what, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ls_text_add(text, what);
}

/* What is found in `before` times "-" and `inside` times `unit`, with `behind` at the end. */
static void check(const char *expression, const char *unit, const char *behind, size_t before,
                  size_t inside, size_t left_out)
{
    struct ls_text text = {0};
    struct ls_pattern *pattern = compile(expression);
    struct ls_matcher *matcher = ls_matcher_new();
    size_t begin = 0, end = 0;
    add(&text, "-", before);
    add(&text, unit, inside);
    ls_text_add(&text, behind);
    assert_non_null(matcher);
    assert_int_equal(
        ls_pattern_find(pattern, matcher, text.data, text.length, 0, false, &begin, &end),
        LS_FOUND);
    if (begin != before || end != before + inside * strlen(unit) - left_out)
        fail_msg("%s: %zu to %zu, of %zu and %zu", expression, begin, end, before, inside);
    assert_int_equal(
        ls_pattern_find(pattern, matcher, text.data, text.length, before, true, &begin, &end),
        LS_FOUND);
    assert_int_equal(end, before + inside * strlen(unit) - left_out);
    if (before > 0)
        assert_int_equal(
            ls_pattern_find(pattern, matcher, text.data, text.length, 0, true, &begin, &end),
            LS_FOUND_NONE);
    ls_matcher_free(matcher);
    ls_pattern_free(pattern);
    ls_text_free(&text);
}

static void matches_are_those_of_the_whole_text(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 2, 255, 256, 511, 512, 513, 2047, 2048, 2049, 8192, 30000};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    for (int i = 0; i < SIZES; i++)
        for (int k = -1; k < SIZES; k++) {
            const size_t before = k < 0 ? 0 : sizes[k], inside = sizes[i];
            check("a+", "a", "-", before, inside, 0);
            check("a+", "a", "", before, inside, 0);
            check("\\p{L}+", "\xc3\xa9", "-", before, inside, 0);
            check("\\p{L}+", "\xe2\x84\xa4", "", before, inside, 0);
            check("a+$", "a", "", before, inside, 0);
            check("a+\\b", "a", "-", before, inside, 0);
            check("a+(?!b)", "a", "-b", before, inside, 0);
            check("(?<!a)a+(?=b)", "a", "b", before, inside, 0);
            if (inside > 1)
                check("a+(?!b)", "a", "b", before, inside, 1);
        }
}

/* Each match looks at all that is left: the text as a whole is what ends. */
static void matches_together_are_bounded(void **state)
{
    (void)state;
    enum { LENGTH = 400000 };
    char *text = malloc(LENGTH);
    struct ls_pattern *pattern = compile("a*b|a"), *simple = compile("a");
    struct ls_matcher *matcher = ls_matcher_new();
    enum ls_found found = LS_FOUND;
    size_t at = 0, begin, end;
    assert_non_null(text);
    assert_non_null(matcher);
    memset(text, 'a', LENGTH);
    ls_matcher_begin(matcher, LENGTH);
    while (found == LS_FOUND && at < LENGTH) {
        found = ls_pattern_find(pattern, matcher, text, LENGTH, at, false, &begin, &end);
        assert_true(found != LS_FOUND || (begin == at && end == at + 1));
        at++;
    }
    assert_int_equal(found, LS_FOUND_LIMIT);
    assert_in_range(at, 10, 1000);
    assert_int_equal(ls_pattern_find(simple, matcher, text, LENGTH, at, false, &begin, &end),
                     LS_FOUND);
    ls_matcher_begin(matcher, LENGTH);
    assert_int_equal(ls_pattern_find(pattern, matcher, text, LENGTH, at, false, &begin, &end),
                     LS_FOUND);
    /* A text of many matches that each look at what they take is no such one. */
    ls_matcher_begin(matcher, LENGTH);
    for (at = 0; at < LENGTH; at = end)
        assert_int_equal(ls_pattern_find(simple, matcher, text, LENGTH, at, false, &begin, &end),
                         LS_FOUND);
    ls_matcher_free(matcher);
    ls_pattern_free(pattern);
    ls_pattern_free(simple);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matches_are_those_of_the_whole_text),
        cmocka_unit_test(matches_together_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
