/* Numbers by name. The names belong to others and must outlive the table.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_BASE_NAMES_H
#define LS_BASE_NAMES_H

#include <stdbool.h>
#include <stddef.h>

struct ls_name;

/* Empty where it is all zeros. */
struct ls_names {
    struct ls_name *slot;
    size_t count, capacity;
};

/* Gives a name its number, instead of the one that it had; false without memory. */
bool ls_names_set(struct ls_names *names, const char *name, size_t number);
/* Whether there is such a name, and its number. */
bool ls_names_find(const struct ls_names *names, const char *name, size_t *number);
void ls_names_free(struct ls_names *names);

#endif
