/* What helpers for tests of kernels share: where numbers lie, which layouts a kernel asks for, and
 * the same op on the reference device.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_KERNELS_REFERENCE_H
#define LS_TESTS_KERNELS_REFERENCE_H

#include "device/device.h"

/* Where element i of Caffe's order lies in a layout that is not opaque. */
size_t place_in_layout(const struct ls_layout *layout, const struct ls_shape *shape, int64_t i);

/* Sets the layouts that a kernel asks for, and those that it writes. It is offered `offered` for
 * each input; NULL: the layout that the input has, plain where it has none. */
void settle_layouts(const struct ls_kernel *kernel, const struct ls_op *op,
                    const struct ls_layout *offered);

const struct ls_device *reference_device(void);
/* Carries an op out there, all of whose values are in Caffe's order; their layouts stay as they
 * are. */
void run_on_reference(struct ls_op *op, void *const *in, void *const *out,
                      const struct ls_context *context);

/* Fails with the problems of an error unless the status is 0. */
void check_status(int status, const struct ls_error *error);

#endif
