/* One training of a verification. See solver/verify_run.h.
 *
 * The trainer's own loop trains, with tests and snapshots where the solver wants them, so that what
 * is compared is what `lockstep train` would do.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver/verify_run.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/thread.h"
#include "engine/pass.h"
#include "ops/devices.h"
#include "snapshot/catalog.h"
#include "solver/environment.h"
#include "solver/loop.h"
#include "solver/resume.h"
#include "solver/weights.h"
#include "transport/comm_job.h"
#include "transport/local.h"
#include "transport/comm.h"
#include "transport/failure_detector.h"

enum { DEFAULT_ITERATIONS = 50, PATIENCE = 300 /* seconds */ };

/* From one start to a stop or to the end: a job of its own. */
struct segment {
    struct ls_verify_run *run;
    const struct ls_verify_case *what;
    int64_t stop;       /* from this update on rank 0 asks to stop; negative: never */
    const char *resume; /* a snapshot; NULL: this is the beginning */
    const char *prefix;
    int64_t reached; /* where it ended */
    int64_t end;
};

struct rank {
    struct segment *segment;
    int rank;
    struct ls_transport *transport;
    pthread_t thread;
    struct ls_trainer *trainer;
    struct ls_tracer tracer;
    struct ls_error *error;
    int status;
};

void ls_verify_name(const struct ls_verify_case *what, struct ls_text *text)
{
    for (int r = 0; r < what->ranks && what->cards != NULL; r++)
        ls_text_format(text, "%s%d%s",
                       r > 0             ? ","
                       : what->ranks > 1 ? "cards "
                                         : "card ",
                       what->cards[r], r + 1 == what->ranks ? ": " : "");
    if (what->ranks > 1)
        ls_text_format(text, "%d ranks of ", what->ranks);
    ls_text_format(text, "%d worker%s", what->workers, what->workers > 1 ? "s" : "");
    if (what->dynamic)
        ls_text_format(text, ", dynamic");
    if (what->memory == LOCKSTEP_MEMORY_LEAST)
        ls_text_format(text, ", least memory");
    else if (what->memory > 0)
        ls_text_format(text, ", %.1f MiB", (double)what->memory / 1048576);
}

/* ---- What rank 0 hears ----------------------------------------------------------------------- */

/* Of what all trainings warn, the first one does. */
static void note_warning(struct rank *rank, const char *warning)
{
    struct ls_text *warnings = rank->segment->run->warnings;
    if (warnings->data != NULL && strstr(warnings->data, warning) != NULL)
        return;
    ls_text_format(warnings, "%s\n", warning);
    if (warnings->failed)
        rank->status = ls_fail_memory(rank->error, "a verification");
}

/* Until the run's end, for all ranks the same. */
static int64_t end_of(const struct rank *rank)
{
    const struct ls_verify_run *run = rank->segment->run;
    int64_t most = rank->trainer->schedule.max_iter;
    if (run->close_up != NULL)
        return run->close_up->update + 1;
    if (run->end >= 0)
        return run->end;
    return most < DEFAULT_ITERATIONS ? most : DEFAULT_ITERATIONS;
}

/* Updates done, of those of all trainings, which are equally long. */
static void tell_progress(const struct rank *rank, int64_t iteration, int64_t end)
{
    const struct ls_verify_run *run = rank->segment->run;
    const struct lockstep_callbacks *callbacks = &run->options->callbacks;
    const int64_t trainings = (int64_t)run->options->count + (run->options->stops > 0);
    char text[96];
    struct lockstep_event event = {.kind = LOCKSTEP_EVENT_NOTICE,
                                   .text = text,
                                   .samples = (int64_t)run->number * end + iteration,
                                   .iteration_end = trainings * end};
    snprintf(text, sizeof text, "%lld of %lld updates are done.", (long long)event.samples,
             (long long)event.iteration_end);
    if (callbacks->event != NULL && run->close_up == NULL)
        callbacks->event(callbacks->user, &event);
}

/* Rank 0. But for the progress, what is told of a training is told once it is over, by the thread
 * that verifies. */
static void hear_event(void *user, const struct lockstep_event *event)
{
    struct rank *rank = user;
    if (event->kind == LOCKSTEP_EVENT_WARNING)
        note_warning(rank, event->text);
    if (event->kind == LOCKSTEP_EVENT_PROGRESS)
        tell_progress(rank, event->iteration, end_of(rank));
    if (event->kind != LOCKSTEP_EVENT_TEST || rank->segment->run->close_up != NULL)
        return;
    if (ls_trace_add_test(rank->segment->run->trace, event, rank->error) != 0)
        rank->status = LOCKSTEP_RESOURCE;
}

