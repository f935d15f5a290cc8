/* Figures of a loss over labels. See layers/loss_metrics.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "layers/loss_metrics.h"

#include "base/assert.h"

#define LN2 0.693147180559945309417 /* nats of a bit */

bool ls_loss_has_metric(const struct ls_loss_metrics *metrics,
                        Lockstep__LossParameter__Metric metric)
{
    for (size_t i = 0; i < metrics->count; i++)
        if (metrics->metric[i] == metric)
            return true;
    return false;
}

static int check_tops(const struct ls_layer *layer, const struct ls_loss_metrics *metrics,
                      struct ls_error *error)
{
    int status = 0;
    if (metrics->count == 0 && metrics->other_tops)
        return 0;
    for (int i = 1; i < layer->tops; i++)
        if (layer->loss_weight[i] != 0)
            status = ls_layer_fail(layer, error, NULL, "loss_weight", "set it to 0",
                                   "its top '%s' has no gradient and cannot be a loss",
                                   ls_layer_top_name(layer, i));
    if ((int)metrics->count != layer->tops - 1)
        status = ls_layer_fail(
            layer, error, metrics->message, metrics->count > 0 ? "metric" : NULL,
            "write metric: PERPLEXITY, BITS_PER_BYTE or ACCURACY, one for each top behind the loss",
            "it has %d tops behind the loss, and %zu times metric", layer->tops - 1,
            metrics->count);
    return status;
}

int ls_loss_check_metrics(const struct ls_layer *layer, const struct ls_loss_metrics *metrics,
                          struct ls_error *error)
{
    const bool bytes = ls_loss_has_metric(metrics, LOCKSTEP__LOSS_PARAMETER__METRIC__BITS_PER_BYTE);
    const int status = check_tops(layer, metrics, error);
    if (bytes && layer->bottoms < 3)
        return ls_layer_fail(layer, error, metrics->message, "metric",
                             "records of TEXT and TOKENS have them: tensor { name: \"bytes\" }",
                             "BITS_PER_BYTE needs a third bottom, the bytes of each label");
    if (!bytes && layer->bottoms > 2)
        return ls_layer_fail(layer, error, NULL, "bottom", "write metric: BITS_PER_BYTE",
                             "nothing reads its third bottom, '%s'", layer->bottom[2]->name);
    return status;
}

void ls_loss_make_metrics(struct ls_layer *layer, const struct ls_loss_metrics *metrics,
                          const struct ls_metric_sums *sums)
{
    LS_ASSERT((int)metrics->count < layer->tops);
    for (size_t i = 0; i < metrics->count; i++) {
        struct ls_metric metric = {.entries = 1,
                                   .offset = sums->nats,
                                   .count_offset = sums->count,
                                   .better = LS_BETTER_SMALLER};
        switch (metrics->metric[i]) {
        case LOCKSTEP__LOSS_PARAMETER__METRIC__BITS_PER_BYTE:
            metric.divisor = LN2;
            metric.count_offset = sums->bytes;
            break;
        case LOCKSTEP__LOSS_PARAMETER__METRIC__ACCURACY:
            metric.offset = sums->hits;
            metric.better = LS_BETTER_LARGER;
            break;
        default:
            metric.exponential = true;
        }
        ls_layer_make_metric(layer, (int)i + 1, 0);
        ls_graph_metric(layer->graph, layer, (int)i + 1, metric);
    }
}
