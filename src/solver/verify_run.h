/* One training of a verification: from its start to its end, on its own or on several ranks that
 * are threads of this process, maybe stopped on the way and resumed from a snapshot by others; and
 * what came of it, as hashes.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SOLVER_VERIFY_RUN_H
#define LS_SOLVER_VERIFY_RUN_H

#include "base/sha256.h"
#include "base/text.h"
#include "solver/verify.h"

/* A number of a test. */
struct ls_figure {
    int64_t iteration;
    int net, entry;
    char name[64];
    double value;
};

/* What came of a training. */
struct ls_trace {
    int64_t updates;
    size_t parameters, states;
    uint64_t *hash; /* [update][1 + parameters + states]: losses and divisors; weights and what
                       belongs to them; states per sample */
    size_t capacity;
    struct ls_figure *figures;
    size_t figure_count, figure_capacity;
    char tensors[LS_SHA256_TEXT], file[LS_SHA256_TEXT]; /* of the last snapshot */
    double seconds;
    bool library; /* oneDNN computes a part of it */
};
void ls_trace_free(struct ls_trace *trace);

/* What a second run keeps, to find the element: of one update, one parameter; or (parameter < 0)
 * its losses; or, behind the last parameter, a state per sample. Arrays as in enum ls_store_array.
 */
struct ls_close_up {
    int64_t update;
    int parameter;
    char name[128]; /* of the parameter, or of the state */
    uint64_t state; /* hash of the state */
    struct ls_shape shape;
    float *array[4];    /* NULL: there is none */
    int32_t *exponents; /* of its sum: what a snapshot has of them (ls_sums_state) */
    size_t exponent_count;
    struct ls_figure *figures; /* what the update's losses and metrics show */
    size_t figure_count, figure_capacity;
};
void ls_close_up_free(struct ls_close_up *close_up);
/* Hashes that a trace has of an update. */
static inline size_t ls_trace_width(const struct ls_trace *trace)
{
    return 1 + trace->parameters + trace->states;
}

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
