/* The course of a training's snapshots. See solver/snapshots.h.
 *
 * What is written by the thread is the copy's and the thread's from `start` until it is done; all
 * else belongs to the thread that trains.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver/snapshots.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/atomic_file.h"
#include "base/file.h"
#include "base/lock_file.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/thread.h"
#include "snapshot/catalog.h"
#include "solver/checkpoint.h"
#include "solver/data.h"
#include "solver/events.h"
#include "solver/weights.h"
#include "transport/comm.h"
#include "transport/failure_detector.h"
#include "transport/failure_end.h"

enum {
    ASK_AGAIN = 100000000, /* nanoseconds between two looks at a thread that writes */
    PROBLEM = 2048         /* bytes of one, as text */
};

struct ls_snapshots {
    struct ls_trainer *trainer;
    bool required, overwrite, copies;
    struct ls_lock *lock_file; /* of the prefix, while a run lasts */
    bool pending; /* a copy was given to the thread, and not all ranks know what became of it */
    bool in_hand; /* rank 0: neither do those who are told of it */
    bool lost;    /* the last one that was tried could not be written */
    int64_t failures, first_failure;
    char last_written[4096]; /* rank 0: "" before the first */

    struct ls_staged staged;
    pthread_t thread;
    bool has_thread; /* and it must be joined */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    _Atomic bool done;        /* by the thread; changed with the lock */
    _Atomic uint64_t pieces;  /* that were written */
    int64_t iteration;        /* of the snapshot in hand */
    bool best;                /* with the lock: it will be the best one */
    double score;             /* with the lock: and what it scored */
    int status;               /* of writing it */
    struct ls_error problem;  /* why it failed, */
    struct ls_error besides;  /* and what went wrong besides */
    struct ls_error reported; /* for what is not the thread's */
};

int ls_snapshots_create(struct ls_trainer *trainer, const struct ls_snapshots_options *options,
                        struct ls_snapshots **out, struct ls_error *error)
{
    struct ls_snapshots *snapshots = ls_alloc(1, sizeof *snapshots);
    *out = snapshots;
    if (snapshots == NULL)
        return ls_fail_memory(error, "a trainer");
    snapshots->trainer = trainer;
    snapshots->required = options->required;
    snapshots->overwrite = options->overwrite;
    snapshots->copies = options->copies;
    pthread_mutex_init(&snapshots->lock, NULL);
    pthread_cond_init(&snapshots->changed, NULL);
    return 0;
}

/* ---- The prefix ------------------------------------------------------------------------------ */

static int refuse_to_overwrite(const struct ls_trainer *trainer, struct ls_error *error)
{
    char *there;
    LS_TRY(ls_catalog_any(trainer->prefix, &there, error));
    if (there == NULL)
        return 0;
    int status = ls_fail(error, LOCKSTEP_USAGE, there,
                         "--resume auto goes on from them, --overwrite begins anew and writes over "
                         "them, --snapshot-prefix writes elsewhere",
                         "snapshots of an earlier training are there");
    ls_free(there);
    return status;
}

int ls_snapshots_claim(struct ls_trainer *trainer, struct ls_error *error)
{
    struct ls_snapshots *snapshots = trainer->snapshots;
    LS_TRY(ls_file_check_prefix(trainer->prefix, error));
    const char *slash = strrchr(trainer->prefix, '/');
    int folder = slash != NULL ? (int)(slash - trainer->prefix) + 1 : 0;
    struct ls_text path = {0};
    ls_text_format(&path, "%.*s.%.200s.lock", folder, trainer->prefix, trainer->prefix + folder);
    int status = path.failed ? ls_fail_memory(error, "a path")
                             : ls_lock_take(path.data, &snapshots->lock_file, error);
    ls_text_free(&path);
    if (status == 0 && !trainer->goes_on && !snapshots->overwrite)
        status = refuse_to_overwrite(trainer, error);
    if (status == 0)
        trainer->goes_on = true; /* what is written from now on is its own */
    return status;
}

