/* A whole JSON text as a tree, for files whose members come in any order.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_BASE_JSON_TREE_H
#define LS_BASE_JSON_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

enum ls_json_kind {
    LS_JSON_NULL,
    LS_JSON_FALSE,
    LS_JSON_TRUE,
    LS_JSON_INTEGER,
    LS_JSON_NUMBER, /* with a fraction or an exponent, or beyond int64_t */
    LS_JSON_STRING,
    LS_JSON_ARRAY,
    LS_JSON_OBJECT
};

/* A value, and its name where it is a member of an object. */
struct ls_json_node {
    enum ls_json_kind kind;
    uint32_t first;  /* ARRAY, OBJECT: the first inside; 0: none */
    uint32_t next;   /* of the same array or object; 0: none */
    uint32_t count;  /* ARRAY, OBJECT: how many are inside */
    uint32_t name;   /* a member's: where it begins in `strings` */
    uint32_t string; /* STRING: the same */
    uint32_t length; /* STRING: bytes; neither has a NUL in it */
    uint32_t at;     /* the byte of the text where it begins */
    double number;   /* NUMBER */
    int64_t integer; /* INTEGER */
};

struct ls_json_tree {
    const char *path, *text;    /* borrowed */
    struct ls_json_node *nodes; /* nodes[0] is the whole */
    size_t count, capacity;
    struct ls_text strings;
};

/* Reads `text`, of at most 1 GiB, which must stay where it is. `path` is for messages, which say
 * line and column; `status` is that of a text that is no JSON, has nested values more than 64 deep,
 * or has an object with two members of one name. */
int ls_json_tree_read(const char *path, const char *text, size_t size, int status,
                      struct ls_json_tree *tree, struct ls_error *error);
void ls_json_tree_free(struct ls_json_tree *tree);

/* NULL: `node` is NULL, no object, or has no such member. */
const struct ls_json_node *ls_json_find(const struct ls_json_tree *tree,
                                        const struct ls_json_node *node, const char *name);
/* Values inside an array or an object, in order; NULL behind the last. */
const struct ls_json_node *ls_json_first(const struct ls_json_tree *tree,
                                         const struct ls_json_node *node);
const struct ls_json_node *ls_json_next(const struct ls_json_tree *tree,
                                        const struct ls_json_node *node);
const char *ls_json_name(const struct ls_json_tree *tree, const struct ls_json_node *node);
const char *ls_json_text(const struct ls_json_tree *tree, const struct ls_json_node *node);

/* "path:line:column" of a value; what it begins with is kept of a long path. */
void ls_json_place(const struct ls_json_tree *tree, const struct ls_json_node *node,
                   char place[320]);

#endif
