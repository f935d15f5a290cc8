/* The CPU's accumulators (device/accumulator.h): tiles of a parameter, each under a lock.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_ACCUMULATOR_H
#define LS_OPS_CPU_ACCUMULATOR_H

#include "device/accumulator.h"

extern const struct ls_device_accumulator ls_cpu_accumulator;

/* Adds a contribution of a micro-batch to the sum of a parameter; any threads at a time. */
void ls_cpu_accumulate(struct ls_accumulator *accumulator, int worker, int micro_batch,
                       int parameter, const float *gradient);

/* The same for some rows of a contribution: what it takes goes by these alone. */
void ls_cpu_accumulate_rows(struct ls_accumulator *accumulator, int micro_batch, int parameter,
                            const struct ls_accumulated_rows *rows);

#endif
