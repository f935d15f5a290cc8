/* The trace of a training. See solver/trace.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver/trace.h"

#include <string.h>

#include "base/atomic_file.h"
#include "base/memory.h"
#include "lockstep/lockstep.h"
#include "observe/timeline_text.h"
#include "solver/events.h"
#include "solver/trainer.h"
#include "transport/comm.h"
#include "transport/progress_thread.h"

static const uint64_t usual_limit = 16 << 20;
enum { ROUNDS = 9 /* of comparing clocks */ };

size_t ls_trainer_trace_bytes(uint64_t limit)
{
    return (size_t)(limit > 0 ? limit : usual_limit);
}

int ls_trainer_trace_begin(struct ls_trainer *trainer, const char *path, uint64_t limit,
                           struct ls_error *error)
{
    trainer->trace_path = ls_copy_string(path);
    if (trainer->trace_path == NULL)
        return ls_fail_memory(error, "a trace");
    if (trainer->comm->rank == 0)
        LS_TRY(ls_file_check_prefix(path, error));
    trainer->trace_bytes = ls_trainer_trace_bytes(limit);
    LS_TRY(ls_timeline_create(trainer->trace_bytes, &trainer->trace, error));
    ls_timeline_here = ls_timeline_track(trainer->trace, "worker 0");
    return ls_timeline_here != NULL ? 0 : ls_fail_memory(error, "a trace");
}

void ls_trainer_trace_threads(struct ls_trainer *trainer)
{
    if (trainer->trace == NULL)
        return;
    ls_thread_pool_trace(trainer->engine->pool, trainer->trace);
    ls_progress_thread_trace(trainer->comm->progress_thread, trainer->trace);
}

void ls_trainer_trace_end(struct ls_trainer *trainer)
{
    if (trainer->trace != NULL)
        ls_progress_thread_trace(trainer->comm->progress_thread, NULL);
    ls_timeline_free(trainer->trace);
    ls_free(trainer->trace_path);
    trainer->trace = NULL;
    trainer->trace_path = NULL;
}

/* ---- Clocks ---------------------------------------------------------------------------------- */

/* What every rank tells the others. */
struct clock_note {
    int64_t begun; /* on rank 0's clock */
    uint32_t exchanges, full;
    char host[64];
};

/* How far this rank's clock is behind rank 0's: the median of some comparisons, each right after an
 * exchange that all leave at about the same time. */
static int compare_clocks(struct ls_comm *comm, int64_t *offset, struct ls_error *error)
{
    int64_t *all = ls_alloc((size_t)comm->size, sizeof *all), found[ROUNDS] = {0};
    int64_t mine = 0;
    int status = ls_comm_agree(comm, all == NULL ? ls_fail_memory(error, "a trace") : 0, error);
    for (int round = 0; round <= ROUNDS && status == 0 && all != NULL; round++) {
        status = ls_comm_all_gather(comm, &mine, sizeof mine, all, error);
        if (round > 0)
            found[round - 1] = all[0] - mine;
        mine = (int64_t)ls_nanoseconds();
    }
    for (int i = 1; i < ROUNDS && status == 0; i++) /* by insertion */
        for (int k = i; k > 0 && found[k - 1] > found[k]; k--) {
            int64_t larger = found[k - 1];
            found[k - 1] = found[k];
            found[k] = larger;
        }
    if (status == 0)
        *offset = found[ROUNDS / 2];
    ls_free(all);
    return status;
}

/* What all ranks must know of each other's traces. Ranks of one machine have one clock. */
static int compare_traces(struct ls_trainer *trainer, struct clock_note *notes,
                          struct ls_timeline_rank *rank, bool *full, struct ls_error *error)
{
    struct ls_comm *comm = trainer->comm;
    struct clock_note mine = {.full = atomic_load(&trainer->trace->full)};
    if (comm->size > 1) {
        LS_TRY(compare_clocks(comm, &rank->offset, error));
        memcpy(mine.host, comm->transport->host, sizeof mine.host - 1);
        LS_TRY(ls_comm_all_gather(comm, &mine, sizeof mine, notes, error));
        if (strcmp(notes[0].host, mine.host) == 0)
            rank->offset = 0;
    }
    int status = ls_timeline_exchanges(trainer->trace, &mine.exchanges, error);
    LS_TRY(ls_comm_agree(comm, status, error));
    mine.begun = (int64_t)trainer->trace->begun + rank->offset;
    LS_TRY(ls_comm_all_gather(comm, &mine, sizeof mine, notes, error));
    rank->zero = notes[0].begun;
    rank->exchanges = notes[0].exchanges;
    for (int r = 0; r < comm->size; r++) {
        rank->zero = notes[r].begun < rank->zero ? notes[r].begun : rank->zero;
        rank->exchanges =
            notes[r].exchanges < rank->exchanges ? notes[r].exchanges : rank->exchanges;
        *full = *full || notes[r].full != 0;
    }
    return 0;
}

/* When all exchanges begin and end on all ranks. */
static int gather_spans(struct ls_trainer *trainer, struct ls_timeline_rank *rank,
                        struct ls_timeline_span **all, struct ls_error *error)
{
    struct ls_comm *comm = trainer->comm;
    const size_t count = rank->exchanges;
    *all = NULL;
    if (count == 0)
        return 0;
    struct ls_timeline_span *mine = ls_alloc(count, sizeof *mine);
    *all = ls_alloc(count * (size_t)comm->size, sizeof **all);
    int status = mine == NULL || *all == NULL ? ls_fail_memory(error, "a trace") : 0;
    status = ls_comm_agree(comm, status, error);
    if (status == 0 && mine != NULL && *all != NULL) {
        ls_timeline_spans(trainer->trace, rank, mine);
        status = ls_comm_all_gather(comm, mine, count * sizeof *mine, *all, error);
        rank->spans = *all;
    }
    ls_free(mine);
    return status;
}

