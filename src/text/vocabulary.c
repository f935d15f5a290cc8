/* Tokens and their ids. See text/vocabulary.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "text/vocabulary.h"

#include <string.h>

#include "base/hash.h"
#include "base/memory.h"

/* The slot of a token, or the free one where it would be. */
static size_t slot_of(const struct ls_token_vocabulary *vocabulary, const char *token,
                      size_t length)
{
    const size_t mask = vocabulary->slot_count - 1;
    size_t at = ls_hash(token, length, 0) & mask;
    for (; vocabulary->slots[at] != 0; at = (at + 1) & mask) {
        const struct ls_token_vocabulary_entry *entry =
            &vocabulary->entries[vocabulary->slots[at] - 1];
        if (entry->length == length && memcmp(vocabulary->bytes + entry->begin, token, length) == 0)
            break;
    }
    return at;
}

static bool grow_slots(struct ls_token_vocabulary *vocabulary)
{
    const size_t count = vocabulary->slot_count > 0 ? 2 * vocabulary->slot_count : 1024;
    uint32_t *slots = ls_alloc(count, sizeof *slots);
    if (slots == NULL)
        return false;
    ls_free(vocabulary->slots);
    vocabulary->slots = slots;
    vocabulary->slot_count = count;
    for (size_t i = 0; i < vocabulary->count; i++) {
        const struct ls_token_vocabulary_entry *entry = &vocabulary->entries[i];
        slots[slot_of(vocabulary, vocabulary->bytes + entry->begin, entry->length)] =
            (uint32_t)i + 1;
    }
    return true;
}

static bool grow_ids(struct ls_token_vocabulary *vocabulary, uint32_t id)
{
    size_t capacity = vocabulary->id_capacity > 0 ? vocabulary->id_capacity : 1024;
    while (capacity <= id)
        capacity *= 2;
    if (capacity > vocabulary->id_capacity) {
        uint32_t *by_id = ls_resize(vocabulary->by_id, capacity, sizeof *by_id);
        if (by_id == NULL)
            return false;
        memset(by_id + vocabulary->id_capacity, 0,
               (capacity - vocabulary->id_capacity) * sizeof *by_id);
        vocabulary->by_id = by_id;
        vocabulary->id_capacity = capacity;
    }
    return true;
}

/* Puts a token behind the bytes of the others. */
static bool add_bytes(struct ls_token_vocabulary *vocabulary, const char *token, size_t length)
{
    size_t capacity = vocabulary->capacity > 0 ? vocabulary->capacity : 4096;
    while (capacity - vocabulary->size <= length)
        capacity *= 2;
    if (capacity > vocabulary->capacity) {
        char *bytes = ls_resize(vocabulary->bytes, capacity, 1);
        if (bytes == NULL)
            return false;
        vocabulary->bytes = bytes;
        vocabulary->capacity = capacity;
    }
    memcpy(vocabulary->bytes + vocabulary->size, token, length);
    vocabulary->bytes[vocabulary->size + length] = '\0';
    vocabulary->size += length + 1;
    return true;
}

/* Makes room for a longer token, which is the longest then. */
static bool add_length(struct ls_token_vocabulary *vocabulary, size_t length)
{
    if (vocabulary->has_length == NULL || length > vocabulary->longest) {
        const size_t before = vocabulary->has_length != NULL ? vocabulary->longest + (size_t)1 : 0;
        bool *more = ls_resize(vocabulary->has_length, length + 1, sizeof *more);
        if (more == NULL)
            return false;
        memset(more + before, 0, (length + 1 - before) * sizeof *more);
        vocabulary->has_length = more;
        vocabulary->longest = (uint32_t)length;
    }
    vocabulary->has_length[length] = true;
    return true;
}

enum ls_token_vocabulary_answer ls_token_vocabulary_add(struct ls_token_vocabulary *vocabulary,
                                                        const char *token, size_t length,
                                                        uint32_t id)
{
    uint32_t other;
    if (ls_token_vocabulary_find(vocabulary, token, length, &other))
        return LS_TOKEN_VOCABULARY_SAME_TOKEN;
    if (id < vocabulary->id_count && vocabulary->by_id[id] != 0)
        return LS_TOKEN_VOCABULARY_SAME_ID;
    if (2 * (vocabulary->count + 1) > vocabulary->slot_count && !grow_slots(vocabulary))
        return LS_TOKEN_VOCABULARY_FULL;
    const size_t begin = vocabulary->size;
    if (!grow_ids(vocabulary, id) ||
        !LS_GROW(vocabulary->entries, vocabulary->count, vocabulary->entry_capacity) ||
        !add_bytes(vocabulary, token, length) || !add_length(vocabulary, length))
        return LS_TOKEN_VOCABULARY_FULL;
    const size_t slot = slot_of(vocabulary, token, length);
    vocabulary->entries[vocabulary->count++] =
        (struct ls_token_vocabulary_entry){.begin = begin, .length = (uint32_t)length, .id = id};
    vocabulary->slots[slot] = (uint32_t)vocabulary->count;
    vocabulary->by_id[id] = (uint32_t)vocabulary->count;
    if (id >= vocabulary->id_count)
        vocabulary->id_count = (size_t)id + 1;
    return LS_TOKEN_VOCABULARY_ADDED;
}

bool ls_token_vocabulary_find(const struct ls_token_vocabulary *vocabulary, const char *token,
                              size_t length, uint32_t *id)
{
    if (vocabulary->count == 0 || length > vocabulary->longest || !vocabulary->has_length[length])
        return false;
    const uint32_t entry = vocabulary->slots[slot_of(vocabulary, token, length)];
    if (entry == 0)
        return false;
    *id = vocabulary->entries[entry - 1].id;
    return true;
}

const char *ls_token_vocabulary_token(const struct ls_token_vocabulary *vocabulary, uint32_t id,
                                      size_t *length)
{
    if (id >= vocabulary->id_count || vocabulary->by_id[id] == 0)
        return NULL;
    const struct ls_token_vocabulary_entry *entry = &vocabulary->entries[vocabulary->by_id[id] - 1];
    *length = entry->length;
    return vocabulary->bytes + entry->begin;
}

void ls_token_vocabulary_free(struct ls_token_vocabulary *vocabulary)
{
    ls_free(vocabulary->bytes);
    ls_free(vocabulary->has_length);
    ls_free(vocabulary->entries);
    ls_free(vocabulary->slots);
    ls_free(vocabulary->by_id);
    *vocabulary = (struct ls_token_vocabulary){0};
}
