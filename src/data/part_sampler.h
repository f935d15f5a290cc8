/* Parts of a picture, drawn until some satisfy a constraint: batch_sampler of SSD's fork.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_PART_SAMPLER_H
#define LS_DATA_PART_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "data/augment.h"

/* The samplers of a layer, which ls_part_sampler_check has accepted. NULL: there is no memory. */
struct ls_part_sampler *ls_part_sampler_open(const Lockstep__AnnotatedDataParameter *param);
void ls_part_sampler_free(struct ls_part_sampler *sampler);
/* What is wrong with the numbers of a sampler: the message and the field of it, and why, or NULL.
 */
const char *ls_part_sampler_check(const Lockstep__BatchSampler *sampler,
                                  const ProtobufCMessage **at, const char **why);

/* Draws from element `first` on, four for each trial and one to choose. Each sampler tries to find
 * parts; one of all that are found becomes *part. False: none is. */
bool ls_part_sampler_draw(const struct ls_part_sampler *sampler, uint64_t key, uint64_t ordinal,
                          uint64_t first, const float *boxes, int64_t count,
                          struct ls_rectangle *part);

enum { LS_PART_SAMPLERS = 64, LS_PART_TRIALS = 10000 /* that one can have */ };

#endif
