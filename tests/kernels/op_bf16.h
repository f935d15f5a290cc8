/* Ops whose values are bf16, against the same with fp32 values.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_KERNELS_OP_BF16_H
#define LS_TESTS_KERNELS_OP_BF16_H

#include "kernels/op_scene.h"

/* Makes the activations bf16; their numbers become what bf16 has, some of them special ones. */
void scene_narrow(struct op_scene *scene);
/* Makes them fp32, with the same numbers. */
void scene_widen(struct op_scene *scene);
/* Fails where `native` is not `wide`, whose outputs are rounded once where the scene's are bf16. */
void compare_rounded(const struct op_scene *scene, const struct op_result *native,
                     const struct op_result *wide);

#endif