void ls_snapshots_release(struct ls_snapshots *snapshots)
{
    ls_lock_release(snapshots->lock_file);
    snapshots->lock_file = NULL;
}

/* ---- The thread ------------------------------------------------------------------------------ */

static void count_piece(void *user)
{
    struct ls_snapshots *snapshots = user;
    atomic_fetch_add(&snapshots->pieces, 1);
}

static int write_copy(struct ls_snapshots *snapshots, struct ls_error *error)
{
    const struct ls_trainer *trainer = snapshots->trainer;
    char *path = ls_catalog_path(trainer->prefix, snapshots->iteration);
    char *model = ls_catalog_caffemodel_path(trainer->prefix, snapshots->iteration);
    int status = path == NULL || model == NULL ? ls_fail_memory(error, "a snapshot") : 0;
    snapshots->staged.archive.wrote = count_piece;
    snapshots->staged.archive.user = snapshots;
    if (status == 0)
        status = ls_archive_write(&snapshots->staged.archive, path, error);
    if (status == 0 && ls_checkpoint_has_caffemodel(trainer))
        status = ls_write_caffemodel(ls_net_graph(trainer->train), snapshots->staged.plain, model,
                                     error);
    ls_free(path);
    ls_free(model);
    return status;
}

/* A snapshot has been written: older ones may go. What fails here does not harm it. */
static void prune_older(struct ls_snapshots *snapshots)
{
    const struct ls_trainer *trainer = snapshots->trainer;
    ls_catalog_prune(trainer->prefix, snapshots->iteration, trainer->solver->snapshot_keep,
                     &snapshots->besides);
}

static void *write_apart(void *user)
{
    struct ls_snapshots *snapshots = user;
    ls_unpin_thread();
    ls_set_float_mode();
    int status = write_copy(snapshots, &snapshots->problem);
    if (status == 0)
        prune_older(snapshots);
    pthread_mutex_lock(&snapshots->lock);
    if (status == 0 && snapshots->best) /* found meanwhile, by a test */
        ls_catalog_mark_best(snapshots->trainer->prefix, snapshots->iteration, &snapshots->besides);
    snapshots->status = status;
    atomic_store(&snapshots->done, true);
    pthread_cond_signal(&snapshots->changed);
    pthread_mutex_unlock(&snapshots->lock);
    return NULL;
}

/* Begins to write the copy; false: there is no thread for it. */
static bool start(struct ls_snapshots *snapshots)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the thread that trains */
    snapshots->has_thread = pthread_create(&snapshots->thread, NULL, write_apart, snapshots) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return snapshots->has_thread;
}

/* Waits for the thread. While it gets on, this rank does. */
static void wait_for_thread(struct ls_snapshots *snapshots)
{
    const struct ls_trainer *trainer = snapshots->trainer;
    uint64_t seen = 0;
    pthread_mutex_lock(&snapshots->lock);
    while (snapshots->has_thread && !atomic_load(&snapshots->done)) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += ASK_AGAIN;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&snapshots->changed, &snapshots->lock, &until);
        uint64_t pieces = atomic_load(&snapshots->pieces);
        if (pieces != seen)
            ls_detector_note(trainer->comm->detector, trainer->iteration, NULL);
        seen = pieces;
    }
    pthread_mutex_unlock(&snapshots->lock);
    if (snapshots->has_thread)
        pthread_join(snapshots->thread, NULL);
    snapshots->has_thread = false;
}

void ls_snapshots_free(struct ls_snapshots *snapshots)
{
    if (snapshots == NULL)
        return;
    wait_for_thread(snapshots);
    ls_snapshots_release(snapshots);
    ls_staged_free(&snapshots->staged);
    pthread_mutex_destroy(&snapshots->lock);
    pthread_cond_destroy(&snapshots->changed);
    ls_free(snapshots);
}

/* ---- Reports --------------------------------------------------------------------------------- */

