/* Sequences of events and the exact text that they produce.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "monitor/monitor.h"
#include "monitor/terminal.h"
#include "support/support.h"

static double now; /* the clock of these tests */

static double fake_clock(void)
{
    return now;
}

/* A monitor that writes to memory. */
struct screen {
    struct ls_monitor monitor;
    FILE *out, *log;
    char *text, *log_text;
    size_t size, log_size, seen;
};

static double fake_time(void)
{
    return 1769860800.25;
}

static void open_screen(struct screen *screen, bool terminal)
{
    *screen = (struct screen){.out = NULL};
    now = 1000;
    screen->out = open_memstream(&screen->text, &screen->size);
    screen->log = open_memstream(&screen->log_text, &screen->log_size);
    assert_non_null(screen->out);
    assert_non_null(screen->log);
    ls_monitor_init(&screen->monitor, screen->out, screen->log, fake_clock);
    screen->monitor.time = fake_time;
    assert_false(screen->monitor.terminal);
    screen->monitor.terminal = terminal;
    screen->monitor.width = 80;
}

static void close_screen(struct screen *screen)
{
    fclose(screen->out);
    fclose(screen->log);
    free(screen->text);
    free(screen->log_text);
}

/* Compares what was written since the last time. */
static void expect(struct screen *screen, const char *text)
{
    fflush(screen->out);
    assert_string_equal(screen->text + screen->seen, text);
    screen->seen = screen->size;
}

static void send(struct screen *screen, struct lockstep_event event)
{
    ls_monitor_event(&screen->monitor, &event);
}

static void send_text(struct screen *screen, enum lockstep_event_kind kind, const char *text)
{
    send(screen, (struct lockstep_event){.kind = kind, .text = text});
}

static const double losses[1] = {0.21}, accuracies[1] = {0.98};
static const double classes[6] = {0.5, 0.25, 1, 0, 0, 0};
static const struct lockstep_output train_outputs[1] = {{"loss", losses, 1, 1, NULL, -1}};
static const struct lockstep_output test_outputs[2] = {{"accuracy", accuracies, 1, 0, NULL, 1},
                                                       {"loss", losses, 1, 0.5, NULL, -1}};

static void progress(struct screen *screen, int64_t iteration, double seconds)
{
    now += seconds;
    send(screen, (struct lockstep_event){.kind = LOCKSTEP_EVENT_PROGRESS,
                                         .iteration = iteration,
                                         .iteration_end = 1000,
                                         .loss = 0.213,
                                         .data_loss = 0.213,
                                         .penalty = (double)NAN,
                                         .learning_rate = 0.01,
                                         .samples_per_second = 100 / seconds,
                                         .seconds = seconds});
}

/* After update `number`, counted from 0 as Caffe does. */
static struct lockstep_event display_event(int64_t number, double seconds)
{
    return (struct lockstep_event){.kind = LOCKSTEP_EVENT_DISPLAY,
                                   .iteration = number + 1,
                                   .iteration_end = 1000,
                                   .loss = 0.213,
                                   .data_loss = 0.213,
                                   .penalty = 0.037,
                                   .learning_rate = 0.01,
                                   .seconds = seconds,
                                   .outputs = train_outputs,
                                   .output_count = 1};
}

static struct lockstep_event test_event(int net)
{
    return (struct lockstep_event){.kind = LOCKSTEP_EVENT_TEST,
                                   .iteration = 500,
                                   .iteration_end = 1000,
                                   .test_net = net,
                                   .samples = 10000,
                                   .skipped = 3,
                                   .outputs = test_outputs,
                                   .output_count = 2};
}

