/* Accumulators: the exact sums of gradients, as a device keeps them.
 *
 * A contribution is rounded to whole units of 2^-exponent and added to sums of 64 bits that all
 * workers of the process share (device/exact.h). The elements of a parameter belong to rows, each
 * of which has an exponent. Kernels of ACCUMULATE ops add (ls_context.accumulator); a device may do
 * it in any way, for integers have no order of addition. What exponents are, and what the largest
 * contributions mean, is the host's concern (engine/sums.h).
 *
 * Contributions may be added by the streams of all workers at a time. The functions here are called
 * by one thread at a time, while nothing is added, unless they say otherwise; what they do is over
 * when they return.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DEVICE_ACCUMULATOR_H
#define LS_DEVICE_ACCUMULATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "device/update.h"

struct ls_accumulator;
struct ls_stream;

/* What is kept of one parameter: addresses in the device's memory. */
struct ls_accumulated {
    size_t rows;
    int32_t *exponent; /* by row: of contributions from the next `begin` on; the host writes it */
    uint32_t *largest; /* by row: bits of the largest contribution since `begin` */
    /* The first micro-batch since `begin` with a contribution that is not finite; INT32_MAX: none.
     */
    int32_t *first_not_finite;
};

/* A contribution of some rows of a matrix that lies plain: row i is row number[i] of it; all others
 * are zeros. Rows from the first number below 0 on are none. No row is there twice. */
struct ls_accumulated_rows {
    const float *rows;
    const int32_t *number;
    size_t count, columns;
};

/* Consecutive weights that are updated from the sums of their gradient. Arrays, the rule and what
 * was seen are in the device's memory. */
struct ls_sum_update {
    const struct ls_accumulator *sums;
    int parameter;
    size_t begin; /* the first weight's element in the parameter */
    const struct ls_update_rule *rule;
    struct ls_update_slice slice; /* its gradient is not read */
    const uint32_t *mask;         /* of the parameter; NULL: none */
    uint32_t *gradient, *weight;  /* raised to the magnitudes of struct ls_update_seen */
};

struct ls_device_accumulator {
    /* For `count` parameters of elements[i] numbers, each one row. All sums lie in one array, those
     * of parameter i from place[i] on (NULL: one behind the other). */
    int (*create)(const size_t *elements, const size_t *place, size_t count, int workers,
                  struct ls_accumulator **accumulator, struct ls_error *error);
    void (*free)(struct ls_accumulator *accumulator);
    /* Element i belongs to row row[i] - 1 of `rows` from now on (0: padding, to any; in the
     * device's memory). NULL: each element is a row. The parameter's sums are discarded. */
    int (*cut)(struct ls_accumulator *accumulator, int parameter, size_t rows, const float *row,
               struct ls_error *error);
    void (*part)(const struct ls_accumulator *accumulator, int parameter,
                 struct ls_accumulated *part);
    /* Begins an update: all sums are empty. With `measure` contributions change nothing but
     * `largest` and `first_not_finite`. */
    int (*begin)(struct ls_accumulator *accumulator, bool measure, struct ls_error *error);
    /* The array of all sums. Those without a contribution since `begin` are undefined until they
     * are cleared, which any thread may do once all contributions to the parameter are over. */
    int64_t *(*all)(const struct ls_accumulator *accumulator);
    int (*clear_rest)(struct ls_accumulator *accumulator, int parameter, struct ls_error *error);
    /* out[i] = sum of element begin + i, times 2^-exponent: rounded to double, scaled, rounded to
     * float; with the exponents that were there at `begin`. `out` is the device's memory. Any
     * threads may read. */
    int (*read)(const struct ls_accumulator *accumulator, int parameter, size_t begin, size_t count,
                float *out, struct ls_error *error);
    /* chunk[c] = sum of the squares of these fp32 numbers, over elements [begin + c *
     * LS_EXACT_CHUNK, ...), for all chunks that `count` elements make; in double, in a fixed order.
     * `chunk` is the host's memory. Any threads. */
    int (*squares)(const struct ls_accumulator *accumulator, int parameter, size_t begin,
                   size_t count, double *chunk, struct ls_error *error);
    /* (optional) The same in the order of the stream, with `chunk` in the device's memory, and of
     * numbers that are zeros where the parameter's mask (NULL: none) has bits. */
    int (*squares_there)(struct ls_stream *stream, const struct ls_accumulator *accumulator,
                         int parameter, size_t begin, size_t count, const uint32_t *mask,
                         double *chunk, struct ls_error *error);
};

#endif
