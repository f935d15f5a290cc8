/* The update of weights by a device that does it in the order of a stream
 * (ls_device.update_from_sums): the host names it once, and waits once for all weights.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_DIRECT_UPDATE_H
#define LS_ENGINE_DIRECT_UPDATE_H

#include "base/thread.h"
#include "engine/store.h"

struct ls_direct_update;

/* Of the tiles that are this rank's. NULL in *direct where the device has no such function.
 * ls_direct_update_free must be called also where this fails. */
int ls_direct_update_create(const struct ls_store *store, const struct ls_tile *tiles,
                            const int *owners, size_t count, int rank,
                            struct ls_direct_update **direct, struct ls_error *error);
void ls_direct_update_free(struct ls_direct_update *direct);

/* Whether it updates a parameter whose rule is of that kind. */
bool ls_direct_update_has(const struct ls_direct_update *direct, int parameter,
                          enum ls_update_kind kind);

/* Applies the rules to all parameters that it has. `gradient` and `weight`, by parameter, are
 * raised to what was seen. */
int ls_direct_update_run(struct ls_direct_update *direct, float *const *weights,
                         const struct ls_update_rule *rules, _Atomic uint32_t *gradient,
                         _Atomic uint32_t *weight, struct ls_error *error);

#endif
