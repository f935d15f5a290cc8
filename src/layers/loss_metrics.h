/* Figures of a loss over labels, one for each top behind it that `metric` names:
 *
 *   PERPLEXITY     exp of the mean of -log p[label]
 *   BITS_PER_BYTE  the sum of -log2 p[label] / the sum of the third bottom, the bytes of each label
 *   ACCURACY       how often no other class has a score as high as the label's
 *
 * over all labels of a test or an update that count. Figures over nothing are 0.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_LAYERS_LOSS_METRICS_H
#define LS_LAYERS_LOSS_METRICS_H

#include "layers/common.h"

enum { LS_LOSS_METRICS_MAX = 3 };

/* What the definition says. */
struct ls_loss_metrics {
    const void *message; /* that has the field `metric`; may be NULL */
    const Lockstep__LossParameter__Metric *metric;
    size_t count;
    bool other_tops; /* without a metric there may be other tops behind the loss */
};

/* Where the sums are in the record of a micro-batch; those that no metric needs: anywhere. */
struct ls_metric_sums {
    int nats, count, bytes, hits;
};

bool ls_loss_has_metric(const struct ls_loss_metrics *metrics,
                        Lockstep__LossParameter__Metric metric);

/* One metric for each top behind the loss, and a third bottom for the one that reads it alone. */
int ls_loss_check_metrics(const struct ls_layer *layer, const struct ls_loss_metrics *metrics,
                          struct ls_error *error);

/* Makes the tops. */
void ls_loss_make_metrics(struct ls_layer *layer, const struct ls_loss_metrics *metrics,
                          const struct ls_metric_sums *sums);

#endif
