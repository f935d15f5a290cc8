/* The loop: updates, and between them tests, displays, snapshots and requests from outside.
 *
 * The order within an iteration is Caffe's: test before the update, display what the update did,
 * then count it, then snapshot.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver/loop.h"

#include <math.h>
#include <string.h>

#include "base/thread.h"
#include "engine/read.h"
#include "engine/sources.h"
#include "solver/audits.h"
#include "solver/chain.h"
#include "solver/check.h"
#include "solver/choice.h"
#include "solver/evaluate.h"
#include "solver/events.h"
#include "solver/outputs.h"
#include "solver/ranks.h"
#include "solver/report.h"
#include "solver/heartbeat.h"
#include "solver/requests.h"
#include "solver/skipped.h"
#include "solver/snapshots.h"
#include "solver/trace.h"
#include "solver/trainer.h"
#include "transport/comm.h"

struct loop {
    struct ls_trainer *trainer;
    int64_t end; /* where this run stops */
    bool extra;  /* tests where the solver has none, because the run is cut there */
    struct ls_error *error;
};

static double displayed_loss(const struct ls_trainer *trainer)
{
    int64_t window = trainer->solver->average_loss;
    int64_t count = trainer->iteration < window ? trainer->iteration : window;
    int64_t known = 0; /* a window that a resume has widened has gaps */
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        if (!isnan(trainer->figures.losses[i])) {
            sum += trainer->figures.losses[i];
            known++;
        }
    return known > 0 ? sum / (double)known : trainer->figures.loss;
}

/* Fills in rates since the last event of the kind that `mark` is of, and moves the mark. */
static void set_rates(const struct ls_trainer *trainer, struct lockstep_event *event,
                      struct ls_event_mark *mark)
{
    double now = ls_clock();
    event->seconds = mark->time > 0 ? now - mark->time : 0;
    if (event->seconds > 0)
        event->samples_per_second = (double)(trainer->samples - mark->samples) / event->seconds;
    *mark = (struct ls_event_mark){.time = now, .samples = trainer->samples};
}

/* What began at `since` was not training: rates leave it out. */
static void leave_out(struct ls_trainer *trainer, double since)
{
    double taken = ls_clock() - since;
    trainer->progress.time += taken;
    trainer->display.time += taken;
}

/* After an update, already counted: progress, and a display where it is due. */
static int report_update(struct loop *loop)
{
    struct ls_trainer *trainer = loop->trainer;
    if (trainer->callbacks.event == NULL || trainer->comm->rank != 0)
        return 0;
    int64_t done = trainer->iteration - 1;
    bool display = trainer->schedule.display > 0 && done % trainer->schedule.display == 0;
    struct lockstep_event event = {.kind = LOCKSTEP_EVENT_PROGRESS, .iteration_end = loop->end};
    event.loss = event.data_loss = displayed_loss(trainer);
    event.penalty = display ? trainer->figures.penalty : (double)NAN;
    set_rates(trainer, &event, &trainer->progress);
    ls_events_send(trainer, &event);
    if (!display)
        return 0;
    event.kind = LOCKSTEP_EVENT_DISPLAY;
    set_rates(trainer, &event, &trainer->display);
    const struct ls_class_names names = ls_sources_class_names(trainer->train);
    LS_TRY(ls_outputs_set(&trainer->figures.outputs, ls_net_graph(trainer->train), &names,
                          trainer->figures.totals.record, loop->error));
    event.outputs = trainer->figures.outputs.items;
    event.output_count = trainer->figures.outputs.count;
    ls_events_send(trainer, &event);
    if (trainer->statistics == NULL)
        return 0;
    struct lockstep_event statistics = {.kind = LOCKSTEP_EVENT_STATISTICS,
                                        .iteration_end = loop->end,
                                        .penalty = (double)NAN,
                                        .statistics = ls_statistics_found(trainer->statistics)};
    ls_events_send(trainer, &statistics);
    return 0;
}

/* What follows an update and may fail on one rank alone. */
static int show_update(struct loop *loop)
{
    struct ls_trainer *trainer = loop->trainer;
    ls_comm_common(trainer->comm, 0);
    if (trainer->after_update != NULL)
        LS_TRY(trainer->after_update(trainer->after_update_user, loop->error));
    return report_update(loop);
}

/* ---- Tests ----------------------------------------------------------------------------------- */

/* The figure that snapshot_best names, in the direction that the solver says, if it does; NULL:
 * there is none. */
