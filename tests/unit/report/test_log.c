/* Logs as curves and facts, and where two of them part.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/figure.h"
#include "report/log.h"
#include "report/parting.h"
#include "support/support.h"

static void take(struct lockstep_log *log, const char *line)
{
    assert_int_equal(ls_log_line(log, line, strlen(line), NULL), 0);
}

static void take_loss(struct lockstep_log *log, int iteration, double loss)
{
    char line[160];
    snprintf(line, sizeof line,
             "{\"event\": \"progress\", \"iteration\": %d, \"data_loss\": %.17g}\n", iteration,
             loss);
    take(log, line);
}

static void test_events(void **state)
{
    (void)state;
    struct lockstep_log *log = ls_log_new();
    take(log, "{\"event\": \"run\", \"iteration\": 0, \"elapsed\": 0.5, \"seed\": 7, "
              "\"base_lr\": 0.01, \"environment\": \"a\\nb\"}");
    take(log, "{\"event\": \"progress\", \"iteration\": 1, \"elapsed\": 1, \"data_loss\": 2.5, "
              "\"loss\": 9, \"penalty\": null, \"learning_rate\": 0.1, "
              "\"samples_per_second\": 100, \"iteration_end\": 50}");
    take(log, "{\"event\": \"test\", \"iteration\": 1, \"test_net\": 1, \"outputs\": [{\"name\": "
              "\"recall\", \"values\": [0.5, 0.25]}, {\"name\": 3}, 4, {\"name\": \"acc\", "
              "\"values\": [1]}, {\"name\": \"AP\", \"values\": [0, 0.75], \"classes\": [null, "
              "\"dog\"]}]}");
    take(log, "{\"event\": \"statistics\", \"iteration\": 1, \"gradient_norm\": 3, "
              "\"weight_norm\": 4, \"parameters\": [{\"name\": \"c.weight\", \"weight_norm\": 2, "
              "\"gradient_norm\": 1, \"update_norm\": null}]}");
    take(log, "{\"event\": \"warning\", \"iteration\": 1, \"text\": \"careful\"}");
    take(log, "{\"event\": \"hash\", \"iteration\": 1, \"weights\": \"00ff\"}");
    take(log, "{\"event\": \"end\", \"iteration\": 1, \"elapsed\": 4}");
    assert_float_equal(ls_log_find(log, "loss")->points[0].mean, 2.5, 0);
    assert_float_equal(ls_log_find(log, "learning_rate")->points[0].mean, 0.1, 0);
    assert_float_equal(ls_log_find(log, "test 1/recall[1]")->points[0].mean, 0.25, 0);
    assert_float_equal(ls_log_find(log, "test 1/acc")->points[0].mean, 1, 0);
    assert_float_equal(ls_log_find(log, "test 1/AP[1 dog]")->points[0].mean, 0.75, 0);
    assert_null(ls_log_find(log, "test 1/AP[0]")); /* of the background */
    assert_float_equal(ls_log_find(log, "gradient_norm")->points[0].mean, 3, 0);
    assert_null(ls_log_find(log, "penalty"));
    assert_string_equal(ls_log_fact(log, "seed"), "7");
    assert_string_equal(ls_log_fact(log, "environment"), "a\nb");
    assert_int_equal(log->parameter_count, 1);
    assert_true(isnan(log->parameters[0].update_norm));
    assert_string_equal(log->messages[0].text, "careful");
    assert_string_equal(log->hash, "00ff");
    assert_int_equal(log->state.ended, 1);
    assert_int_equal(log->state.iteration_end, 50);
    assert_float_equal(log->elapsed, 4, 0);
    assert_int_equal(log->state.bad, 0);
    ls_log_free(log);
}

static void last_is(const struct lockstep_log *log, int64_t iteration, double loss)
{
    const struct ls_series *series = ls_log_find(log, "loss");
    assert_int_equal(series->last_iteration, iteration);
    assert_float_equal(series->last, loss, 0);
}

