/* Growing strings, numbers, suggestions. SPDX-License-Identifier: BSD-2-Clause */
#include "base/text.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/thread.h"
#include "support/support.h"

static void texts_are_appended(void **state)
{
    (void)state;
    struct ls_text text = {0};
    assert_null(text.data);
    ls_text_add(&text, "");
    assert_string_equal(text.data, "");
    for (int i = 0; i < 500; i++)
        ls_text_format(&text, "%d,", i);
    ls_text_add_bytes(&text, "x\0y", 3);
    assert_false(text.failed);
    assert_int_equal(text.length, 10 * 2 + 90 * 3 + 400 * 4 + 3);
    assert_memory_equal(text.data, "0,1,2,", 6);
    assert_memory_equal(text.data + text.length - 7, "499,x\0y", 8);
    ls_text_free(&text);
    assert_null(text.data);
    ls_text_free(&text);
}

static void a_failed_append_changes_nothing(void **state)
{
    (void)state;
    struct ls_text text = {0};
    ls_text_add(&text, "kept");
    char *large = malloc(1000);
    assert_non_null(large);
    memset(large, 'x', 1000);
    ls_fail_allocation_after(0);
    ls_text_add_bytes(&text, large, 1000);
    ls_fail_allocation_after(-1);
    assert_true(text.failed);
    assert_string_equal(text.data, "kept");
    ls_text_add(&text, "!"); /* a gap in the middle would be worse than a short text */
    ls_text_format(&text, "%d", 1);
    assert_string_equal(text.data, "kept");
    free(large);
    ls_text_free(&text);
}

static void check_float(float value, const char *expected)
{
    char text[32];
    ls_format_float(text, value);
    assert_string_equal(text, expected);
}

static void floats_have_their_shortest_text(void **state)
{
    (void)state;
    check_float(0.1F, "0.1");
    check_float(0.0F, "0");
    check_float(-0.0F, "-0");
    check_float(1e-5F, "1e-05");
    check_float(0.01F, "0.01");
    check_float(1.0F / 3.0F, "0.33333334");
    check_float(16777216.0F, "16777216");
    check_float(FLT_MAX, "3.4028235e+38");
    check_float(FLT_MIN, "1.1754944e-38");
    check_float(0x1p-149F, "1.4013e-45");
    check_float(INFINITY, "inf");
    check_float(-INFINITY, "-inf");
    check_float(NAN, "nan");
    check_float(-NAN, "nan");
}

/* Every bit pattern must survive, also in a thread that flushes denormals to zero. */
static void every_float_reads_back(void **state)
{
    (void)state;
    uint64_t key = ls_random_key(1, LS_RANDOM_TEST, "floats");
    for (uint64_t i = 0; i < 20000; i++) {
        uint32_t bits = ls_random_u32(key, 0, i);
        if (i % 4 == 0)
            bits &= UINT32_C(0x807fffff); /* denormal */
        float value, back;
        memcpy(&value, &bits, sizeof value);
        if ((bits & UINT32_C(0x7f800000)) == UINT32_C(0x7f800000))
            continue;
        char text[32];
        ls_format_float(text, value);
        back = strtof(text, NULL);
        assert_memory_equal(&back, &value, sizeof value);
    }
}

static void *flushing_thread(void *unused)
{
    (void)unused;
    ls_set_float_mode();
    volatile float denormal = 0x1p-140F;
    char text[32];
    ls_format_float(text, denormal);
    return strcmp(text, "7.17465e-43") == 0 ? NULL : unused;
}

