/* The numeric environment of a training: what decides its bits besides definition, data and seed.
 *
 * A text of lines "key=value", made when the nets are planned. It has what matters for these nets
 * and nothing else (docs/numerics.md, section 11):
 *
 *     numerics   LOCKSTEP_NUMERICS
 *     isa, onednn, cache   where a step of the train net is computed by oneDNN
 *     net        a hash of what the train net's convolutions and inner products give
 *     own        the same of Lockstep's own kernels
 *     functions  the same of fillers and learning rates (SLEEF)
 *     decoders   the same of decoded pictures, where training data are pictures
 *     plugin T   the hash of the file that brings layer type T, where the train net has such layers
 *
 * Its history is a line for each environment that a training has had, with the iteration that it
 * began at: "0 numerics=1, isa=avx2, ...". A training that was never moved has one.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SOLVER_ENVIRONMENT_H
#define LS_SOLVER_ENVIRONMENT_H

#include "base/text.h"
#include "snapshot/archive.h"
#include "solver/trainer.h"

/* Makes the environment of a trainer whose nets are planned, and a history of this one alone.
 * Nothing that depends on workers, memory or ranks is in it. */
int ls_environment_make(struct ls_trainer *trainer, struct ls_error *error);

/* Appends a line to a history: an environment from `iteration` on. */
int ls_environment_add(struct ls_text *history, int64_t iteration, const char *environment,
                       struct ls_error *error);

/* What ranks compare: the environment, the instruction set, which decides how parameters lie, and
 * what the test nets' kernels give. */
int ls_environment_for_ranks(const struct ls_trainer *trainer, struct ls_text *text,
                             struct ls_error *error);

/* Whether oneDNN computes a step of the net, and the first `most` layers of such steps, in order,
 * by name; returns how many there are in all. */
size_t ls_environment_layers(const struct ls_net *net, const char **names, size_t most);

#endif
