/* Values of the text format, and what to say about wrong ones.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base/memory.h"
#include "schema/fields.h"
#include "schema/suggest.h"
#include "schema/text_read.h"

enum {
    CANDIDATES_MAX = 160, /* names that may have been meant */
    FEW = 4               /* so many values are listed whatever was meant */
};

const char *ls_token_shown(const struct ls_token *token, char buffer[48])
{
    if (token->kind == LS_TOKEN_END)
        snprintf(buffer, 48, "the end of the text");
    else if (token->length > 40)
        snprintf(buffer, 48, "'%.37s...'", token->start);
    else
        snprintf(buffer, 48, "'%.*s'", (int)token->length, token->start);
    return buffer;
}

void ls_reader_problem(struct ls_text_reader *reader, const struct ls_token *token,
                       const char *hint, const char *format, ...)
{
    char place[LS_PLACE_MAX], message[768];
    const char *file = reader->source != NULL ? reader->source : reader->definition->file;
    if (reader->whole)
        snprintf(place, sizeof place, "%s", file);
    else
        snprintf(place, sizeof place, "%s:%u:%u", file, token->line, token->column);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    ls_fail(reader->error, LOCKSTEP_DEFINITION, place, hint, "%s", message);
    reader->problems++;
    ls_reader_damage(reader);
}

void ls_reader_damage(struct ls_text_reader *reader)
{
    struct ls_place_entry entry = {.message = reader->layer, .field = LS_FIELD_DAMAGED};
    if (reader->layer != NULL && !ls_places_add(reader->definition->places, &entry))
        reader->no_memory = true;
}

/* Reports that a value is of the wrong kind, and goes over it. */
static enum ls_scalar_result wrong(struct ls_text_reader *reader,
                                   const ProtobufCFieldDescriptor *field,
                                   const struct ls_token *token, const char *wanted)
{
    char shown[48];
    if (token->kind == LS_TOKEN_END || token->kind == LS_TOKEN_BAD ||
        token->kind == LS_TOKEN_SYMBOL)
        return LS_SCALAR_BROKEN;
    ls_reader_problem(reader, token, NULL, "field '%s' takes %s, found %s", field->name, wanted,
                      ls_token_shown(token, shown));
    bool string = token->kind == LS_TOKEN_STRING;
    ls_lex_next(&reader->lexer);
    while (string && reader->lexer.token.kind == LS_TOKEN_STRING)
        ls_lex_next(&reader->lexer);
    return LS_SCALAR_WRONG;
}

/* Reports that a number does not fit, and goes over it. */
static enum ls_scalar_result out_of_range(struct ls_text_reader *reader,
                                          const ProtobufCFieldDescriptor *field,
                                          const struct ls_token *token, bool negative,
                                          const char *limits)
{
    char shown[48];
    ls_token_shown(token, shown);
    ls_reader_problem(reader, token, NULL, "the value %s%.*s of field '%s' is out of range (%s)",
                      negative ? "-" : "", (int)strlen(shown) - 2, shown + 1, field->name, limits);
    ls_lex_next(&reader->lexer);
    return LS_SCALAR_WRONG;
}

/* Integers of all sizes: [-2^(bits-1), 2^(bits-1)) or [0, 2^bits). */
static enum ls_scalar_result read_integer(struct ls_text_reader *reader,
                                          const ProtobufCFieldDescriptor *field, bool negative,
                                          union ls_scalar *value)
{
    bool is_signed =
        field->type == PROTOBUF_C_TYPE_INT32 || field->type == PROTOBUF_C_TYPE_SINT32 ||
        field->type == PROTOBUF_C_TYPE_SFIXED32 || field->type == PROTOBUF_C_TYPE_INT64 ||
        field->type == PROTOBUF_C_TYPE_SINT64 || field->type == PROTOBUF_C_TYPE_SFIXED64;
    bool small = ls_field_size(field) == 4;
    struct ls_token token = reader->lexer.token;
    if (token.kind != LS_TOKEN_INTEGER)
        return wrong(reader, field, &token, "a whole number");
    uint64_t magnitude;
    uint64_t most = is_signed ? (small ? INT32_MAX : INT64_MAX) : (small ? UINT32_MAX : UINT64_MAX);
    if (negative)
        most = is_signed ? most + 1 : 0;
    if (!ls_token_integer(&token, &magnitude) || magnitude > most)
        return out_of_range(reader, field, &token, negative,
                            is_signed ? (small ? "32 bits" : "64 bits")
                                      : (small ? "0 to 4294967295" : "0 to 18446744073709551615"));
    uint64_t bits = negative ? 0 - magnitude : magnitude;
    if (small)
        value->u32 = (uint32_t)bits;
    else
        value->u64 = bits;
    ls_lex_next(&reader->lexer);
    return LS_SCALAR_OK;
}

