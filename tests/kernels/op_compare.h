/* What two devices made of one op, side by side.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_KERNELS_OP_COMPARE_H
#define LS_TESTS_KERNELS_OP_COMPARE_H

#include "kernels/op_scene.h"

/* Fails unless what was got has the bits of what was wanted where nothing is rounded, else is near.
 */
void compare_near(const struct op_scene *scene, const struct op_result *got,
                  const struct op_result *want);

/* Makes an op one of a portable net, with bf16 or PORTABLE products. */
void make_portable(struct op_scene *scene);

/* Fails unless both have the same bits, those of NaNs aside. `want` is the reference device's, and
 * `got` that of the device which is named. */
void compare_bits(const struct op_scene *scene, const char *device, const struct op_result *got,
                  const struct op_result *want);

#endif
