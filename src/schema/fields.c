/* Reading and changing messages by offsets of their descriptors. All that protobuf-c's layout of
 * structs asks to be known (flags, counts, defaults as pointers) is known here and nowhere else.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "schema/fields.h"

#include <stdio.h>
#include <string.h>

size_t ls_field_size(const ProtobufCFieldDescriptor *field)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return 8;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(void *);
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    default:
        return 4;
    }
}

bool ls_field_is_repeated(const ProtobufCFieldDescriptor *field)
{
    return field->label == PROTOBUF_C_LABEL_REPEATED;
}

/* A string or a message, which need no flag. */
static bool is_pointer(const ProtobufCFieldDescriptor *field)
{
    return field->type == PROTOBUF_C_TYPE_STRING || field->type == PROTOBUF_C_TYPE_MESSAGE;
}

/* Where the value (or the list) of a field is. */
static void *member(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    return (char *)message + field->offset;
}

/* Where its flag or count is; a singular pointer has none. */
static void *quantifier(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    return (char *)message + field->quantifier_offset;
}

size_t ls_field_count(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    const char *base = (const char *)message;
    if (ls_field_is_repeated(field))
        return *(const size_t *)(base + field->quantifier_offset);
    if (is_pointer(field)) {
        const void *pointer = *(const void *const *)(base + field->offset);
        return pointer != NULL && pointer != field->default_value;
    }
    if (field->label == PROTOBUF_C_LABEL_REQUIRED)
        return 1;
    return *(const protobuf_c_boolean *)(base + field->quantifier_offset) != 0;
}

const void *ls_field_at(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                        size_t index)
{
    const char *at = (const char *)message + field->offset;
    if (!ls_field_is_repeated(field))
        return at;
    return *(const char *const *)at + index * ls_field_size(field);
}

const ProtobufCFieldDescriptor *ls_field_named(const ProtobufCMessageDescriptor *type,
                                               const char *name)
{
    return protobuf_c_message_descriptor_get_field_by_name(type, name);
}

void ls_field_clear(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    void *at = member(message, field);
    if (ls_field_is_repeated(field)) {
        *(void **)at = NULL;
        *(size_t *)quantifier(message, field) = 0;
        return;
    }
    if (is_pointer(field)) { /* of a string; a message's is NULL */
        memcpy(at, &field->default_value, sizeof(void *));
        return;
    }
    if (field->label != PROTOBUF_C_LABEL_REQUIRED)
        *(protobuf_c_boolean *)quantifier(message, field) = 0;
    if (field->default_value != NULL)
        memcpy(at, field->default_value, ls_field_size(field));
    else
        memset(at, 0, ls_field_size(field));
}

/* Room behind the values of a repeated field. The list's own capacity says when it must grow, so
 * that lists made by protobuf-c, which fit exactly, can grow too. */
static void *append(struct ls_arena *arena, ProtobufCMessage *message,
                    const ProtobufCFieldDescriptor *field)
{
    size_t size = ls_field_size(field);
    size_t *count = quantifier(message, field);
    char **list = member(message, field);
    if (*list == NULL || ls_arena_capacity(*list) / size <= *count) {
        size_t capacity = *count < 2 ? 4 : 2 * *count;
        char *larger = ls_arena_alloc(arena, capacity, size);
        if (larger == NULL)
            return NULL;
        if (*list != NULL)
            memcpy(larger, *list, *count * size);
        ls_arena_release(arena, *list);
        *list = larger;
    }
    return memset(*list + size * (*count)++, 0, size);
}

void *ls_field_add(struct ls_arena *arena, ProtobufCMessage *message,
                   const ProtobufCFieldDescriptor *field)
{
    if (ls_field_is_repeated(field))
        return append(arena, message, field);
    if (!is_pointer(field) && field->label != PROTOBUF_C_LABEL_REQUIRED)
        *(protobuf_c_boolean *)quantifier(message, field) = 1;
    return memset(member(message, field), 0, ls_field_size(field));
}

