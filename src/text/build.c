/* What tokenizers' files consist of, whichever file says it. See text/read.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "text/normal.h"
#include "text/model.h"
#include "text/read.h"

static int too_many(const char *what, struct ls_error *error)
{
    return ls_fail(error, LOCKSTEP_DATA, NULL, NULL, "a tokenizer with more than %d %s",
                   LS_STAGES_MAX, what);
}

int ls_add_normal(struct ls_tokenizer *tokenizer, enum ls_normal_kind kind, struct ls_error *error)
{
    if (tokenizer->normal_count == LS_STAGES_MAX)
        return too_many("normalizers", error);
    tokenizer->normals[tokenizer->normal_count++].kind = kind;
    return 0;
}

int ls_add_stage(struct ls_tokenizer *tokenizer, const struct ls_stage *stage,
                 struct ls_error *error)
{
    if (tokenizer->stage_count == LS_STAGES_MAX)
        return too_many("steps of pre-tokenizers", error);
    tokenizer->stages[tokenizer->stage_count++] = *stage;
    return 0;
}

int ls_add_bert_normals(struct ls_tokenizer *tokenizer, bool clean, bool ideographs, bool strip,
                        bool lowercase, struct ls_error *error)
{
    if (clean)
        LS_TRY(ls_add_normal(tokenizer, LS_NORMAL_CLEAN, error));
    if (ideographs)
        LS_TRY(ls_add_normal(tokenizer, LS_NORMAL_IDEOGRAPHS, error));
    if (strip) {
        LS_TRY(ls_add_normal(tokenizer, LS_NORMAL_NFD, error));
        LS_TRY(ls_add_normal(tokenizer, LS_NORMAL_NONSPACING, error));
    }
    return lowercase ? ls_add_normal(tokenizer, LS_NORMAL_LOWERCASE, error) : 0;
}

int ls_add_bert_stages(struct ls_tokenizer *tokenizer, struct ls_error *error)
{
    const struct ls_stage words = {
        .kind = LS_STAGE_SPLIT, .match = LS_MATCH_SPACE, .behavior = LS_SPLIT_REMOVED};
    const struct ls_stage marks = {
        .kind = LS_STAGE_SPLIT, .match = LS_MATCH_PUNCTUATION, .behavior = LS_SPLIT_ISOLATED};
    LS_TRY(ls_add_stage(tokenizer, &words, error));
    return ls_add_stage(tokenizer, &marks, error);
}

int ls_add_byte_stages(struct ls_tokenizer *tokenizer, bool prefix, bool cut,
                       struct ls_error *error)
{
    /* GPT-2's words: contractions of English, letters, digits, other marks, each with a space in
     * front of it, and what is left of white space. */
    static const char words[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+|"
                                " ?[^" LS_PATTERN_SPACE "\\p{L}\\p{N}]+|"
                                "[" LS_PATTERN_SPACE "]+(?![^" LS_PATTERN_SPACE "])|"
                                "[" LS_PATTERN_SPACE "]+";
    const struct ls_stage in_front = {.kind = LS_STAGE_PREFIX};
    const struct ls_stage bytes = {.kind = LS_STAGE_BYTES};
    struct ls_stage split = {.kind = LS_STAGE_SPLIT, .behavior = LS_SPLIT_ISOLATED};
    if (prefix)
        LS_TRY(ls_add_stage(tokenizer, &in_front, error));
    if (cut) {
        if (ls_pattern_compile(words, LS_PATTERN_PCRE, &split.pattern, NULL) != 0)
            return ls_fail_memory(error, "a regular expression");
        const int status = ls_add_stage(tokenizer, &split, error);
        if (status != 0) {
            ls_pattern_free(split.pattern);
            return status;
        }
    }
    return ls_add_stage(tokenizer, &bytes, error);
}

/* ---- Tokens ---------------------------------------------------------------------------------- */

