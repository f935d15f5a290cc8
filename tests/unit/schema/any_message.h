/* Random messages of any type, by their descriptors: every field, odd strings, extreme numbers.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_ANY_MESSAGE_H
#define LS_TESTS_ANY_MESSAGE_H

#include <stdint.h>
#include <string.h>

#include "base/random.h"
#include "schema/definition.h"
#include "schema/fields.h"

/* A source of random numbers: one counter, so that a seed names a message. */
struct any {
    struct ls_arena *arena;
    uint64_t seed, drawn;
    int depth;
};

static inline uint32_t any_u32(struct any *any)
{
    return ls_random_u32(any->seed, 0, any->drawn++);
}

static inline uint64_t any_u64(struct any *any)
{
    uint64_t high = any_u32(any);
    return high << 32 | any_u32(any);
}

static inline size_t any_below(struct any *any, uint32_t n)
{
    return ls_random_below(any->seed, 0, any->drawn++, n);
}

/* Integers: often the ends of the range. */
static inline uint64_t any_bits(struct any *any)
{
    static const uint64_t ends[] = {0,
                                    1,
                                    UINT64_MAX,
                                    INT64_MAX,
                                    (uint64_t)INT64_MAX + 1,
                                    INT32_MAX,
                                    (uint64_t)INT32_MAX + 1,
                                    UINT32_MAX};
    return any_below(any, 3) == 0 ? ends[any_below(any, 8)] : any_u64(any);
}

static inline float any_float(struct any *any)
{
    static const float ends[] = {0.0f,          -0.0f,    1.0f, 1e-45f,
                                 3.4028235e38f, -1.5e-5f, 0.1f, 1.17549435e-38f};
    if (any_below(any, 3) == 0)
        return ends[any_below(any, 8)];
    for (;;) { /* any bits but NaN, whose payload the text does not keep */
        uint32_t bits = any_u32(any);
        float value;
        memcpy(&value, &bits, sizeof value);
        if (value == value)
            return value;
    }
}

static inline double any_double(struct any *any)
{
    for (;;) {
        uint64_t bits = any_bits(any);
        double value;
        memcpy(&value, &bits, sizeof value);
        if (value == value)
            return value;
    }
}

/* Bytes of all values; without zero where it is a string. */
static inline char *any_text(struct any *any, size_t *length, bool zero)
{
    *length = any_below(any, 12);
    char *text = ls_arena_alloc(any->arena, *length + 1, 1);
    for (size_t i = 0; i < *length; i++) {
        text[i] = (char)(unsigned char)any_below(any, 256);
        if (text[i] == '\0' && !zero)
            text[i] = '7';
    }
    return text;
}

static inline ProtobufCMessage *any_message(struct any *any,
                                            const ProtobufCMessageDescriptor *type);

static inline void any_value(struct any *any, const ProtobufCFieldDescriptor *field, void *at)
{
    const ProtobufCEnumDescriptor *names = field->descriptor;
    size_t length;
    switch (field->type) {
    case PROTOBUF_C_TYPE_FLOAT:
        *(float *)at = any_float(any);
        break;
    case PROTOBUF_C_TYPE_DOUBLE:
        *(double *)at = any_double(any);
        break;
    case PROTOBUF_C_TYPE_BOOL:
        *(protobuf_c_boolean *)at = (protobuf_c_boolean)any_below(any, 2);
        break;
    case PROTOBUF_C_TYPE_ENUM:
        *(int *)at = names->values[any_below(any, names->n_values)].value;
        break;
    case PROTOBUF_C_TYPE_STRING:
        *(char **)at = any_text(any, &length, false);
        break;
    case PROTOBUF_C_TYPE_BYTES:
        ((ProtobufCBinaryData *)at)->data = (uint8_t *)any_text(any, &length, true);
        ((ProtobufCBinaryData *)at)->len = length;
        break;
    case PROTOBUF_C_TYPE_MESSAGE:
        *(ProtobufCMessage **)at = any_message(any, field->descriptor);
        break;
    default:
        if (ls_field_size(field) == 8)
            *(uint64_t *)at = any_bits(any);
        else
            *(uint32_t *)at = (uint32_t)any_bits(any);
    }
}

/* A message in which each field is set or not; deep down fewer. */
static inline ProtobufCMessage *any_message(struct any *any, const ProtobufCMessageDescriptor *type)
{
    ProtobufCMessage *message = ls_arena_message(any->arena, type);
    uint32_t rarity = (uint32_t)(2 + 4 * any->depth++);
    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        bool required = field->label == PROTOBUF_C_LABEL_REQUIRED;
        if (!required && any_below(any, rarity) != 0)
            continue;
        size_t count = ls_field_is_repeated(field) ? any_below(any, 4) : 1;
        for (size_t k = 0; k < count; k++)
            any_value(any, field, ls_field_add(any->arena, message, field));
    }
    any->depth--;
    return message;
}

#endif
