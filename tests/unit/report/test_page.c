/* Pages of logs.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/html.h"
#include "report/page.h"
#include "support/support.h"

static void take(struct lockstep_log *log, const char *line)
{
    assert_int_equal(ls_log_line(log, line, strlen(line), NULL), 0);
}

/* A log of 100 updates whose texts are as bad as they can be. */
static struct lockstep_log *make_log(double offset)
{
    struct lockstep_log *log = ls_log_new();
    take(log, "{\"event\": \"run\", \"iteration\": 0, \"elapsed\": 0, \"solver\": "
              "\"</table><script>alert(1)</script>\", \"memory\": 1048576}");
    for (int i = 1; i <= 100; i++) {
        char line[200];
        snprintf(line, sizeof line,
                 "{\"event\": \"progress\", \"iteration\": %d, \"data_loss\": %.9g}", i,
                 1.0 / i + offset);
        take(log, line);
    }
    take(log, "{\"event\": \"test\", \"iteration\": 100, \"outputs\": [{\"name\": "
              "\"a</script>\\\"&'\", \"values\": [0.5]}]}");
    take(log, "{\"event\": \"warning\", \"iteration\": 5, \"text\": \"<img onerror=x>\"}");
    return log;
}

static size_t count(const char *text, const char *word)
{
    size_t found = 0;
    for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word))
        found++;
    return found;
}

static char *write_page(const struct lockstep_log *const *logs, size_t many,
                        const struct lockstep_page_options *options)
{
    size_t size;
    const char *path = ls_test_path("page.html");
    assert_int_equal(ls_page_write(path, logs, many, options, NULL), 0);
    char *page = ls_test_read(path, &size);
    assert_int_equal(strlen(page), size);
    return page;
}

/* Nothing of a log becomes an element, an address or a script. */
static void test_escaped(void **state)
{
    (void)state;
    struct lockstep_log *log = make_log(0);
    const char *names[] = {"<em>\"run\"</em>\xff\x01"};
    const struct lockstep_page_options options = {.names = names, .definition = "</pre><i>"};
    char *page = write_page((const struct lockstep_log *const[]){log}, 1, &options);
    assert_int_equal(count(page, "<script"), 2);
    assert_int_equal(count(page, "</script>"), 2);
    assert_null(strstr(page, "<em>"));
    assert_null(strstr(page, "<i>"));
    assert_null(strstr(page, "<img"));
    assert_null(strstr(page, "src="));
    assert_null(strstr(page, "href="));
    assert_non_null(strstr(page, "&lt;/table&gt;&lt;script&gt;"));
    assert_non_null(strstr(page, "&lt;em&gt;&quot;run&quot;&lt;/em&gt;\xef\xbf\xbd\xef\xbf\xbd"));
    assert_non_null(strstr(page, "1.0 MiB"));
    free(page);
    ls_log_free(log);
}

static void test_curves(void **state)
{
    (void)state;
    struct lockstep_log *a = make_log(0), *b = make_log(0.5);
    const struct lockstep_log *both[] = {a, b};
    const struct lockstep_page_options options = {
        .title = "two", .net = "<svg id=\"drawing\"></svg>", .refresh = 5};
    char *page = write_page(both, 2, &options);
    /* The loss raw and smoothed; the output of a single test is no chart. */
    assert_int_equal(count(page, "<path class=\"raw r0 d0\""), 1);
    assert_int_equal(count(page, "<path class=\"line r0 d0\" d=\"M"), 4); /* three are in keys */
    assert_int_equal(count(page, "<figure class=\"chart\""), 1);
    assert_int_equal(count(page, "<figure class=\"single\""), 1);
    assert_non_null(strstr(page, "Where the two runs part"));
    assert_non_null(strstr(page, "differ by update 1: "));
    assert_non_null(strstr(page, "<svg id=\"drawing\">"));
    assert_non_null(strstr(page, "http-equiv=\"refresh\" content=\"5\""));
    assert_non_null(strstr(page, "prefers-color-scheme:dark"));
    assert_non_null(strstr(page, "@media print"));
    free(page);
    page = write_page((const struct lockstep_log *const[]){a, a}, 2, &options);
    assert_non_null(strstr(page, "All 100 losses that both logs have are equal"));
    free(page);
    ls_log_free(a);
    ls_log_free(b);
}

