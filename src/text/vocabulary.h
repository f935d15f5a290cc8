/* Tokens and their ids.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TEXT_VOCABULARY_H
#define LS_TEXT_VOCABULARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Ids are less. (There is an array over all of them, so an id that is out of proportion would take
 * memory for all those below it.) */
#define LS_TOKEN_IDS ((uint32_t)1 << 24)

struct ls_token_vocabulary_entry {
    size_t begin; /* in `bytes` */
    uint32_t length, id;
};

/* Empty where it is all zeros. */
struct ls_token_vocabulary {
    char *bytes; /* of all tokens, one behind the other, each with a NUL behind it */
    size_t size, capacity;
    struct ls_token_vocabulary_entry *entries;
    size_t count, entry_capacity;
    uint32_t *slots; /* entry + 1 by the hash of its bytes; 0: free */
    size_t slot_count;
    uint32_t *by_id; /* entry + 1; 0: no token has this id */
    size_t id_count; /* the largest id + 1 */
    size_t id_capacity;
    uint32_t longest; /* bytes of the longest token */
    /* Whether a token has so many bytes, up to the longest: what looks for the longest token that a
     * word begins with looks for these lengths alone, which are few, however long one of them is.
     */
    bool *has_length;
};

enum ls_token_vocabulary_answer {
    LS_TOKEN_VOCABULARY_ADDED,
    LS_TOKEN_VOCABULARY_SAME_TOKEN, /* is there already */
    LS_TOKEN_VOCABULARY_SAME_ID,    /* another token has it */
    LS_TOKEN_VOCABULARY_FULL        /* out of memory */
};

/* `id` is less than LS_TOKEN_IDS. */
enum ls_token_vocabulary_answer ls_token_vocabulary_add(struct ls_token_vocabulary *vocabulary,
                                                        const char *token, size_t length,
                                                        uint32_t id);
bool ls_token_vocabulary_find(const struct ls_token_vocabulary *vocabulary, const char *token,
                              size_t length, uint32_t *id);
/* The bytes of an id, with a NUL behind them; NULL where no token has it. */
const char *ls_token_vocabulary_token(const struct ls_token_vocabulary *vocabulary, uint32_t id,
                                      size_t *length);
void ls_token_vocabulary_free(struct ls_token_vocabulary *vocabulary);

#endif
