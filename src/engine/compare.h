/* Whether the ranks of a job have the same weights.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_COMPARE_H
#define LS_ENGINE_COMPARE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct ls_engine;
struct ls_pass;
struct ls_store;

/* In place of an iteration: the weights that a training begins with. */
enum { LS_WEIGHTS_BEGIN = -1 };
/* A hash of all weights and averages, the same on any number of workers and ranks. Nothing is
 * allocated. */
int ls_compare_hash(struct ls_engine *engine, uint64_t *hash, struct ls_error *error);
size_t ls_compare_hashes(const struct ls_store *store); /* numbers of engine->hashes */
/* LOCKSTEP_DIFFERENT names the first parameter that is not the same on all ranks, and ranks. All
 * call it; alone there is nothing to do. */
int ls_compare_weights(struct ls_engine *engine, int64_t iteration, struct ls_error *error);
/* The same for the states per sample of a training, of which each rank has all rows. */
int ls_compare_states(const struct ls_pass *pass, int64_t iteration, struct ls_error *error);

#endif
