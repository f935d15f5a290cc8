/* The failure detector: ranks that are silent, that hang, and that die.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "detector_scene.h"

/* ---- Silence --------------------------------------------------------------------------------- */

static void ranks_that_work_raise_no_alarm(void **state)
{
    (void)state;
    open_scene(6);
    expect_file("\"status\": \"running\", \"code\": null");
    let_pass(60, ALL);
    assert_int_equal(scene.told, 0);
    for (int r = 0; r < RANKS; r++)
        assert_false(ls_detector_alarm(scene.watches[r]));
    close_scene();
}

static void a_silent_rank_is_reported_after_the_timeout(void **state)
{
    (void)state;
    open_scene(6);
    ls_detector_note(scene.watches[2], 410, "conv2");
    let_pass(20, ALL);
    ls_local_mute(scene.transports[2]);
    scene.stopped = 102; /* on another machine than rank 0: not seen */
    double begin = seconds();
    let_pass(20, ALL & ~4U);
    assert_true(seconds() - begin > 5 && seconds() - begin < 9);
    expect_report(0, LOCKSTEP_LOST);
    expect_text("rank 2 (two) has not been heard of for ");
    expect_text(" s: it hangs, its machine is down or the network is cut; it was computing layer "
                "'conv2' in iteration 410");
    expect_file("\"code\": 9, \"rank\": 2, \"host\": \"two\", \"iteration\": 410, \"layer\": "
                "\"conv2\", \"message\": \"rank 2 (two) has not");
    expect_file("\"ranks\": 4, \"time\": \"20");
    let_pass(1, ALL & ~4U);
    assert_true(ls_detector_alarm(scene.watches[1]));
    let_pass(30, ALL & ~4U); /* it is not said again */
    assert_int_equal(scene.told, 1);
    close_scene();
}

static void a_stopped_process_is_reported_as_stopped(void **state)
{
    (void)state;
    open_scene(6);
    scene.stopped = 101;
    ls_local_mute(scene.transports[1]);
    let_pass(20, ALL & ~2U);
    expect_report(0, LOCKSTEP_LOST);
    expect_text("rank 1 (one) has not been heard of for ");
    expect_text(" s, its process 101 is stopped; it had not begun its first update");
    close_scene();
}

/* One rank of each machine reports that rank 0 is silent; the others give it some seconds to end
 * the job. */
static void one_rank_of_each_machine_reports_that_rank_0_is_silent(void **state)
{
    (void)state;
    open_scene(6);
    let_pass(20, ALL);
    let_pass(20, 1U << 3);
    assert_int_equal(scene.told, 1); /* rank 3 alone, some time after rank 2 would have said it */
    assert_int_equal(scene.teller, 3);
    close_scene();
    open_scene(6);
    let_pass(20, ALL);
    let_pass(20, ALL & ~1U);
    assert_int_equal(scene.told, 2); /* ranks 1 and 2 in the same moment; the first ends it all */
    expect_text("rank 0 (one) has not been heard of for ");
    assert_true(ls_local_ended(scene.transports[1], NULL));
    close_scene();
}

/* A rank that still computes does not believe that all ranks are done: it goes on watching. */
static void a_rank_at_work_goes_on_watching_after_an_early_end(void **state)
{
    (void)state;
    const struct ls_word end = {.kind = LS_MESSAGE_END};
    open_scene(6);
    let_pass(2, ALL);
    assert_int_equal(scene.transports[0]->calls->tell(scene.transports[0], 3, &end, sizeof end), 0);
    let_pass(2, ALL);
    assert_int_equal(scene.told, 0);
    let_pass(20, 1U << 3);
    assert_int_equal(scene.teller, 3);
    expect_text("rank 0 (one) has not been heard of for ");
    close_scene();
}

static void without_a_timeout_silence_is_never_reported(void **state)
{
    (void)state;
    open_scene(0);
    ls_detector_wait(scene.watches[1], true);
    let_pass(5000, 3);
    assert_int_equal(scene.told, 0);
    close_scene();
}

/* A rank that slept does not report that others were silent. */
static void a_rank_that_slept_reports_no_silence_of_others(void **state)
{
    (void)state;
    open_scene(6);
    ls_detector_wait(scene.watches[1], true);
    let_pass(3, ALL);
    for (int i = 0; i < 5; i++) {
        atomic_fetch_add(&scene.microseconds, 1000000000);
        for (int r = 0; r < RANKS; r++)
            ls_detector_poll(scene.watches[r]);
    }
    assert_int_equal(scene.told, 0);
    close_scene();
}

/* A rank that was stopped, and is continued only to be ended with the job, reports nothing of
 * ranks that are gone already; if it stays alive, it does. */
static void a_rank_woken_to_be_ended_reports_nothing(void **state)
{
    (void)state;
    open_scene(6);
    let_pass(3, ALL);
    scene.gone = 101;
    atomic_fetch_add(&scene.microseconds, 10000000);
    ls_detector_hurry(scene.watches[0]);
    let_pass(4, 1);
    assert_int_equal(scene.told, 0);
    let_pass(4, 1);
    expect_report(0, LOCKSTEP_LOST);
    expect_text("rank 1 (one) died");
    close_scene();
}

/* Deaths that others reported while it slept are trusted no more than what it sees itself. */
static void a_rank_that_slept_does_not_trust_deaths_told_meanwhile(void **state)
{
    (void)state;
    open_scene(6);
    let_pass(3, ALL);
    scene.gone = 102; /* rank 3 sees that, and tells rank 0, which is stopped */
    let_pass(1, ALL & ~1U);
    atomic_fetch_add(&scene.microseconds, 10000000);
    let_pass(4, 1);
    assert_int_equal(scene.told, 0);
    close_scene();
}

