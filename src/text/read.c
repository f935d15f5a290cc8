/* What the readers of tokenizers' files share: members of objects. See text/read.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#define LS_READ_C
#include "text/read.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

int ls_read_refuse(const struct ls_token_reader *reader, const struct ls_json_node *node,
                   const char *hint, const char *format, ...)
{
    char place[320], message[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    ls_json_place(reader->tree, node, place);
    return ls_fail(reader->error, LOCKSTEP_DATA, place, hint, "%s", message);
}

int ls_read_known(const struct ls_token_reader *reader, const struct ls_json_node *node,
                  const char *what, const char *const *known)
{
    if (node->kind != LS_JSON_OBJECT)
        return ls_read_refuse(reader, node, NULL, "%s is no object", what);
    for (const struct ls_json_node *i = ls_json_first(reader->tree, node); i != NULL;
         i = ls_json_next(reader->tree, i)) {
        const char *name = ls_json_name(reader->tree, i);
        bool found = false;
        for (size_t k = 0; known[k] != NULL && !found; k++)
            found = strcmp(known[k], name) == 0;
        if (!found)
            return ls_read_refuse(reader, i, NULL,
                                  "%s has a member '%.100s', which is not supported", what, name);
    }
    return 0;
}

/* A member that is there and not null. */
static const struct ls_json_node *member(const struct ls_token_reader *reader,
                                         const struct ls_json_node *node, const char *name)
{
    const struct ls_json_node *found = ls_json_find(reader->tree, node, name);
    return found != NULL && found->kind != LS_JSON_NULL ? found : NULL;
}

int ls_read_bool(const struct ls_token_reader *reader, const struct ls_json_node *node,
                 const char *name, bool *value)
{
    const struct ls_json_node *found = member(reader, node, name);
    if (found == NULL)
        return 0;
    if (found->kind != LS_JSON_TRUE && found->kind != LS_JSON_FALSE)
        return ls_read_refuse(reader, found, NULL, "'%s' is neither true nor false", name);
    *value = found->kind == LS_JSON_TRUE;
    return 0;
}

int ls_read_integer(const struct ls_token_reader *reader, const struct ls_json_node *node,
                    const char *name, int64_t most, int64_t *value)
{
    const struct ls_json_node *found = member(reader, node, name);
    if (found == NULL)
        return 0;
    if (found->kind != LS_JSON_INTEGER || found->integer < 0 || found->integer > most)
        return ls_read_refuse(reader, found, NULL, "'%s' is no whole number from 0 to %" PRId64,
                              name, most);
    *value = found->integer;
    return 0;
}

int ls_read_text(const struct ls_token_reader *reader, const struct ls_json_node *node,
                 const char *name, const char **value)
{
    const struct ls_json_node *found = member(reader, node, name);
    if (found == NULL)
        return 0;
    if (found->kind != LS_JSON_STRING)
        return ls_read_refuse(reader, found, NULL, "'%s' is no string", name);
    *value = ls_json_text(reader->tree, found);
    return 0;
}

int ls_read_copy(const struct ls_token_reader *reader, const struct ls_json_node *node,
                 const char *name, char **value)
{
    const char *text = NULL;
    LS_TRY(ls_read_text(reader, node, name, &text));
    if (text == NULL)
        return 0;
    char *copy = ls_copy_string(text);
    if (copy == NULL)
        return ls_fail_memory(reader->error, "a tokenizer");
    ls_free(*value);
    *value = copy;
    return 0;
}

int ls_read_type(const struct ls_token_reader *reader, const struct ls_json_node *node,
                 const char *what, const char **type)
{
    *type = "";
    if (node->kind != LS_JSON_OBJECT)
        return ls_read_refuse(reader, node, NULL, "%s is no object", what);
    return ls_read_text(reader, node, "type", type);
}

int ls_read_pattern(const struct ls_token_reader *reader, const struct ls_json_node *node,
                    struct ls_pattern **pattern)
{
    static const char *const known[] = {"Regex", "String", NULL};
    const struct ls_json_node *found = member(reader, node, "pattern");
    struct ls_problem problem;
    if (found == NULL)
        return ls_read_refuse(reader, node, NULL, "has no 'pattern'");
    LS_TRY(ls_read_known(reader, found, "a pattern", known));
    const struct ls_json_node *text = ls_json_first(reader->tree, found);
    if (found->count != 1 || text->kind != LS_JSON_STRING)
        return ls_read_refuse(reader, found, NULL, "a pattern is one string, 'Regex' or 'String'");
    const bool regex = strcmp(ls_json_name(reader->tree, text), "Regex") == 0;
    if (text->length == 0)
        return ls_read_refuse(reader, text, NULL, "an empty pattern is not supported");
    const int status =
        ls_pattern_compile(ls_json_text(reader->tree, text),
                           regex ? LS_PATTERN_ONIGURUMA : LS_PATTERN_LITERAL, pattern, &problem);
    if (status == LOCKSTEP_RESOURCE)
        return ls_fail_memory(reader->error, "a regular expression");
    return status == 0 ? 0
                       : ls_read_refuse(reader, text, problem.hint[0] != '\0' ? problem.hint : NULL,
                                        "%s", problem.message);
}

int ls_read_array(const struct ls_token_reader *reader, const struct ls_json_node *node,
                  const char *name, const struct ls_json_node **first)
{
    const struct ls_json_node *found = member(reader, node, name);
    if (found == NULL || found->kind != LS_JSON_ARRAY)
        return ls_read_refuse(reader, found != NULL ? found : node, NULL,
                              found != NULL ? "'%s' is no array" : "there is no array '%s'", name);
    *first = ls_json_first(reader->tree, found);
    return 0;
}
