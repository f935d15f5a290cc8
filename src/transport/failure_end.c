/* How a job ends. See transport/failure_end.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "transport/failure_end.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "transport/status_file.h"
#include "transport/failure_detector_inner.h"

static const double gathering = 0.25; /* seconds for other failures of the same moment */
static const double wondering = 3;    /* for a reason to be found where a rank has lost others */

/* ---- status.json ----------------------------------------------------------------------------- */

/* The state of a job that goes on. */
static int detector_write_running(const struct ls_detector *detector, struct ls_error *error)
{
    const struct ls_doing own = ls_detector_doing(detector);
    const struct ls_job_state state = {.running = true,
                                       .ranks = detector->transport->size,
                                       .iteration = own.iteration > 0 ? own.iteration : 0,
                                       .host = detector->transport->host,
                                       .wrong = detector->found_count,
                                       .last_wrong = detector->found,
                                       .warning = detector->warning};
    return ls_status_file_write(detector->status_file, &state, error);
}

int ls_detector_set_status_file(struct ls_detector *detector, const char *path,
                                struct ls_error *error)
{
    char *copy = ls_copy_string(path);
    if (path != NULL && copy == NULL)
        return ls_fail_memory(error, "status.json");
    pthread_mutex_lock(&detector->lock);
    pthread_mutex_lock(&detector->known);
    ls_free(detector->status_file);
    detector->status_file = copy;
    pthread_mutex_unlock(&detector->known);
    pthread_mutex_unlock(&detector->lock);
    return detector->transport->rank == 0 && path != NULL ? detector_write_running(detector, error)
                                                          : 0;
}

void ls_detector_tell_running(struct ls_detector *detector, double now)
{
    /* What was heard in this turn may have been the end. A process that was stopped may have been
     * given up: another rank has written what happened. */
    if (atomic_load(&detector->resting) || atomic_load(&detector->ended) ||
        now < detector->next_status || now < detector->blind_until)
        return;
    detector->next_status = now + LS_STATUS_INTERVAL;
    if (detector->transport->rank == 0 && detector->status_file != NULL)
        (void)detector_write_running(detector, NULL);
}

void ls_detector_found(struct ls_detector *detector, const char *text)
{
    if (detector == NULL)
        return;
    pthread_mutex_lock(&detector->lock);
    pthread_mutex_lock(&detector->known);
    snprintf(detector->found, sizeof detector->found, "%s", text);
    detector->found_count++;
    pthread_mutex_unlock(&detector->known);
    if (detector->transport->rank == 0 && detector->status_file != NULL)
        (void)detector_write_running(detector, NULL);
    pthread_mutex_unlock(&detector->lock);
}

/* What cannot be written is no reason to end otherwise. */
static void detector_write_status(struct ls_detector *detector, int code, int rank,
                                  const struct ls_doing *doing, const char *message)
{
    if (detector->status_file == NULL)
        return;
    const struct ls_member *member = ls_detector_member(detector, rank);
    bool own = rank == detector->transport->rank;
    struct ls_job_state state = {.code = code,
                                 .rank = rank,
                                 .ranks = detector->transport->size,
                                 .iteration = doing->iteration > 0 ? doing->iteration : 0,
                                 .host = own              ? detector->transport->host
                                         : member != NULL ? member->who.host
                                                          : NULL,
                                 .layer = doing->layer,
                                 .message = message,
                                 .wrong = detector->found_count,
                                 .last_wrong = detector->found,
                                 .warning = detector->warning};
    (void)ls_status_file_write(detector->status_file, &state, NULL);
}

void ls_detector_warn(struct ls_detector *detector, const char *text)
{
    if (detector == NULL)
        return;
    pthread_mutex_lock(&detector->lock);
    pthread_mutex_lock(&detector->known);
    snprintf(detector->warning, sizeof detector->warning, "%s", text);
    pthread_mutex_unlock(&detector->known);
    if (detector->transport->rank == 0 && detector->status_file != NULL &&
        !atomic_load_explicit(&detector->ended, memory_order_relaxed))
        (void)detector_write_running(detector, NULL);
    pthread_mutex_unlock(&detector->lock);
}