/* ---- Hangs ----------------------------------------------------------------------------------- */

static void a_rank_that_hangs_is_reported_with_its_layer(void **state)
{
    (void)state;
    open_scene(6);
    ls_detector_note(scene.watches[3], 12, "ip1");
    let_pass(30, ALL);
    assert_int_equal(scene.told, 0); /* nothing waits */
    for (int r = 0; r < 3; r++)
        ls_detector_wait(scene.watches[r], true);
    for (int i = 0; i < 20; i++) { /* it goes on, if slowly */
        let_pass(3, ALL);
        ls_detector_note(scene.watches[3], 12, "ip1");
    }
    assert_int_equal(scene.told, 0);
    let_pass(30, ALL);
    expect_report(0, LOCKSTEP_LOST);
    expect_text("rank 3 (two) hangs: it has not gone on for ");
    expect_text("and rank 0 (one) waits; it was computing layer 'ip1' in iteration 12");
    expect_file("\"layer\": \"ip1\"");
    close_scene();
}

static void a_hang_of_rank_0_is_reported(void **state)
{
    (void)state;
    open_scene(6);
    ls_detector_note(scene.watches[0], 7, NULL);
    ls_detector_wait(scene.watches[2], true);
    for (int i = 0; i < 10; i++) {
        let_pass(3, ALL);
        ls_detector_note(scene.watches[1], i, "conv1");
        ls_detector_note(scene.watches[3], i, "conv1");
    }
    expect_report(0, LOCKSTEP_LOST);
    expect_text("rank 0 (one) hangs");
    expect_text("and rank 2 (two) waits; it was between layers in iteration 7");
    close_scene();
}

static void ranks_that_all_wait_for_each_other_are_reported(void **state)
{
    (void)state;
    open_scene(6);
    for (int r = 0; r < RANKS; r++) {
        ls_detector_note(scene.watches[r], 5, "bn1");
        ls_detector_wait(scene.watches[r], true);
    }
    let_pass(30, ALL);
    expect_report(0, LOCKSTEP_LOST);
    expect_text("the ranks wait for each other: none has gone on for ");
    expect_text("in iteration 5 (layer 'bn1')");
    close_scene();
}

/* ---- Deaths ---------------------------------------------------------------------------------- */

static void a_death_on_the_machine_of_rank_0_is_reported_at_once(void **state)
{
    (void)state;
    open_scene(300);
    ls_detector_note(scene.watches[1], 3, "pool1");
    let_pass(2, ALL);
    scene.gone = 101;
    double begin = seconds();
    let_pass(20, ALL & ~2U);
    assert_true(seconds() - begin < 2);
    expect_report(0, LOCKSTEP_LOST);
    expect_text("rank 1 (one) died: its process 101 is gone, ");
    expect_text("it was computing layer 'pool1' in iteration 3");
    close_scene();
}

static void a_death_on_another_machine_is_reported_without_a_timeout(void **state)
{
    (void)state;
    open_scene(0); /* found without any timeout, too */
    ls_detector_note(scene.watches[3], 3, "pool1");
    let_pass(2, ALL);
    scene.gone = 103;
    double begin = seconds();
    let_pass(20, ALL & ~8U);
    assert_true(seconds() - begin < 2);
    expect_report(0, LOCKSTEP_LOST);
    expect_text("rank 3 (two) died: its process 103 is gone, ");
    expect_text("it was computing layer 'pool1' in iteration 3");
    close_scene();
    /* Rank 0 does nothing about it: the rank that saw it does. */
    open_scene(0);
    scene.gone = 103;
    let_pass(20, 4);
    expect_report(2, LOCKSTEP_LOST);
    expect_text("rank 3 (two) died: its process 103 is gone");
    close_scene();
}

static void the_death_of_rank_0_is_reported_by_rank_1(void **state)
{
    (void)state;
    open_scene(300);
    let_pass(2, ALL);
    scene.gone = 100;
    let_pass(20, ALL & ~1U);
    expect_report(1, LOCKSTEP_LOST);
    expect_text("rank 0 (one) died: its process 100 is gone");
    close_scene();
}

/* A signal makes it look at once. */
static void a_signal_makes_the_detector_look_at_once(void **state)
{
    (void)state;
    open_scene(300);
    let_pass(2, ALL);
    scene.gone = 101;
    ls_detector_hurry(scene.watches[0]);
    ls_detector_poll(scene.watches[0]);
    expect_report(0, LOCKSTEP_LOST);
    close_scene();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_that_work_raise_no_alarm),
        cmocka_unit_test(a_silent_rank_is_reported_after_the_timeout),
        cmocka_unit_test(a_stopped_process_is_reported_as_stopped),
        cmocka_unit_test(one_rank_of_each_machine_reports_that_rank_0_is_silent),
        cmocka_unit_test(a_rank_at_work_goes_on_watching_after_an_early_end),
        cmocka_unit_test(without_a_timeout_silence_is_never_reported),
        cmocka_unit_test(a_rank_that_slept_reports_no_silence_of_others),
        cmocka_unit_test(a_rank_woken_to_be_ended_reports_nothing),
        cmocka_unit_test(a_rank_that_slept_does_not_trust_deaths_told_meanwhile),
        cmocka_unit_test(a_rank_that_hangs_is_reported_with_its_layer),
        cmocka_unit_test(a_hang_of_rank_0_is_reported),
        cmocka_unit_test(ranks_that_all_wait_for_each_other_are_reported),
        cmocka_unit_test(a_death_on_the_machine_of_rank_0_is_reported_at_once),
        cmocka_unit_test(a_death_on_another_machine_is_reported_without_a_timeout),
        cmocka_unit_test(the_death_of_rank_0_is_reported_by_rank_1),
        cmocka_unit_test(a_signal_makes_the_detector_look_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
