/* Figures of a training in bounded memory: when there is no more room, two neighbouring points
 * become one, so that each stands for twice as many figures as before.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_REPORT_SERIES_H
#define LS_REPORT_SERIES_H

#include <stdbool.h>

#include "lockstep/log.h"

enum { LS_SERIES_POINTS = 16384 };

struct ls_series {
    char *name;
    struct lockstep_point *points;
    size_t count, capacity;
    int64_t width;          /* figures that a point stands for, once it is full */
    int64_t last_iteration; /* of the figure that was added last, */
    double last;            /* and that figure */
    double loss_weight;     /* of an output; 0: it is no part of a loss */
    bool total;             /* it is the loss of a whole net */
    int better;             /* of an output: as lockstep_output.better */
};

/* Adds a figure of the update `iteration`; those of this one and of later updates, which a training
 * that was resumed computes again, are dropped. `bits` is what the hash is of. False: no memory. */
bool ls_series_add(struct ls_series *series, int64_t iteration, double value, uint64_t bits);
void ls_series_free(struct ls_series *series);

#endif
