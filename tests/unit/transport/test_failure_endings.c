/* The failure detector at the end of a job: ranks that give up, ranks that leave, and messages
 * of other parts.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "detector_scene.h"
#include "transport/failure_end.h"

/* ---- Giving up ------------------------------------------------------------------------------- */

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

/* Several ranks give up: the first of them is reported, once. Where rank 0 does nothing, they
 * end the job. */
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

/* ---- Leaving --------------------------------------------------------------------------------- */

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

/* A rank has failed, and the others wait for a collective that it will never join. */
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
        cmocka_unit_test(a_rank_that_gives_up_is_reported_with_its_reason),
        cmocka_unit_test(of_several_ranks_that_give_up_the_first_is_named),
        cmocka_unit_test(a_finished_job_is_watched_no_more),
        cmocka_unit_test(a_rank_that_fails_while_others_wait_ends_the_job),
        cmocka_unit_test(messages_of_other_kinds_are_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
