/* The exponents of exact sums: whether they suited what was contributed, and what they become. The
 * rules are in engine/sums.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_EXPONENTS_H
#define LS_ENGINE_EXPONENTS_H

#include "engine/sums.h"

enum ls_sums_result {
    LS_SUMS_GOOD,
    LS_SUMS_REPEAT,    /* exponents were changed: repeat the update */
    LS_SUMS_NOT_FINITE /* a contribution had an infinity or a NaN */
};
/* Ends an update after all workers are done. `parameter` gets the first parameter concerned where
 * the result is not GOOD, and `micro_batch` the first micro-batch where it is NOT_FINITE. */
enum ls_sums_result ls_sums_end(struct ls_sums *sums, int *parameter, int *micro_batch);
/* Whether any exponent is known, or nothing is summed; else contributions must be measured. */
bool ls_sums_measured(const struct ls_sums *sums);
/* Of the row with the largest gradients: the exponent of contributions from now on, and of the
 * total. */
int ls_sums_exponent(const struct ls_sums *sums, int parameter);
int ls_sums_total_exponent(const struct ls_sums *sums, int parameter);
/* All rows get it. */
void ls_sums_set_exponent(struct ls_sums *sums, int parameter, int exponent);
/* State, saved in snapshots: by row (of an element, in the parameter's layout) twice the exponent
 * in steps of 1 / LS_SUMS_STEPS, and 1 if the row has been large; or LS_SUMS_STATE_UNSET. */
const int32_t *ls_sums_state(const struct ls_sums *sums, int parameter);
/* The state of a row with this exponent. */
int32_t ls_sums_state_of(int exponent);
void ls_sums_set_state(struct ls_sums *sums, int parameter, const int32_t *state);
/* Chooses the exponents of the next update; `largest` holds the bits of the largest element of the
 * total as fp32. */
void ls_sums_next(struct ls_sums *sums, int parameter, uint32_t largest);
/* By how many powers of two the largest contribution of the last update exceeded what its parameter
 * has had lately, for the parameter where that is most; 0: nowhere. Until ls_sums_next. */
int ls_sums_growth(const struct ls_sums *sums, int *parameter);

#endif