/* The last figure by itself, also where points are means; the end's, where the update's is lost. */
static void test_last(void **state)
{
    (void)state;
    struct lockstep_log *log = ls_log_new();
    for (int i = 1; i <= LS_SERIES_POINTS + 2; i++)
        take_loss(log, i, i * 0.5);
    assert_int_not_equal(ls_log_find(log, "loss")->points[0].count, 1);
    last_is(log, LS_SERIES_POINTS + 2, (LS_SERIES_POINTS + 2) * 0.5);
    take_loss(log, 7, 0.25); /* resumed */
    last_is(log, 7, 0.25);
    take(log, "{\"event\": \"progress\", \"iteration\": 8, \"data_loss\": null}");
    last_is(log, 7, 0.25);
    take(log, "{\"event\": \"end\", \"iteration\": 7, \"data_loss\": 9}");
    last_is(log, 7, 0.25);
    take(log, "{\"event\": \"end\", \"iteration\": 9, \"data_loss\": 0.125}");
    last_is(log, 9, 0.125);
    ls_log_free(log);
}

/* What a resumed run computes again takes the place of what there was. */
static void test_resume(void **state)
{
    (void)state;
    struct lockstep_log *log = ls_log_new();
    take(log, "{\"event\": \"run\", \"iteration\": 0, \"elapsed\": 0}");
    for (int i = 1; i <= 10; i++)
        take_loss(log, i, i);
    take(log, "{\"event\": \"run\", \"iteration\": 5, \"elapsed\": 0}");
    for (int i = 6; i <= 8; i++)
        take_loss(log, i, 100 + i);
    const struct ls_series *loss = ls_log_find(log, "loss");
    assert_int_equal(loss->count, 8);
    assert_float_equal(loss->points[4].mean, 5, 0);
    assert_float_equal(loss->points[5].mean, 106, 0);
    assert_int_equal(log->state.runs, 2);
    ls_log_free(log);
}

static void test_bad_lines(void **state)
{
    (void)state;
    static const char *const bad[] = {"no JSON",
                                      "{\"level\": \"info\"}",
                                      "[1, 2]",
                                      "3",
                                      "{\"event\": 3, \"iteration\": 1}",
                                      "{\"event\": \"progress\", \"iteration\": -1}",
                                      "{\"event\": \"progress\"}",
                                      "{\"event\": \"progress\", \"iteration\": 1e400}",
                                      "{\"event\": \"progress\", \"iteration\": 1",
                                      "\xff\xfe{}"};
    struct lockstep_log *log = ls_log_new();
    take(log, "  \r\n");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        take(log, bad[i]);
    assert_int_equal(log->state.bad, sizeof bad / sizeof *bad);
    assert_int_equal(log->state.first_bad, 2);
    assert_int_equal(log->state.events, 0);
    take(log, "{\"event\": \"progress\", \"iteration\": 1, \"data_loss\": null}");
    take(log, "{\"event\": \"progress\", \"iteration\": 2, \"data_loss\": 1e999}");
    take(log, "{\"event\": \"progress\", \"iteration\": 3, \"data_loss\": \"x\"}");
    take(log, "{\"event\": \"progress\", \"iteration\": 922337203685477580, \"data_loss\": 1}");
    assert_int_equal(log->state.missing, 3);
    assert_int_equal(ls_log_find(log, "loss")->count, 1);
    ls_log_free(log);
}

/* A log says which way an output is better; without that its name does. */
static void test_better(void **state)
{
    (void)state;
    static const char line[] =
        "{\"event\": \"test\", \"iteration\": 4, \"test_net\": 0, \"outputs\": "
        "[{\"name\": \"loss3/top-1\", \"values\": [0.5], \"loss_weight\": 0, \"better\": \"max\"}, "
        "{\"name\": \"distance\", \"values\": [2], \"loss_weight\": 0, \"better\": \"min\"}, "
        "{\"name\": \"accuracy\", \"values\": [0.5], \"loss_weight\": 0}, "
        "{\"name\": \"other\", \"values\": [0.5], \"loss_weight\": 0}]}";
    struct lockstep_log *log = ls_log_new();
    assert_int_equal(ls_log_line(log, line, sizeof line - 1, NULL), 0);
    assert_int_equal(ls_figure_direction(ls_log_find(log, "test/loss3/top-1")), 1);
    assert_int_equal(ls_figure_direction(ls_log_find(log, "test/distance")), -1);
    assert_int_equal(ls_figure_direction(ls_log_find(log, "test/accuracy")), 1);
    assert_int_equal(ls_figure_direction(ls_log_find(log, "test/other")), 0);
    ls_log_free(log);
}