/* A log with tests: the figures of many nets. */
static struct lockstep_log *make_tested(bool ended)
{
    struct lockstep_log *log = ls_log_new();
    take(log, "{\"event\": \"run\", \"iteration\": 0, \"elapsed\": 0, \"net\": \"A <net>\", "
              "\"max_iter\": 1000, \"iterations_per_epoch\": 250}");
    for (int i = 0; i <= 1000; i += 10) {
        char line[600];
        snprintf(line, sizeof line,
                 "{\"event\": \"progress\", \"iteration\": %d, \"elapsed\": %g, \"iteration_end\": "
                 "%d, \"data_loss\": %g, \"samples_per_second\": 1e3}",
                 i, 0.25 * i, ended ? 1000 : 2000, 2 - 0.001 * i);
        take(log, line);
        if (i % 500 != 0)
            continue;
        snprintf(line, sizeof line,
                 "{\"event\": \"test\", \"iteration\": %d, \"elapsed\": %g, \"outputs\": ["
                 "{\"name\": \"AP\", \"values\": [0, 0.5, 0.75], \"loss_weight\": 0}, "
                 "{\"name\": \"mAP\", \"values\": [%g], \"loss_weight\": 0}, "
                 "{\"name\": \"boxes\", \"values\": [0.5], \"loss_weight\": 2}, "
                 "{\"name\": \"classes\", \"values\": [0.25], \"loss_weight\": 1}]}",
                 i, 0.25 * i, i == 500 ? 0.75 : 0.5);
        take(log, line);
    }
    if (ended)
        take(log, "{\"event\": \"end\", \"iteration\": 1000, \"elapsed\": 250, \"data_loss\": 1}");
    return log;
}

/* Training and tests share charts; what matters most comes first, with its best. */
static void test_charts(void **state)
{
    (void)state;
    struct lockstep_log *log = make_tested(true);
    const struct lockstep_page_options options = {.title = NULL};
    char *page = write_page((const struct lockstep_log *const[]){log}, 1, &options);
    assert_non_null(strstr(page, "<h1>A &lt;net&gt;</h1>"));
    assert_non_null(strstr(page, "<dd>done</dd>"));
    const char *loss = strstr(page, "<figcaption>Loss</figcaption>");
    const char *next = strstr(page, "<figcaption>mAP</figcaption>");
    assert_true(loss != NULL && next != NULL && loss < next);
    char *chart = strndup(loss, (size_t)(next - loss));
    assert_non_null(strstr(chart, "training <b>1</b>"));
    assert_non_null(strstr(chart, "test <b>1.25</b>")); /* 2 x 0.5 + 0.25 */
    assert_int_equal(count(chart, "<path class=\"line "), 4);
    assert_non_null(strstr(chart, ">updates</text>"));
    assert_non_null(strstr(chart, ">epochs</text>"));
    /* The last number below the axis ends inside of the drawing. */
    assert_non_null(strstr(chart, "<text class=\"tx\" x=\"462.0\" y=\"288.0\">1000</text>"));
    free(chart);
    assert_non_null(strstr(page, "<dt>mAP</dt><dd>0.5<small>best 0.75 at 500</small>"));
    assert_true(strstr(page, "<dt>mAP</dt>") < strstr(page, "<dt>AP[0]</dt>"));
    assert_null(strstr(page, "samples_per_second"));
    assert_non_null(strstr(page, "Samples per second"));
    assert_int_equal(count(page, "<figcaption>Loss</figcaption>"), 1);
    free(page);
    ls_log_free(log);
}

