/* The distribution of the weights and of the gradient of a parameter, at the last display (a
 * histogram) and over time (quantiles), from "statistics" events; in bounded memory.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_REPORT_SPREAD_H
#define LS_REPORT_SPREAD_H

#include <stddef.h>
#include <stdint.h>

#include "base/json_tree.h"

enum {
    LS_SPREAD_BINS = 64,     /* of a histogram; one with more is left out */
    LS_SPREAD_TIMES = 48,    /* of displays; of more every second, fourth, ... is kept */
    LS_SPREAD_PARTS = 7,     /* quantiles of a histogram: see ls_spread_part */
    LS_SPREADS_OF_A_LOG = 96 /* parameters */
};

/* Which part of all numbers is below each of the quantiles: 0, 0.05, 0.25, 0.5, 0.75, 0.95, 1. */
extern const double ls_spread_part[LS_SPREAD_PARTS];

struct ls_spread_moment {
    int64_t iteration;
    double at[LS_SPREAD_PARTS];
};

struct ls_spread {
    double edge[LS_SPREAD_BINS + 1], count[LS_SPREAD_BINS]; /* the last histogram */
    int bins;
    struct ls_spread_moment moment[LS_SPREAD_TIMES];
    int moments;
    int64_t seen, every; /* histograms so far; how many there are for each moment */
};

struct ls_log_spread {
    char *name;
    struct ls_spread weights, gradient;
};

/* Takes a histogram {"edges": [...], "counts": [...]} of the update `iteration`. What is none
 * changes nothing; moments of this update and later ones, which a training that was resumed
 * computes again, are dropped. */
void ls_spread_take(struct ls_spread *spread, const struct ls_json_tree *tree,
                    const struct ls_json_node *histogram, int64_t iteration);

#endif
