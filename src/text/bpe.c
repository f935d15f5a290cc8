/* Byte pair encoding: characters become tokens, and the two neighbours whose merge has the lowest
 * rank one, until there is no more to merge (Sennrich, Haddow, Birch: Neural machine translation of
 * rare words with subword units; ACL 2016). SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/heap.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "text/model.h"

/* ---- Merges ---------------------------------------------------------------------------------- */

static struct ls_merge *slot_of(const struct ls_model *model, uint64_t pair)
{
    const size_t mask = model->merge_slots - 1;
    size_t at = ls_mix(pair) & mask;
    while (model->merges[at].becomes != UINT32_MAX && model->merges[at].pair != pair)
        at = (at + 1) & mask;
    return &model->merges[at];
}

void ls_bpe_put(struct ls_model *model, uint32_t left, uint32_t right, uint32_t rank,
                uint32_t becomes)
{
    const uint64_t pair = (uint64_t)left << 32 | right;
    *slot_of(model, pair) = (struct ls_merge){.pair = pair, .rank = rank, .becomes = becomes};
}

/* NULL: there is no such merge. */
static const struct ls_merge *find_merge(const struct ls_model *model, uint32_t left,
                                         uint32_t right)
{
    if (model->merge_slots == 0)
        return NULL;
    const struct ls_merge *slot = slot_of(model, (uint64_t)left << 32 | right);
    return slot->becomes != UINT32_MAX ? slot : NULL;
}

/* ---- A word's characters --------------------------------------------------------------------- */

static bool add_symbol(struct ls_model_room *room, uint32_t id)
{
    if (!LS_GROW(room->symbols, room->symbol_count, room->symbol_capacity))
        return false;
    room->symbols[room->symbol_count++] = (struct ls_symbol){.id = id};
    return true;
}

/* The tokens of single bytes of a character that is no token; *all: each of them has one. */
static bool add_bytes(const struct ls_model *model, struct ls_model_room *room, const char *bytes,
                      size_t length, bool *all)
{
    const size_t before = room->symbol_count;
    *all = true;
    for (size_t i = 0; i < length && *all; i++) {
        char name[8];
        uint32_t id;
        snprintf(name, sizeof name, "<0x%02X>", (unsigned char)bytes[i]);
        *all = ls_token_vocabulary_find(&model->vocabulary, name, strlen(name), &id);
        if (*all && !add_symbol(room, id))
            return false;
    }
    if (!*all)
        room->symbol_count = before;
    return true;
}

/* A character as the vocabulary writes it at its place in the word; *size its bytes. NULL: out of
 * memory. */
static const char *spelled(const struct ls_model *model, struct ls_model_room *room,
                           const char *piece, size_t begin, size_t end, size_t length, size_t *size)
{
    const char *prefix = begin > 0 ? model->prefix : NULL;
    const char *suffix = end == length ? model->suffix : NULL;
    *size = end - begin;
    if (prefix == NULL && suffix == NULL)
        return piece + begin;
    struct ls_text *token = &room->token;
    token->length = 0;
    if (prefix != NULL)
        ls_text_add(token, prefix);
    ls_text_add_bytes(token, piece + begin, end - begin);
    if (suffix != NULL)
        ls_text_add(token, suffix);
    *size = token->length;
    return token->failed ? NULL : token->data;
}

static bool make_symbols(const struct ls_model *model, struct ls_model_room *room,
                         const char *piece, size_t length)
{
    bool unknown = false; /* an unknown character is waiting to be put down */
    room->symbol_count = 0;
    for (size_t at = 0, end; at < length; at = end) {
        uint32_t id;
        size_t size;
        bool all = false;
        end = at + ls_utf8_step(piece[at]);
        const char *token = spelled(model, room, piece, at, end, length, &size);
        if (token == NULL)
            return false;
        if (ls_token_vocabulary_find(&model->vocabulary, token, size, &id)) {
            if ((unknown && !add_symbol(room, model->unknown)) || !add_symbol(room, id))
                return false;
            unknown = false;
            continue;
        }
        if (model->byte_fallback && !add_bytes(model, room, token, size, &all))
            return false;
        if (all || !model->has_unknown)
            continue;
        if (unknown && !model->fuse_unknown && !add_symbol(room, model->unknown))
            return false;
        unknown = true;
    }
    return !unknown || add_symbol(room, model->unknown);
}

/* ---- Merging --------------------------------------------------------------------------------- */

static bool comes_before(const void *a, const void *b, const void *user)
{
    const struct ls_pending *left = a, *right = b;
    (void)user;
    return left->rank != right->rank ? left->rank < right->rank : left->at < right->at;
}