static void lines_read_as_caffe_writes_them(void **state)
{
    (void)state;
    struct screen screen;
    open_screen(&screen, false);
    send_text(&screen, LOCKSTEP_EVENT_START, "batch 64, workers 2");
    send_text(&screen, LOCKSTEP_EVENT_WARNING, "max_iter is less than an epoch");
    expect(&screen, "batch 64, workers 2\nwarning: max_iter is less than an epoch\n");
    send(&screen, display_event(0, 0));
    expect(&screen, "Iteration 0, loss = 0.213\n"
                    "    Train net output #0: loss = 0.21 (* 1 = 0.21 loss)\n"
                    "Iteration 0, penalty = 0.037\n"
                    "Iteration 0, lr = 0.01\n");
    progress(&screen, 50, 1);
    expect(&screen, "");
    send(&screen, display_event(100, 2.7));
    expect(&screen, "Iteration 100 (37.04 iter/s, 2.7s/100 iters, 24s left), loss = 0.213\n"
                    "    Train net output #0: loss = 0.21 (* 1 = 0.21 loss)\n"
                    "Iteration 100, penalty = 0.037\n"
                    "Iteration 100, lr = 0.01\n");
    send(&screen, test_event(0));
    expect(&screen, "Iteration 500, Testing net (#0)\n"
                    "    Test net output #0: accuracy = 0.98\n"
                    "    Test net output #1: loss = 0.21 (* 0.5 = 0.105 loss)\n");
    send(&screen, test_event(-1));
    expect(&screen, "Iteration 500, Testing on the train data\n"
                    "    Train data output #0: accuracy = 0.98\n"
                    "    Train data output #1: loss = 0.21 (* 0.5 = 0.105 loss)\n");
    static const char *const names[] = {NULL, "cat", ""};
    static const struct lockstep_output of_classes[2] = {{"class_iou", classes, 3, 0, names, 1},
                                                         {"mean_iou", classes, 1, 0, NULL, 1}};
    struct lockstep_event by_class = test_event(0);
    by_class.outputs = of_classes;
    send(&screen, by_class);
    expect(&screen, "Iteration 500, Testing net (#0)\n"
                    "    Test net output #0: class_iou[1] = 0.25 (cat)\n"
                    "    Test net output #1: class_iou[2] = 1\n"
                    "    Test net output #2: mean_iou = 0.5\n");
    struct lockstep_event with_loss = test_event(1);
    with_loss.data_loss = 0.105;
    send(&screen, with_loss);
    expect(&screen, "Iteration 500, Testing net (#1)\n"
                    "Test loss: 0.105\n"
                    "    Test net output #0: accuracy = 0.98\n"
                    "    Test net output #1: loss = 0.21 (* 0.5 = 0.105 loss)\n");
    send_text(&screen, LOCKSTEP_EVENT_SNAPSHOT, "out/lenet_iter_500.safetensors");
    send_text(&screen, LOCKSTEP_EVENT_NOTICE, "an update is late");
    send(&screen, (struct lockstep_event){.kind = LOCKSTEP_EVENT_END, .iteration = 101});
    expect(&screen, "Snapshotting to out/lenet_iter_500.safetensors\nan update is late\n"
                    "Optimization Done.\n");
    assert_string_equal(screen.monitor.last_snapshot, "out/lenet_iter_500.safetensors");
    close_screen(&screen);
}

/* Without `display`, there is a line before ten seconds are over, and no more than one. */
static void without_display_there_is_a_line_every_ten_seconds(void **state)
{
    (void)state;
    struct screen screen;
    open_screen(&screen, false);
    send_text(&screen, LOCKSTEP_EVENT_START, "go");
    expect(&screen, "go\n");
    for (int64_t iteration = 1; iteration <= 4; iteration++) {
        progress(&screen, iteration, 2);
        expect(&screen, "");
    }
    progress(&screen, 5, 2); /* ten seconds, and another update would take two more */
    expect(&screen, "Iteration 4 (0.5 iter/s, 10s/5 iters, 33:10 left), loss = 0.213\n");
    progress(&screen, 6, 2);
    expect(&screen, "");
    progress(&screen, 7, 30); /* a slow one is told at once */
    expect(&screen, "Iteration 6 (0.0625 iter/s, 32s/2 iters, 4h24 left), loss = 0.213\n");
    progress(&screen, 8, 4);
    send(&screen, display_event(9, 5)); /* counts as a line, too */
    expect(&screen, "Iteration 9, loss = 0.213\n"
                    "    Train net output #0: loss = 0.21 (* 1 = 0.21 loss)\n"
                    "Iteration 9, penalty = 0.037\n"
                    "Iteration 9, lr = 0.01\n");
    progress(&screen, 10, 5);
    expect(&screen, "");
    close_screen(&screen);
}

