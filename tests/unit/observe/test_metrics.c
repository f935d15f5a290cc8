/* Prometheus' text format: every line is a comment of its two kinds or a sample; what is in a
 * label is escaped; the file is replaced now and then and as a whole.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "observe/metrics.h"
#include "support/support.h"

static double now = 1000;
static double fake_clock(void)
{
    return now;
}

static void send(struct lockstep_metrics *metrics, const struct lockstep_event *event)
{
    assert_int_equal(ls_metrics_event(metrics, event, NULL), 0);
}

static void send_update(struct lockstep_metrics *metrics, int64_t iteration)
{
    send(metrics, &(struct lockstep_event){.kind = LOCKSTEP_EVENT_PROGRESS,
                                           .iteration = iteration,
                                           .iteration_end = 50,
                                           .data_loss = 0.25,
                                           .learning_rate = 0.1,
                                           .samples_per_second = 300});
}

/* A line is "# HELP name words", "# TYPE name type" or "name[{labels}] number". */
static void check_line(const char *line)
{
    const char *at = line;
    if (strncmp(line, "# HELP lockstep_", 16) == 0 || strncmp(line, "# TYPE lockstep_", 16) == 0)
        return;
    assert_memory_equal(line, "lockstep_", 9);
    while (islower((unsigned char)*at) || *at == '_')
        at++;
    if (*at == '{')
        at = strrchr(line, '}') + 1;
    assert_int_equal(*at, ' ');
    char *end;
    strtod(at + 1, &end);
    assert_true(end > at + 1);
    assert_int_equal(*end, '\0');
}

static char *read_metrics(const char *path)
{
    size_t size;
    char *text = ls_test_read(path, &size), *copy = strdup(text);
    assert_int_equal(text[size - 1], '\n');
    for (char *line = strtok(copy, "\n"); line != NULL; line = strtok(NULL, "\n"))
        check_line(line);
    free(copy);
    return text;
}

static void check_has(const char *path, const char *wanted)
{
    char *text = read_metrics(path);
    if (strstr(text, wanted) == NULL)
        fail_msg("no '%s' in:\n%s", wanted, text);
    free(text);
}

static void figures_are_in_the_file(void **state)
{
    (void)state;
    const char *path = ls_test_path("lockstep.prom");
    const double value = (double)INFINITY, figures[2] = {1, 2};
    const struct lockstep_output outputs[2] = {{.name = "a\"\\b\n", .values = &value, .count = 1},
                                               {.name = "recall", .values = figures, .count = 2}};
    const struct lockstep_run run = {.ranks = 3, .workers = 12, .memory = 1 << 30};
    struct lockstep_metrics *metrics;
    assert_int_equal(ls_metrics_new(path, fake_clock, &metrics, NULL), 0);
    check_has(path, "# TYPE lockstep_running gauge\nlockstep_running 0\n");
    now += 6;
    send(metrics, &(struct lockstep_event){.kind = LOCKSTEP_EVENT_RUN, .run = &run});
    send_update(metrics, 7); /* not written: five seconds have not passed */
    check_has(path, "\nlockstep_iteration 0\n");
    check_has(path, "\nlockstep_workers 12\n");
    now += 5;
    send(metrics, &(struct lockstep_event){.kind = LOCKSTEP_EVENT_SNAPSHOT, .iteration = 7});
    check_has(path, "\nlockstep_iteration 7\n");
    check_has(path, "\nlockstep_iteration_end 50\n");
    check_has(path, "\nlockstep_loss 0.25\n");
    check_has(path, "\nlockstep_samples_per_second 300\n");
    check_has(path, "\nlockstep_last_snapshot_time_seconds 1011.000\n");
    check_has(path, "\nlockstep_running 1\n");
    send(metrics,
         &(struct lockstep_event){
             .kind = LOCKSTEP_EVENT_TEST, .iteration = 8, .outputs = outputs, .output_count = 2});
    send(metrics, &(struct lockstep_event){.kind = LOCKSTEP_EVENT_AUDIT, .iteration = 8});
    send(metrics,
         &(struct lockstep_event){.kind = LOCKSTEP_EVENT_END, .iteration = 8, .skipped = 4});
    check_has(path, "lockstep_test{net=\"0\",output=\"a\\\"\\\\b\\n\"} +Inf\n");
    check_has(path, "\nlockstep_skipped_records_total 4\n");
    check_has(path, "\nlockstep_audit_failures_total 1\n");
    check_has(path, "lockstep_running 0\n");
    ls_metrics_free(metrics);
}

static void the_end_of_a_run_is_in_the_file(void **state)
{
    (void)state;
    const char *path = ls_test_path("end.prom");
    const struct lockstep_run run = {.ranks = 1, .workers = 2};
    struct lockstep_metrics *metrics;
    now = 1763900000.5;
    assert_int_equal(ls_metrics_new(path, fake_clock, &metrics, NULL), 0);
    send(metrics, &(struct lockstep_event){.kind = LOCKSTEP_EVENT_RUN, .run = &run});
    now += 2.25;
    assert_int_equal(ls_metrics_end(metrics, 9, NULL), 0);
    check_has(path, "\nlockstep_running 0\n");
    check_has(path, "\nlockstep_start_time_seconds 1763900000.500\n");
    check_has(path, "\nlockstep_end_time_seconds 1763900002.750\n");
    check_has(path, "\nlockstep_exit_code 9\n");
    send_update(metrics, 9); /* of another thread, which has not heard of it */
    assert_int_equal(ls_metrics_end(metrics, 0, NULL), 0);
    check_has(path, "\nlockstep_exit_code 9\n");
    ls_metrics_free(metrics);
}

static void labels_are_utf_8_and_numbers_short(void **state)
{
    (void)state;
    const char *path = ls_test_path("labels.prom");
    const double value = (double)0.002F;
    char name[400] = "l\377\xc3\xa9\xe2\x82";
    const struct lockstep_output output = {.name = name, .values = &value, .count = 1};
    struct lockstep_event event = {
        .kind = LOCKSTEP_EVENT_TEST, .outputs = &output, .output_count = 1};
    const struct lockstep_run run = {.ranks = 1};
    struct lockstep_metrics *metrics;
    assert_int_equal(ls_metrics_new(path, fake_clock, &metrics, NULL), 0);
    send(metrics, &(struct lockstep_event){.kind = LOCKSTEP_EVENT_RUN, .run = &run});
    send(metrics, &event);
    memset(name, 'n', 198);
    memcpy(name + 198, "\xc3\xa9", 3); /* is cut off as a whole */
    send(metrics, &event);
    assert_int_equal(ls_metrics_end(metrics, 0, NULL), 0);
    check_has(path, "output=\"l\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd\"} 0.002\n");
    check_has(path, "nnn\"} 0.002\n");
    ls_metrics_free(metrics);
}

static void what_cannot_be_written_is_told(void **state)
{
    (void)state;
    struct lockstep_metrics *metrics;
    static struct ls_error error;
    assert_int_equal(ls_metrics_new("/nonexistent/m.prom", NULL, &metrics, &error),
                     LOCKSTEP_RESOURCE);
    assert_null(metrics);
    assert_true(error.count == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_are_in_the_file),
        cmocka_unit_test(the_end_of_a_run_is_in_the_file),
        cmocka_unit_test(labels_are_utf_8_and_numbers_short),
        cmocka_unit_test(what_cannot_be_written_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