/* ---- The end of a job that fails ------------------------------------------------------------- */

/* Ends the process where the transport does not come to it: a library of MPI may wait for what will
 * never be. */
struct last_resort {
    pthread_mutex_t lock;
    pthread_cond_t change;
    bool done;
    int code;
};

static void *detector_wait_and_exit(void *argument)
{
    struct last_resort *last = argument;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += LS_DETECTOR_PATIENCE;
    pthread_mutex_lock(&last->lock);
    int result = 0;
    while (!last->done && result != ETIMEDOUT)
        result = pthread_cond_timedwait(&last->change, &last->lock, &until);
    if (!last->done)
        _exit(last->code);
    pthread_mutex_unlock(&last->lock);
    return NULL;
}

static void detector_abort_job(struct ls_detector *detector, const struct ls_failure_report *report)
{
    struct last_resort last = {.code = report->status};
    pthread_t thread;
    pthread_mutex_init(&last.lock, NULL);
    pthread_cond_init(&last.change, NULL);
    bool started = pthread_create(&thread, NULL, detector_wait_and_exit, &last) == 0;
    for (int r = 1; r < detector->transport->size && detector->transport->rank == 0; r++)
        ls_detector_send(detector, r, LS_MESSAGE_DECISION, report->status, report->rank,
                         report->text);
    atomic_store(&detector->ended, true);
    detector->transport->calls->abort(detector->transport, report->status);
    pthread_mutex_lock(&last.lock); /* a test goes on here */
    last.done = true;
    pthread_cond_signal(&last.change);
    pthread_mutex_unlock(&last.lock);
    if (started)
        pthread_join(thread, NULL);
    pthread_cond_destroy(&last.change);
    pthread_mutex_destroy(&last.lock);
}

static void detector_raise_alarm(struct ls_detector *detector, const char *text)
{
    if (ls_detector_alarm(detector))
        return;
    snprintf(detector->decision, sizeof detector->decision, "%s", text);
    atomic_store_explicit(&detector->alarm, true, memory_order_release);
}

static void detector_end_badly(struct ls_detector *detector, const struct ls_failure_report *report)
{
    if (atomic_exchange(&detector->claimed, true))
        return;
    detector_raise_alarm(detector, report->text);
    if (report->reason != LS_REASON_DECIDED) {
        detector->on_failure(detector->on_failure_user, report->status, report->text);
        detector_write_status(detector, report->status, report->rank, &report->doing, report->text);
    }
    detector_abort_job(detector, report);
}

void ls_detector_end_process(struct ls_detector *detector, const struct ls_failure_report *report)
{
    if (atomic_exchange(&detector->claimed, true))
        return;
    detector->on_failure(detector->on_failure_user, report->status, report->text);
    detector_write_status(detector, report->status, report->rank, &report->doing, report->text);
    detector->senses.leave(detector->senses.user, report->status);
}

void ls_detector_report(struct ls_detector *detector, enum ls_reason reason, int rank, int status,
                        double due, const char *text)
{
    struct ls_failure_report *report = &detector->report;
    bool weightier = !report->made || reason < report->reason ||
                     (reason == report->reason && rank < report->rank);
    if (!report->made || due < report->due)
        report->due = due;
    report->made = true;
    if (!weightier)
        return;
    report->reason = reason;
    report->rank = rank;
    report->status = status;
    snprintf(report->text, sizeof report->text, "%s", text);
    const struct ls_member *member = ls_detector_member(detector, rank);
    report->doing = (struct ls_doing){.iteration = -1};
    if (rank == detector->transport->rank)
        report->doing = ls_detector_doing(detector);
    else if (member != NULL)
        report->doing = member->doing;
}

