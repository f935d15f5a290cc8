/* A whole JSON text as a tree. See base/json_tree.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/json_tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/memory.h"

enum { DEPTH_MAX = 64 };
static const size_t SIZE_MOST = (size_t)1 << 30; /* so that 32 bits hold every place */

struct reader {
    struct ls_json json;
    struct ls_json_tree *tree;
    bool memory; /* it has run out */
};

static bool fail(struct reader *reader, const char *problem)
{
    if (reader->json.problem == NULL)
        reader->json.problem = problem;
    return false;
}

/* Line and column, both from 1, of a byte. */
static void place_of(const char *path, const char *text, size_t at, char place[320])
{
    size_t line = 1, begin = 0;
    for (size_t i = 0; i < at; i++) {
        if (text[i] == '\n') {
            line++;
            begin = i + 1;
        }
    }
    snprintf(place, 320, "%.270s:%zu:%zu", path, line, at - begin + 1);
}

void ls_json_place(const struct ls_json_tree *tree, const struct ls_json_node *node,
                   char place[320])
{
    place_of(tree->path, tree->text, node->at, place);
}

/* The index of a new node at the reader's place; 0, which no value inside has: out of memory. */
static uint32_t add_node(struct reader *reader)
{
    struct ls_json_tree *tree = reader->tree;
    if (!LS_GROW(tree->nodes, tree->count, tree->capacity)) {
        reader->memory = true;
        return 0;
    }
    tree->nodes[tree->count] = (struct ls_json_node){.at = (uint32_t)reader->json.at};
    return (uint32_t)tree->count++;
}

/* Reads a string into the tree's, with a NUL behind it; *length without it. */
static bool take_string(struct reader *reader, uint32_t *begin, uint32_t *length)
{
    struct ls_text *strings = &reader->tree->strings;
    *begin = (uint32_t)strings->length;
    if (!ls_json_read_string(&reader->json, strings))
        return false;
    *length = (uint32_t)(strings->length - *begin);
    ls_text_add_bytes(strings, "", 1);
    if (strings->failed)
        reader->memory = true;
    return !strings->failed;
}

static bool take_word(struct reader *reader, const char *word)
{
    struct ls_json *json = &reader->json;
    const size_t length = strlen(word);
    if (json->size - json->at < length || memcmp(json->text + json->at, word, length) != 0)
        return false;
    json->at += length;
    return true;
}

static size_t digits(const struct ls_json *json, size_t at)
{
    size_t count = 0;
    while (at + count < json->size && json->text[at + count] >= '0' &&
           json->text[at + count] <= '9')
        count++;
    return count;
}

/* The length of a number as JSON has it; 0: there is none. *whole: neither fraction nor exponent.
 */
static size_t number_length(const struct ls_json *json, bool *whole)
{
    const char *text = json->text;
    size_t at = json->at;
    at += at < json->size && text[at] == '-';
    const size_t integer = digits(json, at);
    if (integer == 0 || (integer > 1 && text[at] == '0'))
        return 0;
    at += integer;
    *whole = true;
    if (at < json->size && text[at] == '.') {
        const size_t fraction = digits(json, at + 1);
        if (fraction == 0)
            return 0;
        at += 1 + fraction;
        *whole = false;
    }
    if (at < json->size && (text[at] == 'e' || text[at] == 'E')) {
        at++;
        at += at < json->size && (text[at] == '+' || text[at] == '-');
        const size_t exponent = digits(json, at);
        if (exponent == 0)
            return 0;
        at += exponent;
        *whole = false;
    }
    return at - json->at;
}

static bool take_number(struct reader *reader, struct ls_json_node *node)
{
    struct ls_json *json = &reader->json;
    char copy[64];
    bool whole;
    const size_t length = number_length(json, &whole);
    if (length == 0)
        return fail(reader, "a value was expected");
    if (length >= sizeof copy)
        return fail(reader, "a number of more than 63 characters");
    memcpy(copy, json->text + json->at, length);
    copy[length] = '\0';
    json->at += length;
    node->kind = whole && length < 19 ? LS_JSON_INTEGER : LS_JSON_NUMBER;
    if (node->kind == LS_JSON_INTEGER)
        node->integer = strtoll(copy, NULL, 10);
    else
        node->number = ls_parse_double(copy);
    return true;
}

static bool take_value(struct reader *reader, int depth, uint32_t *index);

/* Whether two members have one name: of many through a table of hashes, which stand for names, as
 * two different ones have the same hash once in a lifetime, and then it is looked at. */
static bool names_differ(struct reader *reader, const struct ls_json_node *object)
{
    const struct ls_json_tree *tree = reader->tree;
    size_t slots = 16;
    while (slots < 2 * (size_t)object->count)
        slots *= 2;
    uint32_t *slot = ls_alloc(slots, sizeof *slot);
    if (slot == NULL) {
        reader->memory = true;
        return false;
    }
    bool differ = true;
    for (uint32_t i = object->first; i != 0 && differ; i = tree->nodes[i].next) {
        const char *name = tree->strings.data + tree->nodes[i].name;
        size_t at = ls_hash_string(name, 0) & (slots - 1);
        for (; slot[at] != 0 && differ; at = (at + 1) & (slots - 1))
            differ = strcmp(tree->strings.data + tree->nodes[slot[at]].name, name) != 0;
        slot[at] = i;
        if (!differ)
            reader->json.at = tree->nodes[i].at;
    }
    ls_free(slot);
    return differ || fail(reader, "a second member of the same name");
}