static enum lockstep_request answer(void *user)
{
    struct rank *rank = user;
    const struct segment *segment = rank->segment;
    bool stop = rank->rank == 0 && segment->stop >= 0 && rank->trainer != NULL &&
                rank->trainer->iteration >= segment->stop;
    return stop ? LOCKSTEP_SNAPSHOT_AND_STOP : LOCKSTEP_GO_ON;
}

/* ---- A rank ---------------------------------------------------------------------------------- */

/* See struct ls_trainer. */
static int after_update(void *user, struct ls_error *error)
{
    struct rank *rank = user;
    return ls_tracer_note(&rank->tracer, error);
}

static int prepare(struct rank *rank)
{
    struct ls_trainer *trainer = rank->trainer;
    const struct segment *segment = rank->segment;
    const struct ls_verify_options *options = segment->run->options;
    rank->tracer = (struct ls_tracer){
        .trainer = trainer, .trace = segment->run->trace, .close_up = segment->run->close_up};
    int status = ls_tracer_begin(&rank->tracer, rank->error);
    if (status != 0)
        LS_TRY(ls_comm_conclude(trainer->comm, status, rank->error));
    trainer->after_update = after_update;
    trainer->after_update_user = rank;
    if (segment->resume != NULL)
        LS_TRY(ls_trainer_resume(trainer, segment->resume, rank->error));
    else if (options->weights != NULL)
        LS_TRY(ls_trainer_load_weights(trainer, options->weights, NULL, false, rank->error));
    if (options->prepare != NULL)
        options->prepare(trainer, segment->run->number, rank->rank);
    return 0;
}

static int train(struct rank *rank, struct ls_comm *comm)
{
    struct segment *segment = rank->segment;
    struct lockstep_train_options options = {.struct_size = sizeof options,
                                             .workers = segment->what->workers,
                                             .memory = segment->what->memory,
                                             .snapshot_prefix = segment->prefix,
                                             .snapshot_required = 1,
                                             .overwrite = 1,
                                             .callbacks = {rank, hear_event, answer},
                                             .device = segment->run->options->device};
    LS_TRY(ls_trainer_join(segment->run->definition, &options, comm, &rank->trainer, rank->error));
    int status = prepare(rank);
    if (rank->rank == 0)
        segment->run->trace->library |= ls_environment_layers(rank->trainer->train, NULL, 0) > 0;
    int64_t end = end_of(rank);
    if (status == 0)
        status = ls_trainer_run(rank->trainer, end, rank->error);
    if (status == LOCKSTEP_STOPPED && rank->rank == 0 && segment->stop < 0)
        status = ls_fail(rank->error, LOCKSTEP_INTERNAL, NULL, NULL, "stopped without a request");
    if (rank->rank == 0) {
        segment->reached = rank->trainer->iteration;
        segment->end = end;
    }
    ls_trainer_free(rank->trainer);
    ls_tracer_end(&rank->tracer);
    return status != 0 ? status : rank->status;
}

/* What ends a job of threads is told by its error. */
static void say_nothing(void *user, int status, const char *text)
{
    (void)user;
    (void)status;
    (void)text;
}

static void *run_rank(void *argument)
{
    struct rank *rank = argument;
    struct ls_comm *comm = NULL;
    struct ls_comm_options options = {.timeout = PATIENCE, .dynamic = rank->segment->what->dynamic};
    const struct ls_device *device;
    (void)ls_device_find(rank->segment->run->options->device, &device,
                         NULL); /* it was found before */
    if (device->enter_thread != NULL)
        device->enter_thread();
    if (rank->segment->what->cards != NULL)
        ls_thread_set_card(rank->segment->what->cards[rank->rank]);
    int status = ls_comm_create(rank->transport, &options, &comm, rank->error);
    if (status == 0) {
        ls_detector_set_on_failure(comm->detector, say_nothing, NULL);
        status = train(rank, comm);
    }
    if (status != 0 && status != LOCKSTEP_STOPPED)
        rank->transport->calls->abort(rank->transport, status); /* no rank waits for it */
    rank->status = status;
    ls_comm_end(comm);
    return NULL;
}

/* The failure that the others only suffered from is the one to tell. */
static int first_failure(const struct rank *ranks, int count, struct ls_error *error)
{
    int which = 0;
    for (int r = 0; r < count; r++)
        if (ranks[r].status != 0 &&
            (ranks[which].status == 0 || ranks[which].status == LOCKSTEP_LOST))
            which = r;
    if (ranks[which].status != 0 && ranks[which].status != LOCKSTEP_STOPPED && error != NULL)
        *error = *ranks[which].error;
    return ranks[which].status;
}

