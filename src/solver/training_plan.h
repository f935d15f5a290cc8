/* A plan of a training: a trainer with its nets, and nothing else that is large.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SOLVER_TRAINING_PLAN_H
#define LS_SOLVER_TRAINING_PLAN_H

#include "solver/trainer.h"

/* A trainer without anything in it; NULL: no memory. `comm` NULL: a process by itself, with a
 * communicator of its own. */
struct ls_trainer *ls_training_plan_new(const struct ls_solver_definition *definition,
                                        const struct ls_device *device, struct ls_comm *comm,
                                        int workers, struct ls_error *error);
/* Frees a trainer that is no more than a plan (ls_trainer_free is for all). */
void ls_training_plan_free(struct ls_trainer *trainer);
/* Opens the nets and checks them; nothing that is large is allocated. */
int ls_training_plan_open_nets(struct ls_trainer *trainer, struct ls_error *error);
/* Plans the train net, whose blobs are kept, anew: with gradients of its data. */
int ls_training_plan_add_data_gradients(struct ls_trainer *trainer, struct ls_error *error);

/* A plan. micro_batch 0: the definition's. */
int ls_training_plan_create(const struct ls_solver_definition *definition,
                            const struct ls_device *device, int workers, int64_t micro_batch,
                            struct ls_trainer **trainer, struct ls_error *error);
/* Reports what is wrong with the nets of a solver that is itself wrong, so that a user sees all
 * problems at once. */
int ls_training_plan_check(const struct ls_solver_definition *definition, struct ls_error *error);
/* Of these problems only layer types of the net to train that are not there. */
int ls_training_plan_check_types(const struct ls_solver_definition *definition,
                                 struct ls_error *error);

/* Calls `say` for what the solver's rates cannot mean (ls_schedule_tell_odd), of a train net. */
int ls_training_plan_tell_rates(const struct ls_solver_definition *definition,
                                const struct ls_net *train,
                                void (*say)(void *user, const char *sentence), void *user,
                                struct ls_error *error);

struct ls_store_options ls_training_plan_store_options(const struct ls_trainer *trainer);
/* Batches of the train net that make an epoch. Data without end have none (0); random data in place
 * of a solver's own have one of one batch, so that a solver that counts in epochs can be tried. */
double ls_training_plan_epoch(const struct ls_solver_definition *definition,
                              const struct ls_batching *batching);
/* How many batches make one pass over a test net's data (test_iter if it is given). */
int64_t ls_training_plan_batches(const struct ls_net *net, int32_t test_iter);

#endif
