/* Tensors of one naming as those of another, by a map.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SNAPSHOT_WEIGHT_RENAME_H
#define LS_SNAPSHOT_WEIGHT_RENAME_H

#include "snapshot/archive.h"
#include "snapshot/weight_map.h"

/* All zeros is empty. */
struct ls_renamed {
    struct ls_archive archive; /* the tensors, F32 but for counters: their data lie in those that
                                  they were made from, or in `owned` */
    void **owned;
    size_t owned_count, owned_capacity;
    char **left_out; /* names that no rule fits */
    size_t left_out_count, left_out_capacity;
};

/* Renames `count` tensors, whose data must live as long as the result: those of the family become
 * ours, or with `back` ours those of the family. `path` is for messages. What is missing or does
 * not fit is reported in one go. *renamed is filled from empty; free it also after a failure. */
int ls_weights_rename(const struct ls_weight_map *map, bool back, const struct ls_tensor *tensors,
                      size_t count, const char *path, struct ls_renamed *renamed,
                      struct ls_error *error);
void ls_renamed_free(struct ls_renamed *renamed); /* leaves it empty */

/* Whether tensors are ours rather than the family's: more of their names fit `to` than `from`. */
bool ls_weights_are_ours(const struct ls_weight_map *map, const struct ls_tensor *tensors,
                         size_t count);

#endif