static const struct lockstep_output *find_best_output(struct ls_trainer *trainer)
{
    const Lockstep__SolverParameter *solver = trainer->solver;
    for (size_t i = 0; solver->snapshot_best != NULL && i < trainer->figures.outputs.count; i++) {
        struct lockstep_output *output = &trainer->figures.outputs.items[i];
        if (strcmp(output->name, solver->snapshot_best) != 0)
            continue;
        if (solver->has_snapshot_best_mode)
            output->better =
                solver->snapshot_best_mode == LOCKSTEP__SOLVER_PARAMETER__BEST_MODE__MAX ? 1 : -1;
        return output;
    }
    return NULL;
}

/* Remembers whether the figure that snapshot_best names is the best so far. */
static bool is_best(struct ls_trainer *trainer, const struct lockstep_output *output)
{
    const double value = output->values[0], best = trainer->best.now.value;
    const bool better =
        !trainer->best.now.known || (output->better > 0 ? value > best : value < best);
    if (!better || !isfinite(value))
        return false;
    trainer->best.now = (struct ls_best){.known = true, .value = value};
    return true;
}

static int test_one(struct loop *loop, size_t index, bool *best)
{
    struct ls_trainer *trainer = loop->trainer;
    bool on_train = trainer->train_test.there && index == trainer->test_count - 1;
    int64_t samples = 0;
    LS_TRY(ls_trainer_evaluate(trainer, index, &samples, loop->error));
    const struct lockstep_output *output =
        index == 0 && !on_train ? find_best_output(trainer) : NULL;
    struct lockstep_event event = {.kind = LOCKSTEP_EVENT_TEST,
                                   .iteration_end = loop->end,
                                   .test_net = on_train ? -1 : (int)index,
                                   .samples = samples,
                                   .skipped = ls_read_skipped(trainer->tests[index].pass),
                                   .penalty = (double)NAN,
                                   .outputs = trainer->figures.outputs.items,
                                   .output_count = trainer->figures.outputs.count};
    if (trainer->solver->test_compute_loss)
        event.loss = event.data_loss = trainer->figures.test_loss;
    ls_events_send(trainer, &event);
    if (output != NULL && !loop->extra)
        *best = is_best(trainer, output);
    return 0;
}

static int test_all(struct loop *loop)
{
    struct ls_trainer *trainer = loop->trainer;
    bool best = false;
    double begun = ls_clock();
    uint64_t start = ls_timeline_start();
    if (trainer->best.iteration != trainer->iteration)
        trainer->best.before = trainer->best.now;
    trainer->best.iteration = trainer->iteration;
    for (size_t i = 0; i < trainer->test_count; i++)
        LS_TRY(test_one(loop, i, &best));
    ls_timeline_add(LS_TIMELINE_TEST, NULL, 0, start);
    if (best && trainer->iteration > 0) {
        LS_TRY(ls_snapshots_take(trainer, false, loop->error));
        ls_snapshots_mark_best(trainer);
    }
    leave_out(trainer, begun);
    return 0;
}

static bool test_is_due(const struct ls_trainer *trainer)
{
    int64_t interval = trainer->schedule.test_interval;
    if (trainer->test_count == 0 || interval <= 0 || trainer->iteration % interval != 0)
        return false;
    return trainer->iteration > 0 || trainer->solver->test_initialization;
}

/* ---- The loop -------------------------------------------------------------------------------- */

/* A snapshot between updates, whose time is none of training's. */
static int snapshot(struct loop *loop)
{
    double begun = ls_clock();
    uint64_t start = ls_timeline_start();
    LS_TRY(ls_snapshots_take(loop->trainer, false, loop->error));
    ls_timeline_add(LS_TIMELINE_SNAPSHOT, NULL, 0, start);
    leave_out(loop->trainer, begun);
    return 0;
}

/* A test that is interrupted ends like a request between updates. */
static int stop(struct loop *loop)
{
    loop->trainer->wanted = 0;
    LS_TRY(ls_snapshots_take(loop->trainer, true, loop->error));
    ls_trainer_report_audits(loop->trainer);
    LS_TRY(ls_snapshots_end(loop->trainer, loop->error));
    return LOCKSTEP_STOPPED;
}

/* Alone, a request is answered at once. Ranks hand theirs in with the update that follows and
 * answer after it what any of them has asked for, all in the same iteration. */
static int answer_requests(struct loop *loop)
{
    struct ls_trainer *trainer = loop->trainer;
    uint32_t mine = ls_requests_poll(trainer);
    if (ls_snapshots_poll(trainer))
        mine |= LS_SNAPSHOT_FAILED;
    uint32_t wanted = trainer->wanted | ls_comm_request(trainer->comm, mine);
    if (wanted & LS_SNAPSHOT_FAILED)
        LS_TRY(ls_snapshots_settle(trainer, loop->error));
    if (wanted & LS_STOP_WANTED)
        return stop(loop);
    if (wanted & LS_SNAPSHOT_WANTED)
        LS_TRY(snapshot(loop));
    trainer->wanted = 0;
    return 0;
}

