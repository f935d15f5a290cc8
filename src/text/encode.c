/* From a text to ids: added tokens, what is between them, and the template.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "text/encode.h"

#include <string.h>

#include "base/memory.h"
#include "base/utf8.h"
#include "text/characters.h"

struct ls_encoder *ls_encoder_new(const struct ls_tokenizer *tokenizer)
{
    struct ls_encoder *encoder = ls_alloc(1, sizeof *encoder);
    if (encoder == NULL)
        return NULL;
    encoder->tokenizer = tokenizer;
    encoder->matcher = ls_matcher_new();
    if (encoder->matcher == NULL ||
        ls_pattern_compile("[" LS_PATTERN_RUST_WORD "]", LS_PATTERN_PCRE, &encoder->word, NULL) !=
            0) {
        ls_encoder_free(encoder);
        return NULL;
    }
    return encoder;
}

void ls_encoder_free(struct ls_encoder *encoder)
{
    if (encoder == NULL)
        return;
    ls_matcher_free(encoder->matcher);
    ls_pattern_free(encoder->word);
    ls_normal_room_free(&encoder->normal);
    for (int i = 0; i < LS_STAGES_MAX; i++)
        ls_text_free(&encoder->pieces[i]);
    ls_model_room_free(&encoder->model);
    for (int i = 0; i < 2; i++)
        ls_free(encoder->ids[i].items);
    ls_free(encoder->out.items);
    ls_free(encoder->segments.items);
    ls_free(encoder);
}

/* ---- Added tokens ---------------------------------------------------------------------------- */

static bool is_word(struct ls_encoder *encoder, const char *text, size_t length, size_t at)
{
    size_t begin, end;
    return ls_pattern_find(encoder->word, encoder->matcher, text, length, at, true, &begin, &end) ==
           LS_FOUND;
}

/* Where the character in front of `at` begins. */
static size_t before(const char *text, size_t at)
{
    do
        at--;
    while (((unsigned char)text[at] & 0xc0) == 0x80);
    return at;
}

/* Whether a token that may not be a part of a word is one here. */
static bool stands_alone(struct ls_encoder *encoder, const char *text, size_t length, size_t begin,
                         size_t end)
{
    return !(begin > 0 && is_word(encoder, text, length, before(text, begin))) &&
           !(end < length && is_word(encoder, text, length, end));
}

/* The place up to which white space in front of `at` goes, not in front of `least`. */
static size_t space_before(const char *text, size_t at, size_t least)
{
    while (at > least) {
        size_t begin = before(text, at), next = begin;
        if (!ls_is_space(ls_utf8_take(text, &next)))
            break;
        at = begin;
    }
    return at;
}

static size_t space_behind(const char *text, size_t length, size_t at)
{
    while (at < length) {
        size_t next = at;
        if (!ls_is_space(ls_utf8_take(text, &next)))
            break;
        at = next;
    }
    return at;
}

/* White space that a token took up. A text may be nothing but white space, and white space a token:
 * each would go over all of it again. */
struct space {
    size_t begin, end;
};

static size_t take_space(const char *text, size_t length, size_t at, struct space *space)
{
    if (at < space->begin || at > space->end)
        *space = (struct space){at, space_behind(text, length, at)};
    return space->end;
}

static enum ls_found between_tokens(struct ls_encoder *encoder, bool normalized, const char *text,
                                    size_t length, struct ls_ids *ids);

/* Finds added tokens of one of the two trees, and hands on what is between them. */
static enum ls_found find_tokens(struct ls_encoder *encoder, bool normalized, const char *text,
                                 size_t length, struct ls_ids *ids)
{
    const struct ls_added *added = &encoder->tokenizer->added;
    const struct ls_added_tree *tree = &added->trees[normalized];
    struct space space = {1, 0}; /* none so far */
    size_t done = 0, size;
    for (size_t at = 0; at < length; at += size) {
        const int64_t index = tree->count > 0 ? ls_added_at(tree, text, length, at, &size) : -1;
        if (index < 0) {
            size = tree->count > 0 ? 1 : length;
            continue;
        }
        const struct ls_added_token *token = &added->tokens[index];
        size_t begin = at, end = at + size;
        if (token->single_word && !stands_alone(encoder, text, length, begin, end))
            continue;
        if (token->left)
            begin = space_before(text, begin, done < begin ? done : begin);
        if (token->right)
            end = take_space(text, length, end, &space);
        if (done < begin) {
            const enum ls_found found =
                between_tokens(encoder, normalized, text + done, begin - done, ids);
            if (found != LS_FOUND)
                return found;
        }
        if (!ls_ids_add(ids, token->id))
            return LS_FOUND_MEMORY;
        done = end;
    }
    return done < length ? between_tokens(encoder, normalized, text + done, length - done, ids)
                         : LS_FOUND;
}

static enum ls_found between_tokens(struct ls_encoder *encoder, bool normalized, const char *text,
                                    size_t length, struct ls_ids *ids)
{
    if (normalized)
        return ls_stages_run(encoder, 0, text, length, ids);
    const enum ls_found found = ls_normalize(encoder->tokenizer, encoder->matcher, &encoder->normal,
                                             text, length, &text, &length);
    return found == LS_FOUND ? find_tokens(encoder, true, text, length, ids) : found;
}

