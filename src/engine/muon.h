/* The step of Muon (device/update.h), of the whole u of a parameter in Caffe's order; axes behind
 * the first count as one. All workers share the work:
 *
 *     1. x = u s, s = 1 / (|u| + delta) (0 where that is 1 / 0), transposed if u has more rows than
 *        columns; the norm is in double, as ls_device_sums.squares adds, s is rounded once
 *     2. some times (Newton and Schulz): a = x x^T, c = a a^T, b = -4.775 a + 2.0315 c,
 *        x = 3.4445 x + b x; products as docs/numerics.md defines them in section 17
 *     3. d = x scale, transposed back; scale: sqrt(max(1, rows / columns)), or
 *        0.2 sqrt(max(rows, columns)), in double, rounded once
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_MUON_H
#define LS_ENGINE_MUON_H

#include "base/error.h"
#include "device/update.h"
#include "engine/store.h"

struct ls_engine;
struct ls_muon;

/* For an engine with a store that is trained. NULL where no parameter has this rule. */
int ls_muon_create(const struct ls_engine *engine, const struct ls_store_options *options,
                   struct ls_muon **muon, struct ls_error *error);
void ls_muon_free(struct ls_muon *muon);
/* What that allocates: for all workers together, and for each. */
size_t ls_muon_bytes(const struct ls_device *device, const struct ls_parameter_set *set,
                     const struct ls_store_options *options, size_t *of_worker);

/* From u to d, in place. */
void ls_muon_orthogonalize(const struct ls_engine *engine, struct ls_muon *muon,
                           const struct ls_update_rule *rule, const struct ls_parameter *parameter,
                           float *numbers);

#endif