int ls_add_model_token(struct ls_model *model, const char *place, const char *token, size_t length,
                       int64_t id, struct ls_error *error)
{
    size_t other_length;
    if (id < 0 || id >= LS_TOKEN_IDS)
        return ls_fail(error, LOCKSTEP_DATA, place, NULL,
                       "the token '%.100s' has the id %" PRId64 "; ids are from 0 to %" PRIu32,
                       token, id, LS_TOKEN_IDS - 1);
    switch (ls_token_vocabulary_add(&model->vocabulary, token, length, (uint32_t)id)) {
    case LS_TOKEN_VOCABULARY_ADDED:
        return 0;
    case LS_TOKEN_VOCABULARY_SAME_TOKEN:
        return ls_fail(error, LOCKSTEP_DATA, place, NULL,
                       "the token '%.100s' is in the vocabulary already", token);
    case LS_TOKEN_VOCABULARY_SAME_ID:
        return ls_fail(error, LOCKSTEP_DATA, place, NULL,
                       "the token '%.100s' has the id %" PRId64 ", which '%.100s' has already",
                       token, id,
                       ls_token_vocabulary_token(&model->vocabulary, (uint32_t)id, &other_length));
    default:
        return ls_fail_memory(error, "a vocabulary");
    }
}

/* Whether an added token may have its id: that of the model's token, if there is one, else one that
 * no other token has. */
static int check_id(const struct ls_tokenizer *tokenizer, const char *place, const char *token,
                    size_t length, uint32_t id, struct ls_error *error)
{
    const struct ls_token_vocabulary *model = &tokenizer->model.vocabulary;
    uint32_t known;
    size_t other_length;
    if (ls_token_vocabulary_find(model, token, length, &known)) {
        if (known == id)
            return 0;
        return ls_fail(error, LOCKSTEP_DATA, place, NULL,
                       "the added token '%.100s' has the id %" PRIu32 ", but %" PRIu32
                       " in the vocabulary",
                       token, id, known);
    }
    const char *other = ls_token_vocabulary_token(model, id, &other_length);
    if (other != NULL)
        return ls_fail(error, LOCKSTEP_DATA, place, NULL,
                       "the added token '%.100s' has the id %" PRIu32
                       ", which is that of '%.100s' in the vocabulary",
                       token, id, other);
    return 0;
}

int ls_add_token(struct ls_tokenizer *tokenizer, const char *place, const char *token,
                 size_t length, const struct ls_added_token *what, struct ls_error *error)
{
    struct ls_added *added = &tokenizer->added;
    if (length == 0)
        return 0; /* is found nowhere */
    if (length > LS_ADDED_MAX_BYTES)
        return ls_fail(error, LOCKSTEP_DATA, place, NULL,
                       "an added token of %zu bytes; one has at most %d", length,
                       LS_ADDED_MAX_BYTES);
    LS_TRY(check_id(tokenizer, place, token, length, what->id, error));
    switch (ls_token_vocabulary_add(&added->vocabulary, token, length, what->id)) {
    case LS_TOKEN_VOCABULARY_ADDED:
        break;
    case LS_TOKEN_VOCABULARY_SAME_TOKEN:
        return ls_fail(error, LOCKSTEP_DATA, place, NULL, "the token '%.100s' is added twice",
                       token);
    case LS_TOKEN_VOCABULARY_SAME_ID:
        return ls_fail(error, LOCKSTEP_DATA, place, NULL,
                       "the added token '%.100s' has the id of another one, %" PRIu32, token,
                       what->id);
    default:
        return ls_fail_memory(error, "an added token");
    }
    if (!LS_GROW(added->tokens, added->count, added->capacity))
        return ls_fail_memory(error, "an added token");
    added->tokens[added->count++] = *what;
    return 0;
}

