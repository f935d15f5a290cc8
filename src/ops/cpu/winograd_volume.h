/* Convolutions of volumes by Winograd's algorithm, F(2 x 2, 3 x 3): which ops they are, and their
 * kernels, which are Lockstep's own (ops/cpu/vector/volume.h). They go before oneDNN's.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_WINOGRAD_VOLUME_H
#define LS_OPS_CPU_WINOGRAD_VOLUME_H

#include "ir/kernel.h"

extern const struct ls_kernel ls_kernel_volume;
extern const struct ls_kernel ls_kernel_volume_data;
extern const struct ls_kernel ls_kernel_volume_weights;

#endif