/* Data that cannot be read end the run, on all ranks; the weights are those of the last update, and
 * worth a snapshot. (Those of data that have changed are not.) */
static int end_on_bad_data(struct loop *loop, int status)
{
    static _Thread_local struct ls_error second;
    struct ls_trainer *trainer = loop->trainer;
    if (status != LOCKSTEP_DATA || trainer->data.mixed || trainer->iteration == 0)
        return status;
    ls_error_clear(&second);
    if (ls_snapshots_take(trainer, true, &second) != 0)
        ls_events_say(trainer, LOCKSTEP_EVENT_WARNING, "the last snapshot failed: %s",
                      second.problems[0].message);
    return status;
}

static int train(struct loop *loop)
{
    struct ls_trainer *trainer = loop->trainer;
    const struct ls_schedule *schedule = &trainer->schedule;
    while (trainer->iteration < loop->end) {
        if (test_is_due(trainer)) {
            int status = test_all(loop);
            if (status == LOCKSTEP_STOPPED)
                return stop(loop);
            LS_TRY(status);
        }
        LS_TRY(answer_requests(loop));
        LS_TRY(ls_trainer_update(trainer, loop->error));
        LS_TRY(ls_comm_conclude(trainer->comm, show_update(loop), loop->error));
        LS_TRY(ls_trainer_report_chain(trainer, false, loop->error));
        if (schedule->snapshot_interval > 0 &&
            trainer->iteration % schedule->snapshot_interval == 0)
            LS_TRY(snapshot(loop));
    }
    return 0;
}

static int finish(struct loop *loop, bool cut)
{
    struct ls_trainer *trainer = loop->trainer;
    if (trainer->solver->snapshot_after_train || cut)
        LS_TRY(ls_snapshots_take(trainer, true, loop->error));
    if (trainer->test_count > 0 && trainer->schedule.test_interval > 0) {
        bool due = test_is_due(trainer);
        loop->extra = !due && trainer->iteration != trainer->schedule.max_iter;
        int status = test_all(loop);
        if (status == LOCKSTEP_STOPPED)
            return stop(loop);
        LS_TRY(status);
        if (!due) /* if the training goes on, it has not been tested here */
            trainer->best.now = trainer->best.before;
    }
    ls_trainer_report_audits(trainer);
    LS_TRY(ls_trainer_report_chain(trainer, true, loop->error));
    LS_TRY(ls_snapshots_end(trainer, loop->error));
    struct lockstep_event event = {.kind = LOCKSTEP_EVENT_END, .iteration_end = loop->end};
    event.loss = event.data_loss = displayed_loss(trainer);
    event.penalty = (double)NAN;
    event.skipped = trainer->data.skipped;
    ls_trainer_count_skipped(trainer);
    ls_events_send(trainer, &event);
    return 0;
}

/* What can be found wrong before the first update. */
static int begin(struct loop *loop)
{
    struct ls_trainer *trainer = loop->trainer;
    LS_TRY(ls_ranks_compare_end(trainer, loop->end, loop->error)); /* all come here */
    if (trainer->comm->rank == 0)
        LS_TRY(ls_snapshots_claim(trainer, loop->error));
    LS_TRY(ls_trainer_check_averages(trainer, loop->error));
    return ls_trainer_report_start(trainer, loop->end, loop->error);
}

int ls_trainer_run(struct ls_trainer *trainer, int64_t iterations, struct ls_error *error)
{
    struct loop loop = {.trainer = trainer, .end = trainer->schedule.max_iter, .error = error};
    bool cut = iterations >= 0;
    if (cut)
        loop.end = iterations;
    trainer->run_end = loop.end;
    int status = ls_comm_agree(trainer->comm, begin(&loop), error);
    if (status != 0) {
        ls_snapshots_release(trainer->snapshots);
        return status;
    }
    ls_heartbeat_begin(trainer);
    trainer->progress.time = trainer->display.time = ls_clock();
    trainer->progress.samples = trainer->display.samples = trainer->samples;
    ls_thread_pool_enter(trainer->engine->pool);
    status = train(&loop);
    if (status == 0)
        status = finish(&loop, cut);
    status = end_on_bad_data(&loop, status);
    if (status != 0)
        ls_snapshots_wait(trainer);
    if (status == LOCKSTEP_DIVERGED && trainer->comm->rank == 0)
        ls_name_good_snapshots(trainer, error);
    ls_snapshots_release(trainer->snapshots);
    ls_thread_pool_leave(trainer->engine->pool);
    status = ls_trainer_trace_write(trainer, status, error);
    ls_heartbeat_end(trainer, status, error);
    return status;
}
