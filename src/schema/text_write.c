/* Messages as canonical text: one notation for each thing, so that two definitions that say the
 * same are the same bytes. Everything beyond ASCII is written as octal escapes.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>

#include "schema/fields.h"
#include "schema/text_format.h"

void ls_text_write_string(const void *bytes, size_t length, struct ls_text *out)
{
    static const char names[] = "abtnvfr"; /* of the characters 7 to 13 */
    const unsigned char *at = bytes;
    ls_text_add_bytes(out, "\"", 1);
    for (size_t i = 0; i < length; i++) {
        unsigned char c = at[i];
        if (c == '"' || c == '\\')
            ls_text_format(out, "\\%c", c);
        else if (c >= 7 && c <= 13)
            ls_text_format(out, "\\%c", names[c - 7]);
        else if (c < ' ' || c >= 0x7f) /* always three digits: the next character may be one */
            ls_text_format(out, "\\%03o", c);
        else
            ls_text_add_bytes(out, &at[i], 1);
    }
    ls_text_add_bytes(out, "\"", 1);
}

static void write_string(const char *string, struct ls_text *out)
{
    size_t length = 0;
    while (string != NULL && string[length] != '\0')
        length++;
    ls_text_write_string(string, length, out);
}

/* By name; a number without a name only where a program has set it. */
static void write_enum(const ProtobufCEnumDescriptor *type, int number, struct ls_text *out)
{
    const ProtobufCEnumValue *value = protobuf_c_enum_descriptor_get_value(type, number);
    if (value != NULL)
        ls_text_add(out, value->name);
    else
        ls_text_format(out, "%d", number);
}

/* Any value but a message. */
static void write_scalar(const ProtobufCFieldDescriptor *field, const void *at, struct ls_text *out)
{
    const ProtobufCBinaryData *bytes = at;
    char number[32];
    switch (field->type) {
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        ls_text_format(out, "%" PRIu32, *(const uint32_t *)at);
        break;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        ls_text_format(out, "%" PRId64, *(const int64_t *)at);
        break;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        ls_text_format(out, "%" PRIu64, *(const uint64_t *)at);
        break;
    case PROTOBUF_C_TYPE_FLOAT:
        ls_format_float(number, *(const float *)at);
        ls_text_add(out, number);
        break;
    case PROTOBUF_C_TYPE_DOUBLE:
        ls_format_double(number, *(const double *)at);
        ls_text_add(out, number);
        break;
    case PROTOBUF_C_TYPE_BOOL:
        ls_text_add(out, *(const protobuf_c_boolean *)at ? "true" : "false");
        break;
    case PROTOBUF_C_TYPE_ENUM:
        write_enum(field->descriptor, *(const int *)at, out);
        break;
    case PROTOBUF_C_TYPE_STRING:
        write_string(*(const char *const *)at, out);
        break;
    case PROTOBUF_C_TYPE_BYTES:
        ls_text_write_string(bytes->data, bytes->len, out);
        break;
    default:
        ls_text_format(out, "%" PRId32, *(const int32_t *)at);
        break;
    }
}

static void write_fields(const ProtobufCMessage *message, int indent, struct ls_text *out);

/* One value of a field, on a line (or lines) of its own. */
static void write_field(const ProtobufCFieldDescriptor *field, const void *at, int indent,
                        struct ls_text *out)
{
    ls_text_format(out, "%*s%s", indent, "", field->name);
    if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
        ls_text_add(out, " {\n");
        write_fields(*(const ProtobufCMessage *const *)at, indent + 2, out);
        ls_text_format(out, "%*s}\n", indent, "");
    } else {
        ls_text_add(out, ": ");
        write_scalar(field, at, out);
        ls_text_add(out, "\n");
    }
}

/* Fields that are set, in the order of their numbers, each on its own line. */
static void write_fields(const ProtobufCMessage *message, int indent, struct ls_text *out)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;
    for (unsigned i = 0; i < type->n_fields && !out->failed; i++) { /* sorted by number */
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        size_t count = ls_field_count(message, field);
        for (size_t k = 0; k < count && !out->failed; k++)
            write_field(field, ls_field_at(message, field, k), indent, out);
    }
}

void ls_text_write(const ProtobufCMessage *message, struct ls_text *out)
{
    ls_text_add(out, ""); /* an empty message is an empty text, not no text */
    write_fields(message, 0, out);
}

/* A message on one line. */
static void write_inline(const ProtobufCMessage *message, struct ls_text *out)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;
    ls_text_add(out, "{ ");
    for (unsigned i = 0; i < type->n_fields && !out->failed; i++)
        if (ls_field_count(message, &type->fields[i]) > 0) {
            bool is_message = type->fields[i].type == PROTOBUF_C_TYPE_MESSAGE;
            ls_text_format(out, "%s%s ", type->fields[i].name, is_message ? "" : ":");
            ls_text_write_value(message, &type->fields[i], out);
            ls_text_add(out, " ");
        }
    ls_text_add(out, "}");
}

/* As ls_text_write_value, for one value that is there. */
static void write_value(const ProtobufCFieldDescriptor *field, const void *at, struct ls_text *out)
{
    if (field->type == PROTOBUF_C_TYPE_MESSAGE)
        write_inline(*(const ProtobufCMessage *const *)at, out);
    else
        write_scalar(field, at, out);
}

void ls_text_write_value(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                         struct ls_text *out)
{
    size_t count = ls_field_count(message, field);
    if (count == 0 && field->default_value == NULL) {
        ls_text_add(out, "unset");
    } else if (!ls_field_is_repeated(field)) {
        write_value(field, ls_field_at(message, field, 0), out);
    } else {
        ls_text_add(out, "[");
        for (size_t i = 0; i < count && !out->failed; i++) {
            if (i > 0)
                ls_text_add(out, ", ");
            write_value(field, ls_field_at(message, field, i), out);
        }
        ls_text_add(out, "]");
    }
}
