/* What the device does besides running kernels: sums, merging, updates, gradients from factors.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CUDA_CONTRACT_H
#define LS_OPS_CUDA_CONTRACT_H

#include "device/device.h"

extern const struct ls_device_sums ls_card_sums;

/* Members of struct ls_device of these names. */
int ls_card_merge(struct ls_stream *stream, const struct ls_sync *sync, const double *const *rows,
                  int count, int64_t begin, int64_t end, float *merged, struct ls_error *error);
int ls_card_update(const struct ls_update_rule *rule, const struct ls_update_slice *slice,
                   struct ls_update_seen *seen, struct ls_error *error);
int ls_card_clear_masked(const uint32_t *mask, size_t first, float *numbers, size_t n,
                         struct ls_error *error);
int ls_card_weight_gradient(const struct ls_factoring *factoring,
                            const struct ls_factor_rows *factors,
                            const struct ls_gradient_piece *piece, float *gradient,
                            struct ls_error *error);
int ls_card_bias_gradient(const struct ls_factoring *factoring,
                          const struct ls_factor_rows *factors,
                          const struct ls_gradient_piece *piece, float *gradient,
                          struct ls_error *error);

#endif
