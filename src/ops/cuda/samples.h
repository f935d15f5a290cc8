/* ls_device.make_samples of a card. SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CUDA_SAMPLES_H
#define LS_OPS_CUDA_SAMPLES_H

#include "base/error.h"
#include "device/samples.h"

struct ls_stream;

int ls_card_make_samples(struct ls_stream *stream, const struct ls_sample_making *making,
                         const struct ls_sample_draw *draws, int64_t samples, void *out,
                         struct ls_error *error);

#endif
