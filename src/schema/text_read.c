/* Reads text into messages. What a message cannot hold is reported and skipped, so that all
 * problems of a file are found in one go; where the shape of the text itself is broken, reading
 * ends, because all that follows would be guesses.
 *
 * A field's place is that of its name; a message's place is the same.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "schema/text_read.h"

#include <string.h>

#include "base/memory.h"
#include "schema/fields.h"
#include "schema/forks.h"

/* Lists of numbers may be long: places are kept for this many of them. */
enum { PLACES_OF_LIST_MAX = 1024 };

/* Reports the fields that were not known. */
static void tell_unknown(struct ls_text_reader *reader)
{
    const char *file = reader->source != NULL ? reader->source : reader->definition->file;
    int found =
        ls_unknown_tell(&reader->unknown, reader->definition, file, reader->whole, reader->error);
    reader->problems += found > 0 ? found : 0;
    reader->no_memory |= found < 0;
}

/* The text cannot go on like this: reports what was expected and ends the reading. */
static int broken(struct ls_text_reader *reader, const char *expected)
{
    const struct ls_token *token = &reader->lexer.token;
    char shown[48];
    tell_unknown(reader);
    if (token->kind == LS_TOKEN_BAD)
        ls_reader_problem(reader, token, NULL, "%s", reader->lexer.complaint);
    else
        ls_reader_problem(reader, token, NULL, "expected %s, found %s", expected,
                          ls_token_shown(token, shown));
    reader->ended = true;
    return LOCKSTEP_DEFINITION;
}

/* Remembers that a value (or the message itself) stands at a token. */
static bool add_place(struct ls_text_reader *reader, const void *message, uint32_t field,
                      size_t index, const struct ls_token *token)
{
    if (index >= PLACES_OF_LIST_MAX)
        return true;
    struct ls_place_entry entry = {
        .message = message,
        .field = field,
        .index = (uint32_t)index,
        .line = reader->whole ? 0 : token->line,
        .column = token->column,
        .source = reader->source,
    };
    return ls_places_add(reader->definition->places, &entry);
}

/* Ends a block that was opened by `open` ('{', '<' or '['). */
static char closing(char open)
{
    return open == '{' ? '}' : open == '<' ? '>' : ']';
}

/* Skips a bracketed block with all that is in it. */
static int skip_block(struct ls_text_reader *reader)
{
    struct ls_lexer *lexer = &reader->lexer;
    char open[LS_NESTING_MAX];
    size_t depth = 0;
    do {
        if (ls_lex_is(lexer, '{') || ls_lex_is(lexer, '<') || ls_lex_is(lexer, '[')) {
            if (depth == LS_NESTING_MAX)
                return broken(reader, "fewer messages within messages");
            open[depth++] = *lexer->token.start;
        } else if (depth > 0 &&
                   (ls_lex_is(lexer, '}') || ls_lex_is(lexer, '>') || ls_lex_is(lexer, ']'))) {
            char wanted[] = {'\'', closing(open[depth - 1]), '\'', '\0'};
            if (*lexer->token.start != wanted[1])
                return broken(reader, wanted);
            depth--;
        } else if (lexer->token.kind == LS_TOKEN_END || lexer->token.kind == LS_TOKEN_BAD) {
            return broken(reader, "the end of a block");
        }
        ls_lex_next(lexer);
    } while (depth > 0);
    return 0;
}

/* Skips one value that is not a message. */
static int skip_scalar(struct ls_text_reader *reader)
{
    struct ls_lexer *lexer = &reader->lexer;
    if (ls_lex_is(lexer, '-'))
        ls_lex_next(lexer);
    if (lexer->token.kind == LS_TOKEN_STRING) {
        while (lexer->token.kind == LS_TOKEN_STRING)
            ls_lex_next(lexer);
        return 0;
    }
    if (lexer->token.kind != LS_TOKEN_NAME && lexer->token.kind != LS_TOKEN_INTEGER &&
        lexer->token.kind != LS_TOKEN_FLOAT)
        return broken(reader, "a value");
    ls_lex_next(lexer);
    return 0;
}

