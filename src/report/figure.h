/* What a series of figures is: its key, which a chart has the same of for training and tests, whose
 * it is, and what people call it.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_REPORT_FIGURE_H
#define LS_REPORT_FIGURE_H

#include "report/log.h"

enum { LS_FIGURE_NAME = 160 };

/* Series with the same key share a chart: "accuracy" of "test/accuracy"; "" of the loss of a whole
 * net, in training or in a test. */
const char *ls_figure_key(const struct ls_series *series);
/* "Learning rate", "Samples per second"; an output keeps the name that its net gives it. */
const char *ls_figure_title(const char *key);
/* "training", "test", "test net 1", "training data". */
const char *ls_figure_part(const struct ls_series *series, char buffer[LS_FIGURE_NAME]);
/* Whether the series is of a training, not of a test. */
bool ls_figure_trains(const struct ls_series *series);
/* 1: the larger the better, -1: the smaller, 0: neither, or not known. */
int ls_figure_direction(const struct ls_series *series);
/* Charts and figures stand in this order: losses, means over classes (mAP, mean IoU), other outputs
 * of tests, those of single classes, and the rest. */
int ls_figure_rank(const struct ls_series *series);

/* The best figure of a series, and the update that it is of. False: there is no best. */
bool ls_figure_best(const struct ls_series *series, double *value, int64_t *iteration);

#endif