/* What is between the brackets of an array or an object, and the last of them. */
static bool take_inside(struct reader *reader, int depth, uint32_t index, char end)
{
    struct ls_json *json = &reader->json;
    uint32_t last = 0, count = 0;
    if (depth == DEPTH_MAX)
        return fail(reader, "values nested more than 64 deep");
    if (ls_json_take(json, end))
        return true;
    do {
        uint32_t name = 0, length, inside;
        if (end == '}' && (!take_string(reader, &name, &length) ||
                           !ls_json_expect(json, ':', "a ':' was expected")))
            return false;
        if (!take_value(reader, depth + 1, &inside))
            return false;
        struct ls_json_node *nodes = reader->tree->nodes;
        nodes[inside].name = name;
        if (last == 0)
            nodes[index].first = inside;
        else
            nodes[last].next = inside;
        nodes[index].count = ++count;
        last = inside;
    } while (ls_json_take(json, ','));
    if (!ls_json_expect(json, end,
                        end == '}' ? "a ',' or '}' was expected" : "a ',' or ']' was expected"))
        return false;
    return end == ']' || names_differ(reader, &reader->tree->nodes[index]);
}

static bool take_value(struct reader *reader, int depth, uint32_t *index)
{
    struct ls_json *json = &reader->json;
    (void)ls_json_end(json); /* skips white space */
    *index = add_node(reader);
    if (reader->memory)
        return false;
    struct ls_json_node node = reader->tree->nodes[*index];
    const char c = json->at < json->size ? json->text[json->at] : '\0';
    if (c == '{' || c == '[') {
        json->at++;
        reader->tree->nodes[*index].kind = c == '{' ? LS_JSON_OBJECT : LS_JSON_ARRAY;
        return take_inside(reader, depth, *index, c == '{' ? '}' : ']');
    }
    if (c == '"') {
        node.kind = LS_JSON_STRING;
        if (!take_string(reader, &node.string, &node.length))
            return false;
    } else if (take_word(reader, "true")) {
        node.kind = LS_JSON_TRUE;
    } else if (take_word(reader, "false")) {
        node.kind = LS_JSON_FALSE;
    } else if (take_word(reader, "null")) {
        node.kind = LS_JSON_NULL;
    } else if (!take_number(reader, &node)) {
        return false;
    }
    reader->tree->nodes[*index] = node;
    return true;
}

int ls_json_tree_read(const char *path, const char *text, size_t size, int status,
                      struct ls_json_tree *tree, struct ls_error *error)
{
    struct reader reader = {.json = {.text = text, .size = size}, .tree = tree};
    char place[320];
    uint32_t index;
    *tree = (struct ls_json_tree){.path = path, .text = text};
    if (size > SIZE_MOST)
        return ls_fail(error, status, path, NULL, "has %zu bytes; JSON of at most 1 GiB is read",
                       size);
    if (take_value(&reader, 0, &index) && !ls_json_end(&reader.json))
        fail(&reader, "more text behind the value");
    if (reader.memory || tree->strings.failed) {
        ls_json_tree_free(tree);
        return ls_fail_memory(error, path);
    }
    if (reader.json.problem == NULL)
        return 0;
    place_of(path, text, reader.json.at, place);
    ls_json_tree_free(tree);
    return ls_fail(error, status, place, NULL, "no JSON that can be read: %s", reader.json.problem);
}

void ls_json_tree_free(struct ls_json_tree *tree)
{
    ls_free(tree->nodes);
    ls_text_free(&tree->strings);
    *tree = (struct ls_json_tree){0};
}

const struct ls_json_node *ls_json_find(const struct ls_json_tree *tree,
                                        const struct ls_json_node *node, const char *name)
{
    if (node == NULL || node->kind != LS_JSON_OBJECT)
        return NULL;
    for (const struct ls_json_node *i = ls_json_first(tree, node); i != NULL;
         i = ls_json_next(tree, i))
        if (strcmp(ls_json_name(tree, i), name) == 0)
            return i;
    return NULL;
}

const struct ls_json_node *ls_json_first(const struct ls_json_tree *tree,
                                         const struct ls_json_node *node)
{
    return node->first != 0 ? &tree->nodes[node->first] : NULL;
}

const struct ls_json_node *ls_json_next(const struct ls_json_tree *tree,
                                        const struct ls_json_node *node)
{
    return node->next != 0 ? &tree->nodes[node->next] : NULL;
}

const char *ls_json_name(const struct ls_json_tree *tree, const struct ls_json_node *node)
{
    return tree->strings.data + node->name;
}

const char *ls_json_text(const struct ls_json_tree *tree, const struct ls_json_node *node)
{
    return tree->strings.data + node->string;
}