/* Skips what stands behind the name of a field. */
static int skip_value(struct ls_text_reader *reader)
{
    struct ls_lexer *lexer = &reader->lexer;
    bool colon = ls_lex_is(lexer, ':');
    if (colon)
        ls_lex_next(lexer);
    if (ls_lex_is(lexer, '{') || ls_lex_is(lexer, '<') || (colon && ls_lex_is(lexer, '[')))
        return skip_block(reader);
    if (!colon)
        return broken(reader, "':' or '{'");
    return skip_scalar(reader);
}

/* An allocation failed, or the text says more than the arena's limit allows. */
static int no_memory(struct ls_text_reader *reader)
{
    reader->ended = true;
    if (ls_arena_limit_hit(reader->definition->arena))
        return ls_fail(reader->error, LOCKSTEP_DEFINITION, reader->definition->file, NULL,
                       "the file says far more than a definition can");
    return ls_fail_memory(reader->error, "a definition");
}

static int read_message(struct ls_text_reader *reader, ProtobufCMessage *message, char end);

/* Whether a message is a layer of either form. */
static bool is_layer(const ProtobufCMessage *message)
{
    return message->descriptor == &lockstep__layer_parameter__descriptor ||
           message->descriptor == &lockstep__v1_layer_parameter__descriptor;
}

/* Whether a message is a block, of a net or within another block. */
static bool is_block(const ProtobufCMessage *message)
{
    return message->descriptor == &lockstep__block_parameter__descriptor ||
           message->descriptor == &lockstep__inner_block_parameter__descriptor ||
           message->descriptor == &lockstep__innermost_block_parameter__descriptor;
}

/* Remembers how many layers stand before a block: lists of fields do not keep their order. */
static bool note_position(struct ls_text_reader *reader, const ProtobufCMessage *parent,
                          const ProtobufCMessage *block)
{
    struct ls_place_entry entry = {
        .message = block,
        .field = LS_FIELD_POSITION,
        .line = (uint32_t)ls_field_count(parent, ls_field_named(parent->descriptor, "layer")),
    };
    return ls_places_add(reader->definition->places, &entry);
}

/* A message between brackets, as a value of a field. `name` is the token of the field. */
static int read_child(struct ls_text_reader *reader, ProtobufCMessage *parent,
                      const ProtobufCFieldDescriptor *field, const struct ls_token *name)
{
    struct ls_lexer *lexer = &reader->lexer;
    if (!ls_lex_is(lexer, '{') && !ls_lex_is(lexer, '<'))
        return broken(reader, "'{'");
    if (reader->depth == LS_NESTING_MAX)
        return broken(reader, "fewer messages within messages");
    char end = closing(*lexer->token.start);
    struct ls_arena *arena = reader->definition->arena;
    ProtobufCMessage *child = ls_arena_message(arena, field->descriptor);
    if (child == NULL || !ls_field_put(arena, parent, field, &child) ||
        !add_place(reader, child, LS_FIELD_NONE, 0, name) ||
        (is_block(child) && !note_position(reader, parent, child)))
        return no_memory(reader);
    ls_lex_next(lexer);
    const ProtobufCMessage *outer = reader->layer;
    if (is_layer(child))
        reader->layer = child;
    reader->depth++;
    int status = read_message(reader, child, end);
    reader->depth--;
    reader->layer = outer;
    return status;
}

/* One value of a field: a message or a scalar. `at` is the token that its place is. */
static int read_one(struct ls_text_reader *reader, ProtobufCMessage *message,
                    const ProtobufCFieldDescriptor *field, const struct ls_token *at)
{
    size_t index = ls_field_is_repeated(field) ? ls_field_count(message, field) : 0;
    if (!add_place(reader, message, field->id, index, at))
        return no_memory(reader);
    if (field->type == PROTOBUF_C_TYPE_MESSAGE)
        return read_child(reader, message, field, at);
    union ls_scalar value;
    switch (ls_read_scalar(reader, field, &value)) {
    case LS_SCALAR_OK:
        return ls_field_put(reader->definition->arena, message, field, &value) ? 0
                                                                               : no_memory(reader);
    case LS_SCALAR_WRONG:
        return 0; /* reported */
    case LS_SCALAR_NO_MEMORY:
        return no_memory(reader);
    default:
        return broken(reader, "a value");
    }
}