/* "message. hint: what to do" of the first problem. */
static void describe(const struct ls_error *error, char *text, size_t size)
{
    const struct ls_problem *problem = &error->problems[0];
    const char *hint = problem->hint[0] != '\0' ? ". hint: " : "";
    snprintf(text, size, "%s%s%s%s%s", problem->place, problem->place[0] != '\0' ? ": " : "",
             problem->message, hint, problem->hint);
}

/* Rank 0: a warning, in status.json too. */
static void warn(struct ls_trainer *trainer, const char *text)
{
    struct lockstep_event event = {.kind = LOCKSTEP_EVENT_WARNING, .text = text};
    ls_events_send(trainer, &event);
    ls_detector_warn(trainer->comm->detector, text);
}

/* Which snapshots could go, where there is no room for a new one. */
static void add_removable(const struct ls_trainer *trainer, struct ls_text *text)
{
    struct ls_catalog catalog;
    if (ls_catalog_list(trainer->prefix, &catalog, NULL) != 0)
        return;
    size_t older = 0;
    while (older < catalog.count && catalog.entries[older].iteration < trainer->iteration)
        older++;
    int keep = trainer->solver->snapshot_keep;
    if (older > 1)
        ls_text_format(text, "; %zu older snapshots are there, %s to %s: snapshot_keep%s", older,
                       catalog.entries[0].path, catalog.entries[older - 1].path,
                       keep > 0 ? ", once there is room, removes the oldest"
                                : " would remove some");
    else if (older == 1)
        ls_text_format(text, "; an older snapshot is there: %s", catalog.entries[0].path);
    ls_catalog_free(&catalog);
}

static void report_failure(struct ls_snapshots *snapshots, const struct ls_error *problem)
{
    struct ls_trainer *trainer = snapshots->trainer;
    int64_t every = trainer->schedule.snapshot_interval;
    char reason[PROBLEM];
    struct ls_text text = {0};
    describe(problem, reason, sizeof reason);
    ls_text_format(&text, "the snapshot of iteration %lld was not written: %s",
                   (long long)snapshots->iteration, reason);
    add_removable(trainer, &text);
    /* It may be due just now, where this one was waited for. */
    int64_t next = every > 0 ? (trainer->iteration + every - 1) / every * every : 0;
    next += next == snapshots->iteration ? every : 0;
    if (!snapshots->required && next > 0 && next <= trainer->run_end)
        ls_text_format(&text, ". Training goes on; the next one is due at iteration %lld",
                       (long long)next);
    else if (!snapshots->required && trainer->iteration < trainer->run_end)
        ls_text_add(&text, ". Training goes on");
    warn(trainer, text.failed ? reason : text.data);
    ls_text_free(&text);
}

/* An event of an iteration that is over. */
static void say_of(struct ls_snapshots *snapshots, enum lockstep_event_kind kind, const char *text)
{
    struct ls_trainer *trainer = snapshots->trainer;
    int64_t now = trainer->iteration;
    trainer->iteration = snapshots->iteration;
    ls_events_say(trainer, kind, "%s", text);
    trainer->iteration = now;
}

static void say_best(struct ls_snapshots *snapshots, double score)
{
    const struct ls_trainer *trainer = snapshots->trainer;
    char text[1024];
    snprintf(text, sizeof text, "Best %s so far: %.6g, kept as %s_best.safetensors",
             trainer->solver->snapshot_best, score, trainer->prefix);
    say_of(snapshots, LOCKSTEP_EVENT_NOTICE, text);
}

/* Rank 0: says how it went with the snapshot in hand. */
static void report(struct ls_snapshots *snapshots)
{
    struct ls_trainer *trainer = snapshots->trainer;
    char text[PROBLEM];
    if (snapshots->status != 0) {
        report_failure(snapshots, &snapshots->problem);
    } else {
        char *path = ls_catalog_path(trainer->prefix, snapshots->iteration);
        snprintf(snapshots->last_written, sizeof snapshots->last_written, "%s",
                 path != NULL ? path : "");
        say_of(snapshots, LOCKSTEP_EVENT_SNAPSHOT, snapshots->last_written);
        ls_free(path);
    }
    if (snapshots->besides.count > 0) {
        describe(&snapshots->besides, text, sizeof text);
        warn(trainer, text);
    } else if (snapshots->status == 0 && snapshots->best) {
        say_best(snapshots, snapshots->score);
    }
    snapshots->best = false;
    ls_error_clear(&snapshots->besides);
}

