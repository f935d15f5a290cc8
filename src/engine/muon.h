/* The update by Muon (device/update.h): it needs the whole matrix of a step, axes behind the first
 * counting as one. One rank owns a matrix; where the gradient comes from factors every rank has it.
 *
 * All workers share the work on one parameter, and parameters come one after the other:
 *
 *     1. tile by tile, h moves and u is written; u goes into Caffe's order
 *     2. x = u s, s = 1 / (|u| + delta) (0 where that is 1 / 0), transposed if u has more rows than
 *        columns; the norm is in double, as ls_device_sums.squares adds, s is rounded once
 *     3. some times (Newton and Schulz): a = x x^T, c = a a^T, b = -4.775 a + 2.0315 c,
 *        x = 3.4445 x + b x; products as docs/numerics.md defines them in section 17
 *     4. d = x scale, transposed back; scale: sqrt(max(1, rows / columns)), or
 *        0.2 sqrt(max(rows, columns)), in double, rounded once
 *     5. tile by tile, w moves by d
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_MUON_H
#define LS_ENGINE_MUON_H

#include <stdatomic.h>

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

/* Updates those parameters of this rule that are this rank's. seen[i] is raised to the largest
 * gradient of parameter i, seen[parameters + 1 + i] to its largest weight. */
int ls_muon_run(struct ls_engine *engine, struct ls_muon *muon, float *const *weights,
                const struct ls_update_rule *rules, _Atomic uint32_t *seen, struct ls_error *error);

#endif