/* Without `display` the loss is still printed: twenty times, and at the end. */
static void without_display_the_loss_is_still_printed(void **state)
{
    (void)state;
    struct screen screen;
    const struct lockstep_run run = {.max_iter = 2000, .iteration_end = 1000, .solver = "SGD"};
    open_screen(&screen, false);
    send(&screen, (struct lockstep_event){.kind = LOCKSTEP_EVENT_RUN, .run = &run});
    expect(&screen, "");
    progress(&screen, 1, 0.125);
    expect(&screen, "Iteration 0 (8 iter/s, 0.125s/1 iters, 2:05 left), loss = 0.213\n");
    int lines = 0;
    for (int64_t iteration = 2; iteration <= 1000; iteration++) {
        progress(&screen, iteration, 0.125);
        fflush(screen.out);
        lines += screen.size != screen.seen;
        screen.seen = screen.size;
    }
    assert_int_equal(lines, 20);
    assert_non_null(
        strstr(screen.text, "Iteration 999 (8 iter/s, 6.25s/50 iters), loss = 0.213\n"));
    send(&screen, (struct lockstep_event){.kind = LOCKSTEP_EVENT_END,
                                          .iteration = 1000,
                                          .iteration_end = 1000,
                                          .data_loss = 0.213});
    expect(&screen, "Stopped after iteration 1000 of 2000.\n");
    fflush(screen.log);
    assert_non_null(strstr(screen.log_text, "\"solver\": \"SGD\", \"lr_policy\": null"));
    close_screen(&screen);
}

static void the_live_line_gives_way_to_lines(void **state)
{
    (void)state;
    struct screen screen;
    open_screen(&screen, true);
    send_text(&screen, LOCKSTEP_EVENT_START, "go");
    expect(&screen, "go\n");
    progress(&screen, 1, 0.05); /* too short to measure a speed */
    expect(&screen, "\r[>                           ]  1/1000  0%  loss 0.213  lr 0.01\033[K");
    progress(&screen, 2, 0.04); /* too soon to draw again */
    expect(&screen, "");
    progress(&screen, 3, 0.11);
    expect(&screen, "\r[>       ]  3/1000  0%  loss 0.213  1:06 left  1500 samples/s  "
                    "lr 0.01\033[K");
    send(&screen, display_event(3, 0.15)); /* is in the live line */
    expect(&screen, "");
    send(&screen, test_event(0));
    expect(&screen, "\r\033[KIteration 500, test: accuracy = 0.98, loss = 0.21 (10000 samples)\n");
    send(&screen, test_event(-1));
    send(&screen, test_event(2));
    expect(&screen, "Iteration 500, train data: accuracy = 0.98, loss = 0.21 (10000 samples)\n"
                    "Iteration 500, test net #2: accuracy = 0.98, loss = 0.21 (10000 samples)\n");
    now += 100; /* the test's time is not the training's */
    send_text(&screen, LOCKSTEP_EVENT_NOTICE, "note");
    progress(&screen, 4, 0.05);
    expect(&screen, "note\n\r[>       ]  4/1000  0%  loss 0.213  1:06 left  accuracy 0.98  1500/s"
                    "\033[K");
    ls_monitor_say(&screen.monitor, "Stopping %d", 1);
    expect(&screen, "\r\033[KStopping 1\n");
    ls_monitor_clear(&screen.monitor);
    expect(&screen, "");
    close_screen(&screen);
}

/* Sentences of the library end between words on a terminal. */
static void long_sentences_end_between_words(void **state)
{
    (void)state;
    struct screen screen;
    open_screen(&screen, true);
    screen.monitor.width = 20;
    send_text(&screen, LOCKSTEP_EVENT_START, "20 columns are full.");
    expect(&screen, "20 columns are full.\n");
    send_text(&screen, LOCKSTEP_EVENT_START, "more than 20 columns \xc3\xa9\xc3\xa9 are two");
    expect(&screen, "more than 20 columns\n    \xc3\xa9\xc3\xa9 are two\n");
    send_text(&screen, LOCKSTEP_EVENT_WARNING, "a file\n/with/a/path/that/is/long and more");
    expect(&screen, "warning: a\n    file?/with/a/path/that/is/long\n    and more\n");
    send_text(&screen, LOCKSTEP_EVENT_SNAPSHOT, "to a path for copying");
    expect(&screen, "Snapshotting to to a path for copying\n");
    close_screen(&screen);
    open_screen(&screen, false);
    screen.monitor.width = 20;
    send_text(&screen, LOCKSTEP_EVENT_START, "a file gets all of it in one line");
    expect(&screen, "a file gets all of it in one line\n");
    close_screen(&screen);
}