bool ls_field_put(struct ls_arena *arena, ProtobufCMessage *message,
                  const ProtobufCFieldDescriptor *field, const void *value)
{
    void *at = ls_field_add(arena, message, field);
    if (at != NULL)
        memcpy(at, value, ls_field_size(field));
    return at != NULL;
}

/* A string without value and default counts as empty. */
static bool strings_equal(const char *a, const char *b)
{
    return strcmp(a == NULL ? "" : a, b == NULL ? "" : b) == 0;
}

/* Whether two values of a field's type are the same. */
static bool values_equal(const ProtobufCFieldDescriptor *field, const void *a, const void *b)
{
    const void *const *pointer_a = a, *const *pointer_b = b;
    const ProtobufCBinaryData *bytes_a = a, *bytes_b = b;
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING:
        return strings_equal(*pointer_a, *pointer_b);
    case PROTOBUF_C_TYPE_MESSAGE:
        if (*pointer_a == NULL || *pointer_b == NULL)
            return *pointer_a == *pointer_b;
        return ls_message_equal(*pointer_a, *pointer_b);
    case PROTOBUF_C_TYPE_BYTES:
        return bytes_a->len == bytes_b->len &&
               (bytes_a->len == 0 || memcmp(bytes_a->data, bytes_b->data, bytes_a->len) == 0);
    default: /* floats too: -0 is not 0, and NaN is NaN */
        return memcmp(a, b, ls_field_size(field)) == 0;
    }
}

bool ls_field_equal(const ProtobufCMessage *a, const ProtobufCMessage *b,
                    const ProtobufCFieldDescriptor *field)
{
    size_t count = 1; /* of a singular field also if it is not set: then its default */
    if (ls_field_is_repeated(field)) {
        count = ls_field_count(a, field);
        if (count != ls_field_count(b, field))
            return false;
    }
    for (size_t i = 0; i < count; i++)
        if (!values_equal(field, ls_field_at(a, field, i), ls_field_at(b, field, i)))
            return false;
    return true;
}

bool ls_message_equal(const ProtobufCMessage *a, const ProtobufCMessage *b)
{
    const ProtobufCMessageDescriptor *type = a->descriptor;
    for (unsigned i = 0; i < type->n_fields; i++)
        if (!ls_field_equal(a, b, &type->fields[i]))
            return false;
    return true;
}

/* Descends into messages that both sides hold as often; false where the field differs as a whole.
 */
static bool descend(const char *path, const ProtobufCMessage *a, const ProtobufCMessage *b,
                    const ProtobufCFieldDescriptor *field, ls_difference_fn *tell, void *user)
{
    size_t count = ls_field_count(a, field);
    if (field->type != PROTOBUF_C_TYPE_MESSAGE || count != ls_field_count(b, field))
        return false;
    for (size_t i = 0; i < count; i++) {
        const ProtobufCMessage *const *mine = ls_field_at(a, field, i);
        const ProtobufCMessage *const *theirs = ls_field_at(b, field, i);
        char prefix[LS_FIELD_PATH_MAX];
        if (ls_field_is_repeated(field))
            snprintf(prefix, sizeof prefix, "%.150s[%zu].", path, i);
        else
            snprintf(prefix, sizeof prefix, "%.180s.", path);
        ls_message_differences(prefix, *mine, *theirs, tell, user);
    }
    return true;
}

void ls_message_differences(const char *prefix, const ProtobufCMessage *a,
                            const ProtobufCMessage *b, ls_difference_fn *tell, void *user)
{
    const ProtobufCMessageDescriptor *type = a->descriptor;
    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        char path[LS_FIELD_PATH_MAX];
        snprintf(path, sizeof path, "%.120s%.60s", prefix, field->name);
        if (!ls_field_equal(a, b, field) && !descend(path, a, b, field, tell, user))
            tell(user, path, a, b, field);
    }
}
