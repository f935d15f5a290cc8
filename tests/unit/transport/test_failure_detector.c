/* The failure detector: who is found dead, silent or hanging, and how a job ends. The clock is the
 * test's own. SPDX-License-Identifier: BSD-2-Clause */
#include "transport/failure_detector.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/support.h"
#include "transport/local.h"
#include "transport/failure_detector_inner.h"

enum { RANKS = 4 };

static struct scene {
    struct ls_transport *transports[RANKS];
    struct ls_detector *watches[RANKS];
    _Atomic long microseconds;
    _Atomic long
        own[RANKS]; /* more of them: where ranks are threads, clocks go on when looked at */
    _Atomic long tick;
    int64_t gone, stopped; /* numbers of processes; 0: none */
    _Atomic int told;      /* how often a failure was reported, and what was said last */
    int status;
    _Atomic int teller;
    char text[4096];
    char file[4096];
} scene;

static double clock_of(void *user)
{
    /* Once it has said what there is to say, a rank need not give others time; those still hear of
     * it at their own pace, however late their threads run. */
    bool has_told = scene.told > 0 && scene.teller == (int)(intptr_t)user;
    long tick = has_told ? 100 * scene.tick : scene.tick;
    long own = atomic_fetch_add(&scene.own[(intptr_t)user], tick);
    return 1e-6 * (double)(scene.microseconds + own);
}

static enum ls_process_state look(void *user, const struct ls_process *process)
{
    if (process->space != (uint64_t)((intptr_t)user < 2 ? 1 : 2))
        return LS_PROCESS_UNKNOWN;
    return process->number == scene.gone      ? LS_PROCESS_GONE
           : process->number == scene.stopped ? LS_PROCESS_STOPPED
                                              : LS_PROCESS_THERE;
}

static void tell(void *user, int status, const char *text)
{
    scene.status = status;
    scene.teller = (int)(intptr_t)user;
    snprintf(scene.text, sizeof scene.text, "%s", text);
    atomic_fetch_add(&scene.told, 1);
}

/* Ranks 0 and 1 are on "one", 2 and 3 on "two". */
static void open_scene(double timeout)
{
    struct ls_identity all[RANKS];
    struct ls_error error = {0};
    memset(&scene, 0, sizeof scene);
    atomic_store(&scene.microseconds, 50000000);
    snprintf(scene.file, sizeof scene.file, "%s", ls_test_path("status.json"));
    remove(scene.file);
    assert_int_equal(ls_local_transports(RANKS, scene.transports, &error), 0);
    memset(all, 0, sizeof all);
    for (int r = 0; r < RANKS; r++) {
        snprintf(all[r].host, sizeof all[r].host, r < 2 ? "one" : "two");
        memcpy(scene.transports[r]->host, all[r].host, sizeof all[r].host);
        all[r].process = (struct ls_process){.space = r < 2 ? 1 : 2, .number = 100 + r};
    }
    for (int r = 0; r < RANKS; r++) {
        const struct ls_detector_senses senses = {
            .clock = clock_of, .look = look, .user = (void *)(intptr_t)r};
        assert_int_equal(
            ls_detector_create(scene.transports[r], timeout, &scene.watches[r], &error), 0);
        ls_detector_set_senses(scene.watches[r], &senses);
        ls_detector_set_on_failure(scene.watches[r], tell, (void *)(intptr_t)r);
        assert_int_equal(ls_detector_set_members(scene.watches[r], all, &error), 0);
        assert_int_equal(ls_detector_set_status_file(scene.watches[r], scene.file, &error), 0);
    }
}

static void close_scene(void)
{
    for (int r = 0; r < RANKS; r++) {
        ls_detector_free(scene.watches[r]);
        scene.transports[r]->calls->end(scene.transports[r]);
    }
}

/* All ranks of a set of bits take turns for so many seconds, or until one has reported. */
static void let_pass(double seconds, unsigned ranks)
{
    int told = atomic_load(&scene.told);
    for (double passed = 0; passed < seconds && scene.told == told; passed += 0.05) {
        atomic_fetch_add(&scene.microseconds, 50000);
        for (int r = 0; r < RANKS; r++)
            if (ranks >> r & 1)
                ls_detector_poll(scene.watches[r]);
    }
}
enum { ALL = 15 };

static double seconds(void)
{
    return 1e-6 * (double)scene.microseconds;
}

static void expect_text(const char *text)
{
    if (strstr(scene.text, text) == NULL)
        fail_msg("'%s' is not in '%s'", text, scene.text);
}

