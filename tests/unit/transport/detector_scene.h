/* Four ranks with failure detectors, whose clock is the test's own.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_DETECTOR_SCENE_H
#define LS_TESTS_DETECTOR_SCENE_H

#include "transport/failure_detector.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/support.h"
#include "transport/failure_end.h"
#include "transport/local.h"
#include "transport/failure_detector_inner.h"

enum { RANKS = 4 };

static struct scene {
    struct ls_transport *transports[RANKS];
    struct ls_detector *watches[RANKS];
    _Atomic long microseconds;
    _Atomic long own[RANKS]; /* of each rank's clock: it goes on by `tick` when it is looked at */
    _Atomic long tick;       /* 0 unless ranks are threads */
    int64_t gone, stopped;   /* numbers of processes; 0: none */
    _Atomic int told;        /* how often a failure was reported, and what was said last */
    int status;
    _Atomic int teller;
    char text[4096];
    char file[4096];
} scene;

static inline double clock_of(void *user)
{
    /* A rank that has reported need not give others time, so that its clock runs faster; the
     * others receive the report at their own pace, however late their threads run. */
    bool has_told = scene.told > 0 && scene.teller == (int)(intptr_t)user;
    long tick = has_told ? 100 * scene.tick : scene.tick;
    long own = atomic_fetch_add(&scene.own[(intptr_t)user], tick);
    return 1e-6 * (double)(scene.microseconds + own);
}

static inline enum ls_process_state look(void *user, const struct ls_process *process)
{
    if (process->space != (uint64_t)((intptr_t)user < 2 ? 1 : 2))
        return LS_PROCESS_UNKNOWN;
    return process->number == scene.gone      ? LS_PROCESS_GONE
           : process->number == scene.stopped ? LS_PROCESS_STOPPED
                                              : LS_PROCESS_THERE;
}

static inline void tell(void *user, int status, const char *text)
{
    scene.status = status;
    scene.teller = (int)(intptr_t)user;
    snprintf(scene.text, sizeof scene.text, "%s", text);
    atomic_fetch_add(&scene.told, 1);
}

/* Ranks 0 and 1 are on "one", 2 and 3 on "two". */
static inline void open_scene(double timeout)
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

static inline void close_scene(void)
{
    for (int r = 0; r < RANKS; r++) {
        ls_detector_free(scene.watches[r]);
        scene.transports[r]->calls->end(scene.transports[r]);
    }
}

/* Polls all ranks of a set of bits in turn for so many seconds, or until one has reported. */
static inline void let_pass(double seconds, unsigned ranks)
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

static inline double seconds(void)
{
    return 1e-6 * (double)scene.microseconds;
}

static inline void expect_text(const char *text)
{
    if (strstr(scene.text, text) == NULL)
        fail_msg("'%s' is not in '%s'", text, scene.text);
}

static inline void expect_file(const char *text)
{
    size_t size;
    char *file = ls_test_read(scene.file, &size);
    if (strstr(file, text) == NULL)
        fail_msg("'%s' is not in '%s'", text, file);
    free(file);
}

static inline void expect_report(int teller, int status)
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

#endif
