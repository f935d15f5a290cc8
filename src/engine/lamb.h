/* The first pass of LAMB (device/update.h): it moves the histories, and finds the trust ratio of
 * each parameter from norms in double. The optimizer does the second pass.
 *
 * A norm is a sum of squares tile by tile, in the order of engine/norms.h: within a tile over
 * chunks of LS_EXACT_CHUNK numbers (of weights whose gradient comes from factors: row by row), then
 * over tiles as ls_sum_doubles adds. Each tile is measured by one rank, and added up by all.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_LAMB_H
#define LS_ENGINE_LAMB_H

#include <stdatomic.h>

#include "base/error.h"
#include "device/update.h"
#include "engine/store.h"

struct ls_engine;
struct ls_lamb;

/* For an engine with a store that is trained. NULL where no parameter has this rule. */
int ls_lamb_create(const struct ls_engine *engine, const struct ls_store_options *options,
                   struct ls_lamb **lamb, struct ls_error *error);
void ls_lamb_free(struct ls_lamb *lamb);

/* All ranks call it. `rules` by parameter get their trust ratios; seen[i] is raised to the largest
 * gradient of parameter i. */
int ls_lamb_find_trust(struct ls_engine *engine, struct ls_lamb *lamb, float *const *weights,
                       struct ls_update_rule *rules, _Atomic uint32_t *seen,
                       struct ls_error *error);

#endif
