/* Making and freeing definitions, reading their files, telling places.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "schema/definition.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "schema/binary.h"
#include "schema/fields.h"
#include "schema/places.h"
#include "schema/text_format.h"

/* Protocol buffers end there: their readers count bytes in int. */
static const size_t FILE_LIMIT = INT32_MAX;

struct ls_definition *ls_definition_new(const char *file, size_t limit,
                                        const ProtobufCMessageDescriptor *type)
{
    struct ls_definition *definition = ls_alloc(1, sizeof *definition);
    if (definition == NULL)
        return NULL;
    definition->file = ls_copy_string(file);
    definition->arena = ls_arena_new(limit);
    definition->places = ls_places_new();
    bool made = definition->file != NULL && definition->arena != NULL && definition->places != NULL;
    if (made && type != NULL) {
        definition->message = ls_arena_message(definition->arena, type);
        made = definition->message != NULL;
    }
    if (made)
        return definition;
    ls_definition_free(definition);
    return NULL;
}

void ls_definition_free(struct ls_definition *definition)
{
    if (definition == NULL)
        return;
    ls_places_free(definition->places);
    ls_arena_free(definition->arena);
    ls_free(definition->file);
    ls_free(definition);
}

/* Whether bytes look like the text format: no control characters but white space. */
static bool is_text(const void *bytes, size_t length)
{
    const unsigned char *at = bytes;
    size_t most = length < 4096 ? length : 4096;
    for (size_t i = 0; i < most; i++)
        if ((at[i] < ' ' && (at[i] < '\t' || at[i] > '\r')) || at[i] == 0x7f)
            return false;
    return true;
}

int ls_definition_read_partly(const char *path, const ProtobufCMessageDescriptor *type, int status,
                              struct ls_definition **out, struct ls_error *error)
{
    *out = NULL;
    char *bytes;
    size_t length;
    LS_TRY(ls_file_read_text(path, FILE_LIMIT, status, &bytes, &length, error));
    int result = is_text(bytes, length)
                     ? ls_text_read_partly(path, bytes, length, type, out, error)
                     : ls_binary_read(path, bytes, length, type, status, out, error);
    ls_free(bytes);
    return result;
}

int ls_definition_read_file(const char *path, const ProtobufCMessageDescriptor *type, int status,
                            struct ls_definition **out, struct ls_error *error)
{
    int result = ls_definition_read_partly(path, type, status, out, error);
    if (result != 0) {
        ls_definition_free(*out);
        *out = NULL;
    }
    return result;
}

int ls_definition_guess(const char *path, const ProtobufCMessageDescriptor **type,
                        struct ls_error *error)
{
    const ProtobufCMessageDescriptor *other = &lockstep__solver_parameter__descriptor;
    if (*type == other)
        other = &lockstep__net_parameter__descriptor;
    char *text;
    size_t length;
    LS_TRY(ls_file_read_text(path, FILE_LIMIT, LOCKSTEP_DEFINITION, &text, &length, error));
    if (is_text(text, length) &&
        ls_text_affinity(text, length, other) > ls_text_affinity(text, length, *type))
        *type = other;
    ls_free(text);
    return 0;
}

bool ls_definition_is_damaged(const struct ls_definition *definition, const void *message)
{
    return ls_places_find(definition->places, message, LS_FIELD_DAMAGED, 0) != NULL;
}

const char *ls_definition_copy_of(const struct ls_definition *definition, const void *message)
{
    const struct ls_place_entry *entry =
        ls_places_find(definition->places, message, LS_FIELD_COPY, 0);
    return entry != NULL ? entry->source : NULL;
}

/* The number of a field of a message, or LS_FIELD_NONE. */
static uint32_t field_number(const void *message, const char *name)
{
    if (message == NULL || name == NULL)
        return LS_FIELD_NONE;
    const ProtobufCFieldDescriptor *field =
        ls_field_named(((const ProtobufCMessage *)message)->descriptor, name);
    return field != NULL ? field->id : LS_FIELD_NONE;
}

bool ls_definition_repeats(const struct ls_definition *definition, const void *message,
                           const char *field)
{
    return ls_places_find(definition->places, message, field_number(message, field), 1) != NULL;
}

const char *ls_place_index(const struct ls_definition *definition, const void *message,
                           const char *field, size_t index, char *buffer, size_t size)
{
    const struct ls_places *places = definition->places;
    const struct ls_place_entry *entry = NULL;
    uint32_t number = field_number(message, field);
    if (number != LS_FIELD_NONE && index <= UINT32_MAX)
        entry = ls_places_find(places, message, number, (uint32_t)index);
    if (entry == NULL && number != LS_FIELD_NONE)
        entry = ls_places_find(places, message, number, 0);
    if (entry == NULL)
        entry = ls_places_find(places, message, LS_FIELD_NONE, 0);
    if (entry == NULL)
        snprintf(buffer, size, "%s", definition->file);
    else if (entry->line == 0)
        snprintf(buffer, size, "%s", entry->source != NULL ? entry->source : definition->file);
    else
        snprintf(buffer, size, "%s:%u:%u", entry->source != NULL ? entry->source : definition->file,
                 entry->line, entry->column);
    return buffer;
}

const char *ls_place(const struct ls_definition *definition, const void *message, const char *field,
                     char *buffer, size_t size)
{
    return ls_place_index(definition, message, field, 0, buffer, size);
}
