/* Moving averages of batch statistics. See engine/averages.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "engine/averages.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "ir/layer.h"
#include "transport/comm.h"

static int averages_room_for(struct ls_pass *pass, const struct ls_parameter *parameter,
                             struct ls_error *error)
{
    if (parameter == NULL || pass->averages[parameter->index] != NULL)
        return 0;
    pass->averages[parameter->index] = ls_alloc_aligned(ls_parameter_plain_bytes(parameter));
    return pass->averages[parameter->index] != NULL ? 0 : ls_fail_memory(error, parameter->name);
}

int ls_averages_create(struct ls_pass *pass, struct ls_error *error)
{
    const struct ls_graph *graph = ls_net_graph(pass->net);
    int64_t largest = 0;
    for (size_t s = 0; s < graph->sync_count; s++) {
        const struct ls_sync *sync = &graph->syncs[s];
        if (sync->kind == LS_SYNC_MOMENTS && sync->averages.mean != NULL &&
            ls_sync_merged(sync) > largest)
            largest = ls_sync_merged(sync);
    }
    if (largest == 0 || !pass->net->options.training)
        return 0;
    pass->averages = ls_alloc(graph->parameters->count, sizeof *pass->averages);
    if (pass->averages == NULL)
        return ls_fail_memory(error, "moving averages");
    LS_TRY(ls_mirror_create(&pass->merged, pass->engine->device->memory,
                            (size_t)largest * sizeof **pass->averages, "moving averages", error));
    for (size_t s = 0; s < graph->sync_count; s++) {
        const struct ls_averages *averages = &graph->syncs[s].averages;
        LS_TRY(averages_room_for(pass, averages->mean, error));
        LS_TRY(averages_room_for(pass, averages->variance, error));
        LS_TRY(averages_room_for(pass, averages->factor, error));
    }
    return 0;
}

void ls_averages_free(struct ls_pass *pass)
{
    const struct ls_parameter_set *set = ls_net_graph(pass->net)->parameters;
    for (size_t i = 0; pass->averages != NULL && i < set->count; i++)
        ls_free_aligned(pass->averages[i]);
    ls_free(pass->averages);
    ls_mirror_free(&pass->merged);
}

static int averages_not_finite(const struct ls_sync *sync, int64_t iteration, size_t group,
                               struct ls_error *error)
{
    char place[LS_PLACE_SIZE];
    ls_layer_place(sync->layer, NULL, NULL, place);
    return ls_fail(error, LOCKSTEP_DIVERGED, place,
                   "a lower base_lr, warm-up or clip_gradients may help",
                   "iteration %lld: the statistics of layer '%s' are not finite, first in group "
                   "%zu of the update",
                   (long long)iteration, sync->layer->name, group);
}

/* One group's statistics into the averages; false: they are not finite. */
static bool averages_advance(struct ls_pass *pass, const struct ls_sync *sync, double count)
{
    const struct ls_averages *averages = &sync->averages;
    const float *batch_mean = pass->merged.host;
    const float *batch_variance = batch_mean + 3 * ls_sync_padded(sync);
    float *mean = pass->averages[averages->mean->index];
    float *variance = pass->averages[averages->variance->index];
    float unbiased = count > 1 ? (float)(count / (count - 1)) : 1.0F;
    bool finite = true;
    for (int64_t c = 0; c < sync->channels; c++) {
        mean[c] = averages->keep * mean[c] + averages->add * batch_mean[c];
        variance[c] = averages->keep * variance[c] + averages->add * (unbiased * batch_variance[c]);
        finite &= isfinite(mean[c]) && isfinite(variance[c]);
    }
    if (averages->factor != NULL) {
        float *factor = pass->averages[averages->factor->index];
        *factor = averages->keep * *factor + averages->add;
    }
    return finite;
}

static int averages_copy(struct ls_pass *pass, bool to_store, struct ls_error *error)
{
    const struct ls_store *store = pass->engine->store;
    const struct ls_device_memory *memory = store->device->memory;
    for (size_t i = 0; i < store->set->count; i++) {
        float *mine = pass->averages[i], *stored;
        size_t bytes = ls_parameter_plain_bytes(store->set->items[i]);
        if (mine == NULL)
            continue;
        LS_TRY(ls_store_weights(store, (int)i, &stored, error));
        LS_TRY(to_store ? memory->write(NULL, stored, mine, bytes, error)
                        : memory->read(NULL, mine, stored, bytes, error));
    }
    return 0;
}

int ls_averages_find(struct ls_pass *pass, int64_t iteration, struct ls_error *error)
{
    const struct ls_graph *graph = ls_net_graph(pass->net);
    if (pass->averages == NULL)
        return 0;
    LS_TRY(ls_exchange_share_kept(pass->exchange, pass->engine->comm, pass->unit_count,
                                  pass->owners, error));
    LS_TRY(averages_copy(pass, false, error));
    for (size_t s = 0; s < graph->sync_count; s++) {
        const struct ls_sync *sync = &graph->syncs[s];
        if (sync->kind != LS_SYNC_MOMENTS || sync->averages.mean == NULL)
            continue;
        size_t groups = ls_exchange_groups(pass->exchange, (int)s);
        for (size_t g = 0; g < groups; g++) {
            double count = 0;
            LS_TRY(
                ls_exchange_group(pass->exchange, (int)s, g, pass->merged.device, &count, error));
            LS_TRY(ls_mirror_read(&pass->merged, 0,
                                  (size_t)ls_sync_merged(sync) * sizeof **pass->averages, error));
            if (!averages_advance(pass, sync, count))
                return ls_comm_common(pass->engine->comm,
                                      averages_not_finite(sync, iteration, g, error));
        }
    }
    return 0;
}

int ls_averages_publish(struct ls_pass *pass, struct ls_error *error)
{
    return pass->averages != NULL ? averages_copy(pass, true, error) : 0;
}
