/* The watchdog. See transport/watchdog.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "transport/watchdog.h"

#include <pthread.h>
#include <time.h>

#include "base/memory.h"
#include "base/thread.h"
#include "transport/failure_detector_inner.h"

static const double look_most = 1, looks_a_timeout = 8; /* seconds between looks */

struct ls_watchdog {
    struct ls_detector *detector;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t change;
    bool stop;
};

/* ---- What has happened ----------------------------------------------------------------------- */

static enum ls_process_state watchdog_state_of(const struct ls_detector *detector,
                                               const struct ls_member *member)
{
    if (member->left || member->rank == detector->transport->rank)
        return LS_PROCESS_UNKNOWN;
    return detector->senses.look(detector->senses.user, &member->who.process);
}

/* Fills in a report, but not when it is due. */
static void watchdog_blame(enum ls_reason reason, int rank, const struct ls_doing *doing,
                           struct ls_failure_report *report)
{
    report->made = true;
    report->reason = reason;
    report->rank = rank;
    report->status = LOCKSTEP_LOST;
    report->doing = *doing;
}

/* The processes that this rank looks after. */
static void watchdog_find_dead(struct ls_detector *detector, double now,
                               struct ls_failure_report *report)
{
    for (int i = 0; i < detector->neighbour_count && !report->made; i++) {
        const struct ls_member *member = &detector->members[detector->neighbours[i]];
        if (watchdog_state_of(detector, member) != LS_PROCESS_GONE)
            continue;
        watchdog_blame(LS_REASON_DIED, member->rank, &member->doing, report);
        ls_detector_describe_gone(detector, member->rank, now, report->text, sizeof report->text);
    }
}

static void watchdog_find_stopped(struct ls_detector *detector, double now,
                                  struct ls_failure_report *report)
{
    for (int i = 0; i < detector->member_count && !report->made; i++) {
        const struct ls_member *member = &detector->members[i];
        if (watchdog_state_of(detector, member) != LS_PROCESS_STOPPED)
            continue;
        watchdog_blame(LS_REASON_SILENT, member->rank, &member->doing, report);
        ls_detector_describe_silent(detector, member, now, report->text, sizeof report->text);
    }
}

/* Rank 0 speaks first, and the first rank of each machine where it is rank 0 that is to blame: the
 * others give them time to end the job. */
static double watchdog_patience(const struct ls_detector *detector, int blamed)
{
    bool first = detector->transport->rank == 0 || (blamed == 0 && detector->leads);
    return first ? 0 : LS_DETECTOR_PATIENCE;
}

/* No turn has ended since. With `known` held. */
static void watchdog_judge(struct ls_detector *detector, double since, double now)
{
    struct ls_failure_report report = {.made = false};
    double limit = LS_DETECTOR_PATIENCE;
    watchdog_find_dead(detector, now, &report);
    if (!report.made) {
        if (!(detector->timeout > 0) || now - since <= detector->timeout)
            return;
        limit = detector->timeout;
        watchdog_find_stopped(detector, now, &report);
    }
    if (!report.made) {
        const struct ls_doing own = ls_detector_doing(detector);
        watchdog_blame(LS_REASON_HANGS, detector->transport->rank, &own, &report);
        ls_detector_describe_stuck(detector, now - since, report.text, sizeof report.text);
    }
    if (now - since > limit + watchdog_patience(detector, report.rank))
        ls_detector_end_process(detector, &report);
}

static double watchdog_interval(const struct ls_detector *detector)
{
    double interval = detector->timeout / looks_a_timeout;
    return detector->timeout > 0 && interval < look_most ? interval : look_most;
}

static bool watchdog_was_away(const struct ls_detector *detector, double seconds)
{
    return seconds > (detector->timeout > 0 ? detector->timeout / 4 : LS_DETECTOR_PATIENCE);
}

void ls_watchdog_look(struct ls_detector *detector, struct ls_watchdog_round *round)
{
    double now = ls_detector_clock(detector);
    uint64_t turns = atomic_load_explicit(&detector->turns, memory_order_relaxed);
    bool over = atomic_load(&detector->resting) || atomic_load(&detector->ended);
    if (!round->begun || over || turns != round->turns ||
        watchdog_was_away(detector, now - round->last))
        round->since = now;
    round->begun = true;
    round->turns = turns;
    round->last = now;
    pthread_mutex_lock(&detector->known);
    if (now > round->since)
        watchdog_judge(detector, round->since, now);
    pthread_mutex_unlock(&detector->known);
}

/* ---- The thread ------------------------------------------------------------------------------ */

static void *watchdog_watch(void *argument)
{
    struct ls_watchdog *watchdog = argument;
    struct ls_watchdog_round round = {.begun = false};
    double interval = watchdog_interval(watchdog->detector);
    ls_unpin_thread();
    pthread_mutex_lock(&watchdog->lock);
    while (!watchdog->stop) {
        pthread_mutex_unlock(&watchdog->lock);
        ls_watchdog_look(watchdog->detector, &round);
        pthread_mutex_lock(&watchdog->lock);
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        long nanoseconds = until.tv_nsec + (long)(interval * 1e9);
        until.tv_sec += nanoseconds / 1000000000;
        until.tv_nsec = nanoseconds % 1000000000;
        if (!watchdog->stop)
            pthread_cond_timedwait(&watchdog->change, &watchdog->lock, &until);
    }
    pthread_mutex_unlock(&watchdog->lock);
    return NULL;
}

static void watchdog_free(struct ls_watchdog *watchdog)
{
    pthread_cond_destroy(&watchdog->change);
    pthread_mutex_destroy(&watchdog->lock);
    ls_free(watchdog);
}

int ls_watchdog_start(struct ls_detector *detector, struct ls_watchdog **out,
                      struct ls_error *error)
{
    *out = NULL;
    struct ls_watchdog *watchdog = ls_alloc(1, sizeof *watchdog);
    if (watchdog == NULL)
        return ls_fail_memory(error, "a watchdog");
    watchdog->detector = detector;
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&watchdog->lock, NULL);
    pthread_cond_init(&watchdog->change, &monotonic);
    pthread_condattr_destroy(&monotonic);
    int result = ls_thread_create(&watchdog->thread, watchdog_watch, watchdog);
    if (result == 0) {
        *out = watchdog;
        return 0;
    }
    watchdog_free(watchdog);
    return ls_fail(error, LOCKSTEP_RESOURCE, NULL, NULL,
                   "a thread to look after the exchange between ranks could not be started "
                   "(error %d)",
                   result);
}

void ls_watchdog_stop(struct ls_watchdog *watchdog)
{
    if (watchdog == NULL)
        return;
    pthread_mutex_lock(&watchdog->lock);
    watchdog->stop = true;
    pthread_cond_signal(&watchdog->change);
    pthread_mutex_unlock(&watchdog->lock);
    pthread_join(watchdog->thread, NULL);
    watchdog_free(watchdog);
}
