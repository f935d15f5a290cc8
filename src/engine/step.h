/* A step of the training: one update of the weights, in five phases.
 *
 *   prepare  lists the micro-batches of the update, with plans that are ready to run
 *   run      workers compute all of them, and add gradients to the sums
 *   reduce   waits until the gradients of all ranks are summed, and judges them
 *   update   workers change the weights that this rank owns
 *   publish  sends them to the other ranks, and brings everything up to date that follows from them
 *
 * ls_step_gradients does the first three. In between its caller sets the rule of the update, which
 * may need the norm of the gradient (engine/norms.h). ls_step_apply does the last two.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_STEP_H
#define LS_ENGINE_STEP_H

#include "engine/figures.h"
#include "engine/optimizer.h"
#include "engine/pass.h"

/* A pass for a net, with all that its micro-batches need (of a training or a test). */
int ls_step_create(struct ls_engine *engine, struct ls_net *net, struct ls_pass **pass,
                   struct ls_error *error);
void ls_step_free(struct ls_pass *pass);

/* Forward and backward of update `update`: afterwards the store's sums hold the gradient of the
 * loss over the whole update. An update whose sums did not fit is repeated; *repeated says how
 * often. A loss or gradient that is not finite is LOCKSTEP_DIVERGED, naming layer and samples
 * (`iteration` is for that message). Data that cannot be read are LOCKSTEP_DATA, on all ranks: the
 * weights and all that belongs to them are those of the update before. */
int ls_step_gradients(struct ls_pass *pass, struct ls_prefetcher *prefetcher, int64_t update,
                      int64_t iteration, struct ls_totals *totals, int *repeated,
                      struct ls_error *error);
/* Changes the weights by the gradient; a weight that is not finite then is LOCKSTEP_DIVERGED. */
int ls_step_apply(struct ls_pass *pass, const struct ls_update_request *request, int64_t iteration,
                  struct ls_error *error);

#endif
