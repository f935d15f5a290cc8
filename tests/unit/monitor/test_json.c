/* JSON that is written: any strings and numbers become valid JSON.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "monitor/json.h"
#include "support/support.h"

/* The text of a string in an array, without the brackets. */
static void check_string(const char *value, const char *wanted)
{
    char *text = NULL;
    size_t size = 0;
    struct ls_json_writer json = {open_memstream(&text, &size), false};
    assert_non_null(json.stream);
    ls_json_open(&json, NULL, '[');
    ls_json_string(&json, NULL, value);
    ls_json_close(&json, ']');
    fclose(json.stream);
    text[size - 1] = '\0';
    assert_string_equal(text + 1, wanted);
    free(text);
}

static void strings_are_escaped(void **state)
{
    (void)state;
    check_string(NULL, "null");
    check_string("", "\"\"");
    check_string("a \"b\" \\ \n\t\x7f", "\"a \\\"b\\\" \\\\ \\n\\u0009\x7f\"");
    check_string("\u00e4\u20ac\U0001f600", "\"\u00e4\u20ac\U0001f600\"");
}

/* Not UTF-8: byte by byte the replacement character, and what follows is as it is. */
static void bytes_that_are_no_utf8_are_replaced(void **state)
{
    (void)state;
    check_string("a\xff"
                 "b",
                 "\"a\\ufffdb\"");
    check_string("\x80", "\"\\ufffd\"");
    check_string("\xc3", "\"\\ufffd\"");                       /* cut short */
    check_string("\xe2\x82\"", "\"\\ufffd\\ufffd\\\"\"");      /* so that a quote is not eaten */
    check_string("\xc0\xaf", "\"\\ufffd\\ufffd\"");            /* overlong */
    check_string("\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\""); /* half of a pair */
    check_string("\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\""); /* above the last */
}

static void numbers_read_back(void **state)
{
    (void)state;
    char *text = NULL;
    size_t size = 0;
    struct ls_json_writer json = {open_memstream(&text, &size), false};
    ls_json_open(&json, NULL, '{');
    ls_json_number(&json, "a", 0.1);
    ls_json_number(&json, "b", (double)NAN);
    ls_json_number(&json, "c", (double)-INFINITY);
    ls_json_integer(&json, "d", INT64_MIN);
    ls_json_close(&json, '}');
    fclose(json.stream);
    assert_string_equal(text,
                        "{\"a\": 0.1, \"b\": null, \"c\": null, \"d\": -9223372036854775808}");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(strings_are_escaped),
                                       cmocka_unit_test(bytes_that_are_no_utf8_are_replaced),
                                       cmocka_unit_test(numbers_read_back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
