/* Filling by the rules of device/filler.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_FILLER_H
#define LS_OPS_CPU_FILLER_H

#include "device/filler.h"

/* Fills the n numbers of one blob, all of it: rows of UNITBALL are not cut. */
void ls_filler_run(const struct ls_filler *filler, uint64_t key, uint64_t ordinal, float *out,
                   size_t n);

#endif
