/* The public interface: testing a model. See include/lockstep/model.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "api/model_test.h"

#include <math.h>
#include <stdio.h>

#include "api/api.h"
#include "api/model.h"
#include "base/thread.h"
#include "engine/evaluation.h"
#include "engine/read.h"
#include "engine/sources.h"
#include "ir/layer.h"
#include "solver/outputs.h"
#include "solver/skipped.h"
#include "solver/training_plan.h"

int ls_model_stop_asked(void *user)
{
    const struct lockstep_model *model = user;
    return model->callbacks.poll != NULL &&
           model->callbacks.poll(model->callbacks.user) == LOCKSTEP_SNAPSHOT_AND_STOP;
}

/* Losses that are not finite say that the net is of no use, whatever the other figures are. */
static int check_losses(const struct lockstep_model *model, const double *record,
                        struct ls_error *error)
{
    const struct ls_graph *graph = ls_net_graph(model->net);
    for (size_t m = 0; m < graph->metric_count; m++) {
        const struct ls_metric *metric = &graph->metrics[m];
        char place[LS_PLACE_SIZE];
        if (metric->loss_weight == 0 || isfinite(record[metric->offset]))
            continue;
        ls_layer_place(metric->layer, NULL, NULL, place);
        const struct ls_not_finite *cause = &model->pass->cause;
        return ls_fail(error, LOCKSTEP_DIVERGED, place,
                       cause->hint[0] != '\0' ? cause->hint
                       : cause->learned
                           ? "do the weights come from a training that diverged, and are the data "
                             "scaled as they were in it?"
                           : "it does not depend on weights: look at the data and the layer",
                       "the loss '%s' of layer '%s' is not finite%s%s", metric->name,
                       metric->layer->name, cause->text[0] != '\0' ? ": " : "", cause->text);
    }
    return 0;
}

static void tell_skipped(struct lockstep_model *model)
{
    int64_t skipped = ls_read_skipped(model->pass);
    char text[200];
    ls_net_tell_skipped(model->net, ls_model_warn, model);
    for (int d = 0; d < model->net->dataset_count; d++)
        ls_net_tell_odd(model->net, d, INT64_MAX, ls_model_warn, model);
    snprintf(text, sizeof text,
             "%lld tested sample%s had bad records, and others stood in for them; 'lockstep check' "
             "lists the records",
             (long long)skipped, skipped == 1 ? "" : "s");
    if (skipped > 0)
        ls_model_warn(model, text);
}

int lockstep_model_test(struct lockstep_model *model, const struct lockstep_output **outputs,
                        size_t *count, int64_t *samples, struct lockstep_error *error)
{
    LS_OWN_MODE;
    ls_thread_set_card(model->card);
    struct ls_error *inner = ls_api_error(error);
    struct ls_prefetcher *prefetcher = NULL;
    struct ls_totals totals;
    *outputs = NULL;
    *count = 0;
    if (model->pass == NULL)
        return ls_fail(inner, LOCKSTEP_DEFINITION, model->definition.definition->file,
                       "test with the definition that has the Data layers",
                       "the net has no data to be tested with");
    if (model->iterations > INT32_MAX)
        return ls_fail(inner, LOCKSTEP_USAGE, NULL, NULL, "%lld batches are too many",
                       (long long)model->iterations);
    int64_t batches = ls_training_plan_batches(model->net, (int32_t)model->iterations);
    LS_TRY(ls_net_prefetcher(model->net, batches, NULL, &prefetcher, inner));
    ls_prefetcher_seek(prefetcher, 0);
    ls_thread_pool_enter(model->engine->pool);
    int status = ls_evaluation_run(model->pass, prefetcher, batches, ls_model_stop_asked, model,
                                   &totals, inner);
    ls_thread_pool_leave(model->engine->pool);
    ls_prefetcher_close(prefetcher);
    LS_TRY(status);
    struct ls_class_names names = ls_sources_class_names(model->net);
    if (model->class_count > 0)
        names = (struct ls_class_names){.name = (const char *const *)model->classes,
                                        .count = (int)model->class_count};
    LS_TRY(ls_outputs_set(&model->outputs, ls_net_graph(model->net), &names, totals.record, inner));
    tell_skipped(model);
    *outputs = model->outputs.items;
    *count = model->outputs.count;
    if (samples != NULL)
        *samples = totals.samples;
    return check_losses(model, totals.record, inner);
}
