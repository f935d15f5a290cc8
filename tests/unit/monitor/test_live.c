/* The live line at every width, and durations.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "monitor/live.h"
#include "monitor/terminal.h"
#include "support/support.h"

static const struct ls_live live = {.iteration = 1234,
                                    .iteration_end = 10000,
                                    .loss = 0.01234,
                                    .learning_rate = 0.01,
                                    .samples_per_second = 8123.4,
                                    .seconds_left = 83,
                                    .score_name = "accuracy",
                                    .score = 0.98217};

struct width_case {
    int width;
    const char *line;
};

static void expect_lines(const struct ls_live *shown, const struct width_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char line[256];
        ls_live_compose(shown, cases[i].width, line, sizeof line);
        if (strcmp(line, cases[i].line) != 0)
            fail_msg("width %d: '%s'", cases[i].width, line);
    }
}

static int bar_columns(const struct ls_live *shown, int width)
{
    char line[256];
    ls_live_compose(shown, width, line, sizeof line);
    return line[0] == '[' ? (int)(strchr(line, ']') - line) + 1 : 0;
}

/* Numbers get shorter and longer: the bar becomes shorter where it must, and then stays. */
static void the_bar_keeps_its_length(void **state)
{
    (void)state;
    static const double times[] = {605, 599.4, 600, 59, 3700, 59, 605, 9};
    struct ls_live_bar bar = {.columns = 0};
    struct ls_live shown = live;
    shown.bar = &bar;
    for (int width = 78; width < 100; width++) {
        int before = 0;
        for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
            shown.seconds_left = times[i];
            shown.samples_per_second = i % 2 == 0 ? 9.5 : 812345;
            const int columns = bar_columns(&shown, width);
            assert_true(columns >= 10 && (before == 0 || columns <= before));
            before = columns;
        }
        assert_int_equal(bar_columns(&shown, width), before);
        assert_int_equal(bar.columns, before);
    }
    assert_true(bar_columns(&shown, 140) > bar_columns(&shown, 78)); /* the terminal has changed */
}

static void the_live_line_fits_its_width(void **state)
{
    (void)state;
    static const struct width_case cases[] = {
        {200, "[===>                        ]  1234/10000  12%  loss 0.01234  1:23 left  "
              "accuracy 0.9822  8123 samples/s  lr 0.01"},
        {79, "[>       ]  1234/10000  12%  loss 0.01234  1:23 left  accuracy 0.9822  8123/s"},
        {77, "[>       ]  1234/10000  12%  loss 0.01234  1:23 left  accuracy 0.982  8123/s"},
        {53, "12%  loss 0.01234  1:23 left  accuracy 0.982  8123/s"},
        {37, "12%  loss 0.01234  1:23 left  8123/s"},
        {17, "12%  loss 0.0123"},
        {15, "12%  1:23 left"},
        {14, "12%  8123/s"},
        {11, "12%"},
        {2, ""},
        {0, ""},
    };
    expect_lines(&live, cases, sizeof cases / sizeof *cases);
    static const struct width_case before_a_test[] = {
        {79, "[>       ]  1234/10000  12%  loss 0.01234  1:23 left  8123 samples/s  lr 0.01"},
        {60, "[>       ]  1234/10000  12%  loss 0.0123  1:23 left  8123/s"},
    };
    struct ls_live none = live;
    none.score_name = NULL;
    expect_lines(&none, before_a_test, sizeof before_a_test / sizeof *before_a_test);
}

/* No part comes or goes while figures change as they do from one update to the next. */
static void the_live_line_keeps_its_parts(void **state)
{
    (void)state;
    for (int width = 20; width < 140; width++) {
        size_t parts = 0;
        for (int i = 0; i < 1000; i++) {
            struct ls_live next = live;
            char line[256];
            next.iteration = 1 + 10 * i;
            next.loss = 0.1 + 0.0007 * i;
            ls_live_compose(&next, width, line, sizeof line);
            size_t found = 0;
            for (const char *p = line; (p = strstr(p, "  ")) != NULL; p++)
                found += p[2] != ' ' && p[2] != ']';
            if (i > 0 && found != parts)
                fail_msg("width %d, iteration %d: '%s'", width, i, line);
            parts = found;
        }
    }
}

static void speeds_have_a_short_text(void **state)
{
    (void)state;
    static const struct {
        double speed;
        const char *text;
    } cases[] = {{0.25, "0.25"},    {7.16, "7.2"},     {9.97, "10"},        {812.3, "812"},
                 {8123.4, "8123"},  {9999.7, "10.0k"}, {35123, "35.1k"},    {999960, "1.0M"},
                 {1234567, "1.2M"}, {1e300, "1e+300"}, {(double)NAN, "nan"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[24];
        ls_format_speed(cases[i].speed, text, sizeof text);
        assert_string_equal(text, cases[i].text);
    }
}

/* What a terminal has wrapped because it became narrower goes, too. */
static void a_wrapped_line_goes(void **state)
{
    (void)state;
    char *text = NULL;
    size_t size;
    struct ls_live_line line = {.out = open_memstream(&text, &size)};
    assert_non_null(line.out);
    unsetenv("XTERM_VERSION");
    setenv("TERM", "tmux-256color", 1);
    ls_live_line_clear(&line, 80);
    ls_live_line_draw(&line, "12345678901234567890", 80);
    ls_live_line_draw(&line, "1234567", 10);
    ls_live_line_clear(&line, 10);
    ls_live_line_draw(&line, "12345678901234567890", 80);
    ls_live_line_clear(&line, 7);
    unsetenv("TMUX");
    setenv("TERM", "rxvt-unicode", 1); /* which cuts lines off */
    ls_live_line_draw(&line, "12345678901234567890", 80);
    ls_live_line_clear(&line, 10);
    fclose(line.out);
    assert_string_equal(text, "\r12345678901234567890\033[K"
                              "\r\033[1A1234567\033[J"
                              "\r\033[K"
                              "\r12345678901234567890\033[K\r\033[2A\033[J"
                              "\r12345678901234567890\033[K\r\033[K");
    free(text);
}

/* Never wider than asked for, whatever the figures. */
static void no_figure_makes_the_live_line_wider(void **state)
{
    (void)state;
    static const struct ls_live extremes[] = {
        {0, 0, (double)NAN, (double)INFINITY, 1e300, 1e300, NULL, 0, NULL},
        {INT64_MAX, INT64_MAX, -1e-300, 1e-300, -1, -1, "a score with a very long name", -1e-300,
         NULL},
        {-1, INT64_MIN, 0, 0, (double)NAN, (double)NAN, "", (double)NAN, NULL},
        {20000, 10000, 0, 0, 0, 0, "iou", 0.5, NULL},
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
        cmocka_unit_test(the_bar_keeps_its_length),
        cmocka_unit_test(no_figure_makes_the_live_line_wider),
        cmocka_unit_test(the_live_line_keeps_its_parts),
        cmocka_unit_test(a_wrapped_line_goes),
        cmocka_unit_test(speeds_have_a_short_text),
        cmocka_unit_test(durations_have_a_short_text),
        cmocka_unit_test(texts_are_cut_between_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
