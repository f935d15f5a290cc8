/* Where each message and field of a definition was read: a table from (message, field, index) to
 * line and column. Used by the readers and by what rewrites definitions; others use ls_place.
 * All functions return false only when there is no memory.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SCHEMA_PLACES_H
#define LS_SCHEMA_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ls_places;

struct ls_places *ls_places_new(void);
void ls_places_free(struct ls_places *places);

enum { LS_FIELD_NONE = 0 }; /* as a field number: the message itself */
/* as a field number: something of the message could not be read */
static const uint32_t LS_FIELD_DAMAGED = UINT32_MAX - 1;
/* as a field number, of a block: `line` layers stand before it */
static const uint32_t LS_FIELD_POSITION = UINT32_MAX - 2;
/* as a field number, of a layer that a block repeats: `source` says which copy it is */
static const uint32_t LS_FIELD_COPY = UINT32_MAX - 3;

struct ls_place_entry {
    const void *message;
    uint32_t field;        /* number, or LS_FIELD_NONE */
    uint32_t index;        /* of a repeated field, else 0 */
    uint32_t line, column; /* from 1; line 0: the whole of `source` is the place */
    const char *source;    /* NULL: the definition's file; must live as long as the table */
};

/* Adds or replaces an entry. */
bool ls_places_add(struct ls_places *places, const struct ls_place_entry *entry);
/* The entry, or NULL. Looks through aliases. */
const struct ls_place_entry *ls_places_find(const struct ls_places *places, const void *message,
                                            uint32_t field, uint32_t index);
/* `message` is a copy of `original`: where it has no places of its own, it has those. */
bool ls_places_alias(struct ls_places *places, const void *message, const void *original);
/* A field of `to` came from a field of `from`: copies the first place (or that of the given
 * indices), falling back to the place of `from` itself. */
bool ls_places_copy(struct ls_places *places, const void *from, uint32_t from_field,
                    uint32_t from_index, const void *to, uint32_t to_field, uint32_t to_index);
/* Forgets a field's entries of the indices 0..count-1. */
void ls_places_forget(struct ls_places *places, const void *message, uint32_t field, size_t count);

#endif
