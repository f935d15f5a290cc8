/* The watchdog: a transport whose calls do not return. Ranks "within MPI" are those whose detectors
 * are not polled; in the last tests their calls do wait for ever, in a process of its own.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "detector_scene.h"

#include <fcntl.h>
#include <sys/wait.h>

#include "transport/comm_job.h"
#include "transport/watchdog.h"

static struct ls_watchdog_round rounds[RANKS];
static int left[RANKS]; /* the exit codes; 0: the process has not been ended */

static void leave_process(void *user, int code)
{
    left[(intptr_t)user] = code;
}

static void open_watched_scene(double timeout)
{
    open_scene(timeout);
    memset(rounds, 0, sizeof rounds);
    memset(left, 0, sizeof left);
    for (int r = 0; r < RANKS; r++) {
        const struct ls_detector_senses senses = {.leave = leave_process,
                                                  .user = (void *)(intptr_t)r};
        ls_detector_set_senses(scene.watches[r], &senses);
    }
}

/* So many seconds pass: the ranks of a set of bits take turns, and the watchdogs of another set
 * look. Ends where one ends its process. */
static void watch_some(double seconds, unsigned turning, unsigned looking)
{
    int told = atomic_load(&scene.told);
    for (double passed = 0; passed < seconds && scene.told == told; passed += 0.25) {
        atomic_fetch_add(&scene.microseconds, 250000);
        for (int r = 0; r < RANKS; r++) {
            if (turning >> r & 1)
                ls_detector_poll(scene.watches[r]);
            if (looking >> r & 1)
                ls_watchdog_look(scene.watches[r], &rounds[r]);
        }
    }
}

static void watch(double seconds, unsigned turning)
{
    watch_some(seconds, turning, ALL);
}

static void expect_end(int rank)
{
    assert_int_equal(scene.told, 1);
    assert_int_equal(scene.teller, rank);
    for (int r = 0; r < RANKS; r++) {
        assert_int_equal(left[r], r == rank ? LOCKSTEP_LOST : 0);
        assert_false(ls_local_ended(scene.transports[r], NULL)); /* no call of the transport */
    }
    expect_file("\"status\": \"failed\", \"code\": 9");
}

static void ranks_that_take_turns_are_left_alone(void **state)
{
    (void)state;
    open_watched_scene(6);
    watch(100, ALL);
    assert_int_equal(scene.told, 0);
    close_scene();
}

static void a_stopped_process_that_holds_up_the_transport_is_named(void **state)
{
    (void)state;
    open_watched_scene(6);
    ls_detector_note(scene.watches[0], 12, "conv1");
    watch(20, ALL);
    scene.stopped = 100;
    double begin = seconds();
    watch_some(60, 0, ALL & ~1U);
    assert_true(seconds() - begin > 6 && seconds() - begin < 7.5);
    expect_end(1); /* the first rank of the machine that sees it */
    expect_text("rank 0 (one) has not been heard of for ");
    expect_text(" s, its process 100 is stopped; it was computing layer 'conv1' in iteration 12");
    expect_file("\"rank\": 0, \"host\": \"one\", \"iteration\": 12, \"layer\": \"conv1\"");
    close_scene();
    open_watched_scene(6); /* rank 0 speaks for the others */
    watch(20, ALL);
    scene.stopped = 101;
    watch(60, 0);
    expect_end(0);
    expect_text("rank 1 (one) has not been heard of for ");
    close_scene();
}

static void a_transport_that_hangs_for_no_visible_reason_is_named(void **state)
{
    (void)state;
    open_watched_scene(6);
    ls_detector_note(scene.watches[0], 7, "fc8");
    watch(20, ALL);
    ls_detector_wait(scene.watches[0], true);
    watch(60, 0);
    expect_end(0);
    expect_text("rank 0 (one) hangs: a call of threads has not returned for 6 s; it was waiting "
                "for other ranks in iteration 7 (layer 'fc8')");
    expect_file("\"rank\": 0, \"host\": \"one\", \"iteration\": 7");
    close_scene();
}

/* Rank 0, which is in order, has time to report the silence first. */
static void other_ranks_give_rank_0_time(void **state)
{
    (void)state;
    open_watched_scene(6);
    watch(20, ALL);
    watch(60, ALL & ~4U);
    expect_report(0, LOCKSTEP_LOST);
    expect_text("rank 2 (two) has not been heard of for ");
    close_scene();
    open_watched_scene(6); /* where it does nothing, they end their processes */
    watch(20, ALL);
    watch_some(10.5, 0, 4);
    assert_int_equal(scene.told, 0);
    watch_some(1, 0, 4);
    expect_end(2);
    close_scene();
}

static void a_death_is_named_without_a_timeout(void **state)
{
    (void)state;
    open_watched_scene(0);
    watch(20, ALL);
    watch(1000, 0);
    assert_int_equal(scene.told, 0);
    scene.gone = 101;
    watch(1, 0);
    expect_end(0);
    expect_text("rank 1 (one) died: its process 101 is gone, ");
    close_scene();
}

static void a_death_is_left_to_turns_that_are_only_late(void **state)
{
    (void)state;
    open_watched_scene(300);
    watch(20, ALL);
    scene.gone = 101;
    watch(4, 0);
    assert_int_equal(scene.told, 0);
    watch(3, 0);
    expect_end(0);
    close_scene();
}

/* All threads of a process that is stopped are: nothing is to be read from that there were no
 * turns. */
static void a_process_that_slept_restarts_its_time(void **state)
{
    (void)state;
    open_watched_scene(6);
    watch(20, ALL);
    for (int i = 0; i < 5; i++) {
        watch(5, 0);
        atomic_fetch_add(&scene.microseconds, 1000000000);
    }
    assert_int_equal(scene.told, 0);
    watch(7, 0);
    expect_end(0);
    close_scene();
}

