/* Exact sums of gradients: integers, so that it cannot matter who adds what when.
 *
 * A contribution g (fp32, one micro-batch's gradient) is scaled by 2^exponent, rounded to an
 * integer and added to 64-bit sums that all workers of the process share. The exponent belongs to
 * the parameter: it is chosen so that the largest element of the previous update's contributions
 * and total becomes about 2^38. A contribution of 2^50 units or more could make the sum wrong (at
 * most 2^12 contributions an update), and one whose largest element is below 2^26 units would be
 * rounded more coarsely than fp32 addition would; both ask for the update to be repeated with
 * another exponent. Nothing of it has been committed by then, and what is asked is a function of
 * the largest contribution alone, so that any number of workers repeats the same updates.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TRANSPORT_SUMS_H
#define LS_TRANSPORT_SUMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum {
    LS_SUMS_TILE = 8192,              /* elements that one lock guards */
    LS_SUMS_CONTRIBUTIONS_MAX = 4096, /* an update, to one parameter */
    LS_SUMS_EXPONENT_UNSET = 187      /* nothing but zeros has been seen yet */
};

struct ls_sums;

/* Sums for `count` parameters of `elements[i]` numbers each; `workers` threads will contribute.
 * They lie in one array, that of parameter i from place[i] on (NULL: one behind the other). */
int ls_sums_create(const size_t *elements, const size_t *place, size_t count, int workers,
                   struct ls_sums **sums, struct ls_error *error);
void ls_sums_free(struct ls_sums *sums);
/* (optional) Who is told of each contribution to an update, by the worker that made it, when it has
 * been added. */
void ls_sums_tell(struct ls_sums *sums, void (*contributed)(void *user, int parameter), void *user);

/* Begins an update: all sums are empty. With `gauge` contributions are only measured. */
void ls_sums_begin(struct ls_sums *sums, bool gauge);

/* What a worker contributes through; `micro_batch` names the source in failures. */
struct ls_contributor {
    struct ls_sums *sums;
    int worker;
    int micro_batch;
};
/* Adds a contribution; `contributor` is a struct ls_contributor (see struct ls_context). */
void ls_sums_contribute(void *contributor, int parameter, const float *gradient, size_t elements);

/* For sums over several ranks. The array of all sums; where nobody contributed to a parameter in
 * this update there may be an earlier one's, until ls_sums_clear_rest. */
int64_t *ls_sums_all(const struct ls_sums *sums);
void ls_sums_clear_rest(struct ls_sums *sums, int parameter);
/* What else other ranks must know of the contributions here, and here of theirs, before
 * ls_sums_end: a note for each parameter. */
struct ls_sums_note {
    uint32_t largest;         /* bits */
    int32_t first_not_finite; /* micro-batch; INT_MAX: none */
};
void ls_sums_note(const struct ls_sums *sums, struct ls_sums_note *notes);
void ls_sums_hear(struct ls_sums *sums, const struct ls_sums_note *notes);

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
/* The sums of a parameter, in its layout; valid from ls_sums_end of an update that contributed to
 * it until the next ls_sums_begin. */
const int64_t *ls_sums_total(const struct ls_sums *sums, int parameter);
/* What a unit of the total is worth: 2^-exponent. */
int ls_sums_total_exponent(const struct ls_sums *sums, int parameter);
/* The exponent of contributions from now on: state, saved in snapshots. */
int ls_sums_exponent(const struct ls_sums *sums, int parameter);
void ls_sums_set_exponent(struct ls_sums *sums, int parameter, int exponent);
/* Chooses the exponent of the next update; `largest` holds the bits of the largest element of the
 * total as fp32. */
void ls_sums_next(struct ls_sums *sums, int parameter, uint32_t largest);

#endif
