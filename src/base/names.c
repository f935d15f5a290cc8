/* Numbers by name: open addressing, at most half full. See base/names.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/names.h"

#include <string.h>

#include "base/hash.h"
#include "base/memory.h"

struct ls_name {
    const char *name; /* NULL: free */
    size_t number;
};

/* Where a name is, or would be; there is a free slot. The capacity is a power of two. */
static struct ls_name *slot_of(const struct ls_names *names, const char *name)
{
    size_t i = (size_t)ls_hash_string(name, 0) & (names->capacity - 1);
    while (names->slot[i].name != NULL && strcmp(names->slot[i].name, name) != 0)
        i = (i + 1) & (names->capacity - 1);
    return &names->slot[i];
}

static bool grow(struct ls_names *names)
{
    struct ls_names larger = {.capacity = names->capacity > 0 ? 2 * names->capacity : 16,
                              .count = names->count};
    larger.slot = ls_alloc(larger.capacity, sizeof *larger.slot);
    if (larger.slot == NULL)
        return false;
    for (size_t i = 0; i < names->capacity; i++)
        if (names->slot[i].name != NULL)
            *slot_of(&larger, names->slot[i].name) = names->slot[i];
    ls_free(names->slot);
    *names = larger;
    return true;
}

bool ls_names_set(struct ls_names *names, const char *name, size_t number)
{
    if (2 * (names->count + 1) > names->capacity && !grow(names))
        return false;
    struct ls_name *slot = slot_of(names, name);
    names->count += slot->name == NULL;
    *slot = (struct ls_name){.name = name, .number = number};
    return true;
}

bool ls_names_find(const struct ls_names *names, const char *name, size_t *number)
{
    if (names->count == 0)
        return false;
    const struct ls_name *slot = slot_of(names, name);
    if (slot->name != NULL)
        *number = slot->number;
    return slot->name != NULL;
}

void ls_names_free(struct ls_names *names)
{
    ls_free(names->slot);
    *names = (struct ls_names){0};
}
