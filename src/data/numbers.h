/* Numbers of any type as fp32 or int32, exactly: what cannot be represented is found, not rounded.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_NUMBERS_H
#define LS_DATA_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>

#include "ir/dtype.h"

/* Converts `count` numbers, which are aligned for their type. Returns `count`, or the index of the
 * first one that cannot be represented: one that fp32 or int32 does not have, and for fp32 also an
 * integer beyond 2^24, where not every integer has a number of its own, and NaN, which no loss
 * survives. `finite`: infinities are none, either. What is behind that is not to be read. `out`
 * NULL: nothing is written. */
int64_t ls_numbers_to_f32(enum ls_dtype type, const void *numbers, int64_t count, bool finite,
                          float *out);
int64_t ls_numbers_to_i32(enum ls_dtype type, const void *numbers, int64_t count, int32_t *out);

/* What is wrong with a number that fp32 (or int32, `integer`) does not take, for a message: "which
 * fp32 does not have". */
const char *ls_number_fault(enum ls_dtype type, const void *numbers, int64_t index, bool integer);

/* What to do about it; NULL: nothing can be said. */
const char *ls_number_hint(enum ls_dtype type, const void *numbers, int64_t index, bool integer);

/* Number `index` as text. */
enum { LS_NUMBER_TEXT = 32 };
const char *ls_number_text(enum ls_dtype type, const void *numbers, int64_t index,
                           char text[LS_NUMBER_TEXT]);

#endif