static int encode(struct ls_encoder *encoder, const char *name, const char *text, size_t length,
                  struct ls_ids *ids, struct ls_error *error)
{
    ids->count = 0;
    if (length > INT32_MAX)
        return ls_fail(error, LOCKSTEP_DATA, name, "cut it into documents, for example into lines",
                       "a text of %zu bytes; one of at most 2 GiB is encoded at once", length);
    const size_t valid = ls_utf8_valid_length(text, length);
    if (valid < length)
        return ls_fail(error, LOCKSTEP_DATA, name, "convert the text, for example with iconv",
                       "is not UTF-8 at byte %zu", valid);
    ls_matcher_begin(encoder->matcher, length);
    switch (find_tokens(encoder, false, text, length, ids)) {
    case LS_FOUND:
        return 0;
    case LS_FOUND_MEMORY:
        return ls_fail_memory(error, name);
    case LS_FOUND_LONG:
        return ls_fail(error, LOCKSTEP_DATA, name, NULL,
                       "the normalizers of %s make this text more than %d times as long",
                       encoder->tokenizer->path, LS_NORMAL_GROWTH);
    default:
        return ls_fail(error, LOCKSTEP_DATA, name, NULL,
                       "a regular expression of %s takes too many steps on this text",
                       encoder->tokenizer->path);
    }
}

/* ---- Template -------------------------------------------------------------------------------- */

/* What is left of two texts of these lengths, so that they have `most` tokens. The texts of a pair
 * are cut as the tokenizers package cuts them (its strategy longest_first). */
static void cut(size_t most, bool pair, size_t counts[2])
{
    if (counts[0] + counts[1] <= most)
        return;
    const int longer = counts[1] > counts[0] || (pair && counts[1] == counts[0]);
    size_t *small = &counts[!longer], *large = &counts[longer];
    if (!pair) {
        counts[0] = most;
        return;
    }
    *large = *small > most || most - *small < *small ? *small : most - *small;
    if (*small + *large > most) {
        *small = most / 2;
        *large = *small + most % 2;
    }
}

static bool put(struct ls_encoder *encoder, const uint32_t *ids, size_t count, uint32_t segment)
{
    for (size_t i = 0; i < count; i++)
        if (!ls_ids_add(&encoder->out, ids[i]) || !ls_ids_add(&encoder->segments, segment))
            return false;
    return true;
}

static bool fill(struct ls_encoder *encoder, const struct ls_template *template,
                 const size_t counts[2], bool special)
{
    for (size_t i = 0; i < template->count; i++) {
        const struct ls_template_piece *piece = &template->pieces[i];
        bool filled = true;
        if (piece->kind != LS_TEMPLATE_TOKEN)
            filled = put(encoder, encoder->ids[piece->kind == LS_TEMPLATE_SECOND].items,
                         counts[piece->kind == LS_TEMPLATE_SECOND], piece->segment);
        else if (special)
            filled = put(encoder, &piece->token, 1, piece->segment);
        if (!filled)
            return false;
    }
    return true;
}

static const struct ls_template plain[2] = {
    {.pieces = {{.kind = LS_TEMPLATE_FIRST}}, .count = 1},
    {.pieces = {{.kind = LS_TEMPLATE_FIRST}, {.kind = LS_TEMPLATE_SECOND, .segment = 1}},
     .count = 2}};

int ls_encode(struct ls_encoder *encoder, const struct ls_encode_text *text,
              struct ls_encoding *encoding, struct ls_error *error)
{
    const struct ls_tokenizer *tokenizer = encoder->tokenizer;
    const bool pair = text->second != NULL;
    const struct ls_template *template = pair ? &tokenizer->pair : &tokenizer->single;
    size_t tokens = 0;
    if (template->count == 0)
        template = &plain[pair];
    for (size_t i = 0; i < template->count && text->special; i++)
        tokens += template->pieces[i].kind == LS_TEMPLATE_TOKEN;
    if (text->most > 0 && text->most < tokens)
        return ls_fail(error, LOCKSTEP_USAGE, text->name, NULL,
                       "%zu tokens are wanted at most, but the template of %s has %zu by itself",
                       text->most, tokenizer->path, tokens);
    encoder->ids[1].count = 0;
    LS_TRY(encode(encoder, text->name, text->first, text->first_length, &encoder->ids[0], error));
    if (pair)
        LS_TRY(encode(encoder, text->name, text->second, text->second_length, &encoder->ids[1],
                      error));
    size_t counts[2] = {encoder->ids[0].count, encoder->ids[1].count};
    if (text->most > 0)
        cut(text->most - tokens, pair, counts);
    encoder->out.count = encoder->segments.count = 0;
    if (!fill(encoder, template, counts, text->special))
        return ls_fail_memory(error, text->name);
    *encoding = (struct ls_encoding){.ids = encoder->out.items,
                                     .segments = encoder->segments.items,
                                     .count = encoder->out.count};
    return 0;
}
