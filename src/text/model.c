/* Models: from a piece of text to tokens. See text/model.h; byte pair encoding is text/bpe.c.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "text/model.h"

#include <string.h>

#include "base/memory.h"
#include "base/utf8.h"

bool ls_ids_add(struct ls_ids *ids, uint32_t id)
{
    if (!LS_GROW(ids->items, ids->count, ids->capacity))
        return false;
    ids->items[ids->count++] = id;
    return true;
}

void ls_model_room_free(struct ls_model_room *room)
{
    ls_free(room->symbols);
    ls_free(room->pending);
    ls_free(room->words);
    ls_text_free(&room->token);
    *room = (struct ls_model_room){0};
}

static bool add_unknown(const struct ls_model *model, struct ls_ids *ids)
{
    return !model->has_unknown || ls_ids_add(ids, model->unknown);
}

/* Whether a piece has more than `most` characters. */
static bool is_longer(const char *piece, size_t length, size_t most)
{
    size_t count = 0;
    for (size_t at = 0; at < length && count <= most; at += ls_utf8_step(piece[at]))
        count++;
    return count > most;
}

/* The longest token that a word goes on with at `begin`: where it ends; `begin`: there is none.
 * Ends lie between characters. */
static size_t longest(const struct ls_model *model, const struct ls_text *word, size_t begin,
                      uint32_t *id)
{
    const size_t most = model->vocabulary.longest;
    size_t end = word->length - begin > most ? begin + most : word->length;
    while (end > begin) {
        const bool between = end == word->length || ((unsigned char)word->data[end] & 0xc0) != 0x80;
        if (between &&
            ls_token_vocabulary_find(&model->vocabulary, word->data + begin, end - begin, id))
            return end;
        end--;
    }
    return begin;
}

/* WordPiece: the longest token that the word begins with, then the longest one that the rest begins
 * with, with the prefix in front of it, and so on. A word in which this fails is unknown as a
 * whole. */
static bool wordpiece(const struct ls_model *model, struct ls_model_room *room, const char *piece,
                      size_t length, struct ls_ids *ids)
{
    const char *mark = model->prefix != NULL ? model->prefix : "";
    const size_t before = ids->count, prefix = strlen(mark);
    struct ls_text *word = &room->token;
    if (is_longer(piece, length, model->word_max))
        return add_unknown(model, ids);
    word->length = 0;
    ls_text_add(word, mark);
    ls_text_add_bytes(word, piece, length);
    if (word->failed)
        return false;
    for (size_t at = prefix; at < word->length;) {
        uint32_t id = model->unknown;
        /* The prefix is put over what was taken before: only what is behind it is still needed. */
        const size_t begin = at == prefix ? at : at - prefix;
        if (begin != at)
            memcpy(word->data + begin, mark, prefix);
        const size_t end = longest(model, word, begin, &id);
        if (end <= at) {
            ids->count = before;
            return add_unknown(model, ids);
        }
        if (!ls_ids_add(ids, id))
            return false;
        at = end;
    }
    return true;
}

bool ls_model_encode(const struct ls_model *model, struct ls_model_room *room, const char *piece,
                     size_t length, struct ls_ids *ids)
{
    uint32_t id;
    switch (model->kind) {
    case LS_MODEL_BPE:
        return ls_bpe_encode(model, room, piece, length, ids);
    case LS_MODEL_WORDPIECE:
        return wordpiece(model, room, piece, length, ids);
    default:
        return ls_token_vocabulary_find(&model->vocabulary, piece, length, &id)
                   ? ls_ids_add(ids, id)
                   : add_unknown(model, ids);
    }
}
