/* Computing micro-batches a second time, for audits: with readers and memory of their own, so that
 * nothing of the pass changes.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_AUDIT_BENCH_H
#define LS_ENGINE_AUDIT_BENCH_H

#include "engine/audit_lines.h"

struct ls_audit_bench;

/* One for each worker. */
int ls_audit_bench_create(const struct ls_pass *pass, struct ls_audit_bench **benches,
                          struct ls_error *error);
void ls_audit_bench_free(const struct ls_pass *pass, struct ls_audit_bench *benches);
size_t ls_audit_bench_bytes(const struct ls_net *net, int workers);

/* A unit by itself, segment by segment, into a line; what sync points merged is there. A failure is
 * noted in the pass. */
void ls_audit_bench_compute(struct ls_pass *pass, struct ls_audit_bench *benches, int worker,
                            size_t unit, const struct ls_audit_lines *lines, uint64_t *line);

#endif
