/* What the fingerprint of the kernels carries out (ops/cpu/fingerprint.c). The list decides a hash
 * that is in snapshots, so it does not grow any more: kernels that are newer than it are probed in
 * the shapes of each net (ops/cpu/probe.c).
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_FINGERPRINT_PROBES_H
#define LS_OPS_CPU_FINGERPRINT_PROBES_H

#include "ir/op.h"

enum { LS_PROBE_INPUTS = 4, LS_PROBE_OUTPUTS = 2 };

/* What an input holds. */
enum ls_probe_content { LS_PROBE_SIGNED, LS_PROBE_POSITIVE, LS_PROBE_LABELS };

struct ls_fingerprint_probe {
    struct ls_op op; /* its kind and attributes alone */
    const struct ls_shape *in[LS_PROBE_INPUTS], *out[LS_PROBE_OUTPUTS]; /* NULL: no more */
    enum ls_probe_content content[LS_PROBE_INPUTS];
};

extern const struct ls_fingerprint_probe ls_fingerprint_probes[];
extern const size_t ls_fingerprint_probe_count;

#endif
