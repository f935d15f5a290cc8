/* Between the files onednn*.c: tensors as oneDNN's memory descriptors, and back.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_ONEDNN_LAYOUT_H
#define LS_OPS_CPU_ONEDNN_LAYOUT_H

#include <dnnl.h>

#include "ops/cpu/onednn.h"

#if DNNL_VERSION_MAJOR != 2
#error "onednn*.c are written for oneDNN 2.x; 3.x describes primitives and memory differently"
#endif

/* Fills *md. LOCKSTEP_DEFINITION for a tensor that is too large for oneDNN's 32-bit offsets. */
int ls_onednn_describe(const struct ls_tensor *tensor, dnnl_memory_desc_t *md,
                       struct ls_error *error);

/* The layout of `md`, which oneDNN chose for `tensor`: plain where it is that, else an opaque one,
 * interned. The opaque ones live as long as the process. Safe to call from several threads. */
int ls_onednn_intern(const struct ls_tensor *tensor, const dnnl_memory_desc_t *md,
                     const struct ls_layout **layout, struct ls_error *error);

#endif
