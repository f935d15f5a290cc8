/* Tokens that are found in a text as they are. See text/added.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "text/added.h"

#include "base/memory.h"

/* A node of `byte` among `*list` and its siblings, made if it is not there; 0: out of memory. */
static uint32_t enter(struct ls_added_tree *tree, uint32_t above, unsigned char byte)
{
    uint32_t at = above != 0 ? tree->nodes[above].child : tree->first[byte];
    for (; at != 0; at = tree->nodes[at].sibling)
        if (tree->nodes[at].byte == byte)
            return at;
    if (!LS_GROW(tree->nodes, tree->count + 1, tree->capacity))
        return 0;
    if (tree->count == 0)
        tree->nodes[tree->count++] = (struct ls_added_node){0}; /* 0 is no node */
    at = (uint32_t)tree->count++;
    tree->nodes[at] =
        (struct ls_added_node){.byte = byte, .sibling = above != 0 ? tree->nodes[above].child : 0};
    if (above != 0)
        tree->nodes[above].child = at;
    else
        tree->first[byte] = at;
    return at;
}

bool ls_added_put(struct ls_added_tree *tree, const char *bytes, size_t length, uint32_t token)
{
    uint32_t at = 0;
    for (size_t i = 0; i < length; i++) {
        at = enter(tree, at, (unsigned char)bytes[i]);
        if (at == 0)
            return false;
    }
    if (length > 0 && tree->nodes[at].token == 0)
        tree->nodes[at].token = token + 1;
    return true;
}

int64_t ls_added_at(const struct ls_added_tree *tree, const char *text, size_t size, size_t at,
                    size_t *length)
{
    int64_t found = -1;
    uint32_t node = tree->first[(unsigned char)text[at]];
    for (size_t i = at; node != 0;) {
        i++;
        if (tree->nodes[node].token != 0) {
            found = (int64_t)tree->nodes[node].token - 1;
            *length = i - at;
        }
        if (i == size)
            break;
        node = tree->nodes[node].child;
        while (node != 0 && tree->nodes[node].byte != (unsigned char)text[i])
            node = tree->nodes[node].sibling;
    }
    return found;
}

void ls_added_free(struct ls_added *added)
{
    for (size_t i = 0; i < added->count; i++)
        ls_free(added->tokens[i].shown);
    ls_token_vocabulary_free(&added->vocabulary);
    ls_free(added->tokens);
    for (int i = 0; i < 2; i++)
        ls_free(added->trees[i].nodes);
    *added = (struct ls_added){0};
}