/* A run that was resumed where it ended says so. */
static void a_run_with_nothing_left_says_so(void **state)
{
    (void)state;
    struct screen screen;
    open_screen(&screen, false);
    struct lockstep_event end = {
        .kind = LOCKSTEP_EVENT_END, .iteration = 1000, .iteration_end = 1000};
    send(&screen, end);
    expect(&screen,
           "There is nothing to train: 1000 iterations are done already, and this run ends at "
           "1000.\n"
           "Optimization Done.\n");
    progress(&screen, 1001, 1);
    end.iteration = 1001;
    end.data_loss = 0.2;
    send(&screen, end);
    expect(&screen, "Iteration 1000, loss = 0.2\nOptimization Done.\n");
    close_screen(&screen);
}

/* What is a detail is told where it is asked for. */
static void details_are_told_in_verbose_runs(void **state)
{
    (void)state;
    static const enum ls_verbosity choices[] = {LS_QUIET, LS_NORMAL, LS_VERBOSE};
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        struct screen screen;
        ls_terminal_choose(LS_COLOURS_AUTO, choices[i]);
        open_screen(&screen, false);
        ls_terminal_choose(LS_COLOURS_AUTO, LS_NORMAL);
        send_text(&screen, LOCKSTEP_EVENT_DETAIL, "an update was repeated");
        expect(&screen, choices[i] == LS_VERBOSE ? "an update was repeated\n" : "");
        close_screen(&screen);
    }
}

/* A quiet run tells warnings and what has come of it. */
static void quiet_runs_tell_warnings_and_the_result(void **state)
{
    (void)state;
    struct screen screen;
    const struct lockstep_run run = {.max_iter = 1000, .iteration_end = 1000, .display = 10};
    for (int terminal = 0; terminal < 2; terminal++) {
        ls_terminal_choose(LS_COLOURS_AUTO, LS_QUIET);
        open_screen(&screen, terminal != 0);
        ls_terminal_choose(LS_COLOURS_AUTO, LS_NORMAL);
        send(&screen, (struct lockstep_event){.kind = LOCKSTEP_EVENT_RUN, .run = &run});
        send_text(&screen, LOCKSTEP_EVENT_START, "go");
        send_text(&screen, LOCKSTEP_EVENT_NOTICE, "note");
        send(&screen, display_event(10, 0.15));
        send(&screen, test_event(0)); /* after update 500 */
        send_text(&screen, LOCKSTEP_EVENT_SNAPSHOT, "a_iter_1000.safetensors");
        for (int64_t i = 0; i < 1000; i++)
            progress(&screen, i + 1, 20);
        expect(&screen, "");
        send_text(&screen, LOCKSTEP_EVENT_WARNING, "two words");
        expect(&screen, "warning: two words\n");
        struct lockstep_event last = test_event(0);
        last.iteration = 1000;
        send(&screen, last);
        expect(&screen, terminal ? "Iteration 1000, test: accuracy = 0.98, loss = 0.21 (10000 "
                                   "samples)\n"
                                 : "Iteration 1000, Testing net (#0)\n"
                                   "    Test net output #0: accuracy = 0.98\n"
                                   "    Test net output #1: loss = 0.21 (* 0.5 = 0.105 loss)\n");
        send(&screen, (struct lockstep_event){.kind = LOCKSTEP_EVENT_END,
                                              .iteration = 1000,
                                              .iteration_end = 1000,
                                              .data_loss = 0.213});
        expect(&screen, "Iteration 999, loss = 0.213\nSnapshotting to a_iter_1000.safetensors\n");
        fflush(screen.log);
        assert_non_null(strstr(screen.log_text, "\"note\"")); /* the log has all */
        close_screen(&screen);
    }
}

static void many_figures_are_all_printed(void **state)
{
    (void)state;
    struct screen screen;
    static const struct lockstep_output outputs[1] = {{"per class", classes, 6, 0, NULL, 0}};
    struct lockstep_event event = test_event(0);
    event.outputs = outputs;
    event.output_count = 1;
    open_screen(&screen, true);
    send(&screen, event);
    expect(&screen, "Iteration 500, test: per class = 0.5 0.25 1 0 0 ... (6 values) "
                    "(10000 samples)\n");
    close_screen(&screen);
}

