/* Characters of UTF-8.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "base/utf8.h"
#include "support/support.h"

/* Every code point comes back from its bytes; nothing else is taken for a character. */
static void characters_are_those_of_utf8(void **state)
{
    (void)state;
    char bytes[4];
    size_t size;
    for (uint32_t code = 0; code < LS_CODE_POINTS; code++) {
        const int count = ls_utf8_write(code, bytes);
        const bool surrogate = code >= 0xd800 && code < 0xe000;
        assert_int_equal(count, ls_utf8_size(code));
        const unsigned char *at = (const unsigned char *)bytes;
        assert_int_equal(ls_utf8_read(at, (size_t)count, &size), surrogate ? -1 : (int32_t)code);
        assert_int_equal(ls_utf8_length(bytes, (size_t)count), surrogate || code == 0 ? 0 : count);
        if (!surrogate) {
            size_t end = 0;
            assert_int_equal(ls_utf8_take(bytes, &end), code);
            assert_int_equal(end, count);
        }
        for (int left = 1; left < count; left++)
            assert_int_equal(ls_utf8_read(at, (size_t)left, &size), -1);
    }
    static const char *const wrong[] = {"\x80",
                                        "\xbf",
                                        "\xc0\x80",
                                        "\xc1\xbf",
                                        "\xe0\x80\x80",
                                        "\xe0\x9f\xbf",
                                        "\xf0\x80\x80\x80",
                                        "\xf0\x8f\xbf\xbf",
                                        "\xf4\x90\x80\x80",
                                        "\xf5\x80\x80\x80",
                                        "\xff",
                                        "\xc3("};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(ls_utf8_read((const unsigned char *)wrong[i], strlen(wrong[i]), &size),
                         -1);
}

/* Texts to where they stop being UTF-8; NUL is a character of a text, but of no name. */
static void texts_are_followed_to_their_ends(void **state)
{
    (void)state;
    static const char text[] = "a\xc3\xa9\0\xe2\x82\xac\xf0\x9f\x98\x80";
    const size_t length = sizeof text - 1;
    struct ls_text again = {0};
    for (size_t at = 0; at < length;)
        ls_utf8_add(&again, ls_utf8_take(text, &at));
    assert_int_equal(again.length, length);
    assert_memory_equal(again.data, text, length);
    assert_int_equal(ls_utf8_valid_length(text, length), length);
    assert_int_equal(ls_utf8_valid_length(text, length - 1), length - 4);
    assert_int_equal(ls_utf8_valid_length("ab\xff", 3), 2);
    assert_true(ls_utf8_valid(text, 3));
    assert_false(ls_utf8_valid(text, 4));
    assert_false(ls_utf8_valid(text, 2));
    assert_true(ls_utf8_valid("", 0));
    ls_text_free(&again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(characters_are_those_of_utf8),
        cmocka_unit_test(texts_are_followed_to_their_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