/* "inf", "infinity", "nan" in any case. */
static bool special_number(const struct ls_token *token, double *number)
{
    bool infinite = ls_token_is_word(token, "inf") || ls_token_is_word(token, "infinity");
    if (!infinite && !ls_token_is_word(token, "nan"))
        return false;
    *number = infinite ? (double)INFINITY : (double)NAN;
    return true;
}

/* float and double: decimal only, as an octal 010 would hardly be meant as 8. */
static enum ls_scalar_result read_real(struct ls_text_reader *reader,
                                       const ProtobufCFieldDescriptor *field, bool negative,
                                       union ls_scalar *value)
{
    struct ls_token token = reader->lexer.token;
    bool single = field->type == PROTOBUF_C_TYPE_FLOAT;
    float narrow;
    double wide;
    if (special_number(&token, &wide)) {
        narrow = (float)wide;
    } else if (token.kind != LS_TOKEN_INTEGER && token.kind != LS_TOKEN_FLOAT) {
        return wrong(reader, field, &token, "a number");
    } else if (token.kind == LS_TOKEN_INTEGER && token.length > 1 && *token.start == '0') {
        return wrong(reader, field, &token, "a decimal number");
    } else if (single ? !ls_token_float(&token, &narrow) : !ls_token_double(&token, &wide)) {
        return out_of_range(reader, field, &token, negative,
                            single ? "at most about 3.4e38" : "at most about 1.8e308");
    }
    if (single)
        value->f = negative ? -narrow : narrow;
    else
        value->d = negative ? -wide : wide;
    ls_lex_next(&reader->lexer);
    return LS_SCALAR_OK;
}

/* The words that protobuf's own reader takes, and 0 and 1. */
static enum ls_scalar_result read_bool(struct ls_text_reader *reader,
                                       const ProtobufCFieldDescriptor *field,
                                       union ls_scalar *value)
{
    static const char *const words[] = {"false", "true", "False", "True", "f", "t"};
    struct ls_token token = reader->lexer.token;
    uint64_t number = 2;
    for (size_t i = 0; i < 6 && token.kind == LS_TOKEN_NAME; i++)
        if (token.length == strlen(words[i]) && memcmp(token.start, words[i], token.length) == 0)
            number = i & 1;
    if (token.kind == LS_TOKEN_INTEGER && !ls_token_integer(&token, &number))
        number = 2;
    if (number > 1)
        return wrong(reader, field, &token, "true or false");
    value->b = (protobuf_c_boolean)number;
    ls_lex_next(&reader->lexer);
    return LS_SCALAR_OK;
}

/* "one of A, B, C"; where they are more than a few, and one is near to what was found, "'A' or
 * another value of TYPE". */
static void describe_enum(const ProtobufCEnumDescriptor *type, const struct ls_token *token,
                          char *text, size_t size)
{
    const char *names[CANDIDATES_MAX];
    size_t count = 0, length = (size_t)snprintf(text, size, "one of");
    for (unsigned i = 0; i < type->n_values && count < CANDIDATES_MAX; i++) {
        names[count++] = type->values[i].name;
        if (length < size)
            length += (size_t)snprintf(text + length, size - length, "%s %s", i > 0 ? "," : "",
                                       type->values[i].name);
    }
    char word[64];
    snprintf(word, sizeof word, "%.*s", token->length < 60 ? (int)token->length : 60, token->start);
    const char *meant = ls_suggest(word, names, count);
    if (token->kind == LS_TOKEN_STRING && length < size)
        snprintf(text + length, size - length, " without quotes");
    else if (meant != NULL && count > FEW)
        snprintf(text, size, "'%s' or another value of %s", meant, type->short_name);
}

/* An engine is which code computes: any name will do, and the one there is computes. */
static bool is_engine(struct ls_text_reader *reader, const ProtobufCFieldDescriptor *field,
                      const struct ls_token *token)
{
    if (strcmp(field->name, "engine") != 0 ||
        (token->kind != LS_TOKEN_NAME && token->kind != LS_TOKEN_STRING))
        return false;
    char name[64];
    snprintf(name, sizeof name, "%.*s", token->length < 60 ? (int)token->length : 60, token->start);
    const ProtobufCMessageDescriptor *owner = &lockstep__convolution_parameter__descriptor;
    if (!ls_unknown_add(&reader->unknown, reader->definition->arena, owner, field->name, name,
                        reader->layer, token))
        reader->no_memory = true;
    return true;
}

