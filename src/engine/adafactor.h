/* The step of Adafactor (device/update.h), which needs all of a parameter: its second moments are
 * means over rows and over columns of matrices, which the last two axes are (of a convolution: its
 * windows), one for each index of the axes before; a vector has one for each element, which the
 * first pass keeps. All in Caffe's order; doubles are rounded to fp32 where they are stored:
 *
 *     rows[i] = (1 - fresh) rows[i] + fresh (sum over j of g[i, j]^2 / columns + square_min)
 *     columns[j] = the same with the sum over i, / rows
 *     m = the mean of rows of its matrix
 *     u[i, j] = (g[i, j] a[i]) b[j], a[i] = sqrt(m / rows[i]), b[j] = 1 / sqrt(columns[j]), both in
 *               double, rounded once; 0 where rows[i] or columns[j] is 0
 *     trust = min(r, rate_most) max(scale_min, |w|) / max(1, |u| / clip), |x| the root mean square;
 *             without scale_parameter there is no second factor
 *
 * The sum over a row, |w| and |u| are ls_device_sums.squares; that over a column goes row by row,
 * and that of m, too.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_ADAFACTOR_H
#define LS_ENGINE_ADAFACTOR_H

#include "base/error.h"
#include "device/update.h"
#include "engine/store.h"

struct ls_engine;
struct ls_adafactor;

/* For an engine with a store that is trained. NULL where no parameter has this rule. */
int ls_adafactor_create(const struct ls_engine *engine, const struct ls_store_options *options,
                        struct ls_adafactor **adafactor, struct ls_error *error);
void ls_adafactor_free(struct ls_adafactor *adafactor);
/* What that allocates. */
size_t ls_adafactor_bytes(const struct ls_parameter_set *set,
                          const struct ls_store_options *options);

/* Finds |w| of the weights that are about to be updated. */
void ls_adafactor_look(const struct ls_engine *engine, struct ls_adafactor *adafactor,
                       const struct ls_parameter *parameter, const float *weights);
/* From the gradients (of a vector: from u) to u, in place, and rule->trust. */
void ls_adafactor_scale(const struct ls_engine *engine, struct ls_adafactor *adafactor,
                        const struct ls_parameter_state *slot, float *numbers,
                        struct ls_update_rule *rule);

#endif
