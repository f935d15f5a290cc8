/* The runs of a sweep. See include/lockstep/sweep.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SWEEP_SWEEP_H
#define LS_SWEEP_SWEEP_H

#include <stdbool.h>

#include "base/error.h"
#include "lockstep/sweep.h"

enum ls_axis_kind { LS_AXIS_LIST, LS_AXIS_LOG, LS_AXIS_LIN, LS_AXIS_INT };

/* A field and what it may be. */
struct ls_axis {
    char *field; /* what stands before '=', also the '?' of "field?=value" */
    char *name;  /* the field alone */
    enum ls_axis_kind kind;
    char **values; /* of a list */
    size_t count, room;
    double low, high; /* of a range */
};

struct lockstep_sweep {
    struct ls_axis *axes;
    size_t axis_count;
    size_t *varied; /* axes with several values or a range */
    size_t varied_count;
    char **sets; /* "field=value", axis by axis, run by run */
    size_t run_count;
};

/* Reads "field=values". `random`: ranges are allowed. */
int ls_axis_read(const char *set, bool random, struct ls_axis *axis, struct ls_error *error);
void ls_axis_free(struct ls_axis *axis);
/* Whether it has more than one value. */
bool ls_axis_varies(const struct ls_axis *axis);
/* The value number `draw` of run `run`, to be freed; NULL: no memory. */
char *ls_axis_draw(const struct ls_axis *axis, uint64_t seed, size_t run, size_t draw);

int ls_sweep_new(const struct lockstep_sweep_options *options, struct lockstep_sweep **sweep,
                 struct ls_error *error);
void ls_sweep_free(struct lockstep_sweep *sweep);

#endif