/* A type that older layers do not have: told once for all layers that have it. */
static bool is_older_type(struct ls_text_reader *reader, const ProtobufCFieldDescriptor *field,
                          const struct ls_token *token)
{
    char name[64];
    if (field->descriptor != &lockstep__v1_layer_parameter__layer_type__descriptor ||
        (token->kind != LS_TOKEN_NAME && token->kind != LS_TOKEN_STRING) ||
        token->length >= sizeof name)
        return false;
    int quotes = token->kind == LS_TOKEN_STRING; /* of newer types */
    snprintf(name, sizeof name, "%.*s", (int)token->length - 2 * quotes, token->start + quotes);
    if (!ls_unknown_add(&reader->unknown, reader->definition->arena,
                        &lockstep__v1_layer_parameter__descriptor, field->name, name, reader->layer,
                        token))
        reader->no_memory = true;
    ls_reader_damage(reader);
    return true;
}

/* A name, or a number that has a name. */
static enum ls_scalar_result read_enum(struct ls_text_reader *reader,
                                       const ProtobufCFieldDescriptor *field, bool negative,
                                       union ls_scalar *value)
{
    const ProtobufCEnumDescriptor *type = field->descriptor;
    struct ls_token token = reader->lexer.token;
    const ProtobufCEnumValue *found = NULL;
    char name[64];
    uint64_t number;
    if (token.kind == LS_TOKEN_NAME && !negative && token.length < sizeof name) {
        memcpy(name, token.start, token.length);
        name[token.length] = '\0';
        found = protobuf_c_enum_descriptor_get_value_by_name(type, name);
    } else if (token.kind == LS_TOKEN_INTEGER && ls_token_integer(&token, &number) &&
               number <= INT32_MAX) {
        found = protobuf_c_enum_descriptor_get_value(type, negative ? -(int)number : (int)number);
    }
    if (found == NULL && is_engine(reader, field, &token)) {
        ls_lex_next(&reader->lexer);
        value->i32 = type->values[0].value;
        return LS_SCALAR_OK;
    }
    if (found == NULL && is_older_type(reader, field, &token)) {
        ls_lex_next(&reader->lexer);
        return LS_SCALAR_WRONG;
    }
    if (found == NULL) {
        char wanted[400];
        describe_enum(type, &token, wanted, sizeof wanted);
        return wrong(reader, field, &token, wanted);
    }
    value->i32 = found->value;
    ls_lex_next(&reader->lexer);
    return LS_SCALAR_OK;
}

/* Strings that follow each other are one. */
static enum ls_scalar_result read_string(struct ls_text_reader *reader,
                                         const ProtobufCFieldDescriptor *field,
                                         union ls_scalar *value)
{
    struct ls_lexer *lexer = &reader->lexer;
    struct ls_token first = lexer->token;
    if (first.kind != LS_TOKEN_STRING)
        return wrong(reader, field, &first, "a string in quotes");
    struct ls_text *text = &reader->string;
    text->length = 0;
    const char *complaint = NULL;
    for (; lexer->token.kind == LS_TOKEN_STRING; ls_lex_next(lexer)) {
        const char *found = ls_token_string(&lexer->token, text);
        complaint = complaint != NULL ? complaint : found;
    }
    if (text->failed)
        return LS_SCALAR_NO_MEMORY;
    bool is_string = field->type == PROTOBUF_C_TYPE_STRING;
    if (complaint == NULL && is_string && text->length > 0 &&
        memchr(text->data, '\0', text->length) != NULL)
        complaint = "a zero byte in a string";
    if (complaint != NULL) {
        ls_reader_problem(reader, &first, NULL, "field '%s': %s", field->name, complaint);
        return LS_SCALAR_WRONG;
    }
    char *copy = ls_arena_copy(reader->definition->arena, text->data, text->length);
    if (copy == NULL)
        return LS_SCALAR_NO_MEMORY;
    if (is_string)
        value->s = copy;
    else
        value->bytes = (ProtobufCBinaryData){text->length, (uint8_t *)copy};
    return LS_SCALAR_OK;
}

enum ls_scalar_result ls_read_scalar(struct ls_text_reader *reader,
                                     const ProtobufCFieldDescriptor *field, union ls_scalar *value)
{
    memset(value, 0, sizeof *value);
    bool negative = ls_lex_is(&reader->lexer, '-');
    if (negative && (field->type == PROTOBUF_C_TYPE_STRING ||
                     field->type == PROTOBUF_C_TYPE_BYTES || field->type == PROTOBUF_C_TYPE_BOOL))
        return LS_SCALAR_BROKEN;
    if (negative)
        ls_lex_next(&reader->lexer);
    switch (field->type) {
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_DOUBLE:
        return read_real(reader, field, negative, value);
    case PROTOBUF_C_TYPE_BOOL:
        return read_bool(reader, field, value);
    case PROTOBUF_C_TYPE_ENUM:
        return read_enum(reader, field, negative, value);
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
        return read_string(reader, field, value);
    default:
        return read_integer(reader, field, negative, value);
    }
}
