/* Evaluation: the forward pass over batches of a test net.
 *
 * It goes in groups of batches, so that the records of a large data set need not be kept: within a
 * batch they are merged along the tree, batches are added up in order.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_EVALUATION_H
#define LS_ENGINE_EVALUATION_H

#include "engine/figures.h"
#include "engine/pass.h"

/* Batches [0, batches) of a test net, beginning with its first sample. `stop` is asked between
 * groups of batches and ends the test early with LOCKSTEP_STOPPED. All ranks call it. */
int ls_evaluation_run(struct ls_pass *pass, struct ls_prefetcher *prefetcher, int64_t batches,
                      int (*stop)(void *user), void *user, struct ls_totals *totals,
                      struct ls_error *error);

#endif
