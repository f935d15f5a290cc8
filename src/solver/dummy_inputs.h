/* What the caller says of the inputs of a net with dummy data: "data=10,3,224,224". See
 * solver/dummy_data.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SOLVER_DUMMY_INPUTS_H
#define LS_SOLVER_DUMMY_INPUTS_H

#include "base/error.h"
#include "ir/shape.h"
#include "lockstep/lockstep.h"

enum { LS_DUMMY_INPUTS_MAX = 64 };

/* One of them, read. */
struct ls_dummy_input {
    char name[128];
    struct ls_shape shape;
    bool used; /* by a net */
};

/* Reads them all into an array of LS_DUMMY_INPUTS_MAX. */
int ls_dummy_read_inputs(const struct lockstep_dummy_options *options,
                         struct ls_dummy_input *inputs, size_t *count, struct ls_error *error);
/* NULL: nothing is said of it. */
struct ls_dummy_input *ls_dummy_find_input(struct ls_dummy_input *inputs, size_t count,
                                           const char *name);
/* An input that no net has is a misspelt one. */
int ls_dummy_check_inputs(const struct ls_dummy_input *inputs, size_t count,
                          struct ls_error *error);

#endif