void ls_detector_carry_out(struct ls_detector *detector, double now)
{
    if (detector->report.made && now >= detector->report.due && !atomic_load(&detector->ended))
        detector_end_badly(detector, &detector->report);
}

/* What a rank has said, with its name in front of each line. */
static void detector_quote(struct ls_detector *detector, int rank, const char *said, char *text,
                           size_t size)
{
    char name[160];
    size_t at = 0;
    ls_detector_name(detector, rank, name, sizeof name);
    text[0] = '\0';
    while (*said != '\0' && at < size) {
        int length = (int)strcspn(said, "\n");
        int put =
            snprintf(text + at, size - at, "%s%s: %.*s", at > 0 ? "\n" : "", name, length, said);
        at += put > 0 ? (size_t)put : 0;
        said += length + (said[length] == '\n');
    }
}

/* ---- One rank that fails --------------------------------------------------------------------- */

static void detector_wait_a_moment(void)
{
    struct timespec time = {.tv_nsec = 2000000};
    nanosleep(&time, NULL);
}

void ls_detector_abort(struct ls_detector *detector, int status, const char *text)
{
    char quoted[LS_DETECTOR_TEXT];
    double begin = ls_detector_clock(detector);
    int rank = detector->transport->rank;
    detector_quote(detector, rank, text, quoted, sizeof quoted);
    if (rank != 0)
        ls_detector_send(detector, 0, LS_MESSAGE_FAILED, status, rank, text);
    pthread_mutex_lock(&detector->lock);
    ls_detector_report(detector, LS_REASON_FAILED, rank, status,
                       begin + (rank == 0 ? gathering : LS_DETECTOR_PATIENCE), quoted);
    pthread_mutex_unlock(&detector->lock);
    while (!atomic_load(&detector->ended)) {
        ls_detector_poll_now(detector);
        detector_wait_a_moment();
    }
}

int ls_detector_fail(struct ls_detector *detector, struct ls_error *error)
{
    if (!ls_detector_alarm(detector) || detector->decision[0] == '\0')
        return ls_fail(error, LOCKSTEP_LOST, NULL, NULL, "another rank is lost");
    return ls_fail(error, LOCKSTEP_LOST, NULL, NULL, "%s", detector->decision);
}

/* ---- The end of all ranks' work -------------------------------------------------------------- */

static bool detector_is_failure(int status)
{
    return status != 0 && status != LOCKSTEP_STOPPED;
}

/* Rank 0's: all have left. */
static void detector_end_well(struct ls_detector *detector)
{
    const char *text = detector->last_text;
    struct ls_doing doing = ls_detector_doing(detector);
    int rank = detector->last_rank > 0 ? detector->last_rank : 0;
    char quoted[LS_DETECTOR_TEXT];
    if (!detector_is_failure(detector->agreed)) {
        rank = 0;
        doing.layer[0] = '\0';
    } else if (rank > 0) { /* it failed, and is not the one that speaks */
        detector_quote(detector, rank, text != NULL ? text : "it failed", quoted, sizeof quoted);
        text = quoted;
        detector->on_failure(detector->on_failure_user, detector->agreed, text);
    }
    detector_write_status(detector, detector->agreed, rank, &doing, text);
    for (int r = 1; r < detector->transport->size; r++)
        ls_detector_send(detector, r, LS_MESSAGE_END, detector->agreed, 0, NULL);
    atomic_store(&detector->resting, true);
}

