/* From ids to text.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <string.h>

#include "base/utf8.h"
#include "text/byte_characters.h"
#include "text/tokenizer.h"

uint32_t ls_tokenizer_size(const struct ls_tokenizer *tokenizer)
{
    const size_t model = tokenizer->model.vocabulary.id_count;
    const size_t added = tokenizer->added.vocabulary.id_count;
    return (uint32_t)(model > added ? model : added);
}

bool ls_tokenizer_id(const struct ls_tokenizer *tokenizer, const char *token, size_t length,
                     uint32_t *id)
{
    return ls_token_vocabulary_find(&tokenizer->added.vocabulary, token, length, id) ||
           ls_token_vocabulary_find(&tokenizer->model.vocabulary, token, length, id);
}

const char *ls_tokenizer_token(const struct ls_tokenizer *tokenizer, uint32_t id, size_t *length)
{
    const char *token = ls_token_vocabulary_token(&tokenizer->added.vocabulary, id, length);
    return token != NULL ? token
                         : ls_token_vocabulary_token(&tokenizer->model.vocabulary, id, length);
}

/* What an id is decoded to, before the decoder; NULL: no token has it. */
static const char *shown_token(const struct ls_tokenizer *tokenizer, uint32_t id, size_t *length)
{
    const struct ls_added *added = &tokenizer->added;
    if (id < added->vocabulary.id_count && added->vocabulary.by_id[id] != 0) {
        const struct ls_added_token *token = &added->tokens[added->vocabulary.by_id[id] - 1];
        if (token->shown != NULL) {
            *length = token->shown_length;
            return token->shown;
        }
    }
    return ls_tokenizer_token(tokenizer, id, length);
}

bool ls_tokenizer_special(const struct ls_tokenizer *tokenizer, uint32_t id)
{
    const struct ls_added *added = &tokenizer->added;
    if (id >= added->vocabulary.id_count || added->vocabulary.by_id[id] == 0)
        return false;
    return added->tokens[added->vocabulary.by_id[id] - 1].special;
}

/* Takes a part out of what follows `begin`, wherever it is, and puts another one there. */
static void exchange(struct ls_text *text, size_t begin, const char *part, const char *other)
{
    const size_t length = strlen(part), size = strlen(other);
    size_t from = begin, to = begin;
    while (from < text->length) {
        if (text->length - from >= length && memcmp(text->data + from, part, length) == 0) {
            memcpy(text->data + to, other, size); /* is no longer */
            from += length;
            to += size;
        } else {
            text->data[to++] = text->data[from++];
        }
    }
    text->length = to;
    text->data[to] = '\0';
}

/* English as it is written, where it was cut at marks of punctuation. */
static void clean_up(struct ls_text *text, size_t begin)
{
    static const char *const pairs[][2] = {{" .", "."},     {" ?", "?"},           {" !", "!"},
                                           {" ,", ","},     {" ' ", "'"},          {" n't", "n't"},
                                           {" 'm", "'m"},   {" do not", " don't"}, {" 's", "'s"},
                                           {" 've", "'ve"}, {" 're", "'re"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs && !text->failed; i++)
        exchange(text, begin, pairs[i][0], pairs[i][1]);
}

static void add_wordpiece(const struct ls_token_decoder *decoder, const char *token, size_t length,
                          bool begins, struct ls_text *out)
{
    const size_t before = out->length, prefix = strlen(decoder->prefix);
    if (!begins && length >= prefix && memcmp(token, decoder->prefix, prefix) == 0) {
        token += prefix;
        length -= prefix;
    } else if (!begins) {
        ls_text_add_bytes(out, " ", 1);
    }
    ls_text_add_bytes(out, token, length);
    if (decoder->clean_up && out->length > before)
        clean_up(out, before);
}

void ls_decode_token(const struct ls_tokenizer *tokenizer, uint32_t id, bool begins, bool special,
                     struct ls_text *out)
{
    size_t length;
    const char *token = shown_token(tokenizer, id, &length);
    if (token == NULL || (!special && ls_tokenizer_special(tokenizer, id)))
        return;
    switch (tokenizer->decoder.kind) {
    case LS_DECODER_BYTES:
        if (!ls_characters_to_bytes(token, length, out))
            ls_text_add_bytes(out, token, length);
        return;
    case LS_DECODER_WORDPIECE:
        add_wordpiece(&tokenizer->decoder, token, length, begins, out);
        return;
    default:
        if (!begins)
            ls_text_add_bytes(out, " ", 1);
        ls_text_add_bytes(out, token, length);
        return;
    }
}

/* The bytes at `at` that are no character, but may be the beginning of one: at least 1. */
static size_t broken_length(const char *text, size_t length)
{
    const unsigned char first = (unsigned char)text[0];
    const size_t whole = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4)
        return 1;
    /* What continues it so that some character begins with all of this. */
    size_t count = 1;
    while (count < whole && count < length && ((unsigned char)text[count] & 0xc0) == 0x80) {
        char tried[4] = {(char)0x80, (char)0x80, (char)0x80, (char)0x80};
        memcpy(tried, text, count + 1);
        if (ls_utf8_length(tried, whole) == 0)
            break;
        count++;
    }
    return count;
}

static void add_repaired(const char *text, size_t length, struct ls_text *out)
{
    for (size_t at = 0; at < length;) {
        const size_t valid = ls_utf8_valid_length(text + at, length - at);
        ls_text_add_bytes(out, text + at, valid);
        at += valid;
        if (at == length)
            break;
        ls_text_add_bytes(out, "\xef\xbf\xbd", 3);
        at += broken_length(text + at, length - at);
    }
}

int ls_decode(const struct ls_tokenizer *tokenizer, const char *name, const uint32_t *ids,
              size_t count, bool special, struct ls_text *out, struct ls_error *error)
{
    struct ls_text bytes = {0};
    bool begins = true;
    int status = 0;
    ls_text_add(&bytes, "");
    for (size_t i = 0; i < count && status == 0; i++) {
        size_t length;
        if (ls_tokenizer_token(tokenizer, ids[i], &length) == NULL) {
            status = ls_fail(error, LOCKSTEP_DATA, name, NULL,
                             "its token %zu is %" PRIu32 ", which %s has no token for", i, ids[i],
                             tokenizer->path);
            break;
        }
        if (!special && ls_tokenizer_special(tokenizer, ids[i]))
            continue;
        ls_decode_token(tokenizer, ids[i], begins, special, &bytes);
        begins = false;
    }
    if (status == 0 && !bytes.failed) {
        add_repaired(bytes.data, bytes.length, out);
        if (out->failed)
            status = ls_fail_memory(error, name);
    } else if (status == 0) {
        status = ls_fail_memory(error, name);
    }
    ls_text_free(&bytes);
    return status;
}

uint32_t ls_token_bytes(const struct ls_tokenizer *tokenizer, uint32_t id)
{
    struct ls_text text = {0};
    ls_decode_token(tokenizer, id, true, false, &text);
    size_t length = text.length;
    size_t size;
    const char *token = ls_tokenizer_token(tokenizer, id, &size);
    const struct ls_token_decoder *decoder = &tokenizer->decoder;
    if (decoder->kind == LS_DECODER_WORDPIECE && token != NULL && length > 0 &&
        size > strlen(decoder->prefix) &&
        memcmp(token, decoder->prefix, strlen(decoder->prefix)) == 0)
        length -= strlen(decoder->prefix);
    ls_text_free(&text);
    return (uint32_t)length;
}