static int run_segment(struct segment *segment, struct ls_error *error)
{
    int count = segment->what->ranks, started = 0, status = 0;
    if (count == 1) {
        struct rank alone = {.segment = segment, .error = error};
        const int card = ls_thread_card();
        ls_thread_set_card(segment->what->cards != NULL ? segment->what->cards[0] : -1);
        status = train(&alone, NULL);
        ls_thread_set_card(card);
        return status;
    }
    struct ls_transport **transports = ls_alloc((size_t)count, sizeof *transports);
    struct rank *ranks = ls_alloc((size_t)count, sizeof *ranks);
    if (transports == NULL || ranks == NULL)
        status = ls_fail_memory(error, "a verification");
    for (int r = 0; r < count && status == 0; r++) {
        ranks[r] = (struct rank){.segment = segment, .rank = r};
        ranks[r].error = ls_alloc(1, sizeof *ranks[r].error);
        if (ranks[r].error == NULL)
            status = ls_fail_memory(error, "a verification");
    }
    if (status == 0)
        status = ls_local_transports(count, transports, error);
    for (int r = 0; r < count && status == 0; r++) {
        ranks[r].transport = transports[r];
        if (ls_thread_create(&ranks[r].thread, run_rank, &ranks[r]) != 0)
            status = ls_fail(error, LOCKSTEP_RESOURCE, NULL, NULL, "no more threads can be made");
        started += status == 0;
    }
    for (int r = started; r < count && transports != NULL && transports[r] != NULL; r++) {
        transports[r]->calls->abort(transports[r],
                                    status); /* those that have started do not wait for it */
        transports[r]->calls->end(transports[r]);
    }
    for (int r = 0; r < started; r++)
        pthread_join(ranks[r].thread, NULL);
    if (status == 0)
        status = first_failure(ranks, count, error);
    for (int r = 0; r < count && ranks != NULL; r++)
        ls_free(ranks[r].error);
    ls_free(ranks);
    ls_free(transports);
    return status;
}

/* ---- A training ------------------------------------------------------------------------------ */

/* Where to stop next: after at least one update more and before the last one, which a job of ranks
 * does one update late. Negative: there is no room. */
static int64_t draw_stop(const struct ls_verify_run *run, int64_t at, int turn)
{
    int64_t left = run->end - 2 - at, stops = run->stops - turn;
    if (left < 1)
        return -1;
    int64_t room = left / stops > 0 ? left / stops : 1;
    uint64_t key = ls_solver_seed(run->definition->solver);
    return at + 1 + ls_random_below(key, run->number, (uint64_t)turn, (uint32_t)room);
}

/* Which case goes on: another one, if there is one. */
static size_t draw_case(const struct ls_verify_run *run, size_t before, int turn)
{
    size_t others = run->options->count - 1;
    if (others == 0)
        return before;
    uint64_t key = ls_solver_seed(run->definition->solver) + 1;
    size_t drawn = ls_random_below(key, run->number, (uint64_t)turn, (uint32_t)others);
    return drawn + (drawn >= before);
}

/* Segment after segment; *last is where the training ended. */
static int run_segments(struct ls_verify_run *run, const char *prefix, int64_t *last,
                        struct ls_error *error)
{
    size_t which = run->begins;
    char *resume = NULL;
    int status = 0;
    *last = 0;
    ls_verify_name(&run->options->cases[which], &run->name);
    for (int turn = 0; status == 0; turn++) {
        struct segment segment = {.run = run,
                                  .what = &run->options->cases[which],
                                  .stop = turn < run->stops ? draw_stop(run, *last, turn) : -1,
                                  .resume = resume,
                                  .prefix = prefix};
        status = run_segment(&segment, error);
        ls_free(resume);
        resume = NULL;
        *last = segment.reached;
        if (status != LOCKSTEP_STOPPED)
            break;
        which = draw_case(run, which, turn);
        ls_text_format(&run->name, " until update %lld; ", (long long)*last);
        ls_verify_name(&run->options->cases[which], &run->name);
        resume = ls_catalog_path(prefix, *last);
        status = resume == NULL ? ls_fail_memory(error, "a verification") : 0;
    }
    ls_free(resume);
    return status;
}

int ls_verify_run(struct ls_verify_run *run, struct ls_error *error)
{
    struct ls_text prefix = {0};
    double begun = ls_clock();
    int64_t last = 0;
    ls_text_format(&prefix, "%s/v", run->folder);
    int status = prefix.failed ? ls_fail_memory(error, "a verification")
                               : run_segments(run, prefix.data, &last, error);
    run->trace->seconds = ls_clock() - begun;
    if (status == 0 && run->close_up == NULL) {
        char *path = ls_catalog_path(prefix.data, last);
        status = path == NULL ? ls_fail_memory(error, "a verification")
                              : ls_trace_add_snapshot(run->trace, path, error);
        ls_free(path);
    }
    if (status == 0 && run->name.failed)
        status = ls_fail_memory(error, "a verification");
    ls_text_free(&prefix);
    return status;
}
