/* Exact sums of gradients: integers, so that the order of additions does not matter.
 *
 * A contribution g (fp32, one micro-batch's gradient) is scaled by 2^exponent, rounded to an
 * integer and added to 64-bit sums that all workers of the process share: the device's accumulator
 * (device/accumulator.h). Each row of a parameter has an exponent of its own (a row may be a single
 * element: engine/rows.h says what is one). This is the host's side: it chooses the exponents, and
 * says whether they suited what was contributed.
 *
 *     overflow    Contributions stay below 2^50 units and an update has at most 2^12 of them, so
 *                 that no sum reaches 2^62. One of 2^50 units or more asks for the update to be
 *                 repeated with an exponent that fits; nothing of it has been committed by then.
 *
 *     following   An exponent follows the largest contribution to its row over the last updates:
 *                 downwards at once, when contributions have grown; upwards, when they have shrunk,
 *                 by a sixteenth an update, until the largest is 2^40 units, and by 1 an update as
 *                 long as it has fewer than the 24 digits of fp32. No update is repeated for that:
 *                 a unit is 2^-40 of the largest step that the row has made lately, 2^-16 of what
 *                 rounding the weights made of it. So the exponent of gradients that alternate
 *                 settles at the larger ones.
 *
 *     rows        The exponent of a row is at most 4 above that of the row with the largest
 *                 gradients, which leaves 24 digits down to 2^-20 of them: so a row whose gradients
 *                 are mostly small, and now and then as large as others, always fits. Only a row
 *                 that has never come near 2^-20 of the largest row has more.
 *
 *     first       A row that has had zeros only takes the highest exponent that others may have.
 *                 What then comes as less than 2^10 units asks for a repeat, once for each row.
 *
 * Exponents and repeats are functions of the largest contributions to each row, so that any number
 * of workers repeats the same updates. Only their powers of two count, and ranks exchange nothing
 * else.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_SUMS_H
#define LS_ENGINE_SUMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "device/device.h"

enum {
    LS_SUMS_TILE = 8192,              /* elements that a worker handles at a time */
    LS_SUMS_CONTRIBUTIONS_MAX = 4096, /* an update, to one parameter */
    LS_SUMS_EXPONENT_UNSET = 187,     /* nothing but zeros has been seen yet */
    LS_SUMS_STEPS = 16,               /* in which exponents move */
    LS_SUMS_STATE_UNSET = 1 << 20     /* of a row that has had zeros only */
};

struct ls_sums;

/* Sums for `count` parameters of `elements[i]` numbers each; `workers` streams will contribute.
 * They lie in one array, that of parameter i from place[i] on (NULL: one behind the other). */
int ls_sums_create(const struct ls_device *device, const size_t *elements, const size_t *place,
                   size_t count, int workers, struct ls_sums **sums, struct ls_error *error);
void ls_sums_free(struct ls_sums *sums);
/* Until one of these is called all elements of a parameter are one row. Each is a row: */
int ls_sums_cut_elements(struct ls_sums *sums, int parameter, struct ls_error *error);
/* Element i of the parameter's layout belongs to row row[i] - 1 of `rows` (0: padding); `row` lies
 * in the device's memory. */
int ls_sums_cut_rows(struct ls_sums *sums, int parameter, size_t rows, const float *row,
                     struct ls_error *error);
/* Rows of a parameter. */
size_t ls_sums_rows(const struct ls_sums *sums, int parameter);

/* Begins an update: all sums are empty. With `calibrate` contributions are only measured. */
int ls_sums_begin(struct ls_sums *sums, bool calibrate, struct ls_error *error);
/* Where ACCUMULATE ops add (ls_context.accumulator). */
struct ls_accumulator *ls_sums_accumulator(const struct ls_sums *sums);
/* Learns what was contributed, after all workers are done and before ls_sums_end. */
int ls_sums_collect(struct ls_sums *sums, struct ls_error *error);

/* For sums over several ranks. The array of all sums, in the device's memory; where a parameter got
 * no contribution in this update, an earlier update's sums may stand there until
 * ls_sums_clear_rest. */
int64_t *ls_sums_all(const struct ls_sums *sums);
int ls_sums_clear_rest(struct ls_sums *sums, int parameter, struct ls_error *error);
/* Notes that all ranks exchange about their contributions before ls_sums_end: for each parameter
 * the first micro-batch that is not finite (int32_t), then for each row of all the power of two of
 * the largest (a byte). */
size_t ls_sums_note_bytes(size_t parameters, size_t rows);
size_t ls_sums_all_rows(const struct ls_sums *sums);
void ls_sums_note(const struct ls_sums *sums, void *notes);
void ls_sums_hear(struct ls_sums *sums, const void *notes);

/* Elements [begin, begin + count) of the total as fp32, in the device's memory: int64 to double,
 * times 2^-exponent, to float. Valid from ls_sums_end of an update that contributed to the
 * parameter until the next ls_sums_begin. */
int ls_sums_read(const struct ls_sums *sums, int parameter, size_t begin, size_t count, float *out,
                 struct ls_error *error);
/* chunk[c] = sum of the squares of these fp32 numbers, for elements [begin + c * LS_EXACT_CHUNK,
 * ...), for all chunks that `count` elements make; in double, in a fixed order. */
int ls_sums_squares(const struct ls_sums *sums, int parameter, size_t begin, size_t count,
                    double *chunk, struct ls_error *error);

#endif