/* "[a, b]", where each value has a place of its own. */
static int read_list(struct ls_text_reader *reader, ProtobufCMessage *message,
                     const ProtobufCFieldDescriptor *field)
{
    struct ls_lexer *lexer = &reader->lexer;
    ls_lex_next(lexer);
    if (ls_lex_is(lexer, ']')) {
        ls_lex_next(lexer);
        return 0;
    }
    for (;;) {
        struct ls_token at = lexer->token;
        LS_TRY(read_one(reader, message, field, &at));
        if (ls_lex_is(lexer, ']')) {
            ls_lex_next(lexer);
            return 0;
        }
        if (!ls_lex_is(lexer, ','))
            return broken(reader, "',' or ']'");
        ls_lex_next(lexer);
    }
}

/* Whether a field that may be given once was given before. */
static bool is_given(const struct ls_text_reader *reader, const ProtobufCMessage *message,
                     const ProtobufCFieldDescriptor *field)
{
    return !ls_field_is_repeated(field) &&
           ls_places_find(reader->definition->places, message, field->id, 0) != NULL;
}

/* What stands behind the name of a known field: one value, or a list. */
static int read_field(struct ls_text_reader *reader, ProtobufCMessage *message,
                      const ProtobufCFieldDescriptor *field, const struct ls_token *name)
{
    struct ls_lexer *lexer = &reader->lexer;
    if (is_given(reader, message, field) &&
        ls_fork_repeats(message->descriptor->short_name, field->name))
        return add_place(reader, message, field->id, 1, name) ? skip_value(reader)
                                                              : no_memory(reader);
    if (is_given(reader, message, field)) {
        char place[LS_PLACE_MAX];
        ls_place(reader->definition, message, field->name, place, sizeof place);
        ls_reader_problem(reader, name, NULL, "field '%s' is given twice; it was set at %s",
                          field->name, place);
        return skip_value(reader);
    }
    bool colon = ls_lex_is(lexer, ':');
    if (!colon && field->type != PROTOBUF_C_TYPE_MESSAGE) {
        char expected[160];
        snprintf(expected, sizeof expected, "':' behind '%s'", field->name);
        return broken(reader, expected);
    }
    if (colon)
        ls_lex_next(lexer);
    if (!ls_lex_is(lexer, '['))
        return read_one(reader, message, field, name);
    if (ls_field_is_repeated(field))
        return read_list(reader, message, field);
    if (ls_fork_lists(message->descriptor->short_name, field->name))
        return skip_block(reader);
    ls_reader_problem(reader, name, NULL, "field '%s' takes one value, not a list", field->name);
    return skip_block(reader);
}

/* Names in brackets are extensions and Any messages, of which this language has none. */
static int skip_extension(struct ls_text_reader *reader)
{
    ls_reader_problem(reader, &reader->lexer.token, NULL, "there are no extensions here");
    LS_TRY(skip_block(reader));
    return skip_value(reader);
}

/* A number or word as it stands, or a string, as a value of a plugin's setting. */
static int read_setting_value(struct ls_text_reader *reader, ProtobufCMessage *setting,
                              const ProtobufCFieldDescriptor *values)
{
    struct ls_lexer *lexer = &reader->lexer;
    struct ls_token at = lexer->token;
    char text[128];
    if (at.kind == LS_TOKEN_STRING)
        return read_one(reader, setting, values, &at);
    bool negative = ls_lex_is(lexer, '-');
    if (negative)
        ls_lex_next(lexer);
    const struct ls_token *token = &lexer->token;
    if ((token->kind != LS_TOKEN_NAME && token->kind != LS_TOKEN_INTEGER &&
         token->kind != LS_TOKEN_FLOAT) ||
        token->length > sizeof text - 2)
        return broken(reader, "a value");
    snprintf(text, sizeof text, "%s%.*s", negative ? "-" : "", (int)token->length, token->start);
    char *copy = ls_arena_copy_string(reader->definition->arena, text);
    if (copy == NULL || !ls_field_put(reader->definition->arena, setting, values, &copy))
        return no_memory(reader);
    ls_lex_next(lexer);
    return 0;
}

