/* The host's side of exact sums; for engine/sums.c and engine/exponents.c.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ENGINE_SUMS_INNER_H
#define LS_ENGINE_SUMS_INNER_H

#include "engine/sums.h"

struct ls_sum {
    size_t elements;
    struct ls_accumulated there; /* with the device */
    /* By row. Where the device works in the host's memory the first two are what it has. */
    size_t rows;
    int32_t *exponent;  /* of contributions from now on */
    uint32_t *raised;   /* bits of the largest contribution of the update, by all workers */
    int32_t *state;     /* see ls_sums_state */
    int total_exponent; /* of the total that is there, of the row with the largest gradients */
    uint32_t largest;   /* of all rows, of the last update that was ended */
    int growth;         /* see ls_sums_growth */
    int32_t first_not_finite; /* micro-batch; INT32_MAX: none */
};

struct ls_sums {
    const struct ls_device *device;
    struct ls_accumulator *accumulator;
    struct ls_stream *stream; /* what copies exponents and the largest */
    struct ls_sum *items;
    size_t count;
    bool calibrate;
};

/* The least exponent of all rows of a parameter: that of the row with the largest gradients. */
int ls_sum_least_exponent(const struct ls_sum *sum);
/* A row of which nothing is known. */
void ls_sum_forget(struct ls_sum *sum);

#endif
