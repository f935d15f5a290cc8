/* What this machine can do at this moment: fused multiply-adds and memory bandwidth of some cores
 * together.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_BASE_PROBE_H
#define LS_BASE_PROBE_H

#include "base/error.h"

struct ls_probe {
    int cores;
    double flops, bytes; /* a second, of all cores */
};

/* Measures the first `cores` cores that this process may use (0: all of them; more than there are:
 * all of them), for some tenths of a second. The calling thread only waits. */
int ls_probe(int cores, struct ls_probe *probe, struct ls_error *error);

#endif
