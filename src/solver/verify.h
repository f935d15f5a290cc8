/* Checking the promise: the same training in several forms, compared byte for byte.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SOLVER_VERIFY_H
#define LS_SOLVER_VERIFY_H

#include "solver/trainer.h"

/* A form of the training that must not matter. */
struct ls_verify_case {
    const int *cards; /* by rank; NULL: none */
    int ranks;        /* threads of this process, each with so many */
    int workers;
    bool dynamic;    /* balance */
    uint64_t memory; /* of each rank; 0: no limit */
};

struct ls_verify_options {
    const struct ls_verify_case *cases; /* the first one is what the others are held against */
    size_t count;
    int stops;           /* above 0: all are run once more, stopped so often and resumed */
    int64_t iterations;  /* negative: as many as the solver says, at most 50 */
    const char *weights; /* to start from, or NULL */
    const char *device;  /* its name, or NULL */
    struct lockstep_callbacks callbacks;
    void (*trained)(void *user, const struct lockstep_verified *training); /* (optional) */
    void *user;
    /* (optional) For tests: called by each rank of training number `training` when its trainer is
     * made. Second runs, which look for the element, have the number of the first. */
    void (*prepare)(struct ls_trainer *trainer, size_t training, int rank);
};

/* See lockstep_verify. */
int ls_verify(const struct ls_solver_definition *definition,
              const struct ls_verify_options *options, struct ls_error *error);

#endif
