/* The live line at every width, and durations.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "monitor/live.h"
#include "monitor/terminal.h"
#include "support/support.h"

static const struct ls_live live = {.iteration = 1234,
                                    .iteration_end = 10000,
                                    .loss = 0.01234,
                                    .learning_rate = 0.01,
                                    .samples_per_second = 8123.4,
                                    .seconds_left = 83};

static void the_live_line_fits_its_width(void **state)
{
    (void)state;
    static const struct {
        int width;
        const char *line;
    } cases[] = {
        {200, "[===>                          ]  1234/10000  12%  loss 0.01234  1:23 left  8123 "
              "samples/s  lr 0.01"},
        {79, "[=>        ]  1234/10000  12%  loss 0.01234  1:23 left  8123 samples/s  lr 0.01"},
        {76, "1234/10000  12%  loss 0.01234  1:23 left  8123 samples/s  lr 0.01"},
        {64, "1234/10000  12%  loss 0.01234  1:23 left  8123 samples/s"},
        {50, "1234/10000  12%  loss 0.01234  1:23 left"},
        {20, "1234/10000  12%"},
        {15, "1234/10000  12%"},
        {14, ""},
        {5, ""},
        {0, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char line[256];
        ls_live_compose(&live, cases[i].width, line, sizeof line);
        if (strcmp(line, cases[i].line) != 0)
            fail_msg("width %d: '%s'", cases[i].width, line);
    }
}

/* Never wider than asked for, whatever the figures. */
static void no_figure_makes_the_live_line_wider(void **state)
{
    (void)state;
    static const struct ls_live extremes[] = {
        {0, 0, (double)NAN, (double)INFINITY, 1e300, 1e300},
        {INT64_MAX, INT64_MAX, -1e-300, 1e-300, -1, -1},
        {-1, INT64_MIN, 0, 0, (double)NAN, (double)NAN},
        {20000, 10000, 0, 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof extremes / sizeof extremes[0]; i++) {
        for (int width = 0; width < 300; width++) {
            char line[200];
            ls_live_compose(&extremes[i], width, line, sizeof line);
            assert_true((int)strlen(line) <= width && strlen(line) < sizeof line);
        }
    }
}

static void durations_have_a_short_text(void **state)
{
    (void)state;
    static const struct {
        double seconds;
        const char *text;
    } cases[] = {{0, "0s"},
                 {-5, "0s"},
                 {59.4, "59s"},
                 {59.6, "1:00"},
                 {3599, "59:59"},
                 {3600, "1h00"},
                 {86399, "23h59"},
                 {86400, "1d00h"},
                 {90000, "1d01h"},
                 {1e12, "ages"},
                 {(double)INFINITY, "ages"},
                 {(double)NAN, "0s"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[24];
        ls_format_duration(cases[i].seconds, text, sizeof text);
        assert_string_equal(text, cases[i].text);
    }
}

static void texts_are_cut_between_characters(void **state)
{
    (void)state;
    char out[16];
    ls_text_cut("caf\xc3\xa9 au lait", 4, out, sizeof out);
    assert_string_equal(out, "caf\xc3\xa9");
    ls_text_cut("caf\xc3\xa9", 3, out, sizeof out);
    assert_string_equal(out, "caf");
    ls_text_cut("caf\xc3\xa9", 10, out, sizeof out);
    assert_string_equal(out, "caf\xc3\xa9");
    ls_text_cut("caf\xc3\xa9", 10, out, 5); /* half a character would not do */
    assert_string_equal(out, "caf");
    ls_text_cut("abc", 0, out, sizeof out);
    assert_string_equal(out, "");
    assert_int_equal(ls_text_columns("caf\xc3\xa9"), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_live_line_fits_its_width),
        cmocka_unit_test(no_figure_makes_the_live_line_wider),
        cmocka_unit_test(durations_have_a_short_text),
        cmocka_unit_test(texts_are_cut_between_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
