/* Tokens that are found in a text as they are, before a model sees it.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TEXT_ADDED_H
#define LS_TEXT_ADDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text/vocabulary.h"

enum { LS_ADDED_MAX_BYTES = 1024 };

struct ls_added_token {
    uint32_t id;
    bool special;     /* stands for no text */
    bool single_word; /* is found where no word goes on into it */
    bool left, right; /* takes white space there along */
    bool normalized;  /* is looked for in the normalized text */
    char *shown; /* what it is decoded to, where that is not what the file has: its text as it is
                    looked for, as the tokenizers package does; else NULL */
    size_t shown_length;
};

/* A tree of bytes: those of a token lead from its root to where the token is. */
struct ls_added_node {
    uint32_t child, sibling; /* 0: none */
    uint32_t token;          /* index + 1; 0: no token ends here */
    unsigned char byte;
};
struct ls_added_tree {
    struct ls_added_node *nodes;
    size_t count, capacity;
    uint32_t first[256]; /* the node of a first byte; 0: none */
};

struct ls_added {
    struct ls_token_vocabulary vocabulary;
    struct ls_added_token *tokens;
    size_t count, capacity;
    struct ls_added_tree trees[2]; /* of the text as it is, and normalized */
};

/* Puts a token's bytes into a tree; false: out of memory. Of two with the same bytes the first
 * stays. */
bool ls_added_put(struct ls_added_tree *tree, const char *bytes, size_t length, uint32_t token);

/* The longest token that begins at `at`: its index, or -1; *length its bytes. */
int64_t ls_added_at(const struct ls_added_tree *tree, const char *text, size_t size, size_t at,
                    size_t *length);
void ls_added_free(struct ls_added *added);

#endif