static void denormals_are_written_in_a_flushing_thread(void **state)
{
    (void)state;
    pthread_t thread;
    void *result;
    assert_int_equal(pthread_create(&thread, NULL, flushing_thread, &result), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_null(result);
}

static void doubles_read_back(void **state)
{
    (void)state;
    const struct {
        double value;
        const char *text;
    } cases[] = {{0.1, "0.1"},
                 {1.0 / 3.0, "0.3333333333333333"},
                 {DBL_MAX, "1.7976931348623157e+308"},
                 {5e-324, "4.94065645841247e-324"},
                 {-INFINITY, "-inf"},
                 {NAN, "nan"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[32];
        ls_format_double(text, cases[i].value);
        assert_string_equal(text, cases[i].text);
    }
}

/* A host program may have set a locale with a decimal comma. */
static void locale_does_not_matter(void **state)
{
    (void)state;
    const char *names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "C.UTF-8"};
    bool comma = false;
    for (size_t i = 0; i < 4 && !comma; i++)
        comma = setlocale(LC_ALL, names[i]) != NULL && *localeconv()->decimal_point == ',';
    if (!comma) {
        setlocale(LC_ALL, "C");
        ls_test_skip("no locale with a decimal comma is installed");
    }
    check_float(0.5F, "0.5");
    struct ls_text made = {0};
    ls_text_format(&made, "%.1f %g", 2.5, 0.25);
    assert_string_equal(made.data, "2.5 0.25");
    ls_text_free(&made);
    char text[32];
    snprintf(text, sizeof text, "%g", 0.5);
    assert_string_equal(text, "0,5"); /* the caller's locale is back */
    setlocale(LC_ALL, "C");
}

static void edit_distance_counts_changes(void **state)
{
    (void)state;
    assert_int_equal(ls_edit_distance("kernal_size", "kernel_size", 3), 1);
    assert_int_equal(ls_edit_distance("", "abc", 3), 3);
    assert_int_equal(ls_edit_distance("abc", "", 5), 3);
    assert_int_equal(ls_edit_distance("kitten", "sitting", 5), 3);
    assert_int_equal(ls_edit_distance("kitten", "sitting", 2), 3);
    assert_int_equal(ls_edit_distance("kitten", "sitting", 1), 2);
    assert_int_equal(ls_edit_distance("same", "same", 0), 0);
    assert_int_equal(ls_edit_distance("abcdef", "uvwxyz", 2), 3);
}

static void the_nearest_name_is_suggested(void **state)
{
    (void)state;
    const char *const names[] = {"kernel_size", "kernel_h", "kernel_w",
                                 "stride",      "pad",      "num_output"};
    assert_string_equal(ls_suggest("kernal_size", names, 6), "kernel_size");
    assert_string_equal(ls_suggest("STRIDE", names, 6), "stride");
    assert_string_equal(ls_suggest("pat", names, 6), "pad");
    assert_string_equal(ls_suggest("num_outptu", names, 6), "num_output");
    assert_null(ls_suggest("dilation", names, 6));
    assert_null(ls_suggest("x", names, 6));
    assert_null(ls_suggest("", names, 6));
}

/* Quotes, backslashes and control characters are escaped, wherever they stand. */
static void json_strings_are_escaped(void **state)
{
    (void)state;
    static const char *const cases[][2] = {{"", "\"\""},
                                           {"plain", "\"plain\""},
                                           {"\"", "\"\\\"\""},
                                           {"a\\b\nc\x01", "\"a\\\\b\\nc\\u0001\""},
                                           {"\xc3\xa4\"\"x", "\"\xc3\xa4\\\"\\\"x\""}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ls_text text = {0};
        ls_text_add_json(&text, cases[i][0]);
        assert_string_equal(text.data, cases[i][1]);
        ls_text_free(&text);
    }
}

static void numbers_for_others_are_short(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        {(double)0.002F, "0.002"},
        {0.13866666666666666, "0.138666667"},
        {0.5, "0.5"},
        {-1e-5, "-1e-05"},
        {0, "0"},
        {123456789, "123456789"},
        {1795891804, "1795891804"},
        {2.302585092994046, "2.3025851"},
        {1e300, "1e+300"},
        {1.5e-300, "1.5e-300"},
        {1e-40, "1e-40"},
        {3e38, "3e+38"},
        {(double)NAN, "nan"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[32];
        ls_format_number(text, cases[i].value);
        assert_string_equal(text, cases[i].text);
    }
}

static void json_is_utf_8(void **state)
{
    (void)state;
    struct ls_text text = {0};
    ls_text_add_json(&text, "a\xc3\xa9\xff\"\xe2\x82");
    assert_string_equal(text.data, "\"a\xc3\xa9\\ufffd\\\"\\ufffd\\ufffd\"");
    ls_text_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_for_others_are_short),
        cmocka_unit_test(json_is_utf_8),
        cmocka_unit_test(texts_are_appended),
        cmocka_unit_test(a_failed_append_changes_nothing),
        cmocka_unit_test(floats_have_their_shortest_text),
        cmocka_unit_test(every_float_reads_back),
        cmocka_unit_test(denormals_are_written_in_a_flushing_thread),
        cmocka_unit_test(doubles_read_back),
        cmocka_unit_test(locale_does_not_matter),
        cmocka_unit_test(edit_distance_counts_changes),
        cmocka_unit_test(json_strings_are_escaped),
        cmocka_unit_test(the_nearest_name_is_suggested),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
