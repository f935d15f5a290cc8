/* Audits: a part of the micro-batches of an update is computed a second time, by another worker or
 * another rank where there is one, before the update is committed; what both leave is compared bit
 * by bit. Where they differ a third computation, and if need be a fourth, says which was wrong.
 *
 * A micro-batch leaves its gradient contributions (or the factors of them), its rows at sync
 * points, and its record of losses and counts. Each is hashed with 64 bits as it is left. The
 * second computation reads the samples anew and uses what sync points have merged in the first: so
 * it needs no other micro-batch, and costs what that one cost. It adds nothing to sums, factors,
 * records and averages.
 *
 * Which micro-batches are audited is drawn by a counter, for LS_AUDIT_RUN consecutive ones at a
 * time so that several workers have something to do. Ranks exchange the hashes and all come to the
 * same conclusion. If the update's own computation was wrong, the pass is repeated, as it is for
 * exponents, and audited again.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_AUDIT_H
#define LS_ENGINE_AUDIT_H

#include "engine/audit_lines.h"

enum { LS_AUDIT_RUN = 16, LS_AUDIT_FINDINGS = 8 };

/* A computation that was wrong. */
struct ls_audit_finding {
    bool own;               /* it was the update's own; else that which audits it */
    int rank, worker, core; /* core: as the system numbers them; -1: not known */
    const char *host;       /* the audit's; NULL where there are no other ranks */
    size_t micro_batch;     /* of the update */
    int64_t first, last;    /* samples */
    const char *name;       /* the first parameter or layer whose numbers differ */
    size_t differing;       /* how many such there are */
};

struct ls_audit;

/* For a pass of a training net; `part` of the micro-batches are audited, above 0 and at most 1. */
int ls_audit_create(struct ls_pass *pass, double part, uint64_t seed, struct ls_audit **audit,
                    struct ls_error *error);
void ls_audit_free(struct ls_audit *audit);
/* The memory that it takes. */
size_t ls_audit_bytes(const struct ls_net *net, int workers);

/* Begins an update, and each pass over the units that the pass lists: draws those to audit. */
void ls_audit_begin_update(struct ls_audit *audit);
void ls_audit_begin(struct ls_audit *audit);
/* What a worker's kernels leave of a unit goes through here, if the unit is audited. */
void ls_audit_listen(struct ls_audit *audit, int worker, size_t unit,
                     struct ls_audit_listener *listener, struct ls_run *run);

/* After all units have run, and what ranks share is there; nothing else runs meanwhile. *wrong: the
 * pass must be repeated. LOCKSTEP_DIFFERENT: computations differ, and none is known to be right. */
int ls_audit_check(struct ls_audit *audit, int64_t iteration, bool *wrong, struct ls_error *error);

/* Something of a unit is not finite. True, once in an update: that may be a core's mistake, run the
 * pass again, in which all is audited. If it is finite then, ls_audit_clear reports the faulty
 * core. */
bool ls_audit_doubt(struct ls_audit *audit, size_t unit);
int ls_audit_clear(struct ls_audit *audit, struct ls_error *error);

/* What was found in this update (at most LS_AUDIT_FINDINGS are kept), valid until the next. */
const struct ls_audit_finding *ls_audit_findings(const struct ls_audit *audit, size_t *count);
/* Micro-batches that were computed a second time since the beginning, and wrong computations. */
void ls_audit_count(const struct ls_audit *audit, int64_t *audited, int64_t *wrong);

#endif
