/* The watch: how a job ends, well or not. See transport/watch.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "transport/status_file.h"
#include "transport/watch_inner.h"

static const double gathering = 0.25; /* seconds for other failures of the same moment */
static const double wondering = 3;    /* for a reason to be found where a rank has lost others */

/* ---- status.json ----------------------------------------------------------------------------- */

int ls_watch_set_status_file(struct ls_watch *watch, const char *path, struct ls_error *error)
{
    char *copy = ls_copy_string(path);
    if (path != NULL && copy == NULL)
        return ls_fail_memory(error, "status.json");
    pthread_mutex_lock(&watch->lock);
    ls_free(watch->status_file);
    watch->status_file = copy;
    pthread_mutex_unlock(&watch->lock);
    if (watch->transport->rank != 0 || path == NULL)
        return 0;
    struct ls_job_state state = {
        .running = true, .ranks = watch->transport->size, .host = watch->transport->host};
    return ls_status_file_write(path, &state, error);
}

void ls_watch_found(struct ls_watch *watch, const char *text)
{
    pthread_mutex_lock(&watch->lock);
    snprintf(watch->found, sizeof watch->found, "%s", text);
    watch->found_count++;
    struct ls_job_state state = {.running = true,
                                 .ranks = watch->transport->size,
                                 .iteration = atomic_load(&watch->iteration),
                                 .host = watch->transport->host,
                                 .wrong = watch->found_count,
                                 .last_wrong = watch->found,
                                 .warning = watch->warning};
    if (watch->transport->rank == 0 && watch->status_file != NULL)
        (void)ls_status_file_write(watch->status_file, &state, NULL);
    pthread_mutex_unlock(&watch->lock);
}

/* What cannot be written is no reason to end otherwise. */
static void write_status(struct ls_watch *watch, int code, int rank, const struct ls_doing *doing,
                         const char *message)
{
    if (watch->status_file == NULL)
        return;
    const struct ls_member *member = ls_watch_member(watch, rank);
    bool own = rank == watch->transport->rank;
    struct ls_job_state state = {.code = code,
                                 .rank = rank,
                                 .ranks = watch->transport->size,
                                 .iteration = doing->iteration > 0 ? doing->iteration : 0,
                                 .host = own              ? watch->transport->host
                                         : member != NULL ? member->who.host
                                                          : NULL,
                                 .layer = doing->layer,
                                 .message = message,
                                 .wrong = watch->found_count,
                                 .last_wrong = watch->found,
                                 .warning = watch->warning};
    (void)ls_status_file_write(watch->status_file, &state, NULL);
}

