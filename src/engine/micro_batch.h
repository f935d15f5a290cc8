/* One micro-batch of a pass: its data, and running its plan.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_MICRO_BATCH_H
#define LS_ENGINE_MICRO_BATCH_H

#include "engine/binding.h"
#include "engine/pass.h"

/* Waits for the decoded data of a unit. Bad data are told when all units have run (engine/read.h);
 * false: another failure, which is noted. */
bool ls_micro_batch_take(struct ls_pass *pass, int worker, size_t unit);
/* Gives the data back; nothing reads them any more. */
void ls_micro_batch_release(struct ls_pass *pass, int worker, size_t unit);
/* The same where the device may still copy them. */
void ls_micro_batch_let_go(struct ls_pass *pass, int worker, size_t unit);
/* Waits until the worker's micro-batches are done; a failure is noted. */
void ls_micro_batch_wait(struct ls_pass *pass, int worker);

/* What a worker needs to run a unit; the inputs are not set. */
struct ls_run ls_micro_batch_prepare(struct ls_pass *pass, int worker, size_t unit);
/* The same for a unit that is computed once more by itself, from `inputs` and with its losses in
 * `partials`, which the caller owns: nothing of it is added to the update, handed over or kept, and
 * it is waited for. */
struct ls_run ls_micro_batch_prepare_apart(struct ls_pass *pass, int worker, size_t unit,
                                           void *const *inputs, double *partials);
/* Runs a segment of a plan (or all: LS_RUN_ALL) in the memory of a slot: see ls_binding_run. What
 * has a place for its record in the device's memory is only given to the worker's stream. */
int ls_micro_batch_compute(const struct ls_pass *pass, const struct ls_net_plan *plan, int slot,
                           int segment, const struct ls_run *run, struct ls_error *error);
/* Reads the samples of a unit anew, by readers of the net's data sets; inputs[i] NULL: that one is
 * not needed. */
int ls_micro_batch_fetch(const struct ls_pass *pass, struct ls_reader *const *readers, size_t unit,
                         void *const *inputs, struct ls_error *error);

#endif
