/* What is defined to the bit on every device, in plain C: exact sums, update rules, fillers, and
 * the merging of statistics. A device that computes in the host's memory may use these as they are;
 * what another has in their place gives the same bits, and tests compare it with them.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DEVICE_PLAIN_H
#define LS_DEVICE_PLAIN_H

#include "device/device.h"

extern const struct ls_device_sums ls_plain_sums;
extern const struct ls_device_accumulator ls_plain_accumulator;
/* What an ACCUMULATE op does. */
void ls_plain_accumulate(struct ls_accumulator *accumulator, int micro_batch, int parameter,
                         const float *gradient);
void ls_plain_accumulate_rows(struct ls_accumulator *accumulator, int micro_batch, int parameter,
                              const struct ls_accumulated_rows *rows);

/* ls_device.update */
int ls_plain_update(const struct ls_update_rule *rule, const struct ls_update_slice *slice,
                    struct ls_update_seen *seen, struct ls_error *error);

/* ls_device.clear_masked */
int ls_plain_clear_masked(const uint32_t *mask, size_t first, float *numbers, size_t n,
                          struct ls_error *error);

void ls_plain_fill(const struct ls_filler *filler, uint64_t key, uint64_t ordinal, float *out,
                   size_t n);

/* ls_device.merge */
int ls_plain_merge(struct ls_stream *stream, const struct ls_sync *sync, const double *const *rows,
                   int count, int64_t begin, int64_t end, float *merged, struct ls_error *error);

/* Where all layouts are plain: a parameter in Caffe's order and as it lies, and views of it in
 * other types. */
int ls_plain_parameter(const struct ls_layout *layout, const struct ls_shape *shape,
                       const float *from, float *to, struct ls_error *error);
int ls_plain_converter_new(const struct ls_layout *from, const struct ls_layout *to,
                           const struct ls_shape *shape, enum ls_dtype type,
                           struct ls_converter **converter, struct ls_error *error);
int ls_plain_converter_run(struct ls_converter *converter, const float *source, void *target,
                           struct ls_error *error);
void ls_plain_converter_free(struct ls_converter *converter);

#endif
