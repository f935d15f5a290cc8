/* What this machine can do at this moment: fused multiply-adds and memory bandwidth of all cores
 * that the process may use, together. Writes "GFLOP/s GB/s". The probe is the library's, so that
 * `lockstep time` and the benchmark have one measure.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>

#include "lockstep/lockstep.h"

int main(void)
{
    struct lockstep_probe probe;
    struct lockstep_error *error = lockstep_error_new();
    int status = lockstep_probe(0, &probe, error);
    if (status != 0)
        fprintf(stderr, "bench_probe: %s\n", lockstep_error_text(error));
    else
        printf("%.2f %.2f\n", probe.flops * 1e-9, probe.bytes * 1e-9);
    lockstep_error_free(error);
    return status;
}
