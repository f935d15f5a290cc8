/* See device/loss.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "device/loss.h"

#include <math.h>

void ls_loss_add(const struct ls_loss_attr *attr, const struct ls_context *context,
                 const struct ls_loss_sums *sums)
{
    double *record = context->partials + attr->metric_offset;
    record[0] += sums->bad_label ? (double)NAN : sums->sum;
    switch (attr->normalization) {
    case LS_NORM_FULL:
        record[1] += (double)sums->positions;
        break;
    case LS_NORM_VALID:
        record[1] += (double)sums->valid;
        break;
    case LS_NORM_BATCH_SIZE:
        record[1] += (double)sums->samples;
        break;
    case LS_NORM_WEIGHTS:
        record[1] += sums->weights;
        break;
    case LS_NORM_NONE:
        break;
    }
}

double ls_loss_scale(const struct ls_loss_attr *attr, const struct ls_context *context)
{
    double divisor = attr->normalizer < 0 ? 1.0 : context->normalizers[attr->normalizer];
    return (double)attr->loss_weight / divisor;
}

float ls_loss_factor(const struct ls_loss_attr *attr, const struct ls_context *context)
{
    return (float)ls_loss_scale(attr, context);
}