/* A training that goes on, and one that ended without a word. */
static void test_progress(void **state)
{
    (void)state;
    struct lockstep_log *log = make_tested(false);
    const struct lockstep_log *one[] = {log};
    struct lockstep_page_options options = {.refresh = 15};
    char *page = write_page(one, 1, &options);
    assert_non_null(strstr(page, "<dd>running</dd>"));
    assert_non_null(strstr(page, "aria-valuenow=\"50\""));
    assert_non_null(strstr(page, "<p>50 %, about 4 min 10 s left</p>"));
    assert_non_null(strstr(page, "1,000 of 2,000<small>epoch 4</small>"));
    free(page);
    options.refresh = 0;
    page = write_page(one, 1, &options);
    assert_non_null(strstr(page, "<dd>interrupted</dd>"));
    assert_null(strstr(page, " left</p>"));
    free(page);
    log->written = time(NULL); /* a file that has just been written to */
    page = write_page(one, 1, &options);
    assert_non_null(strstr(page, "<dd>running</dd>"));
    free(page);
    ls_log_free(log);
}

/* Figures that no scale is made for. */
static void test_extremes(void **state)
{
    (void)state;
    static const char *const losses[][2] = {{"1e308", "-1e308"},
                                            {"5e-324", "0"},
                                            {"1e300", "1e300"},
                                            {"0", "0"},
                                            {"1", "1.0000000000000002"}};
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++) {
        struct lockstep_log *log = ls_log_new();
        for (int k = 0; k < 2; k++) {
            char line[160];
            snprintf(line, sizeof line,
                     "{\"event\": \"progress\", \"iteration\": %s, \"data_loss\": %s}",
                     k == 0 ? "0" : "922337203685477580", losses[i][k]);
            take(log, line);
        }
        const struct lockstep_page_options options = {.title = NULL};
        char *page = write_page((const struct lockstep_log *const[]){log}, 1, &options);
        const char *plot = strstr(page, "<g class=\"plot\">");
        assert_non_null(plot);
        const size_t length = (size_t)(strstr(plot, "</g>") - plot);
        char *drawing = strndup(plot, length);
        assert_null(strstr(drawing, "nan"));
        assert_null(strstr(drawing, "inf"));
        assert_true(length < 20000);
        free(drawing);
        free(page);
        ls_log_free(log);
    }
}

static void test_times(void **state)
{
    (void)state;
    struct lockstep_log *log = make_log(0);
    const struct lockstep_log *one[] = {log};
    struct lockstep_page_options options = {
        .times = "{\"layers\": [{\"name\": \"c<1>\", \"type\": \"Convolution\", \"forward\": "
                 "{\"ms\": 2.5}, \"backward_data\": {\"ms\": 4}}, {\"name\": 4}, 5]}"};
    char *page = write_page(one, 1, &options);
    assert_non_null(strstr(page, "<td>c&lt;1&gt;</td><td>Convolution</td><td class=\"n\">2.5</td>"
                                 "<td class=\"n\">4</td>"));
    free(page);
    const char *path = ls_test_path("none.html");
    options.times = "{\"layers\": 3}";
    assert_int_equal(ls_page_write(path, one, 1, &options, NULL), LOCKSTEP_DATA);
    options.times = "no JSON";
    assert_int_equal(ls_page_write(path, one, 1, &options, NULL), LOCKSTEP_DATA);
    assert_null(fopen(path, "r"));
    assert_int_equal(ls_page_write(path, one, 0, &options, NULL), LOCKSTEP_USAGE);
    ls_log_free(log);
}

