/* Updates that need all of a parameter's step: Muon's and Adafactor's (device/update.h). One rank
 * owns such a parameter; where the gradient comes from factors every rank has it. All workers share
 * the work on one parameter, and parameters come one after the other:
 *
 *     1. tile by tile, the rule's first pass writes u, which goes into Caffe's order
 *     2. engine/muon.h or engine/adafactor.h make the step of it
 *     3. tile by tile, the rule's second pass moves the weights by it
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_WHOLE_H
#define LS_ENGINE_WHOLE_H

#include <stdatomic.h>

#include "base/error.h"
#include "device/update.h"
#include "engine/store.h"

struct ls_engine;
struct ls_whole;

/* For an engine with a store that is trained. NULL where no parameter has such a rule. */
int ls_whole_create(const struct ls_engine *engine, const struct ls_store_options *options,
                    struct ls_whole **whole, struct ls_error *error);
void ls_whole_free(struct ls_whole *whole);
/* What that allocates: for all workers together, and for each. */
size_t ls_whole_bytes(const struct ls_device *device, const struct ls_parameter_set *set,
                      const struct ls_store_options *options, size_t *of_worker);

/* Whether a rule is updated here. */
static inline bool ls_whole_has(enum ls_update_kind kind)
{
    return kind == LS_UPDATE_MUON || kind == LS_UPDATE_ADAFACTOR;
}

/* Updates those parameters of these rules that are this rank's. seen[i] is raised to the largest
 * gradient of parameter i, seen[parameters + 1 + i] to its largest weight. */
int ls_whole_run(struct ls_engine *engine, struct ls_whole *whole, float *const *weights,
                 const struct ls_update_rule *rules, _Atomic uint32_t *seen,
                 struct ls_error *error);

/* For engine/muon.h and engine/adafactor.h: all workers run a task, whose time is that of the
 * parameter's update. */
void ls_whole_share(const struct ls_engine *engine, int parameter,
                    void (*run)(void *argument, int worker), void *argument);

/* For them, too: the sum of squares of numbers in the host's memory, with the same bits on every
 * device. */
double ls_whole_squares(const struct ls_engine *engine, const float *numbers, int64_t n);

#endif