static struct ls_heap heap_of(struct ls_model_room *room)
{
    return (struct ls_heap){
        .elements = room->pending, .size = sizeof *room->pending, .before = comes_before};
}

/* Notes that the symbol at a place may become one with the next. */
static bool propose(const struct ls_model *model, struct ls_model_room *room, uint32_t at,
                    bool is_heap)
{
    const struct ls_symbol *symbol = &room->symbols[at];
    if (symbol->next == LS_NO_SYMBOL)
        return true;
    const struct ls_merge *merge = find_merge(model, symbol->id, room->symbols[symbol->next].id);
    if (merge == NULL)
        return true;
    if (!LS_GROW(room->pending, room->pending_count, room->pending_capacity))
        return false;
    room->pending[room->pending_count++] =
        (struct ls_pending){.rank = merge->rank, .at = at, .becomes = merge->becomes};
    const struct ls_heap heap = heap_of(room);
    if (is_heap)
        ls_heap_rise(&heap, (int64_t)room->pending_count);
    return true;
}

/* Carries a merge out, if the two are still there as they were when it was noted. */
static bool merge(const struct ls_model *model, struct ls_model_room *room,
                  struct ls_pending pending)
{
    struct ls_symbol *left = &room->symbols[pending.at];
    if (left->gone || left->next == LS_NO_SYMBOL)
        return true;
    struct ls_symbol *right = &room->symbols[left->next];
    const struct ls_merge *now = find_merge(model, left->id, right->id);
    if (now == NULL || now->becomes != pending.becomes)
        return true;
    left->id = pending.becomes;
    left->next = right->next;
    right->gone = true;
    if (right->next != LS_NO_SYMBOL)
        room->symbols[right->next].previous = pending.at;
    if (left->previous != LS_NO_SYMBOL && !propose(model, room, left->previous, true))
        return false;
    return propose(model, room, pending.at, true);
}

static bool merge_all(const struct ls_model *model, struct ls_model_room *room)
{
    const size_t count = room->symbol_count;
    room->pending_count = 0;
    for (size_t i = 0; i < count; i++) {
        room->symbols[i].previous = i > 0 ? (uint32_t)i - 1 : LS_NO_SYMBOL;
        room->symbols[i].next = i + 1 < count ? (uint32_t)i + 1 : LS_NO_SYMBOL;
    }
    for (size_t i = 0; i < count; i++)
        if (!propose(model, room, (uint32_t)i, false))
            return false;
    struct ls_heap heap = heap_of(room);
    ls_heap_make(&heap, (int64_t)room->pending_count);
    while (room->pending_count > 0) {
        const struct ls_pending first = room->pending[0];
        heap = heap_of(room);
        ls_heap_drop(&heap, (int64_t)room->pending_count);
        room->pending_count--;
        if (!merge(model, room, first))
            return false;
    }
    return true;
}

/* ---- Words that were met before -------------------------------------------------------------- */

static struct ls_cached_word *cached(struct ls_model_room *room, const char *piece, size_t length)
{
    if (length > LS_CACHED_BYTES)
        return NULL;
    if (room->words == NULL)
        room->words = ls_alloc(LS_CACHED_WORDS, sizeof *room->words);
    return room->words != NULL ? &room->words[ls_hash(piece, length, 0) % LS_CACHED_WORDS] : NULL;
}

static void keep(struct ls_cached_word *word, const char *piece, size_t length,
                 const struct ls_ids *ids, size_t first)
{
    const size_t count = ids->count - first;
    if (word == NULL || count > LS_CACHED_IDS)
        return;
    word->length = (uint8_t)length;
    word->count = (uint8_t)count;
    memcpy(word->bytes, piece, length);
    if (count > 0)
        memcpy(word->ids, ids->items + first, count * sizeof *word->ids);
}

bool ls_bpe_encode(const struct ls_model *model, struct ls_model_room *room, const char *piece,
                   size_t length, struct ls_ids *ids)
{
    const size_t first = ids->count;
    struct ls_cached_word *word = cached(room, piece, length);
    uint32_t id;
    if (word != NULL && word->length == length && memcmp(word->bytes, piece, length) == 0) {
        for (size_t i = 0; i < word->count; i++)
            if (!ls_ids_add(ids, word->ids[i]))
                return false;
        return true;
    }
    if (model->ignore_merges && ls_token_vocabulary_find(&model->vocabulary, piece, length, &id)) {
        if (!ls_ids_add(ids, id))
            return false;
    } else {
        if (!make_symbols(model, room, piece, length) || !merge_all(model, room))
            return false;
        for (size_t i = 0; i < room->symbol_count; i++)
            if (!room->symbols[i].gone && !ls_ids_add(ids, room->symbols[i].id))
                return false;
    }
    keep(word, piece, length, ids, first);
    return true;
}