static void test_classes(void **state)
{
    (void)state;
    struct lockstep_log *log = make_log(0);
    const int64_t matrix[] = {1500, 2, 10, 0};
    const struct lockstep_class_figures figures[] = {
        {.name = "<cat>", .count = 1502, .precision = 0.25}, {.count = 10, .recall = NAN}};
    const struct lockstep_confusion confusion = {.classes = 2,
                                                 .positions = 1,
                                                 .counted = 1512,
                                                 .accuracy = 0.75,
                                                 .matrix = matrix,
                                                 .figures = figures};
    const unsigned char planes[] = {255, 0, 0, 255, 0, 0};
    struct lockstep_page_picture picture = {
        .planes = planes, .shape = {3, 1, 2}, .caption = "\"<s>", .mark = -1};
    const struct lockstep_page_options options = {
        .confusion = &confusion, .pictures = &picture, .picture_count = 1, .weights = "a<b"};
    const struct lockstep_log *one[] = {log};
    char *page = write_page(one, 1, &options);
    assert_non_null(strstr(page, "Accuracy 0.75 of 1,512 samples."));
    assert_non_null(strstr(page, "With the weights a&lt;b</p>"));
    assert_non_null(strstr(page, ">1,500</td>"));
    assert_non_null(strstr(page, "<td class=\"w\">&lt;cat&gt;</td><td class=\"n\">0.2500</td>"));
    assert_non_null(strstr(page, "<figure class=\"sample bad\"><img alt=\"&quot;&lt;s&gt;\" "
                                 "src=\"data:image/png;base64,iVBORw0KGgo"));
    free(page);
    picture.shape[0] = 2;
    assert_int_equal(ls_page_write(ls_test_path("bad.html"), one, 1, &options, NULL),
                     LOCKSTEP_USAGE);
    ls_log_free(log);
}

/* Boxes over a picture, which becomes smaller where it is large. */
static void test_boxes(void **state)
{
    (void)state;
    enum { SIDE = 1025 };
    struct lockstep_log *log = make_log(0);
    const struct lockstep_class_figures figures[] = {
        {.count = 0}, {.name = "<cat>", .count = 3, .predicted = 2, .precision = 0.5}};
    const struct lockstep_found_boxes found = {
        .samples = 7, .classes = 2, .figures = figures, .judged = 1};
    const struct lockstep_box boxes[] = {
        {LOCKSTEP_BOX_RIGHT, 1, "<cat>", 0.875, 0.25, 0.5, 0.5, 1},
        {LOCKSTEP_BOX_MISSED, 7, NULL, (double)NAN, -5, 0, 1e30, 1}};
    unsigned char *planes = calloc(SIDE, 3);
    const struct lockstep_page_picture picture = {
        .planes = planes, .shape = {1, 3, SIDE}, .caption = "c", .boxes = boxes, .box_count = 2};
    const struct lockstep_page_options options = {
        .found = &found, .pictures = &picture, .picture_count = 1};
    char *page = write_page((const struct lockstep_log *const[]){log}, 1, &options);
    assert_non_null(strstr(page, "<h2>Boxes</h2>\n<p>Looked for in 7 samples."));
    assert_int_equal(count(page, "<td class=\"w\">&lt;cat&gt;</td>"), 1);
    assert_null(strstr(page, "<td class=\"w\">0</td>")); /* a class that does not occur */
    assert_non_null(strstr(page, "<g class=\"box right\"><rect x=\"75.0\""));
    assert_non_null(strstr(page, ">&lt;cat&gt; 0.88</text>"));
    assert_non_null(strstr(page, "<g class=\"box missed\"><rect x=\"0.0\" y=\"0.0\" "
                                 "width=\"300.0\" height=\"0.9\"/>"));
    assert_non_null(strstr(page, ">7</text>"));
    /* 1025 x 3 in thirds: a PNG of 342 x 1. */
    assert_non_null(strstr(page, "base64,iVBORw0KGgoAAAANSUhEUgAAAVYAAAAB"));
    free(page);
    free(planes);
    ls_log_free(log);
}

static void test_units(void **state)
{
    (void)state;
    struct ls_text text = {0};
    ls_html_count(&text, 1234567);
    ls_text_add(&text, " ");
    ls_html_count(&text, -123);
    ls_text_add(&text, " ");
    ls_html_time(&text, 12.345);
    ls_text_add(&text, " ");
    ls_html_time(&text, 125);
    ls_text_add(&text, " ");
    ls_html_time(&text, 7260);
    assert_string_equal(text.data, "1,234,567 -123 12.3 s 2 min 5 s 2 h 1 min");
    ls_text_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_escaped),  cmocka_unit_test(test_curves),
        cmocka_unit_test(test_charts),   cmocka_unit_test(test_progress),
        cmocka_unit_test(test_extremes), cmocka_unit_test(test_times),
        cmocka_unit_test(test_classes),  cmocka_unit_test(test_boxes),
        cmocka_unit_test(test_units)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