static void expect_file(const char *text)
{
    size_t size;
    char *file = ls_test_read(scene.file, &size);
    if (strstr(file, text) == NULL)
        fail_msg("'%s' is not in '%s'", text, file);
    free(file);
}

static void expect_report(int teller, int status)
{
    int code = 0;
    struct ls_error error = {0};
    assert_int_equal(scene.told, 1);
    assert_int_equal(scene.teller, teller);
    assert_int_equal(scene.status, status);
    assert_true(ls_local_ended(scene.transports[teller], &code));
    assert_int_equal(code, status);
    assert_true(ls_detector_alarm(scene.watches[teller]));
    assert_int_equal(ls_detector_fail(scene.watches[teller], &error), LOCKSTEP_LOST);
    expect_file("\"status\": \"failed\"");
}

/* ---- Who is silent --------------------------------------------------------------------------- */

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

/* Of each machine one rank says that rank 0 is silent; the others give it some seconds to end the
 * job. */
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

/* A rank that is at work still does not believe that all are done: it goes on watching. */
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

/* Who was away himself does not say that others were silent. */
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

/* A rank that was stopped, and is woken up to be ended with all others, says nothing of those that
 * are gone already; if it stays alive, it does. */
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

/* What others told it of deaths meanwhile is no better than what it sees. */
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

/* ---- Who hangs ------------------------------------------------------------------------------- */

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

/* ---- Who dies -------------------------------------------------------------------------------- */

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

/* ---- Who gives up ---------------------------------------------------------------------------- */

struct part {
    pthread_t thread;
    int rank, status, result;
    const char *text;
    bool gives_up;
};

static void *play(void *argument)
{
    struct part *part = argument;
    struct ls_detector *detector = scene.watches[part->rank];
    if (part->gives_up)
        ls_detector_abort(detector, part->status, part->text);
    else
        part->result = ls_detector_leave(detector, part->status, part->text);
    return NULL;
}

static void start(struct part *part)
{
    if (scene.tick == 0)
        scene.tick = 5000;
    assert_int_equal(pthread_create(&part->thread, NULL, play, part), 0);
}

/* Rank 0 watches until a failure was reported. */
static void look_on(void)
{
    while (scene.told == 0) {
        ls_detector_poll(scene.watches[0]);
        usleep(1000);
    }
}

static void play_all(struct part *parts, int count)
{
    for (int i = 0; i < count; i++)
        start(&parts[i]);
    for (int i = 0; i < count; i++)
        pthread_join(parts[i].thread, NULL);
}

static void a_rank_that_gives_up_is_reported_with_its_reason(void **state)
{
    (void)state;
    open_scene(300);
    ls_detector_note(scene.watches[2], 17, "data");
    struct part two = {.rank = 2,
                       .status = LOCKSTEP_DATA,
                       .gives_up = true,
                       .text = "train.lmdb: cannot open\nand more"};
    start(&two);
    look_on();
    pthread_join(two.thread, NULL);
    expect_report(0, LOCKSTEP_DATA);
    assert_string_equal(scene.text,
                        "rank 2 (two): train.lmdb: cannot open\nrank 2 (two): and more");
    expect_file("\"code\": 4, \"rank\": 2, \"host\": \"two\", \"iteration\": 17, \"layer\": "
                "\"data\", \"message\": \"rank 2 (two): train.lmdb: cannot open\\nrank 2");
    close_scene();
}

/* Several do: the first of them is named, once. Where rank 0 does nothing, they end it. */
static void of_several_ranks_that_give_up_the_first_is_named(void **state)
{
    (void)state;
    struct part parts[] = {
        {.rank = 0, .status = LOCKSTEP_RESOURCE, .gives_up = true, .text = "full"},
        {.rank = 3, .status = LOCKSTEP_DATA, .gives_up = true, .text = "no file"},
        {.rank = 2, .status = LOCKSTEP_DATA, .gives_up = true, .text = "no file"}};
    open_scene(300);
    play_all(parts, 3);
    expect_report(0, LOCKSTEP_RESOURCE);
    assert_string_equal(scene.text, "rank 0 (one): full");
    close_scene();
    open_scene(300);
    scene.tick = 100000;
    play_all(parts + 1, 1);
    expect_report(3, LOCKSTEP_DATA);
    assert_string_equal(scene.text, "rank 3 (two): no file");
    close_scene();
}

