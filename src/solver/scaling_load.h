/* What an update of a planned training computes and exchanges, layer by layer: what the model of
 * solver/scaling.h begins with.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SOLVER_SCALING_LOAD_H
#define LS_SOLVER_SCALING_LOAD_H

#include "engine/factors.h"
#include "engine/forecast.h"
#include "lockstep/lockstep.h"
#include "solver/trainer.h"

/* Seconds of a layer, and what is exchanged because of it. */
struct ls_scaling_layer {
    double forward, backward; /* of a micro-batch, on one worker */
    double gathered[2];       /* of a batch, on all workers of a rank: forward, backward */
    double update;            /* of all its weights that are reduced as sums */
    double full;              /* what every rank does: the update from factors */
    double views;             /* the same, before the next forward pass: weights in other layouts */
    double factors[LS_FACTOR_SIDES]; /* bytes of the rows of all micro-batches */
    int syncs[2];                    /* sync points: forward, backward */
    double rows[2];                  /* bytes that a micro-batch leaves at all of these */
};

struct ls_scaling_load {
    int workers;
    int64_t units; /* micro-batches of a batch */
    int batches;   /* of an update */
    int waves;     /* 0: micro-batches do not wait for each other; else in how many groups of all
                      that an update has they go through the net together */
    struct ls_scaling_layer *layers; /* in the order of the net */
    size_t layer_count;
    size_t parameters;
    size_t *elements; /* by parameter: that are reduced as sums; 0: it does not */
    bool *whole;      /* by parameter: one rank owns all of it */
    size_t *layer;    /* by parameter: its layer */
    double record;    /* bytes of the figures of a micro-batch */
    double books;     /* bytes of what a rank says at the end of an update */
    int exchanges;    /* of an update, besides sync points */
    double rest;      /* seconds: what every rank does alike */
    /* Memory with all micro-batches in one rank; of its history and averages, what belongs to
     * parameters that are reduced as sums. */
    struct ls_forecast forecast;
    size_t shared_state;
};

/* The loads of a planned training, without seconds. Clear it with ls_scaling_clear, also
 * after a failure. */
int ls_scaling_load(struct ls_trainer *trainer, struct ls_scaling_load *load,
                    struct ls_error *error);
void ls_scaling_clear(struct ls_scaling_load *load);
struct lockstep_timing;
/* Seconds from a timing of the same training, maybe with fewer workers. */
void ls_scaling_measured(struct ls_scaling_load *load, const struct lockstep_timing *timing);
/* Seconds by what the work of its steps is estimated to be, so that one worker alone does an update
 * in `seconds`. */
void ls_scaling_estimated(struct ls_scaling_load *load, const struct ls_trainer *trainer,
                          double seconds);

#endif