/* "key: value" or "key: [a, b]" of a plugin_param, whose keys are the plugin's own. */
static int read_setting(struct ls_text_reader *reader, ProtobufCMessage *parent,
                        const struct ls_token *name)
{
    struct ls_lexer *lexer = &reader->lexer;
    struct ls_arena *arena = reader->definition->arena;
    Lockstep__PluginSetting *setting =
        (Lockstep__PluginSetting *)ls_arena_message(arena, &lockstep__plugin_setting__descriptor);
    if (setting == NULL ||
        (setting->key = ls_arena_copy(arena, name->start, name->length)) == NULL ||
        !ls_field_put(arena, parent, ls_field_named(parent->descriptor, "set"), &setting) ||
        !add_place(reader, setting, LS_FIELD_NONE, 0, name))
        return no_memory(reader);
    const ProtobufCFieldDescriptor *values = ls_field_named(setting->base.descriptor, "value");
    if (!ls_lex_is(lexer, ':'))
        return broken(reader, "':' behind the name of a setting");
    ls_lex_next(lexer);
    if (!ls_lex_is(lexer, '['))
        return read_setting_value(reader, &setting->base, values);
    do {
        ls_lex_next(lexer);
        LS_TRY(read_setting_value(reader, &setting->base, values));
    } while (ls_lex_is(lexer, ','));
    if (!ls_lex_is(lexer, ']'))
        return broken(reader, "',' or ']'");
    ls_lex_next(lexer);
    return 0;
}

/* A field that the schema does not have: another name of one that it has, or it is noted and gone
 * over. */
static int read_unknown(struct ls_text_reader *reader, ProtobufCMessage *message,
                        const struct ls_token *name)
{
    char text[128];
    const ProtobufCMessageDescriptor *type = message->descriptor;
    if (type == &lockstep__plugin_parameter__descriptor)
        return read_setting(reader, message, name);
    snprintf(text, sizeof text, "%.*s", name->length < 100 ? (int)name->length : 100, name->start);
    const struct ls_fork_field *fork = ls_fork_field(type->short_name, text);
    if (fork != NULL && fork->effect == LS_FORK_RENAMED)
        return read_field(reader, message, ls_field_named(type, fork->hint), name);
    if (!ls_unknown_add(&reader->unknown, reader->definition->arena, type, text, NULL,
                        reader->layer, name))
        return no_memory(reader);
    if (fork == NULL || fork->effect != LS_FORK_IGNORED)
        ls_reader_damage(reader);
    return skip_value(reader);
}

/* A name and what belongs to it. */
static int read_entry(struct ls_text_reader *reader, ProtobufCMessage *message)
{
    struct ls_lexer *lexer = &reader->lexer;
    if (ls_lex_is(lexer, '['))
        return skip_extension(reader);
    if (lexer->token.kind != LS_TOKEN_NAME)
        return broken(reader, "the name of a field");
    struct ls_token name = lexer->token;
    const ProtobufCFieldDescriptor *field = NULL;
    char text[128];
    if (name.length < sizeof text) {
        memcpy(text, name.start, name.length);
        text[name.length] = '\0';
        field = ls_field_named(message->descriptor, text);
    }
    ls_lex_next(lexer);
    if (field != NULL)
        return read_field(reader, message, field, &name);
    return read_unknown(reader, message, &name);
}

/* Values of required scalars have no flags; whether they were given is known by their places. */
static void check_required(struct ls_text_reader *reader, const ProtobufCMessage *message)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;
    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        if (field->label != PROTOBUF_C_LABEL_REQUIRED || is_given(reader, message, field))
            continue;
        char place[LS_PLACE_MAX];
        ls_place(reader->definition, message, NULL, place, sizeof place);
        ls_fail(reader->error, LOCKSTEP_DEFINITION, place, NULL, "%s needs a value for '%s'",
                type->short_name, field->name);
        reader->problems++;
        ls_reader_damage(reader);
    }
}

