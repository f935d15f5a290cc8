/* What exact sums are made of; for transport/sums.c and transport/exponents.c.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TRANSPORT_SUMS_INNER_H
#define LS_TRANSPORT_SUMS_INNER_H

#include <stdatomic.h>

#include "base/thread.h"
#include "transport/sums.h"

/* How the elements of a parameter belong to rows. */
enum ls_sums_cut {
    LS_CUT_WHOLE,    /* all to row 0 */
    LS_CUT_ELEMENTS, /* each is a row */
    LS_CUT_RUNS      /* as runs say */
};

/* Elements [begin, begin + count) of a parameter, within a tile: of one row, or in lanes, where
 * element i belongs to row[(i - begin) % LS_EXACT_LANES]. */
struct ls_sums_run {
    size_t begin, count;
    const int32_t *rows; /* NULL: `row` */
    int32_t row;
};

struct ls_sums_tile {
    struct ls_spin_lock lock;
    uint32_t update;  /* the last update that stored here */
    size_t first_run; /* of LS_CUT_RUNS */
};

struct ls_sum {
    const struct ls_device_sums *device;
    int64_t *total; /* in the parameter's layout; a part of `all` */
    size_t elements;
    struct ls_sums_tile *tiles;
    size_t tile_count;
    enum ls_sums_cut cut;
    struct ls_sums_run *runs;
    size_t run_count;
    int32_t *lanes; /* what `rows` of runs points to */
    /* By row. */
    size_t rows;
    int32_t *numbers;         /* memory of these three */
    int32_t *exponent;        /* of contributions from now on */
    int32_t *total_exponent;  /* of the total that is there */
    int32_t *state;           /* see ls_sums_state */
    _Atomic uint32_t *raised; /* bits of the largest contribution of the update, by all workers */
    uint32_t largest;         /* of all rows, of the last update that was ended */
    int growth;               /* see ls_sums_growth */
    _Atomic int first_not_finite; /* micro-batch; INT_MAX: none */
};

struct ls_sums {
    struct ls_sum *items;
    int64_t *all;
    void (*contributed)(void *user, int parameter);
    void *user;
    size_t count;
    int workers;
    bool calibrate;
    uint32_t update; /* number of the running update, for tile.update */
};

/* Rows for a parameter, nothing of which is known. */
int ls_sum_set_rows(struct ls_sum *sum, size_t rows, struct ls_error *error);

#endif
