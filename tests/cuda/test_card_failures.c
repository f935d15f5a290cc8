/* Each call of CUDA fails once, at places of whole trainings on a card, and work breaks its
 * card long after it was given: the training ends with a message, or goes on and has the same bits;
 * nothing is left; the last snapshot is good, and a training that goes on from it has the same
 * bits. $LOCKSTEP_ALL: at many places of each call.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <unistd.h>

#include "cuda/card_trainings.h"
#include "cuda/fake/fake.h"

enum { END = 3, PLACES = 2, MANY_PLACES = 40, PATIENCE = 60 };

/* Calls that may fail without an end: there is another way, or all is done by then. */
struct failing {
    const char *call;
    bool may_go_on;
};
static const struct failing calls[] = {
    {"cudaMalloc", true},
    {"cudaMallocHost", true},
    {"cudaFree", true},
    {"cudaMemGetInfo", true},
    {"cudaMemcpyAsync", true},
    {"cudaMemsetAsync", true},
    {"cudaStreamCreateWithFlags", true},
    {"cudaStreamSynchronize", true},
    {"cudaStreamWaitEvent", false},
    {"cudaStreamBeginCapture", false},
    {"cudaStreamEndCapture", false},
    {"cudaGraphInstantiate", false},
    {"cudaGraphLaunch", false},
    {"cudaEventCreateWithFlags", false},
    {"cudaEventRecord", false},
    {"cudaEventSynchronize", true},
    {"cudaEventQuery", false},
    {"cudaSetDevice", true},
    {"a launch", false},
    {"work", true},
};

enum { CALLS = sizeof calls / sizeof *calls };
static long made_last[CALLS]; /* by the last training */

static int train(const struct lockstep_solver *solver, const struct card_run *run, uint64_t seed,
                 const struct failing *failing, long after, bool *failed, char text[400])
{
    struct lockstep_error *error = lockstep_error_new();
    fake_begin(4, CARD_BYTES, seed);
    if (failing != NULL)
        fake_fail(failing->call, after);
    alarm(PATIENCE);
    const int status = card_train(solver, run, error);
    alarm(0);
    for (int c = 0; c < CALLS; c++)
        made_last[c] = fake_calls(calls[c].call);
    *failed = fake_has_failed();
    fake_fail(NULL, 0);
    fake_end();
    snprintf(text, 400, "%s", lockstep_error_text(error));
    lockstep_error_free(error);
    return status;
}

static void remove_snapshots(const char *prefix)
{
    for (int i = 0; i <= END; i++)
        (void)unlink(card_snapshot(prefix, i));
    char name[64];
    snprintf(name, sizeof name, "%s_latest", prefix);
    (void)unlink(ls_test_path(name));
}

/* One failure; whether there was a call to fail. */
static bool fail_once(const struct lockstep_solver *solver, const struct card_run *wanted,
                      const struct failing *failing, long after, struct bytes whole)
{
    struct card_run run = *wanted;
    char text[400];
    bool failed, again;
    remove_snapshots("failing");
    run.prefix = "failing";
    int status = train(solver, &run, (uint64_t)after, failing, after, &failed, text);
    if (!failed)
        return false;
    if (status == 0 && !failing->may_go_on)
        fail_msg("%s fails after %ld others: nothing is said", failing->call, after);
    if (status != 0 && strstr(text, "card") == NULL && strstr(text, "memory") == NULL)
        fail_msg("%s fails after %ld others: \"%s\"", failing->call, after, text);
    if (status != 0) {
        run.resume = access(card_snapshot("failing", 1), F_OK) == 0 ? "auto" : NULL;
        status = train(solver, &run, 1, NULL, 0, &again, text);
        if (status != 0)
            fail_msg("%s fails after %ld others: what goes on says \"%s\"", failing->call, after,
                     text);
    }
    check_same(whole, read_bytes(card_snapshot("failing", END)), "%s fails after %ld others",
               failing->call, after);
    return true;
}

/* Some places of all, evenly apart. */
static void fail_at_places(const struct lockstep_solver *solver, const struct card_run *run,
                           const long *made, struct bytes whole)
{
    const int places = getenv("LOCKSTEP_ALL") != NULL ? MANY_PLACES : PLACES;
    int failures = 0;
    for (int c = 0; c < CALLS; c++) {
        const long step = made[c] / places + 1;
        for (long after = step / 2; after < made[c]; after += step)
            failures += fail_once(solver, run, &calls[c], after, whole);
    }
    print_message("%d failures of calls\n", failures);
    assert_true(failures > CALLS);
}

static void check_failures(int net, const struct card_run *run)
{
    struct lockstep_solver *solver = card_solver(&card_nets[net], "max_iter: 3");
    struct card_run first = *run;
    char text[400];
    bool failed;
    first.prefix = "whole";
    if (train(solver, &first, 0, NULL, 0, &failed, text) != 0)
        fail_msg("%s", text);
    struct bytes whole = read_bytes(card_snapshot("whole", END));
    long made[CALLS];
    memcpy(made, made_last, sizeof made);
    fail_at_places(solver, run, made, whole);
    free(whole.data);
    lockstep_solver_free(solver);
}

static void calls_that_fail_on_one_card_are_told(void **state)
{
    (void)state;
    check_failures(2, &(struct card_run){.ranks = 1, .cards = {0}, .workers = 1});
}

static int setup(void **state)
{
    (void)state;
    card_write_data();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_that_fail_on_one_card_are_told),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
