/* Progress of commands that train nothing: what a terminal and a file get.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>

#include "monitor/progress.h"
#include "monitor/terminal.h"
#include "support/support.h"

static double now; /* the clock of these tests */

static double fake_clock(void)
{
    return now;
}

struct screen {
    struct ls_progress progress;
    FILE *out;
    char *text;
    size_t size, seen;
};

static void open_screen(struct screen *screen, bool terminal)
{
    *screen = (struct screen){.out = NULL};
    now = 50;
    screen->out = open_memstream(&screen->text, &screen->size);
    assert_non_null(screen->out);
    ls_progress_init(&screen->progress, screen->out, fake_clock);
    screen->progress.terminal = terminal;
    screen->progress.width = 60;
}

static void expect(struct screen *screen, const char *text)
{
    fflush(screen->out);
    assert_string_equal(screen->text + screen->seen, text);
    screen->seen = screen->size;
}

static void close_screen(struct screen *screen)
{
    fclose(screen->out);
    free(screen->text);
}

static void done(struct screen *screen, int64_t records, double seconds)
{
    now += seconds;
    const struct lockstep_event event = {.kind = LOCKSTEP_EVENT_NOTICE,
                                         .text = "Processed some records.",
                                         .samples = records,
                                         .iteration_end = 4000};
    ls_progress_event(&screen->progress, &event);
}

static void progress_is_redrawn_on_a_terminal(void **state)
{
    (void)state;
    struct screen screen;
    open_screen(&screen, true);
    done(&screen, 1000, 1);
    expect(&screen, "\r[===>        ]  1000/4000 records  25%  1000/s  3s left\033[K");
    done(&screen, 1050, 0.05); /* too soon to draw again */
    expect(&screen, "");
    done(&screen, 2100, 1.05);
    expect(&screen, "\r[======>     ]  2100/4000 records  52%  1000/s  2s left\033[K");
    ls_progress_clear(&screen.progress);
    expect(&screen, "\r\033[K");
    ls_progress_clear(&screen.progress);
    expect(&screen, "");
    close_screen(&screen);
}

static void progress_is_lines_in_a_file(void **state)
{
    (void)state;
    struct screen screen;
    open_screen(&screen, false);
    done(&screen, 1000, 4);
    expect(&screen, "");
    done(&screen, 2000, 6);
    expect(&screen, "2000/4000 records  50%  200 records/s  10s left\n");
    done(&screen, 3000, 2);
    expect(&screen, "");
    done(&screen, 4000, 2);
    expect(&screen, "4000/4000 records  100%  286 records/s\n");
    done(&screen, 4000, 10); /* of another source */
    expect(&screen, "4000/4000 records  100%  400 records/s\n");
    close_screen(&screen);
}

/* A quiet command shows nothing of it. */
static void quiet_progress_writes_nothing(void **state)
{
    (void)state;
    struct screen screen;
    ls_terminal_choose(LS_COLOURS_AUTO, LS_QUIET);
    for (int terminal = 0; terminal < 2; terminal++) {
        open_screen(&screen, terminal != 0);
        done(&screen, 1000, 20);
        done(&screen, 4000, 20);
        ls_progress_clear(&screen.progress);
        expect(&screen, "");
        close_screen(&screen);
    }
    ls_terminal_choose(LS_COLOURS_AUTO, LS_NORMAL);
}

static void control_characters_are_shown_as_marks(void **state)
{
    (void)state;
    struct screen screen;
    const struct lockstep_event turn = {.kind = LOCKSTEP_EVENT_NOTICE,
                                        .text = "Turn 1\033[2J of 5"};
    open_screen(&screen, false);
    ls_progress_event(&screen.progress, &turn);
    expect(&screen, "Turn 1?[2J of 5\n");
    close_screen(&screen);
    open_screen(&screen, true);
    ls_progress_event(&screen.progress, &turn);
    expect(&screen, "\rTurn 1?[2J of 5\033[K");
    close_screen(&screen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(progress_is_redrawn_on_a_terminal),
                                       cmocka_unit_test(progress_is_lines_in_a_file),
                                       cmocka_unit_test(quiet_progress_writes_nothing),
                                       cmocka_unit_test(control_characters_are_shown_as_marks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