/* ---- Who leaves ------------------------------------------------------------------------------ */

static void leave(const int statuses[RANKS], int result)
{
    struct part parts[RANKS];
    for (int r = 0; r < RANKS; r++)
        parts[r] = (struct part){.rank = r, .status = statuses[r], .text = "its last words"};
    play_all(parts, RANKS);
    for (int r = 0; r < RANKS; r++)
        assert_int_equal(parts[r].result, result);
}

static void a_finished_job_is_watched_no_more(void **state)
{
    (void)state;
    open_scene(300);
    ls_detector_note(scene.watches[0], 20, "loss");
    leave((const int[RANKS]){0, 0, 0, 0}, 0);
    expect_file("\"status\": \"finished\", \"code\": 0, \"rank\": 0, \"host\": \"one\", "
                "\"iteration\": 20, \"layer\": null");
    scene.gone = 103; /* it is not watched any more */
    let_pass(1000, ALL);
    assert_int_equal(scene.told, 0);
    close_scene();
    open_scene(300);
    leave((const int[RANKS]){75, 75, 75, 75}, 75);
    expect_file("\"status\": \"stopped\", \"code\": 75");
    assert_int_equal(scene.told, 0);
    close_scene();
    open_scene(300); /* rank 0 has said so itself */
    leave((const int[RANKS]){6, 6, 6, 6}, 6);
    expect_file("\"status\": \"failed\", \"code\": 6, \"rank\": 0");
    expect_file("\"message\": \"its last words\"");
    assert_int_equal(scene.told, 0);
    close_scene();
    open_scene(300); /* there is no report about this rank */
    leave((const int[RANKS]){0, 0, 7, 0}, 7);
    assert_int_equal(scene.told, 1);
    assert_string_equal(scene.text, "rank 2 (two): its last words");
    expect_file("\"code\": 7, \"rank\": 2");
    assert_false(ls_local_ended(scene.transports[0], NULL));
    close_scene();
}

/* It has failed, and the others wait for what it will never do. */
static void a_rank_that_fails_while_others_wait_ends_the_job(void **state)
{
    (void)state;
    open_scene(300);
    struct part three = {.rank = 3, .status = LOCKSTEP_WEIGHTS, .text = "not a snapshot"};
    start(&three);
    look_on();
    pthread_join(three.thread, NULL);
    expect_report(0, LOCKSTEP_WEIGHTS);
    assert_string_equal(scene.text, "rank 3 (two): not a snapshot");
    close_scene();
}

/* ---- Other messages -------------------------------------------------------------------------- */

static int heard_from;
static char heard[64];

static void hear(void *user, int from, const void *message, size_t bytes)
{
    (void)user;
    heard_from = from;
    assert_int_equal(bytes, 12);
    memcpy(heard, (const char *)message + 4, 8);
}

static void messages_of_other_kinds_are_left_alone(void **state)
{
    (void)state;
    struct {
        uint32_t kind;
        char text[8];
    } message = {.kind = LS_MESSAGE_OTHERS, .text = "request"};
    open_scene(300);
    const struct ls_transport_calls *calls = scene.transports[1]->calls;
    assert_int_equal(calls->tell(scene.transports[1], 0, &message, sizeof message), 0);
    ls_detector_receive_now(scene.watches[0]); /* there is no receiver: it is dropped */
    ls_detector_set_on_message(scene.watches[0], hear, NULL);
    ls_detector_receive_now(scene.watches[0]);
    assert_string_equal(heard, "");
    assert_int_equal(calls->tell(scene.transports[1], 0, &message, sizeof message), 0);
    ls_detector_receive_now(scene.watches[0]);
    assert_string_equal(heard, "request");
    assert_int_equal(heard_from, 1);
    /* What makes no sense is ignored. */
    const uint32_t odd[3] = {3, 0, 0};
    assert_int_equal(calls->tell(scene.transports[1], 0, odd, sizeof odd), 0);
    assert_int_equal(calls->tell(scene.transports[1], 0, odd, 3), 0);
    let_pass(2, ALL);
    assert_int_equal(scene.told, 0);
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
        cmocka_unit_test(a_rank_that_gives_up_is_reported_with_its_reason),
        cmocka_unit_test(of_several_ranks_that_give_up_the_first_is_named),
        cmocka_unit_test(a_finished_job_is_watched_no_more),
        cmocka_unit_test(a_rank_that_fails_while_others_wait_ends_the_job),
        cmocka_unit_test(messages_of_other_kinds_are_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
