/* Pages of logs, on a fake library.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "program.h"

static void test_report(void **state)
{
    (void)state;
    assert_int_equal(RUN("report", "a.json", "b.json", "-o", "page.html"), 0);
    assert_non_null(strstr(fake.calls, "log(a.json) log(b.json) page(page.html|2|-|a|-)"));
    static const struct {
        const char *first, *second, *name;
    } names[] = {{"runs/x/log.json", "runs/y/log.json", "|x|"},
                 {"runs/x/a.json", "runs/y/b.json", "|x/a|"},
                 {"long.json", "longer.json", "|long|"},
                 {"a/log.json", "log.json", "|a/log|"},
                 {"same.json", "same.json", "|same|"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        fake_reset();
        assert_int_equal(RUN("report", names[i].first, names[i].second, "-o", "p"), 0);
        assert_non_null(strstr(fake.calls, names[i].name));
    }
    fake_reset();
    assert_int_equal(RUN("report", "/tmp/digits/log.json", "-o", "p"), 0);
    assert_non_null(strstr(fake.calls, "|digits|"));
    const char *model = ls_test_path("net.prototxt");
    ls_test_write_text(model, "name: \"n\"");
    assert_int_equal(
        RUN("report", "a.json", "-o", "p", "--name", "first", "--title", "T", "--model", model), 0);
    assert_non_null(strstr(fake.calls, "page(p|1|T|first|net)"));
}

/* With weights: how the net does, class by class, and its worst samples. */
static void test_report_of_model(void **state)
{
    (void)state;
    const char *model = ls_test_path("net.prototxt");
    ls_test_write_text(model, "name: \"n\"");
    assert_int_equal(RUN("report", "a", "-o", "p", "--model", model, "--weights", "w", "--samples",
                         "50", "--worst", "7"),
                     0);
    assert_non_null(strstr(fake.calls, "confusion(50|7) "));
    assert_non_null(strstr(fake.calls, "classes(3|2|sample 1\nis dog, \"big\", taken for cat\n"
                                       "0.05 for its label|-1)"));
    assert_int_equal(RUN("report", "a", "-o", "p", "--weights", "w"), LOCKSTEP_USAGE);
    fake.confusion_status = LOCKSTEP_DEFINITION;
    assert_int_equal(RUN("report", "a", "-o", "p", "--model", model, "--weights", "w"),
                     LOCKSTEP_DEFINITION);
}

/* A net that finds boxes. */
static void test_report_of_boxes(void **state)
{
    (void)state;
    const char *model = ls_test_path("net.prototxt");
    ls_test_write_text(model, "name: \"n\"");
    fake.boxes = 1;
    assert_int_equal(RUN("report", "a", "-o", "p", "--model", model, "--weights", "w"), 0);
    assert_non_null(strstr(fake.calls, "boxes(0|24|0.5) "));
    assert_non_null(strstr(fake.calls, "found(2|sample 3\n1 right, 1 missed, 0 wrong|2) "));
    assert_null(strstr(fake.calls, "confusion"));
    assert_int_equal(RUN("report", "a", "-o", "p", "--model", model, "--weights", "w", "--score",
                         "0.125", "--samples", "5"),
                     0);
    assert_non_null(strstr(fake.calls, "boxes(5|24|0.125) "));
    assert_int_equal(RUN("report", "a", "-o", "p", "--score", "1.5"), LOCKSTEP_USAGE);
    assert_int_equal(RUN("report", "a", "-o", "p", "--score", "0.5x"), LOCKSTEP_USAGE);
    fake.confusion_status = LOCKSTEP_DIVERGED;
    assert_int_equal(RUN("report", "a", "-o", "p", "--model", model, "--weights", "w"),
                     LOCKSTEP_DIVERGED);
}

/* Without --weights: those that the log names, the best before the last, as the log says where or
 * beside it. A page goes without them where they do not do. */