void ls_watch_warn(struct ls_watch *watch, const char *text)
{
    pthread_mutex_lock(&watch->lock);
    snprintf(watch->warning, sizeof watch->warning, "%s", text);
    struct ls_doing own = ls_watch_doing(watch);
    struct ls_job_state state = {.running = true,
                                 .ranks = watch->transport->size,
                                 .iteration = own.iteration > 0 ? own.iteration : 0,
                                 .host = watch->transport->host,
                                 .wrong = watch->found_count,
                                 .last_wrong = watch->found,
                                 .warning = watch->warning};
    if (watch->transport->rank == 0 && watch->status_file != NULL &&
        !atomic_load_explicit(&watch->ended, memory_order_relaxed))
        (void)ls_status_file_write(watch->status_file, &state, NULL);
    pthread_mutex_unlock(&watch->lock);
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

static void *wait_and_exit(void *argument)
{
    struct last_resort *last = argument;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += LS_WATCH_PATIENCE;
    pthread_mutex_lock(&last->lock);
    int result = 0;
    while (!last->done && result != ETIMEDOUT)
        result = pthread_cond_timedwait(&last->change, &last->lock, &until);
    if (!last->done)
        _exit(last->code);
    pthread_mutex_unlock(&last->lock);
    return NULL;
}

static void abort_job(struct ls_watch *watch, int code)
{
    struct last_resort last = {.code = code};
    pthread_t thread;
    pthread_mutex_init(&last.lock, NULL);
    pthread_cond_init(&last.change, NULL);
    bool started = pthread_create(&thread, NULL, wait_and_exit, &last) == 0;
    atomic_store(&watch->ended, true);
    watch->transport->calls->abort(watch->transport, code);
    pthread_mutex_lock(&last.lock); /* a test goes on here */
    last.done = true;
    pthread_cond_signal(&last.change);
    pthread_mutex_unlock(&last.lock);
    if (started)
        pthread_join(thread, NULL);
    pthread_cond_destroy(&last.change);
    pthread_mutex_destroy(&last.lock);
}

static void raise_alarm(struct ls_watch *watch, const char *text)
{
    if (ls_watch_alarm(watch))
        return;
    snprintf(watch->verdict, sizeof watch->verdict, "%s", text);
    atomic_store_explicit(&watch->alarm, true, memory_order_release);
}

static void end_badly(struct ls_watch *watch, const struct ls_charge *charge)
{
    raise_alarm(watch, charge->text);
    if (charge->reason != LS_REASON_VERDICT) {
        watch->tell(watch->tell_user, charge->status, charge->text);
        write_status(watch, charge->status, charge->rank, &charge->doing, charge->text);
    }
    for (int r = 1; r < watch->transport->size && watch->transport->rank == 0; r++)
        ls_watch_send(watch, r, LS_MESSAGE_VERDICT, charge->status, charge->rank, charge->text);
    abort_job(watch, charge->status);
}

void ls_watch_charge(struct ls_watch *watch, enum ls_reason reason, int rank, int status,
                     double due, const char *text)
{
    struct ls_charge *charge = &watch->charge;
    bool weightier = !charge->made || reason < charge->reason ||
                     (reason == charge->reason && rank < charge->rank);
    if (!charge->made || due < charge->due)
        charge->due = due;
    charge->made = true;
    if (!weightier)
        return;
    charge->reason = reason;
    charge->rank = rank;
    charge->status = status;
    snprintf(charge->text, sizeof charge->text, "%s", text);
    const struct ls_member *member = ls_watch_member(watch, rank);
    charge->doing = (struct ls_doing){.iteration = -1};
    if (rank == watch->transport->rank)
        charge->doing = ls_watch_doing(watch);
    else if (member != NULL)
        charge->doing = member->doing;
}

void ls_watch_execute(struct ls_watch *watch, double now)
{
    if (watch->charge.made && now >= watch->charge.due && !atomic_load(&watch->ended))
        end_badly(watch, &watch->charge);
}

/* What a rank has said, with its name in front of each line. */
static void quote(struct ls_watch *watch, int rank, const char *said, char *text, size_t size)
{
    char name[160];
    size_t at = 0;
    ls_watch_name(watch, rank, name, sizeof name);
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

static void wait_a_moment(void)
{
    struct timespec time = {.tv_nsec = 2000000};
    nanosleep(&time, NULL);
}

void ls_watch_give_up(struct ls_watch *watch, int status, const char *text)
{
    char quoted[LS_WATCH_TEXT];
    double begin = ls_watch_clock(watch);
    int rank = watch->transport->rank;
    quote(watch, rank, text, quoted, sizeof quoted);
    if (rank != 0)
        ls_watch_send(watch, 0, LS_MESSAGE_FAILED, status, rank, text);
    pthread_mutex_lock(&watch->lock);
    ls_watch_charge(watch, LS_REASON_FAILED, rank, status,
                    begin + (rank == 0 ? gathering : LS_WATCH_PATIENCE), quoted);
    pthread_mutex_unlock(&watch->lock);
    while (!atomic_load(&watch->ended)) {
        ls_watch_turn_now(watch);
        wait_a_moment();
    }
}

int ls_watch_fail(struct ls_watch *watch, struct ls_error *error)
{
    if (!ls_watch_alarm(watch) || watch->verdict[0] == '\0')
        return ls_fail(error, LOCKSTEP_LOST, NULL, NULL, "another rank is lost");
    return ls_fail(error, LOCKSTEP_LOST, NULL, NULL, "%s", watch->verdict);
}

/* ---- The end of all ranks' work -------------------------------------------------------------- */

static bool is_failure(int status)
{
    return status != 0 && status != LOCKSTEP_STOPPED;
}

/* Rank 0's: all have left. */
static void end_well(struct ls_watch *watch)
{
    const char *text = watch->last_text;
    struct ls_doing doing = ls_watch_doing(watch);
    int rank = watch->last_rank > 0 ? watch->last_rank : 0;
    char quoted[LS_WATCH_TEXT];
    if (!is_failure(watch->agreed)) {
        rank = 0;
        doing.layer[0] = '\0';
    } else if (rank > 0) { /* it failed, and is not the one that speaks */
        quote(watch, rank, text != NULL ? text : "it failed", quoted, sizeof quoted);
        text = quoted;
        watch->tell(watch->tell_user, watch->agreed, text);
    }
    write_status(watch, watch->agreed, rank, &doing, text);
    for (int r = 1; r < watch->transport->size; r++)
        ls_watch_send(watch, r, LS_MESSAGE_END, watch->agreed, 0, NULL);
    atomic_store(&watch->resting, true);
}

/* Rank 0's: a rank has left. */
static void count_left(struct ls_watch *watch, int rank, int status, const char *text, double now)
{
    struct ls_member *member = &watch->members[rank];
    if (member->left)
        return;
    member->left = true;
    member->status = status;
    watch->left_count++;
    if (status != 0 && (watch->last_rank < 0 || rank < watch->last_rank)) {
        watch->last_rank = rank;
        watch->agreed = status;
        ls_free(watch->last_text);
        watch->last_text = ls_copy_string(text);
    }
    bool lost = status == LOCKSTEP_LOST;
    watch->lost |= lost;
    if (is_failure(status)) {
        char quoted[LS_WATCH_TEXT];
        quote(watch, rank, text != NULL && text[0] != '\0' ? text : "it has ended", quoted,
              sizeof quoted);
        ls_watch_charge(watch, lost ? LS_REASON_LOST : LS_REASON_LEFT, rank, status,
                        now + (lost ? wondering : LS_WATCH_PATIENCE_LEFT), quoted);
    }
    /* Who has lost others cannot end the transport in good order. */
    if (watch->left_count == watch->transport->size && !watch->lost)
        end_well(watch);
}

void ls_watch_hear_word(struct ls_watch *watch, int from, const struct ls_word *word, double now)
{
    char text[LS_WATCH_TEXT];
    bool first = watch->transport->rank == 0;
    const struct ls_member *about = ls_watch_member(watch, word->rank);
    if (first && word->kind == LS_MESSAGE_FAILED) {
        quote(watch, from, word->text, text, sizeof text);
        ls_watch_charge(watch, LS_REASON_FAILED, from, word->status, now + gathering, text);
    } else if (first && word->kind == LS_MESSAGE_GONE && about != NULL && !about->left &&
               now >= watch->blind_until) {
        ls_watch_describe_gone(watch, word->rank, now, text, sizeof text);
        ls_watch_charge(watch, LS_REASON_DIED, word->rank, LOCKSTEP_LOST, now, text);
    } else if (first && word->kind == LS_MESSAGE_LEFT) {
        count_left(watch, from, word->status, word->text, now);
    } else if (!first && from == 0 && word->kind == LS_MESSAGE_END && watch->leaving) {
        watch->agreed = word->status;
        atomic_store(&watch->resting, true);
    } else if (!first && from == 0 && word->kind == LS_MESSAGE_VERDICT) {
        raise_alarm(watch, word->text);
        watch->charge.made = false; /* whatever it was, rank 0 knows better */
        ls_watch_charge(watch, LS_REASON_VERDICT, word->rank, word->status, now + LS_WATCH_PATIENCE,
                        word->text);
    }
}

/* A rank that has lost others need not wait long for them. */
static void leave(struct ls_watch *watch, int status, const char *text)
{
    double now = ls_watch_clock(watch);
    int rank = watch->transport->rank;
    watch->leaving = true;
    if (rank == 0) {
        count_left(watch, 0, status, text, now);
    } else {
        ls_watch_send(watch, 0, LS_MESSAGE_LEFT, status, rank, text);
        if (is_failure(status)) {
            char quoted[LS_WATCH_TEXT];
            quote(watch, rank, text != NULL ? text : "it has ended", quoted, sizeof quoted);
            ls_watch_charge(watch, status == LOCKSTEP_LOST ? LS_REASON_LOST : LS_REASON_LEFT, rank,
                            status, now + 2 * LS_WATCH_PATIENCE_LEFT, quoted);
        }
    }
}

int ls_watch_leave(struct ls_watch *watch, int status, const char *text)
{
    pthread_mutex_lock(&watch->lock);
    if (!atomic_load(&watch->ended))
        leave(watch, status, text);
    pthread_mutex_unlock(&watch->lock);
    while (!atomic_load(&watch->resting) && !atomic_load(&watch->ended)) {
        ls_watch_turn_now(watch);
        wait_a_moment();
    }
    return atomic_load(&watch->ended) ? watch->charge.status : watch->agreed;
}
