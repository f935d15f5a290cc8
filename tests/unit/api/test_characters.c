/* Characters and bytes that tokens stand for, by the names that snapshots have of them.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "api/characters.h"
#include "support/support.h"

static struct ls_characters read_names(const char *names)
{
    struct ls_characters characters = {0};
    assert_int_equal(ls_characters_read(names, &characters, NULL), 0);
    return characters;
}

/* Finds the token that `text` begins with. */
static void expect(const struct ls_characters *characters, const char *text, int32_t token,
                   size_t bytes)
{
    size_t size;
    assert_int_equal(ls_characters_find(characters, text, strlen(text), &size), token);
    assert_int_equal(size, bytes);
    if (token < 0)
        return;
    assert_int_equal(characters->items[token].length, bytes);
    assert_memory_equal(characters->items[token].bytes, text, bytes);
}

static void names_are_those_of_characters(void **state)
{
    (void)state;
    struct ls_characters characters =
        read_names("\\n\n\\t\n \na\n\\\\\n\xc3\xa9\n\\u{2028}\n\xf0\x9f\x98\x80\n\\u{0}");
    assert_int_equal(characters.count, 9);
    expect(&characters, "\nx", 0, 1);
    expect(&characters, "\tx", 1, 1);
    expect(&characters, " ", 2, 1);
    expect(&characters, "a", 3, 1);
    expect(&characters, "\\n", 4, 1);
    expect(&characters, "\xc3\xa9x", 5, 2);
    expect(&characters, "\xe2\x80\xa8", 6, 3);
    expect(&characters, "\xf0\x9f\x98\x80", 7, 4);
    expect(&characters, "b", -1, 1);
    expect(&characters, "\xc3\xa8", -1, 2);
    expect(&characters, "\xc3", -1, 1);
    assert_int_equal(characters.items[8].length, 1);
    assert_int_equal(characters.items[8].bytes[0], 0);
    ls_characters_free(&characters);
}

static void names_are_those_of_bytes(void **state)
{
    (void)state;
    struct ls_characters characters = read_names("\\xFF\n\\xC3\n\\xA9\nz\n");
    assert_int_equal(characters.count, 4);
    expect(&characters, "\xff", 0, 1);
    expect(&characters, "\xc3\xa9", 1, 1);
    expect(&characters, "\xa9", 2, 1);
    ls_characters_free(&characters);
}

static void other_names_are_no_characters(void **state)
{
    (void)state;
    static const char *const names[] = {
        "cat\ndog", "a\n\nb", "a\n\\q",   "\\u{110000}", "\\u{}", "\\u{12",         "\\u{0123456}",
        "\\xg0",    "\\xF",   "\\u{20g}", "\xc3",        "\xff",  "a\n\\u{1234567}"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct ls_characters characters = read_names(names[i]);
        assert_int_equal(characters.count, 0);
        ls_characters_free(&characters);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(names_are_those_of_characters),
                                       cmocka_unit_test(names_are_those_of_bytes),
                                       cmocka_unit_test(other_names_are_no_characters)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
