/* Masks of a training: files of them, and what is compared of them.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SOLVER_MASKS_H
#define LS_SOLVER_MASKS_H

#include "ir/graph.h"
#include "snapshot/archive.h"

/* Reads the masks of parameters whose definitions name a file, and those of the solver's file `all`
 * (NULL: none). Masks that are there already stay. */
int ls_masks_read(const struct ls_parameter_set *set, const char *all, struct ls_error *error);

/* How many weights are masked. */
int64_t ls_masks_count(const struct ls_parameter_set *set);

/* "1200 weights, 0123456789abcdef", the same for the same masks; "none". */
enum { LS_MASKS_TEXT = 64 };
void ls_masks_describe(const struct ls_parameter_set *set, char text[LS_MASKS_TEXT]);
/* That a snapshot was made with these masks. */
int ls_masks_compare(const struct ls_parameter_set *set, const struct ls_archive *snapshot,
                     struct ls_error *error);

#endif
