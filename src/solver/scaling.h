/* What a training will do on several ranks: a model of its updates, from what a micro-batch takes,
 * what is exchanged, and what links can carry.
 *
 *     step = pass + wait for gradients + small exchanges + update + rest + wait for weights
 *
 * The pass is that of the rank with the most micro-batches. Gradients leave in buckets while its
 * last micro-batches go backward, weights come back while the next ones go forward, each layer
 * waiting for its own; what is waited for is what is not hidden so. See docs/scaling.md.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SOLVER_SCALING_H
#define LS_SOLVER_SCALING_H

#include "lockstep/lockstep.h"
#include "solver/scaling_load.h"

struct ls_scaling_link {
    double bandwidth, latency, message;
};
/* All of a row but `efficiency` and `micro_batch`. */
int ls_scaling_predict(const struct ls_scaling_load *load, const struct ls_scaling_link *link,
                       int ranks, struct lockstep_scaling_row *row, struct ls_error *error);

#endif
