/* One training of a verification: from its start to its end, on its own or on several ranks that
 * are threads of this process, maybe stopped on the way and resumed from a snapshot by others; and
 * what came of it, as hashes.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SOLVER_VERIFY_RUN_H
#define LS_SOLVER_VERIFY_RUN_H

#include "base/text.h"
#include "solver/verify.h"
#include "solver/verify_trace.h"

struct ls_verify_run {
    const struct ls_solver_definition *definition;
    const struct ls_verify_options *options;
    size_t number; /* of the training, which tests are told; 0: the first */
    size_t begins; /* the case that it begins as */
    int64_t end;   /* updates; negative: as the options say */
    int stops;
    const char *folder; /* for snapshots; empty before and after */
    struct ls_trace *trace;
    struct ls_text *warnings;     /* of this training and those before, each once, a line each */
    struct ls_close_up *close_up; /* (optional) the run ends behind its update */
    struct ls_text name;          /* what the training is, in words; made by the run */
};

/* Runs it. LOCKSTEP_STOPPED where the caller wants to stop. */
int ls_verify_run(struct ls_verify_run *run, struct ls_error *error);
/* "2 ranks of 3 workers, dynamic, least memory" */
void ls_verify_name(const struct ls_verify_case *what, struct ls_text *text);

#endif
