/* Exact sums of gradients on a card. SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CUDA_ACCUMULATOR_H
#define LS_OPS_CUDA_ACCUMULATOR_H

#include "device/accumulator.h"
#include "ops/cuda/card.h"

extern const struct ls_device_accumulator ls_card_accumulator;

/* ls_device.update_from_sums */
int ls_card_update_from_sums(struct ls_stream *stream, const struct ls_sum_update *update,
                             struct ls_error *error);

/* What an ACCUMULATE op does, in a stream; the micro-batch's number is in the card's memory.
 * cudaError_t, as an int. */
int ls_card_accumulate(cudaStream_t stream, struct ls_accumulator *accumulator,
                       const int64_t *micro_batch, int parameter, const float *gradient);
int ls_card_accumulate_rows(cudaStream_t stream, struct ls_accumulator *accumulator,
                            const int64_t *micro_batch, int parameter,
                            const struct ls_accumulated_rows *rows);

#endif
