/* Between the files onednn*.c: the engine, tensors as oneDNN's memory descriptors, and back.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_ONEDNN_LAYOUT_H
#define LS_OPS_CPU_ONEDNN_LAYOUT_H

#include "ops/cpu/onednn_api.h"

/* The one engine; LOCKSTEP_INTERNAL where oneDNN does not start, LOCKSTEP_USAGE after a change of
 * the instruction set. */
int ls_onednn_engine(dnnl_engine_t *engine, struct ls_error *error);

/* Makes *md, for ls_md_free. LOCKSTEP_DEFINITION for a tensor that is too large for oneDNN's 32-bit
 * offsets. */
int ls_onednn_describe(const struct ls_onednn_tensor *tensor, struct ls_md **md,
                       struct ls_error *error);

/* The layout of `md`, which oneDNN chose for `tensor`: plain where it is that, else an opaque one,
 * interned; LOCKSTEP_INTERNAL where no format tag gives it. The opaque ones live as long as the
 * process. Safe to call from several threads. */
int ls_onednn_intern(const struct ls_onednn_tensor *tensor, const struct ls_md *md,
                     const struct ls_layout **layout, struct ls_error *error);

#endif
