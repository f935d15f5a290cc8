/* What the two ways to normalise on the reference device share.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_OPS_REFERENCE_NORMS_H
#define LS_OPS_REFERENCE_NORMS_H

#include "ops/reference/reference.h"

enum { LS_REF_STATS = 4 }; /* numbers that are kept of a group of values of a sample */

/* Part p of the micro-batch, of *count. By saved averages all of it is one. */
struct ls_part ls_ref_part(const struct ls_call *call, const struct ls_value *x, int p, int *count);
/* Rows of a sample. */
int64_t ls_ref_rows(const struct ls_value *x);
/* Where number j of channel c of a part of x is. */
int64_t ls_ref_place(const struct ls_value *x, const struct ls_part *part, int64_t c, int64_t j);
/* Sets the row of partial results of part p to zeros and its count; returns it. */
double *ls_ref_start_row(const struct ls_call *call, const struct ls_value *x, int sync, int p,
                         const struct ls_part *part);

/* Numbers of a group of values of a sample, and which number of scale and bias is for element i. */
int64_t ls_ref_group_size(const struct ls_call *call);
int64_t ls_ref_factor(const struct ls_call *call, int64_t i);
/* Fills the numbers that are kept of a group of values from its mean and variance. */
void ls_ref_fill_stats(const struct ls_call *call, double mean, double variance,
                       float stats[LS_REF_STATS]);

#endif
