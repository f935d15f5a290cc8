/* Statistics of parameters at displays: norms and histograms of weights and gradients, and norms of
 * what an update has added. They are found from the numbers in Caffe's order, one after the other,
 * so that they are the same on any number of workers and ranks; nothing depends on them.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SOLVER_STATISTICS_H
#define LS_SOLVER_STATISTICS_H

#include "engine/store.h"
#include "lockstep/report.h"

struct ls_trainer;
struct ls_statistics;

/* Bytes that they take on a rank. */
size_t ls_statistics_bytes(const struct ls_parameter_set *set,
                           const struct ls_store_options *store);

/* For a trainer whose store is made. */
int ls_statistics_create(const struct ls_trainer *trainer, struct ls_statistics **statistics,
                         struct ls_error *error);
void ls_statistics_free(struct ls_statistics *statistics);

/* In an update that is displayed: between the gradient and the new weights, and behind these. All
 * ranks call both; rank 0 alone has the figures then. */
int ls_statistics_before(struct ls_trainer *trainer, struct ls_error *error);
int ls_statistics_after(struct ls_trainer *trainer, struct ls_error *error);
/* Those of the last update that was displayed. */
const struct lockstep_statistics *ls_statistics_found(const struct ls_statistics *statistics);

#endif
