/* What the kernels of losses share.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_LOSS_H
#define LS_OPS_CPU_LOSS_H

#include "device/loss.h"

/* log max(p, least) of n probabilities. */
void ls_loss_logs(const float *p, float least, int64_t n, float *logs);
/* The sum of -weight log max(p, least) over n probabilities, in order; *sum accumulates it. */
void ls_loss_add_logs(const float *p, const double *weight, float least, int64_t n, double *sum);

#endif
