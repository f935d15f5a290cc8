/* Arrays in memory, which stand in for .npy files that Data layers name.
 *
 * They belong to definitions, so that two solvers of one process may call different numbers the
 * same. What reads a definition's data layers finds them here.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_ARRAYS_H
#define LS_DATA_ARRAYS_H

#include "data/npy_header.h"

struct ls_definition;

struct ls_memory_array {
    char *name;
    struct ls_npy_header header; /* header.size is 0: nothing stands before the numbers */
    const void *data;            /* the caller's; or NULL, and */
    /* brings record `index` to `record`; any thread, several at once. Not 0: it failed. */
    int (*read)(void *user, int64_t index, void *record);
    void *user;
};

/* Arrays of some definitions; takes the list and what it owns, also when it fails. A definition has
 * one list. */
int ls_arrays_add(const struct ls_definition *const *definitions, size_t definition_count,
                  struct ls_memory_array *arrays, size_t count, struct ls_error *error);
/* Forgets those of a definition, before it is freed; nothing of it may be open. */
void ls_arrays_remove(const struct ls_definition *definition);
/* The array that a definition calls `name`; NULL: there is none, and the name is a file's. It stays
 * until it is removed. */
const struct ls_memory_array *ls_arrays_find(const struct ls_definition *definition,
                                             const char *name);

/* For arrays that were not added. */
void ls_arrays_free(struct ls_memory_array *arrays, size_t count);

#endif