/* Fields up to the character `end` ('\0': the end of the text). */
static int read_message(struct ls_text_reader *reader, ProtobufCMessage *message, char end)
{
    struct ls_lexer *lexer = &reader->lexer;
    while (end == '\0' ? lexer->token.kind != LS_TOKEN_END : !ls_lex_is(lexer, end)) {
        if (lexer->token.kind == LS_TOKEN_END) {
            char place[LS_PLACE_MAX], expected[LS_PLACE_MAX + 64];
            ls_place(reader->definition, message, NULL, place, sizeof place);
            snprintf(expected, sizeof expected, "'%c' for the message that begins at %s", end,
                     place);
            return broken(reader, expected);
        }
        LS_TRY(read_entry(reader, message));
        if (ls_lex_is(lexer, ',') || ls_lex_is(lexer, ';'))
            ls_lex_next(lexer);
    }
    if (end != '\0')
        ls_lex_next(lexer);
    check_required(reader, message);
    return 0;
}

/* Reads a whole text into a message. */
static int read_text(struct ls_text_reader *reader, ProtobufCMessage *message, const char *text,
                     size_t length)
{
    ls_lex_begin(&reader->lexer, text, length);
    reader->layer = is_layer(message) ? message : NULL;
    int status = read_message(reader, message, '\0');
    ls_text_free(&reader->string);
    if (status == 0)
        tell_unknown(reader);
    ls_unknown_free(&reader->unknown);
    if (status == 0 && reader->no_memory)
        return no_memory(reader);
    if (status != 0)
        return status;
    return reader->problems > 0 ? LOCKSTEP_DEFINITION : 0;
}

int ls_text_merge(struct ls_definition *definition, ProtobufCMessage *message, const char *source,
                  bool whole, const char *text, size_t length, struct ls_error *error)
{
    struct ls_text_reader reader = {.definition = definition, .error = error, .whole = whole};
    if (source != NULL) {
        reader.source = ls_arena_copy_string(definition->arena, source);
        if (reader.source == NULL)
            return no_memory(&reader);
    }
    return read_text(&reader, message, text, length);
}

/* Bytes of memory that a text may take: a message of the largest type needs about a thousand and
 * at least four characters of text. */
static size_t memory_limit(size_t length)
{
    size_t floor = (size_t)64 << 20;
    return length < SIZE_MAX / 32 - floor ? floor + 32 * length : SIZE_MAX;
}

int ls_text_read_partly(const char *file, const char *text, size_t length,
                        const ProtobufCMessageDescriptor *type, struct ls_definition **out,
                        struct ls_error *error)
{
    *out = NULL;
    struct ls_definition *definition = ls_definition_new(file, memory_limit(length), type);
    if (definition == NULL)
        return ls_fail_memory(error, "a definition");
    struct ls_text_reader reader = {.definition = definition, .error = error};
    int status = read_text(&reader, definition->message, text, length);
    if (reader.ended)
        ls_definition_free(definition);
    else
        *out = definition;
    return status;
}

int ls_text_read(const char *file, const char *text, size_t length,
                 const ProtobufCMessageDescriptor *type, struct ls_definition **out,
                 struct ls_error *error)
{
    int status = ls_text_read_partly(file, text, length, type, out, error);
    if (status != 0) {
        ls_definition_free(*out);
        *out = NULL;
    }
    return status;
}

int ls_text_affinity(const char *text, size_t length, const ProtobufCMessageDescriptor *type)
{
    struct ls_lexer lexer;
    int depth = 0, found = 0;
    for (ls_lex_begin(&lexer, text, length); lexer.token.kind != LS_TOKEN_END;
         ls_lex_next(&lexer)) {
        const struct ls_token *token = &lexer.token;
        char name[128];
        if (token->kind == LS_TOKEN_BAD)
            return -1;
        if (token->kind == LS_TOKEN_SYMBOL && strchr("{<[", *token->start) != NULL)
            depth++;
        else if (token->kind == LS_TOKEN_SYMBOL && strchr("}>]", *token->start) != NULL)
            depth--;
        else if (depth == 0 && token->kind == LS_TOKEN_NAME && token->length < sizeof name) {
            memcpy(name, token->start, token->length);
            name[token->length] = '\0';
            found += ls_field_named(type, name) != NULL;
        }
    }
    return found;
}
