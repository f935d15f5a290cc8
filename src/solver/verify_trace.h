/* What a verification notes of a training, to compare it with others: hashes of every update, the
 * figures of tests, hashes of the last snapshot; and of one update, all numbers of one parameter.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SOLVER_VERIFY_TRACE_H
#define LS_SOLVER_VERIFY_TRACE_H

#include "base/sha256.h"
#include "solver/trainer.h"

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
    float *array[LS_STORE_ARRAYS]; /* NULL: there is none */
    int32_t *exponents;            /* of its sum: what a snapshot has of them (ls_sums_state) */
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

/* The figures of a test: rank 0 calls it. */
int ls_trace_add_test(struct ls_trace *trace, const struct lockstep_event *event,
                      struct ls_error *error);
/* Hashes of the last snapshot: of the tensors, which lie behind the header, and of the file. */
int ls_trace_add_snapshot(struct ls_trace *trace, const char *path, struct ls_error *error);

/* What notes the updates of a rank's trainer. */
struct ls_tracer {
    struct ls_trainer *trainer;
    struct ls_trace *trace;       /* rank 0 writes it */
    struct ls_close_up *close_up; /* likewise; NULL: nothing is looked at closely */
    float *plain;                 /* rank 0: room for the largest parameter */
};
/* For a trainer that has been planned; to be ended in any case. LOCKSTEP_RESOURCE on this rank. */
int ls_tracer_begin(struct ls_tracer *tracer, struct ls_error *error);
void ls_tracer_end(struct ls_tracer *tracer);
/* After each update, by all ranks. */
int ls_tracer_note(struct ls_tracer *tracer, struct ls_error *error);

#endif