/* Every beginning of an event, and every change of one byte, is taken or left out. */
static void test_broken_lines(void **state)
{
    (void)state;
    static const char line[] =
        "{\"event\": \"test\", \"iteration\": 4, \"elapsed\": 1.5, \"test_net\": 0, \"outputs\": "
        "[{\"name\": \"acc\\u00e9\", \"values\": [0.5, null, -1e-3], \"loss_weight\": 0}]}";
    struct lockstep_log *log = ls_log_new();
    for (size_t i = 0; i < sizeof line; i++)
        assert_int_equal(ls_log_line(log, line, i, NULL), 0);
    for (size_t i = 0; i + 1 < sizeof line; i++)
        for (int change = 1; change < 256; change <<= 1) {
            char other[sizeof line];
            memcpy(other, line, sizeof line);
            other[i] = (char)(other[i] ^ change);
            assert_int_equal(ls_log_line(log, other, sizeof line - 1, NULL), 0);
        }
    assert_true(log->series_count <= LS_LOG_SERIES);
    ls_log_free(log);
}

static void test_files(void **state)
{
    (void)state;
    struct ls_error error = {0};
    struct lockstep_log *log = ls_log_new();
    const char *path = ls_test_path("log");
    ls_test_write_text(path, "");
    assert_int_equal(ls_log_read(log, path, &error), LOCKSTEP_DATA);
    assert_non_null(strstr(error.problems[0].message, "the log is empty"));
    ls_error_clear(&error);
    ls_test_write_text(path, "I1123 solver.cpp:239] Iteration 0, loss = 2.3\n");
    assert_int_equal(ls_log_read(log, path, &error), LOCKSTEP_DATA);
    assert_non_null(strstr(error.problems[0].hint, "--log-json"));
    assert_int_equal(ls_log_read(log, ls_test_directory(), NULL), LOCKSTEP_DATA);
    assert_int_equal(ls_log_read(log, ls_test_path("none"), NULL), LOCKSTEP_DATA);
    ls_error_clear(&error);
    assert_int_equal(ls_log_read(log, "/dev/zero", &error), LOCKSTEP_DATA); /* it has no end */
    assert_non_null(strstr(error.problems[0].message, "this is a device"));
    ls_error_clear(&error);
    ls_log_free(log);
    log = ls_log_new();
    ls_test_write_text(path, "{\"event\": \"start\", \"iteration\": 0}\n{\"event\": \"prog");
    assert_int_equal(ls_log_read(log, path, NULL), 0);
    assert_int_equal(log->state.cut_off, 1);
    assert_int_equal(log->state.bad, 0);
    ls_log_free(log);
    log = ls_log_new(); /* without an end of line, but whole */
    ls_test_write_text(path, "{\"event\": \"start\", \"iteration\": 0}");
    assert_int_equal(ls_log_read(log, path, NULL), 0);
    assert_int_equal(log->state.cut_off, 0);
    assert_int_equal(log->state.events, 1);
    ls_log_free(log);
}

/* A long series keeps its mean and its extremes in bounded memory. */
static void test_long(void **state)
{
    (void)state;
    struct ls_series series = {.name = NULL};
    const int64_t all = 100000;
    int64_t count = 0;
    double sum = 0;
    for (int64_t i = 1; i <= all; i++)
        assert_true(ls_series_add(&series, i, (double)i, (uint64_t)i));
    assert_true(series.count <= LS_SERIES_POINTS);
    for (size_t i = 0; i < series.count; i++) {
        assert_int_equal(series.points[i].first, count + 1);
        count += series.points[i].count;
        assert_int_equal(series.points[i].last, count);
        sum += series.points[i].mean * (double)series.points[i].count;
    }
    assert_int_equal(count, all);
    assert_float_equal(sum / (double)all, (double)(all + 1) / 2, 1e-6);
    ls_series_free(&series);
}

