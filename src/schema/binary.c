/* protobuf-c does the work; this file sets the limits: how many bytes go in, how much memory a
 * hostile file may ask for, how deep messages nest (as deep as the schema, which has no message
 * that contains its own type; a test makes sure of that).
 * SPDX-License-Identifier: BSD-2-Clause */
#include "schema/binary.h"

#include "base/memory.h"
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

/* What other versions of the format know and we do not must not be seen, nor written again. */
static void drop_unknown(struct ls_arena *arena, ProtobufCMessage *message)
{
    for (unsigned i = 0; i < message->n_unknown_fields; i++)
        ls_arena_release(arena, message->unknown_fields[i].data);
    message->n_unknown_fields = 0;
    message->unknown_fields = NULL;
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
        size_t count = ls_field_count(message, field);
        if (field->type == PROTOBUF_C_TYPE_ENUM && count > 0)
            drop_unknown_values(message, field);
        for (size_t k = 0; field->type == PROTOBUF_C_TYPE_MESSAGE && k < count; k++) {
            const void *at = ls_field_at(message, field, k);
            drop_unknown(arena, *(ProtobufCMessage *const *)at);
        }
    }
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
    if (message != NULL) {
        drop_unknown(arena, message);
        definition->message = message;
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
