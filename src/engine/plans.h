/* The plans of a net: one for each size of micro-batch.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_PLANS_H
#define LS_ENGINE_PLANS_H

#include "engine/net.h"

/* How to build the net's graph for micro-batches of so many samples. */
struct ls_graph_options ls_plans_graph_options(const struct ls_net *net, int64_t samples);

/* The plan for micro-batches like `micro`; made if there is none. Where sizes vary, plans that were
 * not wanted for long go, and what is wrong with a plan is said of its size. */
int ls_plans_require(struct ls_net *net, const struct ls_micro *micro, struct ls_net_plan **plan,
                     struct ls_error *error);
/* Makes all plans anew, for that much memory for activations. None may be bound. */
int ls_plans_limit(struct ls_net *net, size_t activation_bytes, struct ls_error *error);
/* Makes room for the plan for the largest sample there can be, where samples differ in size and
 * there is a plan for that. */
int ls_plans_largest(struct ls_net *net, int workers, struct ls_room *room, struct ls_error *error);
/* Plans that are wanted from now on stay until the next call. */
void ls_plans_begin_pass(struct ls_net *net);

/* Whether all groups of so many samples (0: the batch) lie within micro-batches, in every batch
 * that the net can see. `net` is a struct ls_net. */
bool ls_plans_local(const void *net, int64_t group);
/* Slots that micro-batches of this rank which go through the net together need; at least one a
 * worker. */
int ls_plans_slots(const struct ls_net *net, int workers);

/* How many samples batches can have: a full one, and what is left at the end of the data. */
int ls_plans_batch_sizes(const struct ls_batching *batching, int64_t sizes[2]);

/* Unbinds and frees a plan; NULL is nothing to free. */
void ls_plans_free(struct ls_net_plan *plan);

/* A size of samples that the net cannot take is found now and not after hours of training: builds
 * the net's graph for each size of its data, which must vary. Of data with very many sizes the
 * first are tried; the others are checked when they come. `all`: of these, all that the net cannot
 * take are told, not only the first. */
int ls_plans_check_sizes(struct ls_net *net, bool all, struct ls_error *error);

#endif