static void test_limits(void **state)
{
    (void)state;
    struct lockstep_log *log = ls_log_new();
    for (int i = 0; i < 300; i++) {
        char line[200];
        snprintf(line, sizeof line,
                 "{\"event\": \"test\", \"iteration\": 1, \"outputs\": [{\"name\": \"n%d\", "
                 "\"values\": [1]}]}",
                 i);
        take(log, line);
        snprintf(line, sizeof line, "{\"event\": \"run\", \"iteration\": 0, \"f%d\": 1}", i);
        take(log, line);
        take(log, "{\"event\": \"notice\", \"iteration\": 1, \"text\": \"again\"}");
    }
    assert_int_equal(log->series_count, LS_LOG_SERIES);
    assert_int_equal(log->fact_count, LS_LOG_FACTS);
    assert_int_equal(log->message_count, LS_LOG_MESSAGES);
    ls_log_free(log);
}

static void test_parting(void **state)
{
    (void)state;
    struct lockstep_log *a = ls_log_new(), *b = ls_log_new();
    struct lockstep_parting parting;
    for (int i = 1; i <= 60; i++) {
        take_loss(a, i, 1.0 / i);
        take_loss(b, i, 1.0 / i + (i >= 37 ? 1e-15 : 0) + (i == 50 ? 0.25 : 0));
    }
    take(a, "{\"event\": \"hash\", \"iteration\": 20, \"weights\": \"1\"}");
    take(b, "{\"event\": \"hash\", \"iteration\": 20, \"weights\": \"1\"}");
    take(a, "{\"event\": \"hash\", \"iteration\": 40, \"weights\": \"2\"}");
    take(b, "{\"event\": \"hash\", \"iteration\": 40, \"weights\": \"3\"}");
    ls_log_compare(a, b, &parting);
    assert_int_equal(parting.common, 60);
    assert_int_equal(parting.same_until, 36);
    assert_int_equal(parting.differs_by, 37);
    assert_float_equal(parting.first, 1.0 / 37, 0);
    assert_int_equal(parting.largest_iteration, 50);
    assert_float_equal(parting.largest, 0.25, 1e-12);
    assert_int_equal(parting.weights_same_until, 20);
    assert_int_equal(parting.weights_differ_by, 40);
    ls_log_compare(a, a, &parting);
    assert_int_equal(parting.differs_by, 0);
    assert_int_equal(parting.same_until, 60);
    assert_int_equal(parting.weights_same_until, 40);
    ls_log_free(a);
    ls_log_free(b);
}

/* Logs of different lengths, whose points stand for different numbers of updates. */
static void test_parting_of_long_logs(void **state)
{
    (void)state;
    struct lockstep_log *a = ls_log_new(), *b = ls_log_new();
    struct lockstep_parting parting;
    for (int i = 1; i <= 3 * LS_SERIES_POINTS; i++) {
        take_loss(a, i, i);
        if (i <= LS_SERIES_POINTS)
            take_loss(b, i, i == 1001 ? 0.5 : i);
    }
    ls_log_compare(a, b, &parting);
    assert_in_range(parting.differs_by, 1001, 1004);
    assert_in_range(parting.same_until, 996, 1000);
    ls_log_free(a);
    ls_log_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_events),       cmocka_unit_test(test_last),
        cmocka_unit_test(test_resume),       cmocka_unit_test(test_bad_lines),
        cmocka_unit_test(test_better),       cmocka_unit_test(test_better),
        cmocka_unit_test(test_broken_lines), cmocka_unit_test(test_files),
        cmocka_unit_test(test_long),         cmocka_unit_test(test_limits),
        cmocka_unit_test(test_parting),      cmocka_unit_test(test_parting_of_long_logs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