/* Every rank: the snapshot in hand could not be written. */
static void count_failure(struct ls_snapshots *snapshots)
{
    struct ls_trainer *trainer = snapshots->trainer;
    if (snapshots->failures++ == 0)
        snapshots->first_failure = snapshots->iteration;
    snapshots->lost = true;
    if (trainer->snapshot_at == snapshots->iteration)
        trainer->snapshot_at = -1;
}

/* ---- One after the other --------------------------------------------------------------------- */

/* Rank 0: what the thread has done is told, and the copy is free again. */
static void take_over(struct ls_snapshots *snapshots)
{
    if (!snapshots->in_hand)
        return;
    wait_for_thread(snapshots);
    snapshots->in_hand = false;
    atomic_store(&snapshots->done, false);
    report(snapshots);
}

void ls_snapshots_wait(struct ls_trainer *trainer)
{
    if (trainer->comm->rank == 0)
        take_over(trainer->snapshots);
}

bool ls_snapshots_poll(struct ls_trainer *trainer)
{
    struct ls_snapshots *snapshots = trainer->snapshots;
    if (!atomic_load_explicit(&snapshots->done, memory_order_acquire))
        return false;
    take_over(snapshots);
    return snapshots->status != 0 && snapshots->required;
}

/* Fails with what was wrong with the snapshot in hand, on all ranks. */
static int fail_all(struct ls_snapshots *snapshots, int status, struct ls_error *error)
{
    struct ls_comm *comm = snapshots->trainer->comm;
    const struct ls_problem *problem = &snapshots->problem.problems[0];
    int mine = 0;
    if (comm->rank == 0)
        mine = ls_fail(error, status, problem->place, problem->hint, "%s", problem->message);
    return ls_comm_agree(comm, mine, error);
}

int ls_snapshots_settle(struct ls_trainer *trainer, struct ls_error *error)
{
    struct ls_snapshots *snapshots = trainer->snapshots;
    int32_t status = 0;
    if (!snapshots->pending)
        return 0;
    snapshots->pending = false;
    if (trainer->comm->rank == 0) {
        take_over(snapshots);
        status = snapshots->status;
    }
    LS_TRY(ls_comm_broadcast(trainer->comm, &status, sizeof status, error));
    snapshots->lost = false;
    if (status == 0)
        return 0;
    count_failure(snapshots);
    return snapshots->required ? fail_all(snapshots, status, error) : 0;
}

/* Rank 0 decides whether there will be a copy. */
static int choose_way(struct ls_snapshots *snapshots, bool last, bool *copy, struct ls_error *error)
{
    struct ls_trainer *trainer = snapshots->trainer;
    int32_t chosen = 0;
    if (trainer->comm->rank == 0 && !last && snapshots->copies) {
        snapshots->copies = ls_checkpoint_reserve(trainer, &snapshots->staged);
        chosen = snapshots->copies;
        if (!chosen)
            warn(trainer, "there is no memory for a copy of the snapshot: training waits while "
                          "snapshots are written");
    }
    LS_TRY(ls_comm_broadcast(trainer->comm, &chosen, sizeof chosen, error));
    *copy = chosen != 0;
    return 0;
}

/* Copies, and lets the copy be written. Where a thread cannot be had, it is written here. */
static int write_later(struct ls_snapshots *snapshots, struct ls_error *error)
{
    struct ls_trainer *trainer = snapshots->trainer;
    LS_TRY(ls_checkpoint_stage(trainer, &snapshots->staged, error));
    snapshots->pending = true;
    ls_error_clear(&snapshots->problem);
    snapshots->in_hand = trainer->comm->rank == 0;
    if (snapshots->in_hand && !start(snapshots))
        write_apart(snapshots);
    return 0;
}

