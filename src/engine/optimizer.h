/* The optimizer: the update of all weights, tile by tile. An update is elementwise, so any worker
 * can take any tile. LAMB takes two passes over its tiles, with the norms of parameters in between
 * (engine/lamb.h). Muon and Adafactor need whole parameters (engine/whole.h).
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_OPTIMIZER_H
#define LS_ENGINE_OPTIMIZER_H

#include "base/error.h"
#include "device/update.h"
#include "ir/graph.h"

struct ls_engine;
struct ls_optimizer;
struct ls_store_options;

struct ls_update_request {
    /* The rule for a parameter (rates and decays differ). */
    void (*rule)(void *user, const struct ls_parameter *parameter, struct ls_update_rule *rule);
    void *user;
};

/* For an engine with a store that is trained. */
int ls_optimizer_create(const struct ls_engine *engine, const struct ls_store_options *options,
                        struct ls_optimizer **optimizer, struct ls_error *error);
void ls_optimizer_free(struct ls_optimizer *optimizer);

/* All workers change the weights that this rank owns. */
int ls_optimizer_run(struct ls_engine *engine, const struct ls_update_request *request,
                     struct ls_error *error);
/* The largest gradients and weights that any rank has seen in it, of each parameter. */
int ls_optimizer_share_seen(struct ls_engine *engine, struct ls_error *error);
uint32_t ls_optimizer_gradient(const struct ls_optimizer *optimizer, int parameter);
uint32_t ls_optimizer_weight(const struct ls_optimizer *optimizer, int parameter);

#endif
