/* The course of a training's snapshots. See solver/snapshots.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver/snapshots.h"

#include <stdio.h>
#include <string.h>

#include "base/atomic_file.h"
#include "base/lock_file.h"
#include "base/memory.h"
#include "base/text.h"
#include "snapshot/catalog.h"
#include "solver/checkpoint.h"
#include "solver/data.h"
#include "solver/events.h"
#include "solver/snapshot_writer.h"
#include "transport/comm.h"
#include "transport/failure_end.h"

enum { PROBLEM = 2048 /* bytes of one, as text */ };

struct ls_snapshots {
    struct ls_trainer *trainer;
    bool required, overwrite, copies, none;
    struct ls_lock *lock_file; /* of the prefix, while a run lasts */
    bool pending; /* a copy was given to the thread, and not all ranks know what became of it */
    bool in_hand; /* rank 0: nor has the user been told */
    bool lost;    /* the last one that was tried could not be written */
    int64_t failures, first_failure;

    struct ls_snapshot_writer writer; /* and the snapshot in hand */
    struct ls_error reported;         /* for what is not the thread's */
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
    snapshots->none = options->none;
    ls_snapshot_writer_init(&snapshots->writer, trainer);
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
                         "--resume auto goes on from them, --overwrite starts again and writes "
                         "over them, --snapshot-prefix writes elsewhere",
                         "snapshots of an earlier training are there");
    ls_free(there);
    return status;
}

int ls_snapshots_claim(struct ls_trainer *trainer, struct ls_error *error)
{
    struct ls_snapshots *snapshots = trainer->snapshots;
    if (snapshots->none)
        return 0;
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

void ls_snapshots_free(struct ls_snapshots *snapshots)
{
    if (snapshots == NULL)
        return;
    ls_snapshot_writer_free(&snapshots->writer);
    ls_snapshots_release(snapshots);
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
                   (long long)snapshots->writer.latest.iteration, reason);
    add_removable(trainer, &text);
    /* It may be due just now, where this one was waited for. */
    int64_t next = every > 0 ? (trainer->iteration + every - 1) / every * every : 0;
    next += next == snapshots->writer.latest.iteration ? every : 0;
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
    trainer->iteration = snapshots->writer.latest.iteration;
    ls_events_say(trainer, kind, "%s", text);
    trainer->iteration = now;
}

/* Readers of logs know the file by this sentence (take_file in report/events.c). */
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
    if (snapshots->writer.latest.status != 0) {
        report_failure(snapshots, &snapshots->writer.latest.problem);
    } else {
        char *path = ls_catalog_path(trainer->prefix, snapshots->writer.latest.iteration);
        say_of(snapshots, LOCKSTEP_EVENT_SNAPSHOT, path != NULL ? path : "");
        ls_free(path);
    }
    if (snapshots->writer.latest.besides.count > 0) {
        describe(&snapshots->writer.latest.besides, text, sizeof text);
        warn(trainer, text);
    } else if (snapshots->writer.latest.status == 0 && snapshots->writer.latest.best) {
        say_best(snapshots, snapshots->writer.latest.score);
    }
    snapshots->writer.latest.best = false;
    ls_error_clear(&snapshots->writer.latest.besides);
}

/* Every rank: the snapshot in hand could not be written. */
static void count_failure(struct ls_snapshots *snapshots)
{
    struct ls_trainer *trainer = snapshots->trainer;
    if (snapshots->failures++ == 0)
        snapshots->first_failure = snapshots->writer.latest.iteration;
    snapshots->lost = true;
    if (trainer->snapshot_at == snapshots->writer.latest.iteration)
        trainer->snapshot_at = -1;
}

/* ---- One after the other --------------------------------------------------------------------- */

/* Rank 0: what the thread has done is told, and the copy is free again. */
static void take_over(struct ls_snapshots *snapshots)
{
    if (!snapshots->in_hand)
        return;
    ls_snapshot_writer_wait(&snapshots->writer);
    snapshots->in_hand = false;
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
    if (!ls_snapshot_writer_is_done(&snapshots->writer))
        return false;
    take_over(snapshots);
    return snapshots->writer.latest.status != 0 && snapshots->required;
}

/* Fails with what was wrong with the snapshot in hand, on all ranks. */
static int fail_all(struct ls_snapshots *snapshots, int status, struct ls_error *error)
{
    struct ls_comm *comm = snapshots->trainer->comm;
    const struct ls_problem *problem = &snapshots->writer.latest.problem.problems[0];
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
        status = snapshots->writer.latest.status;
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
        snapshots->copies = ls_checkpoint_reserve(trainer, &snapshots->writer.staged);
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
    LS_TRY(ls_checkpoint_stage(trainer, &snapshots->writer.staged, error));
    snapshots->pending = true;
    ls_error_clear(&snapshots->writer.latest.problem);
    snapshots->in_hand = trainer->comm->rank == 0;
    if (snapshots->in_hand)
        ls_snapshot_writer_start(&snapshots->writer);
    return 0;
}

static int write_now(struct ls_snapshots *snapshots, struct ls_error *error)
{
    struct ls_trainer *trainer = snapshots->trainer;
    LS_TRY(ls_checkpoint_write(trainer, error));
    snapshots->writer.latest.status = 0;
    snapshots->lost = false;
    if (trainer->comm->rank == 0) {
        ls_snapshot_writer_prune(&snapshots->writer);
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
    if (snapshots->none || (trainer->snapshot_at == trainer->iteration && !last))
        return 0; /* it is there already, or being written, with the same bytes */
    LS_TRY(ls_snapshots_settle(trainer, error));
    if (trainer->snapshot_at == trainer->iteration)
        return 0;
    LS_TRY(ls_data_settle(trainer, error));
    LS_TRY(choose_way(snapshots, last, &copy, error));
    snapshots->writer.latest.iteration = trainer->iteration;
    ls_error_clear(&snapshots->reported);
    int status = copy ? write_later(snapshots, &snapshots->reported)
                      : write_now(snapshots, &snapshots->reported);
    if (status == 0) {
        trainer->snapshot_at = trainer->iteration;
        return 0;
    }
    if (status != LOCKSTEP_RESOURCE || last || snapshots->required)
        return fail_with(&snapshots->reported, error);
    snapshots->writer.latest.problem = snapshots->reported;
    count_failure(snapshots); /* the same on all ranks */
    if (trainer->comm->rank == 0)
        report_failure(snapshots, &snapshots->reported);
    return 0;
}

void ls_snapshots_mark_best(struct ls_trainer *trainer)
{
    struct ls_snapshots *snapshots = trainer->snapshots;
    char text[PROBLEM];
    if (trainer->comm->rank != 0 || snapshots->none)
        return;
    /* What is being written is that of this iteration: an earlier one was waited for. */
    if (ls_snapshot_writer_mark_best(&snapshots->writer, trainer->best.now.value))
        return;
    take_over(snapshots);
    if (trainer->snapshot_at != trainer->iteration ||
        (snapshots->pending && snapshots->writer.latest.status)) {
        snprintf(text, sizeof text,
                 "%s is the best so far, %.6g, and has no snapshot: %s_best.safetensors stays as "
                 "it was",
                 trainer->solver->snapshot_best, trainer->best.now.value, trainer->prefix);
        warn(trainer, text);
        return;
    }
    snapshots->writer.latest.iteration = trainer->iteration;
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
