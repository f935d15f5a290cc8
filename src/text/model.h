/* Models: from a piece of text to tokens.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TEXT_MODEL_H
#define LS_TEXT_MODEL_H

#include "text/tokenizer.h"

/* Ids that grow in number. */
struct ls_ids {
    uint32_t *items;
    size_t count, capacity;
};
bool ls_ids_add(struct ls_ids *ids, uint32_t id); /* false: out of memory */

/* A token of a word, linked to its neighbours. */
struct ls_symbol {
    uint32_t id, previous, next; /* places, LS_NO_SYMBOL: none */
    bool gone;                   /* has become a part of the one before it */
};
#define LS_NO_SYMBOL UINT32_MAX

/* Two neighbours that may become one: those of the lowest rank first, of these the leftmost. */
struct ls_pending {
    uint32_t rank, at, becomes;
};

/* What a word was made of, for the next time that it is met. */
enum { LS_CACHED_BYTES = 31, LS_CACHED_IDS = 8, LS_CACHED_WORDS = 1 << 15 };
struct ls_cached_word {
    uint8_t length, count; /* a length of 0: free */
    char bytes[LS_CACHED_BYTES];
    uint32_t ids[LS_CACHED_IDS];
};

struct ls_model_room {
    struct ls_symbol *symbols;
    size_t symbol_count, symbol_capacity;
    struct ls_pending *pending;
    size_t pending_count, pending_capacity;
    struct ls_text token;         /* with what is in front of or behind it */
    struct ls_cached_word *words; /* by hash; NULL: none are kept */
};
void ls_model_room_free(struct ls_model_room *room);

/* Appends the tokens of a piece, which is UTF-8 and not empty; false: out of memory. */
bool ls_model_encode(const struct ls_model *model, struct ls_model_room *room, const char *piece,
                     size_t length, struct ls_ids *ids);

/* The same for byte pair encoding alone, in time that is proportional to n log n. */
bool ls_bpe_encode(const struct ls_model *model, struct ls_model_room *room, const char *piece,
                   size_t length, struct ls_ids *ids);

/* A merge of a model; a later one of the same pair counts. `merge_slots` is set, and larger than
 * the number of merges. */
void ls_bpe_put(struct ls_model *model, uint32_t left, uint32_t right, uint32_t rank,
                uint32_t becomes);

#endif
