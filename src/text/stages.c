/* Stages: a text is cut into pieces, these into smaller ones, and the last become tokens.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/utf8.h"
#include "text/byte_characters.h"
#include "text/characters.h"
#include "text/encode.h"

/* A cut piece that is not handed on yet, as what follows may join it. */
struct cut {
    struct ls_encoder *encoder;
    const struct ls_stage *stage;
    size_t next; /* the stage that gets pieces */
    const char *text;
    struct ls_ids *ids;
    bool held, match; /* there is one; the last one was a match */
    size_t begin, end;
};

static enum ls_found hand_on(struct cut *cut, size_t begin, size_t end)
{
    if (begin == end)
        return LS_FOUND;
    return ls_stages_run(cut->encoder, cut->next, cut->text + begin, end - begin, cut->ids);
}

static enum ls_found hand_on_held(struct cut *cut)
{
    if (!cut->held)
        return LS_FOUND;
    cut->held = false;
    return hand_on(cut, cut->begin, cut->end);
}

static enum ls_found hold(struct cut *cut, size_t begin, size_t end)
{
    const enum ls_found found = hand_on_held(cut);
    cut->held = true;
    cut->begin = begin;
    cut->end = end;
    return found;
}

/* The next piece, in order; `match`: it is one, else what lies between two of them. */
static enum ls_found put(struct cut *cut, size_t begin, size_t end, bool match)
{
    const bool previous = cut->match;
    cut->match = match;
    switch (cut->stage->behavior) {
    case LS_SPLIT_REMOVED:
        return match ? LS_FOUND : hand_on(cut, begin, end);
    case LS_SPLIT_ISOLATED:
        return hand_on(cut, begin, end);
    case LS_SPLIT_CONTIGUOUS:
        if (cut->held && match == previous) {
            cut->end = end;
            return LS_FOUND;
        }
        return hold(cut, begin, end);
    case LS_SPLIT_WITH_PREVIOUS:
        if (cut->held && match && !previous) {
            cut->end = end;
            return LS_FOUND;
        }
        return hold(cut, begin, end);
    default: /* WITH_NEXT */
        if (cut->held && previous && !match) {
            cut->end = end;
            return hand_on_held(cut);
        }
        return match ? hold(cut, begin, end) : hand_on(cut, begin, end);
    }
}

static bool is_wanted(const struct ls_stage *stage, uint32_t character)
{
    switch (stage->match) {
    case LS_MATCH_SPACE:
        return ls_is_space(character);
    case LS_MATCH_PUNCTUATION:
        return ls_is_punctuation(character);
    case LS_MATCH_NUMBER:
        return ls_is_number(character);
    default:
        return character == stage->character;
    }
}

/* The next match at or behind `from`, where `last` is the end of the one before. */
static enum ls_found next_match(const struct ls_encoder *encoder, const struct ls_stage *stage,
                                const char *text, size_t length, size_t from, size_t last,
                                size_t *begin, size_t *end)
{
    if (stage->match == LS_MATCH_PATTERN) {
        for (;;) {
            if (from > length)
                return LS_FOUND_NONE;
            const enum ls_found found = ls_pattern_find(stage->pattern, encoder->matcher, text,
                                                        length, from, false, begin, end);
            /* A match of nothing right behind another one is none. */
            if (found != LS_FOUND || *begin != *end || *begin != last)
                return found;
            from += from < length ? ls_utf8_step(text[from]) : 1;
        }
    }
    for (size_t at = from; at < length;) {
        *begin = at;
        if (is_wanted(stage, ls_utf8_take(text, &at))) {
            *end = at;
            return LS_FOUND;
        }
    }
    return LS_FOUND_NONE;
}

static enum ls_found split(struct ls_encoder *encoder, size_t index, const char *text,
                           size_t length, struct ls_ids *ids)
{
    const struct ls_stage *stage = &encoder->tokenizer->stages[index];
    struct cut cut = {
        .encoder = encoder, .stage = stage, .next = index + 1, .text = text, .ids = ids};
    size_t done = 0, last = SIZE_MAX, begin, end;
    enum ls_found found;
    for (;;) {
        found = next_match(encoder, stage, text, length, done, last, &begin, &end);
        if (found != LS_FOUND)
            break;
        if (begin > done)
            found = put(&cut, done, begin, stage->invert);
        if (found == LS_FOUND)
            found = put(&cut, begin, end, !stage->invert);
        if (found != LS_FOUND)
            return found;
        done = last = end;
    }
    if (found != LS_FOUND_NONE)
        return found;
    if (done < length) {
        found = put(&cut, done, length, stage->invert);
        if (found != LS_FOUND && found != LS_FOUND_NONE)
            return found;
    }
    return hand_on_held(&cut);
}

/* The piece in the memory of its stage, empty. */
static struct ls_text *room_of(struct ls_encoder *encoder, size_t index)
{
    struct ls_text *room = &encoder->pieces[index];
    room->length = 0;
    room->failed = false;
    return room;
}

enum ls_found ls_stages_run(struct ls_encoder *encoder, size_t index, const char *piece,
                            size_t length, struct ls_ids *ids)
{
    const struct ls_tokenizer *tokenizer = encoder->tokenizer;
    if (length == 0)
        return LS_FOUND;
    if (index == tokenizer->stage_count)
        return ls_model_encode(&tokenizer->model, &encoder->model, piece, length, ids)
                   ? LS_FOUND
                   : LS_FOUND_MEMORY;
    const struct ls_stage *stage = &tokenizer->stages[index];
    if (stage->kind == LS_STAGE_SPLIT)
        return split(encoder, index, piece, length, ids);
    if (stage->kind == LS_STAGE_PREFIX && piece[0] == ' ')
        return ls_stages_run(encoder, index + 1, piece, length, ids);
    struct ls_text *room = room_of(encoder, index);
    if (stage->kind == LS_STAGE_PREFIX) {
        ls_text_add_bytes(room, " ", 1);
        ls_text_add_bytes(room, piece, length);
    } else {
        ls_bytes_to_characters(piece, length, room);
    }
    return room->failed ? LS_FOUND_MEMORY
                        : ls_stages_run(encoder, index + 1, room->data, room->length, ids);
}
