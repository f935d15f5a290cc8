/* Lines of hashes: what a computation of a micro-batch has left, for audits. A line has a hash for
 * each parameter (of the micro-batch's gradient, or of its factors), for each sync point, for each
 * state per sample, and for the record; behind them, the worker and core that made it.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_AUDIT_LINES_H
#define LS_ENGINE_AUDIT_LINES_H

#include "engine/binding.h"
#include "engine/pass.h"

/* Computation 0 is the update's own, 1 audits it, 2 and 3 decide between them. */
enum { LS_AUDIT_COMPUTATIONS = 4 };

struct ls_audit_lines {
    /* A line: hashes of all things, then its worker. */
    size_t parameters, syncs, states, things, length;
    uint64_t *hash[LS_AUDIT_COMPUTATIONS]; /* [audited micro-batch][length] */
};

int ls_audit_lines_create(struct ls_audit_lines *lines, const struct ls_graph *graph,
                          size_t micro_batches, struct ls_error *error);
void ls_audit_lines_free(struct ls_audit_lines *lines);
size_t ls_audit_lines_bytes(const struct ls_graph *graph, size_t micro_batches);

uint64_t *ls_audit_lines_of(const struct ls_audit_lines *lines, int computation, size_t item);
void ls_audit_lines_clear(const struct ls_audit_lines *lines, uint64_t *line);

/* Hashes what a run hands over into a line, and hands it on to the run's own observer. */
struct ls_audit_listener {
    const struct ls_device *device;
    uint64_t *hash;              /* by parameter */
    uint64_t *state;             /* by state per sample */
    struct ls_observer observer; /* what else observes the run */
};
void ls_audit_lines_observe(const struct ls_audit_lines *lines, const struct ls_device *device,
                            struct ls_audit_listener *listener, uint64_t *line, struct ls_run *run);
/* Hashes what a unit has left at sync points (`rows`; NULL: at its place) and in its record. */
void ls_audit_lines_add_rest(const struct ls_audit_lines *lines, const struct ls_pass *pass,
                             size_t unit, const double *rows, const double *record, uint64_t *line);

/* Notes which worker made a line: the calling thread, which is this one. */
uint64_t ls_audit_signature(int worker);
void ls_audit_lines_sign(const struct ls_audit_lines *lines, int worker, uint64_t *line);
int ls_audit_lines_worker(const struct ls_audit_lines *lines, const uint64_t *line);
int ls_audit_lines_core(const struct ls_audit_lines *lines, const uint64_t *line);

bool ls_audit_lines_same(const struct ls_audit_lines *lines, size_t item, int a, int b);
/* The name of the first thing that two computations do not have alike, and how many there are. */
const char *ls_audit_lines_differ(const struct ls_audit_lines *lines, const struct ls_graph *graph,
                                  size_t item, int a, int b, size_t *count);

#endif
