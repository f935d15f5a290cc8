/* What only the built net, or its weights, can tell about a definition.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "solver/check.h"

#include <string.h>

#include "base/utf8.h"
#include "engine/pass.h"
#include "ir/layer.h"
#include "snapshot/weights.h"
#include "solver/trainer.h"

int ls_trainer_check_names(const struct ls_trainer *trainer, struct ls_error *error)
{
    int status = 0;
    for (size_t i = 0; i < trainer->parameters->count; i++) {
        const char *layer = trainer->parameters->items[i]->layer;
        if (ls_weights_name_reserved(layer))
            status =
                ls_fail(error, LOCKSTEP_DEFINITION, trainer->definition->train.definition->file,
                        "give it another name",
                        "layer '%s': a snapshot would take its name for something else", layer);
        else if (!ls_utf8_valid(layer, strlen(layer)))
            status = ls_fail(error, LOCKSTEP_DEFINITION,
                             trainer->definition->train.definition->file, "give it another name",
                             "layer '%s': its name is not UTF-8, as names in snapshots are", layer);
    }
    return status;
}

int ls_trainer_check_training(const struct ls_trainer *trainer, struct ls_error *error)
{
    bool loss = false;
    const struct ls_graph *graph = ls_net_graph(trainer->train);
    const char *file = trainer->definition->train.definition->file;
    for (size_t i = 0; i < graph->metric_count; i++)
        loss |= graph->metrics[i].loss_weight != 0;
    if (!loss)
        return ls_fail(error, LOCKSTEP_DEFINITION, file, "add a loss layer such as SoftmaxWithLoss",
                       "the train net has no loss");
    int64_t most = 0;
    for (size_t i = 0; i < trainer->parameters->count; i++)
        if (trainer->parameters->items[i]->uses > most)
            most = trainer->parameters->items[i]->uses;
    if (most == 0)
        return ls_fail(error, LOCKSTEP_DEFINITION, file, NULL,
                       "the train net has nothing to learn: no loss reaches a parameter whose "
                       "lr_mult is not 0");
    if (ls_pass_update_micro_batches(trainer->train) * most > LS_SUMS_CONTRIBUTIONS_MAX)
        return ls_fail(
            error, LOCKSTEP_DEFINITION, file, "use a larger micro_batch or a smaller iter_size",
            "an update has %lld micro-batches; at most %d contributions to a gradient "
            "can be added exactly",
            (long long)ls_pass_update_micro_batches(trainer->train), LS_SUMS_CONTRIBUTIONS_MAX);
    return 0;
}

static bool all_are(const struct ls_store *store, const struct ls_value *value, float number)
{
    const struct ls_parameter_state *slot = &store->slots[value->parameter->index];
    size_t elements = (size_t)ls_shape_size(&slot->parameter->shape); /* the rest is padding */
    float *weights, read[256];
    if (ls_store_weights(store, value->parameter->index, &weights, NULL) != 0)
        return false;
    for (size_t begin = 0, n; begin < elements; begin += n) {
        n = elements - begin < 256 ? elements - begin : 256;
        if (store->device->memory->read(NULL, read, weights + begin, n * sizeof *read, NULL) != 0)
            return false;
        for (size_t i = 0; i < n; i++)
            if (read[i] != number)
                return false;
    }
    return true;
}

/* Whether a layer that normalises by saved averages finds none: Caffe's factor is zero then; where
 * there is no factor all variances are, or all is as it was before anything was learned, which
 * `fresh` asks about. */
static bool lacks_averages(const struct ls_store *store, const struct ls_op *op, bool fresh)
{
    const struct ls_value *mean = op->input[1], *variance = op->input[2], *factor = op->input[3];
    if (factor != NULL)
        return all_are(store, factor, 0);
    return all_are(store, variance, 0) ||
           (fresh && all_are(store, mean, 0) && all_are(store, variance, 1));
}

int ls_check_averages(const struct ls_store *store, const struct ls_graph *graph, const char *hint,
                      struct ls_error *error)
{
    int status = 0;
    for (size_t i = 0; i < graph->op_count && !graph->dummy; i++) {
        const struct ls_op *op = graph->ops[i];
        if (op->kind == LS_OP_BATCH_NORM && op->attr.batch_norm.moments < 0 &&
            lacks_averages(store, op, graph->training))
            status = ls_layer_fail(op->layer, error, NULL, NULL, hint,
                                   "normalises by saved averages, but there are none");
    }
    return status;
}

int ls_trainer_check_averages(const struct ls_trainer *trainer, struct ls_error *error)
{
    return ls_check_averages(trainer->store, ls_net_graph(trainer->train),
                             "start from weights that have them (--weights), or let the batch "
                             "normalise in training",
                             error);
}