/* Rank 0's: a rank has left. */
static void detector_count_left(struct ls_detector *detector, int rank, int status,
                                const char *text, double now)
{
    struct ls_member *member = &detector->members[rank];
    if (member->left)
        return;
    pthread_mutex_lock(&detector->known);
    member->left = true;
    pthread_mutex_unlock(&detector->known);
    member->status = status;
    detector->left_count++;
    if (status != 0 && (detector->last_rank < 0 || rank < detector->last_rank)) {
        detector->last_rank = rank;
        detector->agreed = status;
        ls_free(detector->last_text);
        detector->last_text = ls_copy_string(text);
    }
    bool lost = status == LOCKSTEP_LOST;
    detector->lost |= lost;
    if (detector_is_failure(status)) {
        char quoted[LS_DETECTOR_TEXT];
        detector_quote(detector, rank, text != NULL && text[0] != '\0' ? text : "it has ended",
                       quoted, sizeof quoted);
        ls_detector_report(detector, lost ? LS_REASON_LOST : LS_REASON_LEFT, rank, status,
                           now + (lost ? wondering : LS_DETECTOR_PATIENCE_LEFT), quoted);
    }
    /* After a rank was lost, the transport cannot be shut down cleanly. */
    if (detector->left_count == detector->transport->size && !detector->lost)
        detector_end_well(detector);
}

void ls_detector_receive_word(struct ls_detector *detector, int from, const struct ls_word *word,
                              double now)
{
    char text[LS_DETECTOR_TEXT];
    bool first = detector->transport->rank == 0;
    const struct ls_member *about = ls_detector_member(detector, word->rank);
    if (first && word->kind == LS_MESSAGE_FAILED) {
        detector_quote(detector, from, word->text, text, sizeof text);
        ls_detector_report(detector, LS_REASON_FAILED, from, word->status, now + gathering, text);
    } else if (first && word->kind == LS_MESSAGE_GONE && about != NULL && !about->left &&
               now >= detector->blind_until) {
        ls_detector_describe_gone(detector, word->rank, now, text, sizeof text);
        ls_detector_report(detector, LS_REASON_DIED, word->rank, LOCKSTEP_LOST, now, text);
    } else if (first && word->kind == LS_MESSAGE_LEFT) {
        detector_count_left(detector, from, word->status, word->text, now);
    } else if (!first && from == 0 && word->kind == LS_MESSAGE_END && detector->leaving) {
        detector->agreed = word->status;
        atomic_store(&detector->resting, true);
    } else if (!first && from == 0 && word->kind == LS_MESSAGE_DECISION) {
        detector_raise_alarm(detector, word->text);
        detector->report.made = false; /* whatever it was, rank 0 knows better */
        ls_detector_report(detector, LS_REASON_DECIDED, word->rank, word->status,
                           now + LS_DETECTOR_PATIENCE, word->text);
    }
}

/* A rank that has lost others need not wait long for them. */
static void detector_leave(struct ls_detector *detector, int status, const char *text)
{
    double now = ls_detector_clock(detector);
    int rank = detector->transport->rank;
    detector->leaving = true;
    if (rank == 0) {
        detector_count_left(detector, 0, status, text, now);
    } else {
        ls_detector_send(detector, 0, LS_MESSAGE_LEFT, status, rank, text);
        if (detector_is_failure(status)) {
            char quoted[LS_DETECTOR_TEXT];
            detector_quote(detector, rank, text != NULL ? text : "it has ended", quoted,
                           sizeof quoted);
            ls_detector_report(detector, status == LOCKSTEP_LOST ? LS_REASON_LOST : LS_REASON_LEFT,
                               rank, status, now + 2 * LS_DETECTOR_PATIENCE_LEFT, quoted);
        }
    }
}

int ls_detector_leave(struct ls_detector *detector, int status, const char *text)
{
    if (detector == NULL)
        return status;
    pthread_mutex_lock(&detector->lock);
    if (!atomic_load(&detector->ended))
        detector_leave(detector, status, text);
    pthread_mutex_unlock(&detector->lock);
    while (!atomic_load(&detector->resting) && !atomic_load(&detector->ended)) {
        ls_detector_poll_now(detector);
        detector_wait_a_moment();
    }
    return atomic_load(&detector->ended) ? detector->report.status : detector->agreed;
}
