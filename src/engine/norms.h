/* Norms of the gradient and of the weights: sums in double over fixed chunks, added up in one
 * order, so that they are the same on any number of workers and ranks. All ranks call these.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_NORMS_H
#define LS_ENGINE_NORMS_H

#include <stdbool.h>

#include "base/error.h"
#include "ir/graph.h"

struct ls_engine;
struct ls_norms;

/* For an engine with a store that is trained. */
int ls_norms_create(const struct ls_engine *engine, struct ls_norms **norms,
                    struct ls_error *error);
void ls_norms_free(const struct ls_engine *engine, struct ls_norms *norms);

/* The L2 norm of the gradient over all trained parameters. */
int ls_norms_gradient(struct ls_engine *engine, double *norm, struct ls_error *error);
/* Sum over trained parameters of factor(parameter) x (sum of w^2, or of |w|). */
int ls_norms_penalty(struct ls_engine *engine, bool l1,
                     double (*factor)(void *user, const struct ls_parameter *parameter), void *user,
                     double *penalty, struct ls_error *error);

#endif
