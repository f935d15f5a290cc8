/* The numeric environment of the CPU backend: what decides bits besides the definition.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_CPU_ENVIRONMENT_H
#define LS_OPS_CPU_ENVIRONMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "ir/kernel.h"

/* Appends what oneDNN's arithmetic depends on, as lines "key=value": isa (of Lockstep's own loops
 * and as oneDNN's limit), onednn (version), cache (of levels 1 and 2 of one core as this version of
 * oneDNN counts them; its block sizes follow from them). */
void ls_cpu_describe_library(struct ls_text *text);
/* The same text, made once. */
const char *ls_cpu_environment(void);
/* The same with a hash of what all kernels give for small fixed inputs ("kernels=..."), for people
 * who compare machines. */
int ls_cpu_describe(struct ls_text *text, struct ls_error *error);

/* A hash of what Lockstep's own kernels give for fixed small inputs, with plain and with blocked
 * layouts: the same with every instruction set. Kernels that depend on shapes are
 * ls_cpu_probe's. */
int ls_cpu_own_fingerprint(uint64_t *hash, struct ls_error *error);
/* The same of all kernels, oneDNN's too, as the layouts of the instruction set have it. */
int ls_cpu_fingerprint(uint64_t *hash, struct ls_error *error);

/* For tests: whether ls_cpu_fingerprint probes this kind. */
bool ls_cpu_has_own_probe(enum ls_op_kind kind);

/* Entries of ls_device_cpu.environment: what a step of a plan gives, see ir/kernel.h. */
bool ls_cpu_probes(const struct ls_prepared *prepared);
int ls_cpu_probe(const struct ls_prepared *prepared, int64_t samples, uint64_t *work,
                 uint64_t *hash, struct ls_error *error);

/* For tests: the calling thread sees caches as another processor would have them; NULL: this one's
 * again. The text goes behind "cache=" and must live on. */
void ls_cpu_pretend_caches(const char *text);

#endif
