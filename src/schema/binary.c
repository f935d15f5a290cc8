/* protobuf-c does the work; this file sets the limits: how many bytes go in, how much memory a
 * hostile file may ask for, how deep messages nest (as deep as the schema, which has no message
 * that contains its own type; a test makes sure of that).
 * SPDX-License-Identifier: BSD-2-Clause */
#include "schema/binary.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "schema/fields.h"

/* Memory for a message of `length` bytes. An old file of weights whose numbers are not packed
 * needs some twenty times its size on the way, an honest one hardly more than its size. */
static size_t memory_limit(size_t length)
{
    size_t floor = (size_t)64 << 20;
    return length < (SIZE_MAX - floor) / 32 ? floor + 32 * length : SIZE_MAX;
}

/* Whether a number has a name in its enum. */
static bool is_known(const ProtobufCFieldDescriptor *field, const void *at)
{
    return protobuf_c_enum_descriptor_get_value(field->descriptor, *(const int *)at) != NULL;
}

/* Values of an enum that have no name are as good as unknown fields (so the format says). */
static void drop_unknown_values(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    if (!ls_field_is_repeated(field)) {
        if (!is_known(field, ls_field_at(message, field, 0)))
            ls_field_clear(message, field);
        return;
    }
    size_t kept = 0, *count = (size_t *)((char *)message + field->quantifier_offset);
    int *values = *(int **)((char *)message + field->offset);
    for (size_t i = 0; i < *count; i++)
        if (is_known(field, &values[i]))
            values[kept++] = values[i];
    *count = kept;
}

/* Adds "LayerParameter 149" to a list, once and as long as it is short. */
static void note_dropped(struct ls_text *dropped, const ProtobufCMessage *message, uint32_t number)
{
    enum { LONG = 400 };
    char name[120];
    snprintf(name, sizeof name, "%s %u,", message->descriptor->short_name, (unsigned)number);
    if (dropped->length < LONG && (dropped->data == NULL || strstr(dropped->data, name) == NULL))
        ls_text_format(dropped, "%s%s", dropped->length > 0 ? " " : "", name);
}

/* What other versions of the format know and we do not must not be seen, nor written again.
 * `dropped`, which may be NULL, becomes a list of it. */
static void drop_unknown(struct ls_arena *arena, ProtobufCMessage *message, struct ls_text *dropped)
{
    for (unsigned i = 0; i < message->n_unknown_fields; i++) {
        if (dropped != NULL)
            note_dropped(dropped, message, message->unknown_fields[i].tag);
        ls_arena_release(arena, message->unknown_fields[i].data);
    }
    message->n_unknown_fields = 0;
    message->unknown_fields = NULL;
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
        size_t count = ls_field_count(message, field);
        if (field->type == PROTOBUF_C_TYPE_ENUM && count > 0)
            drop_unknown_values(message, field);
        for (size_t k = 0; field->type == PROTOBUF_C_TYPE_MESSAGE && k < count; k++) {
            const void *at = ls_field_at(message, field, k);
            drop_unknown(arena, *(ProtobufCMessage *const *)at, dropped);
        }
    }
}

/* A definition says something that is not understood: by a number it cannot be refused by name, nor
 * is it known whether it changes anything. */
static int warn(struct ls_definition *definition, struct ls_text *dropped)
{
    struct ls_text text = {0};
    if (dropped->length == 0 && !dropped->failed)
        return 0;
    if (dropped->data != NULL)
        dropped->data[dropped->length - 1] = '\0'; /* the last comma */
    ls_text_format(
        &text,
        "%s: fields of other versions or forks of Caffe, known by their numbers alone, are "
        "ignored: %s",
        definition->file, dropped->data != NULL ? dropped->data : "");
    if (!text.failed && !dropped->failed)
        definition->warning = ls_arena_copy_string(definition->arena, text.data);
    ls_text_free(&text);
    return definition->warning != NULL ? 0 : LOCKSTEP_RESOURCE;
}

enum { ZERO_BYTE_DEPTH = 64 /* messages within each other */ };

