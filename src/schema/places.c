/* An open-addressing hash table keyed by the addresses of messages. It is half empty at most;
 * entries are never removed, only marked as forgotten, so that searches need no care.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "schema/places.h"

#include <string.h>

#include "base/hash.h"
#include "base/memory.h"

/* A field number that no schema has: the slot says which message this one is a copy of. */
static const uint32_t ALIAS = UINT32_MAX;
enum { ALIAS_DEPTH = 8 };

struct slot {
    struct ls_place_entry entry; /* message NULL: the slot is free */
    const void *original;        /* of an alias */
    bool forgotten;
};

struct ls_places {
    struct slot *slots;
    size_t count, capacity; /* capacity: 0 or a power of two */
};

struct ls_places *ls_places_new(void)
{
    return ls_alloc(1, sizeof(struct ls_places));
}

void ls_places_free(struct ls_places *places)
{
    if (places == NULL)
        return;
    ls_free(places->slots);
    ls_free(places);
}

/* The slot of a key, or the free one where it belongs. */
static struct slot *find_slot(const struct ls_places *places, const void *message, uint32_t field,
                              uint32_t index)
{
    uint64_t key = (uint64_t)(uintptr_t)message;
    size_t mask = places->capacity - 1;
    size_t at = (size_t)ls_mix(key ^ ls_mix((uint64_t)field << 32 | index)) & mask;
    for (;; at = (at + 1) & mask) {
        struct slot *slot = &places->slots[at];
        const struct ls_place_entry *entry = &slot->entry;
        if (entry->message == NULL ||
            (entry->message == message && entry->field == field && entry->index == index))
            return slot;
    }
}

/* Doubles the table when it is half full. */
static bool make_room(struct ls_places *places)
{
    if (places->count * 2 < places->capacity)
        return true;
    struct ls_places larger = {.count = places->count};
    larger.capacity = places->capacity == 0 ? 64 : places->capacity * 2;
    larger.slots = ls_alloc(larger.capacity, sizeof *larger.slots);
    if (larger.slots == NULL)
        return false;
    for (size_t i = 0; i < places->capacity; i++) {
        const struct ls_place_entry *entry = &places->slots[i].entry;
        if (entry->message != NULL)
            *find_slot(&larger, entry->message, entry->field, entry->index) = places->slots[i];
    }
    ls_free(places->slots);
    *places = larger;
    return true;
}

/* Adds a slot, or replaces the one of the same key. */
static bool put(struct ls_places *places, const struct slot *slot)
{
    if (!make_room(places))
        return false;
    const struct ls_place_entry *key = &slot->entry;
    struct slot *at = find_slot(places, key->message, key->field, key->index);
    if (at->entry.message == NULL)
        places->count++;
    *at = *slot;
    return true;
}

bool ls_places_add(struct ls_places *places, const struct ls_place_entry *entry)
{
    struct slot slot = {.entry = *entry};
    return put(places, &slot);
}

bool ls_places_alias(struct ls_places *places, const void *message, const void *original)
{
    struct slot slot = {.entry = {.message = message, .field = ALIAS}, .original = original};
    return put(places, &slot);
}

/* The slot of a key, or NULL if there is none or it was forgotten. */
static const struct slot *look_up(const struct ls_places *places, const void *message,
                                  uint32_t field, uint32_t index)
{
    if (places->capacity == 0 || message == NULL)
        return NULL;
    const struct slot *slot = find_slot(places, message, field, index);
    return slot->entry.message != NULL && !slot->forgotten ? slot : NULL;
}

const struct ls_place_entry *ls_places_find(const struct ls_places *places, const void *message,
                                            uint32_t field, uint32_t index)
{
    for (int depth = 0; depth < ALIAS_DEPTH; depth++) { /* copies of copies, but no circles */
        const struct slot *slot = look_up(places, message, field, index);
        if (slot != NULL)
            return &slot->entry;
        const struct slot *alias = look_up(places, message, ALIAS, 0);
        if (alias == NULL)
            return NULL;
        message = alias->original;
    }
    return NULL;
}

bool ls_places_copy(struct ls_places *places, const void *from, uint32_t from_field,
                    uint32_t from_index, const void *to, uint32_t to_field, uint32_t to_index)
{
    const struct ls_place_entry *found = ls_places_find(places, from, from_field, from_index);
    if (found == NULL)
        found = ls_places_find(places, from, LS_FIELD_NONE, 0);
    if (found == NULL)
        return true;
    struct ls_place_entry entry = *found;
    entry.message = to;
    entry.field = to_field;
    entry.index = to_index;
    return ls_places_add(places, &entry);
}

void ls_places_forget(struct ls_places *places, const void *message, uint32_t field, size_t count)
{
    if (places->capacity == 0)
        return;
    for (size_t i = 0; i < count; i++) {
        struct slot *slot = find_slot(places, message, field, (uint32_t)i);
        if (slot->entry.message != NULL)
            slot->forgotten = true;
    }
}
