/* The numeric environment of the CPU backend: what decides bits besides the definition.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_ENVIRONMENT_H
#define LS_OPS_CPU_ENVIRONMENT_H

#include <stdbool.h>
#include <stdint.h>

/* Lines "key=value": isa (of Lockstep's own loops and as oneDNN's limit), onednn (version), cache
 * (bytes of levels 1 and 2 of one core as oneDNN counts them; its block sizes follow from them),
 * kernels (ls_cpu_fingerprint). Made at the first call; later calls give the same text. */
const char *ls_cpu_environment(void);

/* A hash of the answers of the kernels to fixed small inputs, with plain and with blocked layouts.
 * False when a kernel could not be prepared. */
bool ls_cpu_fingerprint(uint64_t *hash);

#endif