static bool take_varint(const uint8_t **at, const uint8_t *end, uint64_t *value)
{
    *value = 0;
    for (int shift = 0; *at < end && shift < 64; shift += 7) {
        const uint8_t byte = *(*at)++;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

/* The first field of text whose value has a zero byte, which would cut it: C's strings end there.
 * The bytes are those of a message that was unpacked. */
static const ProtobufCFieldDescriptor *find_zero_byte(const ProtobufCMessageDescriptor *type,
                                                      const uint8_t *at, const uint8_t *end,
                                                      int depth)
{
    static const size_t fixed[] = {[1] = 8, [5] = 4};
    uint64_t tag, length;
    while (depth < ZERO_BYTE_DEPTH && take_varint(&at, end, &tag)) {
        const unsigned wire = tag & 7;
        if (wire == 0 ? !take_varint(&at, end, &length) : wire != 1 && wire != 2 && wire != 5)
            return NULL;
        if (wire == 0)
            continue;
        length = fixed[wire];
        if ((wire == 2 && !take_varint(&at, end, &length)) || length > (uint64_t)(end - at))
            return NULL;
        const ProtobufCFieldDescriptor *field =
            protobuf_c_message_descriptor_get_field(type, (unsigned)(tag >> 3));
        if (wire == 2 && field != NULL && field->type == PROTOBUF_C_TYPE_STRING &&
            memchr(at, 0, length) != NULL)
            return field;
        const ProtobufCFieldDescriptor *inner =
            wire == 2 && field != NULL && field->type == PROTOBUF_C_TYPE_MESSAGE
                ? find_zero_byte(field->descriptor, at, at + length, depth + 1)
                : NULL;
        if (inner != NULL)
            return inner;
        at += length;
    }
    return NULL;
}

int ls_binary_read(const char *file, const void *bytes, size_t length,
                   const ProtobufCMessageDescriptor *type, int status, struct ls_definition **out,
                   struct ls_error *error)
{
    *out = NULL;
    if (length > INT32_MAX)
        return ls_fail(error, status, file, NULL, "a message of more than 2 GiB cannot be read");
    struct ls_definition *definition = ls_definition_new(file, memory_limit(length), NULL);
    if (definition == NULL)
        return ls_fail_memory(error, "a definition");
    struct ls_arena *arena = definition->arena;
    ProtobufCMessage *message =
        protobuf_c_message_unpack(type, ls_arena_allocator(arena), length, bytes);
    const ProtobufCFieldDescriptor *cut =
        message != NULL ? find_zero_byte(type, bytes, (const uint8_t *)bytes + length, 0) : NULL;
    if (cut != NULL) {
        ls_definition_free(definition);
        return ls_fail(error, status, file, NULL, "the value of a field '%s' has a zero byte",
                       cut->name);
    }
    if (message != NULL) {
        struct ls_text dropped = {0};
        drop_unknown(arena, message, status == LOCKSTEP_DEFINITION ? &dropped : NULL);
        definition->message = message;
        int warned = warn(definition, &dropped);
        ls_text_free(&dropped);
        if (warned != 0) {
            ls_definition_free(definition);
            return ls_fail_memory(error, "a definition");
        }
        *out = definition;
        return 0;
    }
    bool greedy = ls_arena_limit_hit(arena);
    int result = LOCKSTEP_RESOURCE;
    if (ls_arena_exhausted(arena))
        ls_fail_memory(error, "a definition");
    else
        result = ls_fail(error, status, file, "the file is damaged, cut short or of another kind",
                         "this is not a %s in binary form%s", type->short_name,
                         greedy ? ": it would take far more memory than it has bytes" : "");
    ls_definition_free(definition);
    return result;
}

int ls_binary_write(const ProtobufCMessage *message, uint8_t **bytes, size_t *length,
                    struct ls_error *error)
{
    *bytes = NULL;
    *length = 0;
    if (!protobuf_c_message_check(message)) /* NULL within a list, a required message missing */
        return ls_fail(error, LOCKSTEP_INTERNAL, NULL, NULL, "a %s is incomplete",
                       message->descriptor->short_name);
    size_t size = protobuf_c_message_get_packed_size(message);
    if (size > INT32_MAX)
        return ls_fail(error, LOCKSTEP_RESOURCE, NULL, NULL,
                       "a %s of %zu bytes is too large for the binary format (2 GiB)",
                       message->descriptor->short_name, size);
    uint8_t *packed = ls_alloc(size, 1);
    if (packed == NULL)
        return ls_fail_memory(error, "a message in binary form");
    *length = protobuf_c_message_pack(message, packed);
    *bytes = packed;
    return 0;
}