/* ---- The file -------------------------------------------------------------------------------- */

/* `texts` are the objects of all ranks. An object that says nothing ends them without a comma. */
static int write_file(const struct ls_trainer *trainer, const char *texts, size_t size,
                      struct ls_error *error)
{
    static const char head[] = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
    static const char tail[] = "{\"ph\":\"M\",\"pid\":0,\"tid\":0,\"name\":\"process_labels\","
                               "\"args\":{\"labels\":\"lockstep\"}}\n]}\n";
    struct ls_atomic_file *file;
    LS_TRY(ls_atomic_open(trainer->trace_path, &file, error));
    int status = ls_atomic_write(file, head, sizeof head - 1, error);
    if (status == 0)
        status = ls_atomic_write(file, texts, size, error);
    if (status == 0)
        status = ls_atomic_write(file, tail, sizeof tail - 1, error);
    if (status == 0)
        return ls_atomic_commit(file, error);
    ls_atomic_abandon(file);
    return status;
}

/* Rank 0 gets the texts of all ranks, behind each other. */
static int gather_texts(struct ls_comm *comm, struct ls_text *mine, char **all, size_t *size,
                        struct ls_error *error)
{
    const size_t ranks = (size_t)comm->size;
    uint64_t length, *lengths = ls_alloc(ranks, sizeof *lengths);
    struct ls_range *parts = ls_alloc(ranks, sizeof *parts);
    while (mine->length % 4 != 0 && !mine->failed)
        ls_text_add(mine, "\n");
    length = mine->length;
    int status =
        lengths == NULL || parts == NULL || mine->failed ? ls_fail_memory(error, "a trace") : 0;
    status = ls_comm_agree(comm, status, error);
    if (status == 0 && lengths != NULL)
        status = ls_comm_all_gather(comm, &length, sizeof length, lengths, error);
    *size = 0;
    *all = NULL;
    for (size_t r = 0; r < ranks && status == 0 && parts != NULL && lengths != NULL; r++) {
        parts[r] = (struct ls_range){.begin = *size, .end = *size + lengths[r]};
        *size += lengths[r];
    }
    if (status == 0 && comm->rank == 0)
        *all = ls_alloc(*size + 1, 1);
    if (status == 0)
        status = ls_comm_agree(
            comm, comm->rank == 0 && *all == NULL ? ls_fail_memory(error, "a trace") : 0, error);
    if (status == 0)
        status = ls_comm_gather(comm, mine->data, *all, parts, 1, error);
    ls_free(lengths);
    ls_free(parts);
    return status;
}

static void tell_full(struct ls_trainer *trainer)
{
    ls_events_say(trainer, LOCKSTEP_EVENT_WARNING,
                  "the trace has reached its limit, and shows the first part of this run only; "
                  "--trace-limit gives it more room");
}

static int write_of_all(struct ls_trainer *trainer, struct clock_note *notes,
                        struct ls_error *error)
{
    struct ls_comm *comm = trainer->comm;
    struct ls_timeline_rank rank = {.rank = comm->rank, .ranks = comm->size, .host = "alone"};
    struct ls_text text = {0};
    bool full = false;
    char *all = NULL;
    size_t size = 0;
    struct ls_timeline_span *spans = NULL;
    LS_TRY(compare_traces(trainer, notes, &rank, &full, error));
    int status = 0;
    if (comm->size > 1) {
        rank.host = comm->transport->host;
        status = gather_spans(trainer, &rank, &spans, error);
    }
    if (status == 0)
        status = ls_timeline_write(trainer->trace, &rank, &text, error);
    ls_free(spans);
    if (comm->size == 1) {
        if (status == 0)
            status = write_file(trainer, text.data, text.length, error);
    } else {
        status = ls_comm_agree(comm, status, error);
        if (status == 0)
            status = gather_texts(comm, &text, &all, &size, error);
        if (status == 0 && comm->rank == 0)
            status = write_file(trainer, all, size, error);
        ls_free(all);
        status = ls_comm_agree(comm, status, error);
    }
    ls_text_free(&text);
    if (full)
        tell_full(trainer);
    return status;
}

/* Rank 0's own, where others are lost or have failed. */
static void write_alone(struct ls_trainer *trainer)
{
    struct ls_timeline_rank rank = {.ranks = 1, .host = "rank 0 alone"};
    struct ls_text text = {0};
    rank.zero = (int64_t)trainer->trace->begun;
    if (ls_timeline_write(trainer->trace, &rank, &text, NULL) == 0)
        (void)write_file(trainer, text.data, text.length, NULL);
    ls_text_free(&text);
}

int ls_trainer_trace_write(struct ls_trainer *trainer, int status, struct ls_error *error)
{
    if (trainer->trace == NULL)
        return status;
    if (status != 0 && status != LOCKSTEP_STOPPED) {
        if (trainer->comm->rank == 0)
            write_alone(trainer);
        return status;
    }
    struct clock_note *notes = ls_alloc((size_t)trainer->comm->size, sizeof *notes);
    int written = notes == NULL ? ls_fail_memory(error, "a trace") : 0;
    written = ls_comm_agree(trainer->comm, written, error);
    if (written == 0 && notes != NULL)
        written = write_of_all(trainer, notes, error);
    ls_free(notes);
    return written != 0 ? written : status;
}