static void test_report_of_log(void **state)
{
    (void)state;
    char model[512], log[512], best[512], last[512];
    snprintf(model, sizeof model, "%s", ls_test_path("net.prototxt"));
    snprintf(log, sizeof log, "%s", ls_test_path("log.json"));
    snprintf(best, sizeof best, "%s", ls_test_path("s_best.safetensors"));
    snprintf(last, sizeof last, "%s", ls_test_path("s_iter_5.safetensors"));
    ls_test_write_text(model, "name: \"n\"");
    ls_test_write_text(log, "{}");
    ls_test_write_text(last, "");
    assert_int_equal(RUN("report", log, "-o", "p", "--model", model), 0);
    assert_null(strstr(fake.calls, "confusion"));
    fake_reset();
    fake.last_snapshot = last;
    fake.best_snapshot = "elsewhere/s_best.safetensors"; /* not there yet */
    assert_int_equal(RUN("report", log, "-o", "p", "--model", model), 0);
    assert_non_null(strstr(fake.calls, "s_iter_5.safetensors"));
    assert_non_null(strstr(fake.calls, "confusion(0|24) "));
    ls_test_write_text(best, "");
    fake_reset();
    fake.last_snapshot = last;
    fake.best_snapshot = "elsewhere/s_best.safetensors";
    assert_int_equal(RUN("report", log, "-o", "p", "--model", model), 0);
    assert_non_null(strstr(fake.calls, best));
    fake_reset();
    fake.last_snapshot = last;
    assert_int_equal(RUN("report", log, "-o", "p", "--model", model, "--weights", "none"), 0);
    assert_null(strstr(fake.calls, "confusion"));
    fake_reset();
    fake.last_snapshot = last;
    fake.confusion_status = LOCKSTEP_DEFINITION;
    assert_int_equal(RUN("report", log, "-o", "p", "--model", model), 0);
    assert_non_null(strstr(messages, "the page goes without classes and samples"));
    assert_non_null(strstr(fake.calls, "page(p|1|"));
    assert_null(strstr(fake.calls, "classes("));
}

static void test_confusion(void **state)
{
    (void)state;
    assert_int_equal(RUN("test", "--model", "m", "--weights", "w", "--per-class", "--confusion"),
                     0);
    assert_non_null(strstr(fake.calls, "confusion(10000|0) "));
    assert_non_null(strstr(out, "class                precision    recall        F1      count\n"));
    assert_non_null(strstr(out, "cat                     0.9934    0.9987    0.9960       1502\n"));
    assert_non_null(strstr(out, "Accuracy 0.992063 of 1512 samples; 3 labels name no class\n"));
    assert_non_null(strstr(out, "\n 1 dog, \"big\"             10    0    0\n"));
    assert_int_equal(RUN("test", "--model", "m", "--weights", "w", "--per-class"), 0);
    assert_null(strstr(out, "Rows: labels"));
    assert_int_equal(RUN("test", "--model", "m", "--weights", "w", "--json"), 0);
    assert_string_equal(out, "{\"samples\": 10000, \"outputs\": [{\"name\": \"accuracy\", "
                             "\"values\": [0.75], \"loss_weight\": 0}, {\"name\": \"loss\", "
                             "\"values\": [0.5], \"loss_weight\": 2}]}\n");
    assert_int_equal(RUN("test", "--model", "m", "--weights", "w", "--json", "--confusion"), 0);
    assert_non_null(strstr(out, "\"confusion\": [[1500, 2, 0], [10, 0, 0], [0, 0, 0]]}\n"));
    assert_non_null(strstr(out, "{\"name\": null, \"count\": 0, \"predicted\": 0, \"right\": 0, "
                                "\"precision\": null"));
    fake.confusion_status = LOCKSTEP_DEFINITION;
    assert_int_equal(RUN("test", "--model", "m", "--weights", "w", "--confusion"),
                     LOCKSTEP_DEFINITION);
    assert_non_null(strstr(out, "Tested 10000 samples."));
}

static void test_report_errors(void **state)
{
    (void)state;
    assert_int_equal(RUN("report", "a.json"), LOCKSTEP_USAGE);
    assert_non_null(strstr(messages, "-o FILE is missing"));
    assert_int_equal(RUN("report", "-o", "p"), LOCKSTEP_USAGE);
    assert_int_equal(RUN("report", "a", "-o", "p", "--name", "1", "--name", "2"), LOCKSTEP_USAGE);
    assert_int_equal(RUN("report", "1", "2", "3", "4", "5", "6", "7", "8", "9", "-o", "p"),
                     LOCKSTEP_USAGE);
    assert_int_equal(RUN("report", "bad.json", "-o", "p"), LOCKSTEP_DATA);
    assert_null(strstr(fake.calls, "page"));
    fake.load_status = LOCKSTEP_DEFINITION;
    assert_int_equal(RUN("report", "a", "-o", "p", "--model", "/no/such/file"), LOCKSTEP_USAGE);
    fake.load_status = 0;
    fake.convert_status = LOCKSTEP_RESOURCE;
    assert_int_equal(RUN("report", "a.json", "-o", "p"), LOCKSTEP_RESOURCE);
}

