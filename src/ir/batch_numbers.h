/* Numbers of a micro-batch in the device's memory.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_IR_BATCH_NUMBERS_H
#define LS_IR_BATCH_NUMBERS_H

#include <stdint.h>

/* What changes from one micro-batch to the next, for kernels of a device with memory of its own:
 * they read it there, so that what they are given is the same for all micro-batches of a slot. */
struct ls_batch_numbers {
    int64_t first_ordinal, samples, position, micro_batch; /* as in struct ls_context */
    double normalizers[];                                  /* by index */
};

#endif
