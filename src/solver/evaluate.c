/* Testing: every sample once, on all workers, in the trainer's memory.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver/evaluate.h"

#include "base/memory.h"
#include "base/thread.h"
#include "engine/evaluation.h"
#include "engine/figures.h"
#include "engine/sources.h"
#include "engine/store_views.h"
#include "solver/data.h"
#include "solver/events.h"
#include "solver/outputs.h"
#include "solver/requests.h"
#include "solver/trainer.h"
#include "transport/comm.h"

/* Asked between groups of batches: whether to end a test early. */
struct question {
    struct ls_trainer *trainer;
    struct ls_error *error;
    int status; /* of asking */
};

/* What any rank wants, all do; they ask at the same place of the test. A snapshot that is asked for
 * in the middle of a test is written after it. */
static int stop_asked(void *user)
{
    struct question *question = user;
    struct ls_trainer *trainer = question->trainer;
    struct ls_comm *comm = trainer->comm;
    uint32_t mine = ls_requests_poll(trainer);
    question->status =
        ls_comm_all_gather(comm, &mine, sizeof mine, trainer->answers, question->error);
    if (question->status != 0)
        return 1;
    for (int r = 0; r < comm->size; r++)
        trainer->wanted |= trainer->answers[r];
    if ((trainer->wanted & LS_STOP_WANTED) == 0)
        return 0;
    ls_comm_common(comm, LOCKSTEP_STOPPED);
    return 1;
}

/* `status` is how things went here before; whether all are ready is agreed on. */
static int open_prefetcher(struct ls_trainer *trainer, struct ls_test *test, int status,
                           struct ls_error *error)
{
    trainer->prefetcher_ready = false; /* the test decodes into the same memory */
    if (status == 0 && test->prefetcher == NULL)
        status = ls_net_prefetcher(test->net, test->batches, &trainer->decoded, &test->prefetcher,
                                   error);
    return ls_comm_agree(trainer->comm, status, error);
}

static int run_test(struct ls_trainer *trainer, struct ls_test *test, int status, int64_t *samples,
                    struct ls_error *error)
{
    struct ls_totals totals;
    struct question question = {.trainer = trainer, .error = error};
    status = open_prefetcher(trainer, test, status, error);
    if (status == 0) {
        ls_prefetcher_seek(test->prefetcher, 0);
        status = ls_evaluation_run(test->pass, test->prefetcher, test->batches, stop_asked,
                                   &question, &totals, error);
    }
    if (question.status != 0)
        status = question.status;
    if (status != 0) { /* the next test begins as the first one does */
        ls_prefetcher_close(test->prefetcher);
        test->prefetcher = NULL;
        trainer->wanted &= ~(uint32_t)LS_STOP_WANTED; /* answered by this */
    }
    LS_TRY(status);
    LS_TRY(ls_data_note_test(trainer, test, error));
    if (test->pass->cause.text[0] != '\0' && !test->warned)
        ls_events_say(trainer, LOCKSTEP_EVENT_WARNING, "test net #%zu: a loss is not finite: %s",
                      (size_t)(test - trainer->tests), test->pass->cause.text);
    test->warned = test->warned || test->pass->cause.text[0] != '\0';
    *samples = totals.samples;
    trainer->figures.test_loss = ls_figures_loss(ls_net_graph(test->net), totals.record);
    const struct ls_class_names names = ls_sources_class_names(test->net);
    return ls_outputs_set(&trainer->figures.outputs, ls_net_graph(test->net), &names, totals.record,
                          error);
}

int ls_trainer_evaluate(struct ls_trainer *trainer, size_t index, int64_t *samples,
                        struct ls_error *error)
{
    bool averaged = trainer->solver->weight_average != NULL;
    LS_TRY(ls_trainer_check_whole(trainer, error));
    ls_thread_pool_enter(trainer->engine->pool);
    int status = ls_comm_common(trainer->comm, 0);
    if (averaged) { /* the averaged weights are what is tested and exported */
        status = ls_trainer_swap_average(trainer, error);
        averaged = status == 0;
        if (status == 0)
            status = ls_store_refresh_views(trainer->store, trainer->engine->pool, error);
    }
    status = run_test(trainer, &trainer->tests[index], status, samples, error);
    status = ls_comm_conclude(trainer->comm, status, error);
    if (averaged && status != LOCKSTEP_LOST) { /* else no ranks are left to go on with */
        int back = ls_trainer_swap_average(trainer, error);
        if (back == 0)
            back = ls_store_refresh_views(trainer->store, trainer->engine->pool, error);
        back = ls_comm_conclude(trainer->comm, back, error);
        trainer->torn = trainer->torn || back != 0;
        status = status != 0 ? status : back;
    }
    ls_thread_pool_leave(trainer->engine->pool);
    return status;
}
