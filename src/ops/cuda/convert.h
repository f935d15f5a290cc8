/* Layouts and types of values and parameters on a card: plain and channels-last, and all types that
 * ir/convert.h leads from and to. SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CUDA_CONVERT_H
#define LS_OPS_CUDA_CONVERT_H

#include "ops/cuda/card.h"
#include "ops/cuda/ops.h"

struct ls_converter;

/* Lays fp32 numbers in Caffe's order out, in a stream. cudaError_t, as an int. */
int ls_card_lay_out_plain(cudaStream_t stream, const struct ls_shape *shape,
                          const struct ls_layout *layout, const float *plain, float *laid_out);

/* What struct ls_device says of parameters. */
int ls_card_from_plain(const struct ls_layout *layout, const struct ls_shape *shape,
                       const float *plain, float *laid_out, struct ls_error *error);
int ls_card_to_plain(const struct ls_layout *layout, const struct ls_shape *shape,
                     const float *laid_out, float *plain, struct ls_error *error);
int ls_card_converter_new(const struct ls_layout *from, const struct ls_layout *to,
                          const struct ls_shape *shape, enum ls_dtype type,
                          struct ls_converter **converter, struct ls_error *error);
int ls_card_converter_run(struct ls_converter *converter, const float *source, void *target,
                          struct ls_error *error);
void ls_card_converter_free(struct ls_converter *converter);

#endif