static void nothing_is_watched_after_the_end(void **state)
{
    (void)state;
    open_watched_scene(6);
    watch(5, ALL);
    for (int r = 0; r < RANKS; r++)
        atomic_store(&scene.watches[r]->resting, true);
    scene.gone = 101;
    watch(1000, 0);
    assert_int_equal(scene.told, 0);
    close_scene();
}

/* ---- Of several silent ranks ----------------------------------------------------------------- */

/* Ranks 1 and 2 are silent at the same time, rank 1 because it waits for what rank 2 holds. */
static void of_silent_ranks_the_stopped_one_is_named(void **state)
{
    (void)state;
    open_watched_scene(6);
    const struct ls_identity two = {.host = "one", .process = {.space = 1, .number = 102}};
    scene.watches[0]->members[2].who = two;
    let_pass(20, ALL);
    scene.stopped = 102;
    let_pass(20, 1U | 8U);
    expect_report(0, LOCKSTEP_LOST);
    expect_text("rank 2 (one) has not been heard of for ");
    expect_text(" is stopped");
    close_scene();
}

/* ---- Calls that do not return ---------------------------------------------------------------- */

static struct ls_transport *transports[2];
static double timeout;

static void *be_rank(void *argument)
{
    struct ls_transport *transport = argument;
    struct ls_comm_options options = {.timeout = timeout, .watched = true};
    struct ls_comm *comm = NULL;
    struct ls_error error = {0};
    int status = ls_comm_create(transport, &options, &comm, &error);
    if (status == 0)
        status = ls_detector_set_status_file(comm->detector, scene.file, &error);
    if (status == 0)
        status = ls_comm_start(comm, 1, NULL, &error);
    return status == 0 ? comm : NULL;
}

/* A job of two ranks, from whose calls none returns once both have begun. */
static void hang(void)
{
    pthread_t other;
    struct ls_error error = {0};
    timeout = 1;
    if (ls_local_transports(2, transports, &error) != 0 ||
        pthread_create(&other, NULL, be_rank, transports[1]) != 0 || be_rank(transports[0]) == NULL)
        _exit(100);
    pthread_join(other, NULL);
    ls_local_block(transports[0]);
    ls_local_block(transports[1]);
    for (;;)
        pause();
}

static void block_all(void *user, int status, const char *text)
{
    (void)user;
    (void)status;
    fprintf(stderr, "lockstep: %s\n", text);
    ls_local_block(transports[0]);
}

/* Rank 1 is silent, and when rank 0 has said so, its calls do not return. */
static void hang_at_the_end(void)
{
    struct ls_error error = {0};
    timeout = 1;
    if (ls_local_transports(2, transports, &error) != 0)
        _exit(100);
    struct ls_detector *detector;
    if (ls_detector_create(transports[0], timeout, &detector, &error) != 0 ||
        ls_detector_set_status_file(detector, scene.file, &error) != 0)
        _exit(100);
    ls_detector_set_on_failure(detector, block_all, NULL);
    for (;;) {
        ls_detector_poll(detector);
        usleep(10000);
    }
}

/* The exit code of a process that does `work`; it is killed if it does not end. */
static int run_apart(void (*work)(void), const char *log)
{
    int state = 0;
    pid_t child = fork();
    if (child == 0) {
        int fd = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0666);
        dup2(fd, STDERR_FILENO);
        alarm(60);
        work();
        _exit(100);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &state, 0), child);
    return WIFEXITED(state) ? WEXITSTATUS(state) : -WTERMSIG(state);
}

static void expect_log(const char *log, const char *text)
{
    size_t size;
    char *said = ls_test_read(log, &size);
    if (strstr(said, text) == NULL)
        fail_msg("'%s' is not in '%s'", text, said);
    free(said);
}

static void a_process_whose_transport_hangs_ends(void **state)
{
    (void)state;
    const char *log = ls_test_path("log");
    snprintf(scene.file, sizeof scene.file, "%s", ls_test_path("hang.json"));
    assert_int_equal(run_apart(hang, log), LOCKSTEP_LOST);
    expect_log(log, "lockstep: rank 0 (localhost) hangs: a call of threads has not returned for ");
    expect_file("\"status\": \"failed\", \"code\": 9, \"rank\": 0, \"host\": \"localhost\"");
}

static void a_process_whose_transport_hangs_while_it_ends_the_job_ends(void **state)
{
    (void)state;
    const char *log = ls_test_path("log");
    snprintf(scene.file, sizeof scene.file, "%s", ls_test_path("end.json"));
    assert_int_equal(run_apart(hang_at_the_end, log), LOCKSTEP_LOST);
    expect_log(log, "lockstep: rank 1 has not been heard of for ");
    expect_file("\"status\": \"failed\", \"code\": 9, \"rank\": 1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_that_take_turns_are_left_alone),
        cmocka_unit_test(a_stopped_process_that_holds_up_the_transport_is_named),
        cmocka_unit_test(a_transport_that_hangs_for_no_visible_reason_is_named),
        cmocka_unit_test(other_ranks_give_rank_0_time),
        cmocka_unit_test(a_death_is_named_without_a_timeout),
        cmocka_unit_test(a_death_is_left_to_turns_that_are_only_late),
        cmocka_unit_test(a_process_that_slept_restarts_its_time),
        cmocka_unit_test(nothing_is_watched_after_the_end),
        cmocka_unit_test(of_silent_ranks_the_stopped_one_is_named),
        cmocka_unit_test(a_process_whose_transport_hangs_ends),
        cmocka_unit_test(a_process_whose_transport_hangs_while_it_ends_the_job_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
