/* What stands behind the public interface's opaque types.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_API_API_H
#define LS_API_API_H

#include <stdbool.h>

#include "api/caller.h"
#include "api/rank_threads.h"
#include "base/error.h"
#include "lockstep/lockstep.h"
#include "schema/solver.h"

struct ls_trainer;

struct lockstep_error {
    struct ls_error inner;
    char *text; /* made by lockstep_error_text */
};

/* Definitions are shared by the solver and the trainers made from it. */
struct lockstep_solver {
    struct ls_solver_definition *definition;
    bool has_arrays; /* lockstep_solver_use_arrays */
    _Atomic int references;
    char *text; /* made by lockstep_solver_text */
};

struct lockstep_trainer {
    struct lockstep_solver *solver; /* a reference */
    struct lockstep_callbacks callbacks;
    struct lockstep_job *job;        /* the caller's, or NULL */
    struct ls_trainer *inner;        /* of this process, or of its rank 0 */
    struct ls_trainer **ranks;       /* of this process: `inner`, then the others */
    struct ls_rank_threads *threads; /* the ranks of this process; NULL where it is one rank */
    int card;                        /* of this process's one rank; -1: none */
    struct ls_comm *alone;           /* its communicator where there is neither; else NULL */
};

/* lockstep_trainer_create with `ranks` ranks in this process; see ls_rank_threads_create. */
int ls_api_trainer_create(const struct lockstep_solver *solver,
                          const struct lockstep_train_options *options, int ranks, const int *cards,
                          struct lockstep_trainer **trainer, struct ls_error *error);
/* Makes a call on all ranks of this process. Where other processes are lost, it is the last thing
 * that this one does. */
int ls_api_all_ranks(struct lockstep_trainer *trainer, ls_rank_threads_call *call, void *user,
                     struct ls_error *error);

/* The part of a caller's error that the inside fills; cleared. NULL for NULL. */
struct ls_error *ls_api_error(struct lockstep_error *error);

/* Fails where an argument that must be there is NULL; `what` is its name. */
int ls_api_require(const void *argument, const char *what, struct ls_error *error);

/* Forgets the arrays of a solver that nothing is made of any more. */
void ls_api_forget_arrays(const struct lockstep_solver *solver);

/* The files to start from that the solver names, separated by commas; owned by the caller. NULL:
 * there are none. */
int ls_api_solver_weights(const Lockstep__SolverParameter *solver, char **weights,
                          struct ls_error *error);

/* Checks the name of a device (NULL: the default), and pins its instruction set (NULL: the best),
 * once a process: another one afterwards is refused. */
int ls_api_select(const char *device, const char *isa, struct ls_error *error);
/* Takes an instruction set of a device, where none was pinned or used before and this processor has
 * it; whether it did, and it is another one than would have been taken. */
bool ls_api_offer_isa(const char *device, const char *isa);

#endif
