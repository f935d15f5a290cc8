/* Testing: every sample once, on all workers, in the trainer's memory.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "base/memory.h"
#include "base/thread.h"
#include "solver/trainer.h"

int ls_outputs_set(struct ls_outputs *outputs, const struct ls_graph *graph, const double *record,
                   struct ls_error *error)
{
    size_t values = 0;
    outputs->count = 0;
    for (size_t m = 0; m < graph->metric_count; m++)
        if (graph->metrics[m].is_output)
            values += (size_t)graph->metrics[m].entries;
    if (values > outputs->value_capacity || outputs->items == NULL) {
        ls_outputs_free(outputs);
        outputs->items = ls_alloc(graph->metric_count + 1, sizeof *outputs->items);
        outputs->values = ls_alloc(values + 1, sizeof *outputs->values);
        if (outputs->items == NULL || outputs->values == NULL)
            return ls_fail_memory(error, "outputs");
        outputs->value_capacity = values;
    }
    double *next = outputs->values;
    for (size_t m = 0; m < graph->metric_count; m++) {
        const struct ls_metric *metric = &graph->metrics[m];
        if (!metric->is_output)
            continue;
        outputs->items[outputs->count++] =
            (struct lockstep_output){.name = metric->name,
                                     .values = next,
                                     .count = (size_t)metric->entries,
                                     .loss_weight = (double)metric->loss_weight};
        for (int i = 0; i < metric->entries; i++)
            *next++ = ls_metric_figure(metric, record, i);
    }
    return 0;
}

void ls_outputs_free(struct ls_outputs *outputs)
{
    ls_free(outputs->items);
    ls_free(outputs->values);
    *outputs = (struct ls_outputs){0};
}

/* Asked between groups of batches: whether to end a test early. A snapshot that is asked for in the
 * middle of a test is written after it. */
static int stop_asked(void *user)
{
    struct ls_trainer *trainer = user;
    if (trainer->callbacks.poll == NULL)
        return 0;
    enum lockstep_request request = trainer->callbacks.poll(trainer->callbacks.user);
    trainer->snapshot_wanted |= request == LOCKSTEP_SNAPSHOT_AND_GO_ON;
    return request == LOCKSTEP_SNAPSHOT_AND_STOP;
}

static int run_test(struct ls_trainer *trainer, struct ls_test *test, int64_t *samples,
                    struct ls_error *error)
{
    struct ls_totals totals;
    trainer->feed_ready = false; /* the test decodes into the same memory */
    if (test->feed == NULL)
        LS_TRY(ls_net_feed(test->net, test->batches, &trainer->decoded, &test->feed, error));
    ls_feed_seek(test->feed, 0);
    int status = ls_engine_test(trainer->engine, test->pass, test->feed, test->batches, stop_asked,
                                trainer, &totals, error);
    if (status != 0) { /* the next test begins as the first one does */
        ls_feed_close(test->feed);
        test->feed = NULL;
    }
    LS_TRY(status);
    *samples = totals.samples;
    trainer->test_loss = ls_totals_loss(ls_net_graph(test->net), totals.record);
    return ls_outputs_set(&trainer->outputs, ls_net_graph(test->net), totals.record, error);
}

int ls_trainer_evaluate(struct ls_trainer *trainer, size_t index, int64_t *samples,
                        struct ls_error *error)
{
    bool averaged = trainer->solver->weight_average != NULL;
    ls_team_enter(trainer->engine->team);
    int status = 0;
    if (averaged) { /* the averaged weights are what is tested and exported */
        status = ls_store_swap_average(trainer->store, error);
        if (status == 0)
            status = ls_store_refresh_views(trainer->store, trainer->engine->team, error);
    }
    if (status == 0)
        status = run_test(trainer, &trainer->tests[index], samples, error);
    if (averaged && status != LOCKSTEP_LOST) { /* what is lost has nobody to go on with */
        int back = ls_store_swap_average(trainer->store, error);
        if (back == 0)
            back = ls_store_refresh_views(trainer->store, trainer->engine->team, error);
        status = status != 0 ? status : back;
    }
    ls_team_leave(trainer->engine->team);
    return status;
}
