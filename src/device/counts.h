/* Figures that are counts, the same on every device: ACCURACY and MEAN_IOU. They are added to the
 * record of a micro-batch, and divided at the end.
 *
 * Accuracy: how often the true class is among the top_k scores, over all and by class, and the
 * confusion matrix.
 *
 * As in Caffe, a position is a hit if at most top_k scores (the true class's own included) are at
 * least the true class's score, so that a tie counts against it. A NaN counts as at least
 * any score: a network that has diverged has no hits (in Caffe, all positions are hits).
 * A label that names no class makes the accuracy NaN.
 *
 * Mean intersection over union: for each class, how many positions are of it and taken for it (the
 * intersection), how many are taken for it, and how many are of it. Whole numbers in doubles, so
 * that they add up exactly over any test set; what is divided is divided at the end.
 *
 * A position is taken for the class with the highest score, the first of several. Where a score is
 * NaN it is taken for no class. A label that names no class makes the figure NaN.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DEVICE_COUNTS_H
#define LS_DEVICE_COUNTS_H

#include "ir/op.h"

/* in: scores, labels; plain, and in the host's memory. */
void ls_count_hits(const struct ls_op *op, void *const *in, double *partials);
void ls_count_intersections(const struct ls_op *op, void *const *in, double *partials);

#endif
