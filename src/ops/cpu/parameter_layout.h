/* Parameters between Caffe's order and the layouts that kernels like.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_PARAMETER_LAYOUT_H
#define LS_OPS_CPU_PARAMETER_LAYOUT_H

#include <stdbool.h>

#include "base/error.h"
#include "ir/layout.h"

/* Entries of ls_device_cpu, see ir/kernel.h. Lanes of padding in a result are zero. */
int ls_cpu_parameter_from_plain(const struct ls_layout *layout, const struct ls_shape *shape,
                                const float *plain, float *laid_out, struct ls_error *error);
int ls_cpu_parameter_to_plain(const struct ls_layout *layout, const struct ls_shape *shape,
                              const float *laid_out, float *plain, struct ls_error *error);
struct ls_converter;
int ls_cpu_converter_new(const struct ls_layout *from, const struct ls_layout *to,
                         const struct ls_shape *shape, enum ls_dtype type,
                         struct ls_converter **converter, struct ls_error *error);
int ls_cpu_converter_run(struct ls_converter *converter, const float *source, void *target,
                         struct ls_error *error);
void ls_cpu_converter_free(struct ls_converter *converter);

/* A conversion that is needed once. */
int ls_cpu_parameter_convert(const struct ls_layout *from, const struct ls_layout *to,
                             const struct ls_shape *shape, const float *source, float *target,
                             struct ls_error *error);

#endif
