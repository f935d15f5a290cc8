/* Patterns of names, against every case that a shell knows.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/wildcard.h"

#include <string.h>
#include <time.h>

#include "support/support.h"

static void patterns(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *name;
        bool matches;
    } examples[] = {
        {"", "", true},
        {"", "a", false},
        {"*", "", true},
        {"*", "conv1.weight", true},
        {"*.bias", "conv1.bias", true},
        {"*.bias", "conv1.bias2", false},
        {"*.bias", ".bias", true},
        {"ln*.scale", "ln_1/a.scale", true},
        {"ln*.scale", "Ln1.scale", false},
        {"?", "a", true},
        {"?", "", false},
        {"a?c", "abc", true},
        {"a?c", "ac", false},
        {"[a-c]x", "bx", true},
        {"[a-c]x", "dx", false},
        {"[!a-c]x", "dx", true},
        {"[!a-c]x", "ax", false},
        {"[abc-]", "-", true},
        {"[]a]", "]", true},
        {"[!]a]", "]", false},
        {"[a", "[a", true},
        {"[a", "a", false},
        {"[", "[", true},
        {"[!", "[!", true},
        {"\\*", "*", true},
        {"\\*", "a", false},
        {"\\", "\\", true},
        {"*a*b*c*", "xxaxxbxxcxx", true},
        {"*a*b*c*", "xxaxxcxxbxx", false},
        {"a*a", "a", false},
        {"**", "anything", true},
        {"h[0-9].attn.*", "h3.attn.weight", true},
        {"h[0-9].attn.*", "h13.attn.weight", false},
        {"[\xc3-\xff]", "\xe4", true},
    };
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++)
        if (ls_wildcard_matches(examples[i].pattern, examples[i].name) != examples[i].matches)
            fail_msg("'%s' and '%s'", examples[i].pattern, examples[i].name);
}

/* A pattern that a matcher which tries every way would not be done with. */
static void no_pattern_takes_long(void **state)
{
    (void)state;
    static char pattern[2001], name[4001];
    for (size_t i = 0; i < 2000; i += 2)
        memcpy(pattern + i, "*a", 2);
    pattern[1999] = 'b';
    memset(name, 'a', 4000);
    clock_t start = clock();
    assert_false(ls_wildcard_matches(pattern, name));
    assert_true(clock() - start < 5 * CLOCKS_PER_SEC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns),
        cmocka_unit_test(no_pattern_takes_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
