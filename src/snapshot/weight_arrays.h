/* Arrays of fp32 on their way from one naming to another: transposed, joined, cut.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SNAPSHOT_WEIGHT_ARRAYS_H
#define LS_SNAPSHOT_WEIGHT_ARRAYS_H

#include "snapshot/weight_rename.h"

struct ls_array {
    const char *name; /* of the tensor that it came from, for messages */
    struct ls_shape shape;
    const float *data; /* not owned */
};

/* Each function takes memory for what it makes from `room`, which owns it; `path` is for messages.
 * What does not fit is LOCKSTEP_WEIGHTS. */

/* A tensor's numbers: where they lie, or converted. */
int ls_array_load(struct ls_renamed *room, const struct ls_tensor *tensor, const char *path,
                  struct ls_array *array, struct ls_error *error);
/* Takes leading axes away, which must have extent 1, or puts them there. */
int ls_array_strip(struct ls_array *array, uint32_t axes, const char *path, struct ls_error *error);
int ls_array_lead(struct ls_array *array, uint32_t axes, const char *path, struct ls_error *error);
/* Of two axes. */
int ls_array_transpose(struct ls_renamed *room, struct ls_array *array, const char *path,
                       struct ls_error *error);
/* One behind the other along an axis; a single one is handed on. */
int ls_array_join(struct ls_renamed *room, const struct ls_array *parts, size_t count, int axis,
                  const char *path, struct ls_array *whole, struct ls_error *error);
/* Into `count` equal parts. */
int ls_array_cut(struct ls_renamed *room, const struct ls_array *whole, size_t count, int axis,
                 const char *path, struct ls_array *parts, struct ls_error *error);
/* All numbers by one; zeros where that is 0. */
int ls_array_divide(struct ls_renamed *room, struct ls_array *array, float by, const char *path,
                    struct ls_error *error);

#endif