/* The page never takes the place of what it is made of. */
static void test_report_keeps_inputs(void **state)
{
    (void)state;
    const char *log = ls_test_path("log.json");
    ls_test_write_text(log, "{}");
    assert_int_equal(RUN("report", log, "-o", log), LOCKSTEP_USAGE);
    assert_int_equal(RUN("report", "a", "-o", log, "--model", log), LOCKSTEP_USAGE);
    assert_string_equal(fake.calls, "");
}

static size_t lines(const char *text)
{
    size_t count = 0;
    for (; *text != '\0'; text++)
        count += *text == '\n';
    return count;
}

/* A training with a page: its events in a file, its page at displays and at the end. */
static void test_live_page(void **state)
{
    (void)state;
    char folder[512], path[600];
    size_t size;
    snprintf(folder, sizeof folder, "%s", ls_test_path("pages"));
    snprintf(path, sizeof path, "%s/log.json", folder);
    const struct lockstep_run facts = {.max_iter = 10}, resumed = {.first_iteration = 5};
    struct lockstep_event events[] = {
        {.kind = LOCKSTEP_EVENT_WARNING, .text = "early"},
        {.kind = LOCKSTEP_EVENT_RUN, .run = &facts},
        {.kind = LOCKSTEP_EVENT_PROGRESS, .iteration = 1, .data_loss = 2},
        {.kind = LOCKSTEP_EVENT_DISPLAY, .iteration = 1},
        {.kind = LOCKSTEP_EVENT_END, .iteration = 10}};
    fake.events = events;
    fake.event_count = sizeof events / sizeof *events;
    assert_int_equal(RUN("train", "--solver", "s", "--report", folder), 0);
    assert_non_null(strstr(fake.calls, "report.html|1|-|s|net) "));
    char *first = ls_test_read(path, &size);
    assert_int_equal(strncmp(first, "{\"event\": \"warning\"", 19), 0);
    assert_non_null(strstr(first, "\"event\": \"end\""));
    /* Another training begins anew, one that is resumed goes on, behind a line that is cut off. */
    assert_int_equal(RUN("train", "--solver", "s", "--report", folder), 0);
    char *second = ls_test_read(path, &size);
    assert_int_equal(lines(first), 5);
    assert_int_equal(lines(second), 5);
    ls_test_write(path, second, size - 10);
    events[1].run = &resumed;
    assert_int_equal(RUN("train", "--solver", "s", "--report", folder), 0);
    char *third = ls_test_read(path, &size);
    assert_int_equal(lines(third), 10);
    assert_int_equal(strncmp(second, third, strlen(second) - 10), 0);
    assert_non_null(strstr(third, "\n{\"event\": \"warning\""));
    free(first);
    free(second);
    free(third);
}

/* A page that lockstep did not write stays. */
static void test_live_page_of_others(void **state)
{
    (void)state;
    char folder[512], path[600];
    snprintf(folder, sizeof folder, "%s", ls_test_directory());
    snprintf(path, sizeof path, "%s/report.html", folder);
    ls_test_write_text(path, "<html>mine</html>");
    assert_int_equal(RUN("train", "--solver", "s", "--report", folder), LOCKSTEP_USAGE);
    assert_non_null(strstr(messages, "was not written by lockstep"));
    assert_null(strstr(fake.calls, "run("));
    assert_int_equal(RUN("train", "--solver", "s", "--report", "/no/such/folder"),
                     LOCKSTEP_RESOURCE);
    fake.convert_status = LOCKSTEP_RESOURCE;
    const struct lockstep_run facts = {.max_iter = 10};
    const struct lockstep_event event = {.kind = LOCKSTEP_EVENT_RUN, .run = &facts};
    fake.events = &event;
    fake.event_count = 1;
    assert_int_equal(RUN("train", "--solver", "s", "--report", ls_test_path("full")),
                     LOCKSTEP_RESOURCE);
    assert_non_null(strstr(messages, "the report could not be written completely"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_report),          TEST(test_report_errors), TEST(test_report_keeps_inputs),
        TEST(test_report_of_model), TEST(test_report_of_log), TEST(test_report_of_boxes),
        TEST(test_confusion),       TEST(test_live_page),     TEST(test_live_page_of_others)};
    return cmocka_run_group_tests(tests, NULL, free_texts);
}
