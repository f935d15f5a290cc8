/* Ops of all kinds that values can be drawn for (op_scene.h).
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_KERNELS_OP_MAKERS_H
#define LS_TESTS_KERNELS_OP_MAKERS_H

#include "kernels/op_scene.h"

/* What makes an op of each kind. Those without an entry, whose tests are elsewhere, hand numbers to
 * the engine (tests/unit/engine), or have no kernel. */
extern void (*const op_makers[LS_OP_KINDS])(struct op_scene *scene);

#endif