/* Puts a token into its tree, a normalized one as the normalizers leave it. */
static enum ls_found finish_token(struct ls_tokenizer *tokenizer, struct ls_matcher *matcher,
                                  struct ls_normal_room *room, size_t index)
{
    struct ls_added *added = &tokenizer->added;
    struct ls_added_token *token = &added->tokens[index];
    size_t size, length;
    const char *text = ls_token_vocabulary_token(&added->vocabulary, token->id, &size);
    const char *normal = text;
    length = size;
    if (token->normalized) {
        const enum ls_found found =
            ls_normalize(tokenizer, matcher, room, text, size, &normal, &length);
        if (found != LS_FOUND)
            return found;
    }
    if (length != size || memcmp(normal, text, size) != 0) {
        token->shown = ls_copy_bytes(normal, length);
        token->shown_length = length;
        if (token->shown == NULL)
            return LS_FOUND_MEMORY;
    }
    return ls_added_put(&added->trees[token->normalized], normal, length, (uint32_t)index)
               ? LS_FOUND
               : LS_FOUND_MEMORY;
}

int ls_finish_added(struct ls_tokenizer *tokenizer, struct ls_error *error)
{
    struct ls_normal_room room = {0};
    struct ls_matcher *matcher = ls_matcher_new();
    enum ls_found found = matcher != NULL ? LS_FOUND : LS_FOUND_MEMORY;
    for (size_t i = 0; i < tokenizer->added.count && found == LS_FOUND; i++)
        found = finish_token(tokenizer, matcher, &room, i);
    ls_normal_room_free(&room);
    ls_matcher_free(matcher);
    if (found == LS_FOUND_LIMIT)
        return ls_fail(error, LOCKSTEP_DATA, tokenizer->path, NULL,
                       "a regular expression takes too many steps on an added token");
    if (found == LS_FOUND_LONG)
        return ls_fail(error, LOCKSTEP_DATA, tokenizer->path, NULL,
                       "its normalizers make an added token more than %d times as long",
                       LS_NORMAL_GROWTH);
    return found == LS_FOUND ? 0 : ls_fail_memory(error, "added tokens");
}

/* ---- Merges ---------------------------------------------------------------------------------- */

int ls_make_merges(struct ls_model *model, size_t count, struct ls_error *error)
{
    size_t slots = 16;
    while (slots < 2 * count)
        slots *= 2;
    model->merges = ls_alloc(slots, sizeof *model->merges);
    if (model->merges == NULL)
        return ls_fail_memory(error, "merges");
    model->merge_slots = slots;
    for (size_t i = 0; i < slots; i++)
        model->merges[i].becomes = UINT32_MAX;
    return 0;
}

/* How many bytes of a token a message has. */
static int shown(size_t length)
{
    return length < 100 ? (int)length : 100;
}

int ls_add_merge(struct ls_model *model, const char *place, const char *left, size_t left_length,
                 const char *right, size_t right_length, uint32_t rank, struct ls_error *error)
{
    const size_t prefix = model->prefix != NULL ? strlen(model->prefix) : 0;
    const char *missing = NULL;
    uint32_t ids[2], becomes = 0;
    if (!ls_token_vocabulary_find(&model->vocabulary, left, left_length, &ids[0]))
        missing = left;
    else if (!ls_token_vocabulary_find(&model->vocabulary, right, right_length, &ids[1]))
        missing = right;
    if (missing != NULL)
        return ls_fail(error, LOCKSTEP_DATA, place, NULL,
                       "the merge '%.*s %.*s' has a token that is not in the vocabulary, '%.*s'",
                       shown(left_length), left, shown(right_length), right,
                       shown(missing == left ? left_length : right_length), missing);
    struct ls_text joined = {0};
    const size_t skip = right_length < prefix ? right_length : prefix;
    ls_text_add_bytes(&joined, left, left_length);
    ls_text_add_bytes(&joined, right + skip, right_length - skip);
    const bool failed = joined.failed;
    const bool found = !failed && ls_token_vocabulary_find(&model->vocabulary, joined.data,
                                                           joined.length, &becomes);
    ls_text_free(&joined);
    if (failed)
        return ls_fail_memory(error, "a merge");
    if (!found)
        return ls_fail(error, LOCKSTEP_DATA, place, NULL,
                       "what the merge '%.*s %.*s' becomes is not in the vocabulary",
                       shown(left_length), left, shown(right_length), right);
    ls_bpe_put(model, ids[0], ids[1], rank, becomes);
    return 0;
}
