/* What losses are on all devices: what they leave in the record of the micro-batch, and what their
 * gradients are multiplied by.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DEVICE_LOSS_H
#define LS_DEVICE_LOSS_H

#include "ir/kernel.h"

/* What a loss finds in a micro-batch. */
struct ls_loss_sums {
    double sum;
    double weights;    /* of the classes of labels that are not ignored */
    int64_t valid;     /* labels that are not ignored */
    int64_t positions; /* all of them */
    int64_t samples;   /* rows that BATCH_SIZE counts */
    bool bad_label;    /* some label names no class */
};

/* Adds [sum, count] to the record of the micro-batch; the count is that which the normalization
 * divides by, 0 for NONE. A label that names no class makes the sum NaN: labels are known only
 * when data enters, and the engine stops at a loss that is not finite. */
void ls_loss_add(const struct ls_loss_attr *attr, const struct ls_context *context,
                 const struct ls_loss_sums *sums);

/* What a loss's gradient is multiplied by: loss weight / true count of the update. */
double ls_loss_scale(const struct ls_loss_attr *attr, const struct ls_context *context);
/* The same, rounded; not with class weights, whose sum may be very small. */
float ls_loss_factor(const struct ls_loss_attr *attr, const struct ls_context *context);

#define LS_LEAST_PROBABILITY 1e-20F /* of LOG_LOSS: Caffe's kLOG_THRESHOLD */

static inline double ls_loss_weight(const struct ls_loss_attr *attr, int64_t class)
{
    return attr->class_weight != NULL ? (double)attr->class_weight[class] : 1.0;
}

#endif
