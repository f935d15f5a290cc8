/* What engine/net.c needs of a net's plans (engine/plans.c); others see engine/net.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_PLANS_H
#define LS_ENGINE_PLANS_H

#include "engine/net.h"

/* How to build the net's graph for micro-batches of so many samples. */
struct ls_graph_options ls_net_graph_options(const struct ls_net *net, int64_t samples);

/* Unbinds and frees a plan; NULL is nothing to free. */
void ls_net_free_plan(struct ls_net_plan *plan);

/* A size of samples that the net cannot take is found now and not after hours of training: builds
 * the net's graph for each size of its data, which must vary. Of data with very many sizes the
 * first are tried; the others are checked when they come. `all`: of these, all that the net cannot
 * take are told, not only the first. */
int ls_net_check_sizes(struct ls_net *net, bool all, struct ls_error *error);

#endif
