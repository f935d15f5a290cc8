/* Where the time of a training goes: what stands behind struct lockstep_timing.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SOLVER_TIMING_H
#define LS_SOLVER_TIMING_H

#include "solver/trainer.h"

/* Seconds within a layer's that do not grow with the micro-batches (solver/scaling.h); as in struct
 * lockstep_time_part. */
struct ls_timing_share {
    double gathered[2]; /* forward and backward: steps that all workers share for a batch */
    double product;     /* the gradient from factors, a part of backward weights */
    double views;       /* copies of weights in other layouts, a part of reduction */
};

struct lockstep_timing {
    struct lockstep_time_total total;
    struct lockstep_time_layer *layers;
    struct ls_timing_share *shares; /* by layer */
    size_t layer_count;
    char *names; /* of all layers, one behind the other */
};

/* See lockstep_time. Free what is in `timing` with ls_timing_clear, also after a failure. */
int ls_timing(const struct ls_solver_definition *definition,
              const struct lockstep_time_options *options, struct lockstep_timing *timing,
              struct ls_error *error);
void ls_timing_clear(struct lockstep_timing *timing);

#endif
