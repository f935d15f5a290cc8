/* Distributions of weights and gradients: histograms of logs, and what a page draws of them.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/page.h"
#include "support/support.h"

static void take(struct lockstep_log *log, const char *line)
{
    assert_int_equal(ls_log_line(log, line, strlen(line), NULL), 0);
}

/* A display whose weights lie from `low` to `low` + 4. */
static void take_display(struct lockstep_log *log, int iteration, double low)
{
    char line[400];
    snprintf(line, sizeof line,
             "{\"event\": \"statistics\", \"iteration\": %d, \"update_norm\": 0.5, \"parameters\": "
             "[{\"name\": \"<c>.weight\", \"weight_histogram\": {\"edges\": [%.9g, %.9g, %.9g], "
             "\"counts\": [30, 10]}, \"gradient_histogram\": {\"edges\": [1, 1], \"counts\": "
             "[40]}}]}",
             iteration, low, low + 2, low + 4);
    take(log, line);
}

static void test_quantiles(void **state)
{
    (void)state;
    struct lockstep_log *log = ls_log_new();
    take_display(log, 1, 0);
    take_display(log, 11, -1);
    assert_int_equal(log->spread_count, 1);
    const struct ls_spread *weights = &log->spreads[0].weights;
    assert_int_equal(weights->bins, 2);
    assert_float_equal(weights->edge[0], -1, 0);
    assert_int_equal(weights->moments, 2);
    assert_int_equal(weights->moment[0].iteration, 1);
    /* 30 of 40 numbers lie evenly from 0 to 2, the others up to 4. */
    const double expected[LS_SPREAD_PARTS] = {0, 2.0 / 15, 2.0 / 3, 4.0 / 3, 2, 3.6, 4};
    for (int p = 0; p < LS_SPREAD_PARTS; p++)
        assert_float_equal(weights->moment[0].at[p], expected[p], 1e-12);
    assert_float_equal(log->spreads[0].gradient.moment[1].at[3], 1, 0);
    assert_float_equal(ls_log_find(log, "update_norm")->points[1].mean, 0.5, 0);
    /* A resume takes the place of what it computes again. */
    take_display(log, 11, 5);
    assert_int_equal(weights->moments, 2);
    assert_float_equal(weights->moment[1].at[0], 5, 0);
    ls_log_free(log);
}

/* Of many displays every second, fourth, ... is kept, and always the last. */
static void test_many(void **state)
{
    (void)state;
    struct lockstep_log *log = ls_log_new();
    for (int i = 0; i < 1000; i++) {
        take_display(log, i, i);
        const struct ls_spread *weights = &log->spreads[0].weights;
        assert_true(weights->moments <= LS_SPREAD_TIMES);
        assert_int_equal(weights->moment[0].iteration, 0);
        assert_int_equal(weights->moment[weights->moments - 1].iteration, i);
        for (int k = 1; k + 1 < weights->moments; k++)
            assert_int_equal(weights->moment[k].iteration, k * weights->every);
    }
    assert_true(log->spreads[0].weights.moments > LS_SPREAD_TIMES / 2);
    ls_log_free(log);
}

/* Histograms that are none leave what there was, and parameters beyond the limit go without. */
static void test_hostile(void **state)
{
    (void)state;
    static const char *const bad[] = {"3",
                                      "{}",
                                      "{\"edges\": [1, 2]}",
                                      "{\"edges\": [1, 2, 3], \"counts\": [1]}",
                                      "{\"edges\": [2, 1], \"counts\": [1]}",
                                      "{\"edges\": [0, 1], \"counts\": [-1]}",
                                      "{\"edges\": [0, 1], \"counts\": [0]}",
                                      "{\"edges\": [0, null], \"counts\": [1]}",
                                      "{\"edges\": [0, 1e999], \"counts\": [1]}",
                                      "{\"edges\": [-1.7e308, 1.7e308], \"counts\": [1]}",
                                      "{\"edges\": {\"a\": 1}, \"counts\": [1]}"};
    struct lockstep_log *log = ls_log_new();
    char line[9000];
    take_display(log, 1, 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(line, sizeof line,
                 "{\"event\": \"statistics\", \"iteration\": 2, \"parameters\": [{\"name\": "
                 "\"<c>.weight\", \"weight_histogram\": %s}]}",
                 bad[i]);
        take(log, line);
        assert_int_equal(log->spreads[0].weights.moments, 1);
        assert_int_equal(log->spreads[0].weights.bins, 2);
    }
    int length = snprintf(line, sizeof line,
                          "{\"event\": \"statistics\", \"iteration\": 3, \"parameters\": [");
    for (int i = 0; i < LS_SPREADS_OF_A_LOG + 5; i++)
        length += snprintf(line + length, sizeof line - (size_t)length, "%s{\"name\": \"p%d\"}",
                           i > 0 ? ", " : "", i);
    snprintf(line + length, sizeof line - (size_t)length, "]}");
    take(log, line);
    assert_int_equal(log->spread_count, LS_SPREADS_OF_A_LOG);
    assert_int_equal(log->parameter_count, LS_SPREADS_OF_A_LOG + 5);
    ls_log_free(log);
}

static void test_page(void **state)
{
    (void)state;
    struct lockstep_log *log = ls_log_new();
    const char *path = ls_test_path("page.html"), *names[] = {"a"};
    const struct lockstep_page_options options = {.names = names};
    size_t size;
    for (int i = 0; i < 3; i++)
        take_display(log, i, -1.5);
    assert_int_equal(
        ls_page_write(path, (const struct lockstep_log *const[]){log}, 1, &options, NULL), 0);
    char *page = ls_test_read(path, &size);
    const char *section = strstr(page, "<h2>Weights and gradients</h2>");
    assert_non_null(section);
    assert_non_null(strstr(section, "<figcaption>&lt;c&gt;.weight</figcaption>"));
    assert_non_null(strstr(section, ">-1.5</text>"));
    assert_non_null(strstr(section, ">2.5</text>"));
    assert_non_null(strstr(section, "class=\"band\""));
    assert_null(strstr(section, "nan"));
    assert_null(strstr(page, "<c>"));
    free(page);
    ls_log_free(log);
}

/* The files of weights that a log names. */
static void test_snapshots(void **state)
{
    (void)state;
    struct lockstep_log *log = ls_log_new();
    assert_null(log->last_snapshot);
    take(log, "{\"event\": \"snapshot\", \"iteration\": 1, \"text\": \"a_iter_1\"}");
    take(log, "{\"event\": \"snapshot\", \"iteration\": 2, \"text\": \"a_iter_2\"}");
    take(log, "{\"event\": \"notice\", \"iteration\": 2, \"text\": \"Best of all\"}");
    assert_null(log->best_snapshot);
    take(log, "{\"event\": \"notice\", \"iteration\": 2, \"text\": \"Best accuracy so far: 0.5, "
              "kept as a_best.safetensors\"}");
    take(log, "{\"event\": \"snapshot\", \"iteration\": 3, \"text\": 4}");
    assert_string_equal(log->last_snapshot, "a_iter_2");
    assert_string_equal(log->best_snapshot, "a_best.safetensors");
    ls_log_free(log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_quantiles),
                                       cmocka_unit_test(test_many), cmocka_unit_test(test_hostile),
                                       cmocka_unit_test(test_page),
                                       cmocka_unit_test(test_snapshots)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