/* Text from a file must not steer the terminal. */
static void control_characters_do_not_steer_the_terminal(void **state)
{
    (void)state;
    struct screen screen;
    open_screen(&screen, true);
    send_text(&screen, LOCKSTEP_EVENT_NOTICE,
              "a\033[2Jb\nc\xc2\x9b"
              "d \xc3\xa9 \x9b \xff \xe2\x82");
    expect(&screen, "a?[2Jb?c?d \xc3\xa9 ? ? ??\n");
    close_screen(&screen);
}

#define AT "\"time\": \"2026-01-31T12:00:00.250Z\", "

static void the_log_has_a_record_for_each_event(void **state)
{
    (void)state;
    struct screen screen;
    open_screen(&screen, false);
    send_text(&screen, LOCKSTEP_EVENT_START, "a \"quoted\"\n\x01line");
    progress(&screen, 7, 0.5);
    now += 0.25;
    send(&screen, display_event(6, 0.75));
    struct lockstep_event test = test_event(0);
    test.epoch = 1.5;
    send(&screen, test);
    struct lockstep_event bad = display_event(7, 0);
    bad.loss = (double)NAN;
    bad.data_loss = (double)INFINITY;
    bad.output_count = 0;
    send(&screen, bad);
    send_text(&screen, LOCKSTEP_EVENT_END, NULL);
    fflush(screen.log);
    assert_string_equal(
        screen.log_text,
        "{\"event\": \"start\", \"iteration\": 0, " AT "\"elapsed\": 0, "
        "\"text\": \"a \\\"quoted\\\"\\n\\u0001line\"}\n"
        "{\"event\": \"progress\", \"iteration\": 7, " AT
        "\"elapsed\": 0.5, \"iteration_end\": 1000, "
        "\"epoch\": 0, \"loss\": 0.213, \"data_loss\": 0.213, \"penalty\": null, "
        "\"learning_rate\": 0.01, \"samples_per_second\": 200, \"seconds\": 0.5}\n"
        "{\"event\": \"display\", \"iteration\": 7, " AT
        "\"elapsed\": 0.75, \"iteration_end\": 1000, "
        "\"epoch\": 0, \"loss\": 0.213, \"data_loss\": 0.213, \"penalty\": 0.037, "
        "\"learning_rate\": 0.01, \"samples_per_second\": 0, \"seconds\": 0.75, "
        "\"outputs\": [{\"name\": \"loss\", \"values\": [0.21], \"loss_weight\": 1, \"better\": "
        "\"min\"}]}\n"
        "{\"event\": \"test\", \"iteration\": 500, " AT "\"elapsed\": 0.75, \"epoch\": 1.5, "
        "\"test_net\": 0, \"samples\": 10000, \"skipped\": 3, \"outputs\": [{\"name\": "
        "\"accuracy\", "
        "\"values\": [0.98], \"loss_weight\": 0, \"better\": \"max\"}, {\"name\": \"loss\", "
        "\"values\": [0.21], "
        "\"loss_weight\": 0.5, \"better\": \"min\"}]}\n"
        "{\"event\": \"display\", \"iteration\": 8, " AT
        "\"elapsed\": 0.75, \"iteration_end\": 1000, "
        "\"epoch\": 0, \"loss\": null, \"data_loss\": null, \"penalty\": 0.037, "
        "\"learning_rate\": 0.01, \"samples_per_second\": 0, \"seconds\": 0, \"outputs\": []}\n"
        "{\"event\": \"end\", \"iteration\": 0, " AT "\"elapsed\": 0.75, \"skipped\": 0, "
        "\"iteration_end\": 0, "
        "\"loss\": 0, \"data_loss\": 0}\n");
    close_screen(&screen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_read_as_caffe_writes_them),
        cmocka_unit_test(without_display_there_is_a_line_every_ten_seconds),
        cmocka_unit_test(without_display_the_loss_is_still_printed),
        cmocka_unit_test(the_live_line_gives_way_to_lines),
        cmocka_unit_test(details_are_told_in_verbose_runs),
        cmocka_unit_test(quiet_runs_tell_warnings_and_the_result),
        cmocka_unit_test(many_figures_are_all_printed),
        cmocka_unit_test(long_sentences_end_between_words),
        cmocka_unit_test(a_run_with_nothing_left_says_so),
        cmocka_unit_test(control_characters_do_not_steer_the_terminal),
        cmocka_unit_test(the_log_has_a_record_for_each_event),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
