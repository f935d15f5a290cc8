/* What is to be predicted for: pictures, and samples of arrays.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_API_INPUTS_H
#define LS_API_INPUTS_H

#include <stdbool.h>
#include <stdint.h>

#include "api/api.h"
#include "ir/shape.h"

struct ls_input_array;

struct ls_one_input {
    const char *path, *name; /* name: as the caller or the list has it */
    bool has_label;
    int32_t label;
    const struct ls_input_array *array; /* NULL: a picture */
    int64_t index;                      /* of the sample in the array */
};
/* Input `ordinal`, below lockstep_inputs_count. */
struct ls_one_input ls_inputs_at(const struct lockstep_inputs *inputs, int64_t ordinal);
/* Whether any input is a picture. */
bool ls_inputs_have_pictures(const struct lockstep_inputs *inputs);

/* The extents that an array's samples have. */
const struct ls_shape *ls_input_array_shape(const struct ls_input_array *array);
/* A sample of an array, as fp32; any thread may call. */
int ls_input_array_read(const struct ls_input_array *array, int64_t index, float *sample,
                        struct ls_error *error);
/* The arrays, one after the other; NULL behind the last. */
const struct ls_input_array *ls_inputs_array(const struct lockstep_inputs *inputs, size_t index);
const char *ls_input_array_path(const struct ls_input_array *array);

#endif