static int write_now(struct ls_snapshots *snapshots, struct ls_error *error)
{
    struct ls_trainer *trainer = snapshots->trainer;
    LS_TRY(ls_checkpoint_write(trainer, error));
    snapshots->status = 0;
    snapshots->lost = false;
    if (trainer->comm->rank == 0) {
        prune_older(snapshots);
        report(snapshots);
    }
    return 0;
}

/* Hands on what was wrong with a snapshot that had to succeed. */
static int fail_with(const struct ls_error *problem, struct ls_error *error)
{
    for (int i = 0; i < problem->count; i++)
        ls_fail(error, problem->problems[i].status, problem->problems[i].place,
                problem->problems[i].hint, "%s", problem->problems[i].message);
    return problem->status;
}

int ls_snapshots_take(struct ls_trainer *trainer, bool last, struct ls_error *error)
{
    struct ls_snapshots *snapshots = trainer->snapshots;
    bool copy = false;
    if (trainer->snapshot_at == trainer->iteration && !last)
        return 0; /* it is there already, or being written, with the same bytes */
    LS_TRY(ls_snapshots_settle(trainer, error));
    if (trainer->snapshot_at == trainer->iteration)
        return 0;
    LS_TRY(ls_data_settle(trainer, error));
    LS_TRY(choose_way(snapshots, last, &copy, error));
    snapshots->iteration = trainer->iteration;
    ls_error_clear(&snapshots->reported);
    int status = copy ? write_later(snapshots, &snapshots->reported)
                      : write_now(snapshots, &snapshots->reported);
    if (status == 0) {
        trainer->snapshot_at = trainer->iteration;
        return 0;
    }
    if (status != LOCKSTEP_RESOURCE || last || snapshots->required)
        return fail_with(&snapshots->reported, error);
    snapshots->problem = snapshots->reported;
    count_failure(snapshots); /* the same on all ranks */
    if (trainer->comm->rank == 0)
        report_failure(snapshots, &snapshots->reported);
    return 0;
}

void ls_snapshots_mark_best(struct ls_trainer *trainer)
{
    struct ls_snapshots *snapshots = trainer->snapshots;
    char text[PROBLEM];
    if (trainer->comm->rank != 0)
        return;
    pthread_mutex_lock(&snapshots->lock);
    bool writing = snapshots->in_hand && !atomic_load(&snapshots->done);
    if (writing) { /* that of this iteration: an earlier one was waited for */
        snapshots->best = true;
        snapshots->score = trainer->best.now.value;
    }
    pthread_mutex_unlock(&snapshots->lock);
    if (writing)
        return;
    take_over(snapshots);
    if (trainer->snapshot_at != trainer->iteration || (snapshots->pending && snapshots->status)) {
        snprintf(text, sizeof text,
                 "%s is the best so far, %.6g, and has no snapshot: %s_best.safetensors stays as "
                 "it was",
                 trainer->solver->snapshot_best, trainer->best.now.value, trainer->prefix);
        warn(trainer, text);
        return;
    }
    snapshots->iteration = trainer->iteration;
    ls_error_clear(&snapshots->reported);
    if (ls_catalog_mark_best(trainer->prefix, trainer->iteration, &snapshots->reported) == 0) {
        say_best(snapshots, trainer->best.now.value);
    } else {
        describe(&snapshots->reported, text, sizeof text);
        warn(trainer, text);
    }
}

int ls_snapshots_end(struct ls_trainer *trainer, struct ls_error *error)
{
    struct ls_snapshots *snapshots = trainer->snapshots;
    LS_TRY(ls_snapshots_settle(trainer, error));
    if (snapshots->failures > 0 && trainer->comm->rank == 0) {
        char text[256];
        snprintf(text, sizeof text,
                 "%lld snapshot%s could not be written, the first one at iteration %lld",
                 (long long)snapshots->failures, snapshots->failures == 1 ? "" : "s",
                 (long long)snapshots->first_failure);
        warn(trainer, text);
    }
    return snapshots->lost ? fail_all(snapshots, LOCKSTEP_RESOURCE, error) : 0;
}
