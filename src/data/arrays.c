/* Arrays in memory. See data/arrays.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "data/arrays.h"

#include <pthread.h>
#include <string.h>

#include "base/memory.h"

struct owner {
    const struct ls_definition *definition;
    struct list *list;
};

/* A list, which several definitions of a solver share. */
struct list {
    struct ls_memory_array *arrays;
    size_t count;
    int owners;
};

/* All of the process: a few, as most data are files. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct owner *owners;
static size_t owner_count, owner_capacity;

void ls_arrays_free(struct ls_memory_array *arrays, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ls_free(arrays[i].name);
    ls_free(arrays);
}

static struct owner *find_owner(const struct ls_definition *definition)
{
    for (size_t i = 0; i < owner_count; i++)
        if (owners[i].definition == definition)
            return &owners[i];
    return NULL;
}

static void forget(const struct ls_definition *definition)
{
    struct owner *owner = find_owner(definition);
    if (owner == NULL)
        return;
    struct list *list = owner->list;
    *owner = owners[--owner_count];
    if (owner_count == 0) { /* nothing is left behind */
        ls_free(owners);
        owners = NULL;
        owner_capacity = 0;
    }
    if (--list->owners > 0)
        return;
    ls_arrays_free(list->arrays, list->count);
    ls_free(list);
}

void ls_arrays_remove(const struct ls_definition *definition)
{
    pthread_mutex_lock(&lock);
    forget(definition);
    pthread_mutex_unlock(&lock);
}

int ls_arrays_add(const struct ls_definition *const *definitions, size_t definition_count,
                  struct ls_memory_array *arrays, size_t count, struct ls_error *error)
{
    struct list *list = ls_alloc(1, sizeof *list);
    if (list == NULL || definition_count == 0) {
        ls_arrays_free(arrays, count);
        ls_free(list);
        return ls_fail_memory(error, "arrays");
    }
    *list = (struct list){.arrays = arrays, .count = count};
    bool made = true;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < definition_count && made; i++) {
        made = LS_GROW(owners, owner_count, owner_capacity);
        if (made) {
            owners[owner_count++] = (struct owner){definitions[i], list};
            list->owners++;
        }
    }
    const int owned = list->owners;
    for (size_t i = 0; i < definition_count && !made && owned > 0; i++)
        forget(definitions[i]);
    pthread_mutex_unlock(&lock);
    if (made)
        return 0;
    if (owned == 0) {
        ls_arrays_free(arrays, count);
        ls_free(list);
    }
    return ls_fail_memory(error, "arrays");
}

const struct ls_memory_array *ls_arrays_find(const struct ls_definition *definition,
                                             const char *name)
{
    const struct ls_memory_array *found = NULL;
    pthread_mutex_lock(&lock);
    const struct owner *owner = find_owner(definition);
    for (size_t i = 0; owner != NULL && i < owner->list->count && found == NULL; i++)
        if (strcmp(owner->list->arrays[i].name, name) == 0)
            found = &owner->list->arrays[i];
    pthread_mutex_unlock(&lock);
    return found;
}
