/* Accuracy and mean intersection over union, which are counted alike on all devices.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "device/counts.h"
#include "ops/cpu/kernels.h"

static int accuracy_run(const struct ls_prepared *prepared, void *local, void *const *in,
                        void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)out, (void)scratch;
    ls_count_hits(prepared->op, in, context->partials);
    return 0;
}

const struct ls_kernel ls_kernel_accuracy = {
    .kind = LS_OP_ACCURACY,
    .bits = LS_BITS_EXACT,
    .name = "accuracy",
    .prepare = ls_own_prepare,
    .run = accuracy_run,
    .in_place = -1,
};

static int mean_iou_run(const struct ls_prepared *prepared, void *local, void *const *in,
                        void *const *out, void *scratch, const struct ls_context *context)
{
    (void)local, (void)out, (void)scratch;
    ls_count_intersections(prepared->op, in, context->partials);
    return 0;
}

const struct ls_kernel ls_kernel_mean_iou = {
    .kind = LS_OP_MEAN_IOU,
    .bits = LS_BITS_EXACT,
    .name = "mean intersection over union",
    .prepare = ls_own_prepare,
    .run = mean_iou_run,
    .in_place = -1,
};
