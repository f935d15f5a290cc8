/* What a generator's tokens stand for: characters or bytes, which the weights name, or the tokens
 * of a tokenizer. SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "api/generate_inner.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "text/token_sheet.h"

enum { NO_TOKEN = -1 };

/* ---- The vocabulary -------------------------------------------------------------------------- */

/* A token of the tokenizer that has one of these names. */
static int32_t find_token(const struct ls_tokenizer *tokenizer, const char *const *names)
{
    uint32_t id;
    for (; *names != NULL; names++)
        if (ls_tokenizer_id(tokenizer, *names, strlen(*names), &id))
            return (int32_t)id;
    return NO_TOKEN;
}

/* Files of tokenizers do not say which tokens begin and end texts: those of the usual names. */
static void find_ends(struct lockstep_generator *generator)
{
    static const char *const begins[] = {"<|begin_of_text|>", "<s>", "<bos>", "[BOS]",
                                         "<|endoftext|>",     NULL};
    static const char *const ends[LS_GENERATE_ENDS][2] = {
        {"<|endoftext|>"}, {"<|end_of_text|>"}, {"<|eot_id|>"}, {"<|im_end|>"},
        {"</s>"},          {"<eos>"},           {"[EOS]"}};
    generator->start = find_token(generator->tokenizer, begins);
    for (size_t i = 0; i < LS_GENERATE_ENDS; i++)
        generator->ends[i] = find_token(generator->tokenizer, ends[i]);
}

static int open_tokenizer(struct lockstep_generator *generator, const char *path,
                          struct ls_error *error)
{
    if (generator->characters.count > 0)
        return ls_fail(error, LOCKSTEP_USAGE, path, "leave the tokenizer out",
                       "the net's tokens are the characters or bytes that its weights name, not "
                       "those of a tokenizer");
    LS_TRY(ls_tokenizer_open(path, &generator->tokenizer, error));
    static const char hint[] = "give the tokenizer that made the tokens which the net was trained "
                               "with";
    const size_t size = ls_tokenizer_size(generator->tokenizer);
    if (size > generator->vocabulary)
        return ls_fail(error, LOCKSTEP_USAGE, path, hint,
                       "the tokenizer has %zu tokens, but the net only %zu", size,
                       generator->vocabulary);
    if (generator->trained_tokenizer != 0 &&
        generator->trained_tokenizer != ls_token_sheet_hash(generator->tokenizer))
        return ls_fail(error, LOCKSTEP_USAGE, path, hint,
                       "the net was trained on the ids of another tokenizer");
    generator->encoder = ls_encoder_new(generator->tokenizer);
    if (generator->encoder == NULL)
        return ls_fail_memory(error, path);
    generator->vocabulary = size;
    find_ends(generator);
    return 0;
}

/* The token that the definition says begins documents, or that is the end of a line. */
static void find_separator(struct lockstep_generator *generator)
{
    const int64_t separator = generator->language.separator;
    const struct ls_characters *characters = &generator->characters;
    char text[4];
    size_t size;
    int32_t id = separator < (int64_t)generator->vocabulary ? (int32_t)separator : NO_TOKEN;
    if (characters->count > 0 && separator > 0x10ffff)
        id = NO_TOKEN;
    else if (characters->count > 0 && separator >= 0) {
        const int length = ls_utf8_write((uint32_t)separator, text);
        id = ls_characters_find(characters, text, (size_t)length, &size);
        if (size != (size_t)length) /* its bytes are tokens, and so may be that of this number */
            id = separator < 256 ? characters->bytes[separator] : NO_TOKEN;
    }
    generator->ends[0] = id;
    generator->start = id >= 0 || characters->count == 0 ? id : characters->bytes['\n'];
}

/* Tokens that the table of the net does not have, or that stand for nothing, are never chosen. */
int ls_generate_set_vocabulary(struct lockstep_generator *generator, const char *path,
                               struct ls_error *error)
{
    const size_t logits = ls_generator_vocabulary(generator->inner);
    const size_t rows = (size_t)generator->language.tokens;
    const size_t known = generator->characters.count;
    generator->vocabulary = rows > 0 && rows < logits ? rows : logits;
    for (size_t i = 0; i < LS_GENERATE_ENDS; i++)
        generator->ends[i] = NO_TOKEN;
    if (known > generator->vocabulary) {
        ls_characters_free(&generator->characters); /* they are those of something else */
        if (path == NULL)
            ls_generate_notice(generator, "the names in the weights are none of the net's tokens");
    } else if (known > 0) {
        generator->vocabulary = known;
    }
    if (path != NULL)
        return open_tokenizer(generator, path, error);
    find_separator(generator);
    return 0;
}

void ls_generate_free_vocabulary(struct lockstep_generator *generator)
{
    ls_characters_free(&generator->characters);
    ls_encoder_free(generator->encoder);
    ls_tokenizer_free(generator->tokenizer);
    ls_text_free(&generator->text);
    ls_free(generator->ids);
}

size_t lockstep_generator_vocabulary(const struct lockstep_generator *generator)
{
    return generator->vocabulary;
}

int64_t lockstep_generator_window(const struct lockstep_generator *generator)
{
    return ls_generator_window(generator->inner);
}

int32_t lockstep_generator_start(const struct lockstep_generator *generator)
{
    return generator->start;
}

int lockstep_generator_ends(const struct lockstep_generator *generator, int32_t id)
{
    for (size_t i = 0; i < LS_GENERATE_ENDS; i++)
        if (id >= 0 && generator->ends[i] == id)
            return 1;
    return 0;
}

/* ---- From text ------------------------------------------------------------------------------- */

/* The token at byte `at` of a text of which `done` characters are encoded. */
static int encode_one(const struct ls_characters *characters, const char *text, size_t length,
                      size_t done, int32_t *id, size_t *size, struct ls_error *error)
{
    *id = ls_characters_find(characters, text, length, size);
    if (*id >= 0)
        return 0;
    if (ls_character_size(text, length) == 0)
        return ls_fail(error, LOCKSTEP_USAGE, NULL, "texts are UTF-8",
                       "byte %02X behind %zu characters of the text begins no character",
                       (unsigned)(unsigned char)*text, done);
    const bool shown = *(const unsigned char *)text >= 0x20;
    return ls_fail(error, LOCKSTEP_USAGE, NULL, "the net knows those of the text it was trained on",
                   "character %zu of the text, %s%.*s%s, is none of the net's", done + 1,
                   shown ? "'" : "a control character", shown ? (int)*size : 0, text,
                   shown ? "'" : "");
}

static int encode_characters(struct lockstep_generator *generator, const char *text, size_t length,
                             size_t *count, struct ls_error *error)
{
    for (size_t at = 0, size; at < length; at += size) {
        LS_TRY(encode_one(&generator->characters, text + at, length - at, *count,
                          &generator->ids[*count], &size, error));
        ++*count;
    }
    return 0;
}

/* Makes room for so many tokens. */
static int make_room(struct lockstep_generator *generator, size_t count, struct ls_error *error)
{
    ls_free(generator->ids);
    generator->ids = ls_alloc(count + 1, sizeof *generator->ids);
    return generator->ids != NULL ? 0 : ls_fail_memory(error, "a text");
}

static int encode_tokens(struct lockstep_generator *generator, const char *text, size_t length,
                         size_t *count, struct ls_error *error)
{
    const struct ls_encode_text what = {.name = "the text", .first = text, .first_length = length};
    struct ls_encoding encoding;
    LS_TRY(ls_encode(generator->encoder, &what, &encoding, error));
    LS_TRY(make_room(generator, encoding.count, error));
    for (size_t i = 0; i < encoding.count; i++)
        generator->ids[i] = (int32_t)encoding.ids[i];
    *count = encoding.count;
    return 0;
}

static int encode(struct lockstep_generator *generator, const char *text, size_t length,
                  size_t *count, struct ls_error *error)
{
    if (generator->tokenizer != NULL)
        return encode_tokens(generator, text, length, count, error);
    if (generator->characters.count == 0)
        return ls_fail(error, LOCKSTEP_USAGE, NULL,
                       "give a tokenizer, or numbers of tokens; the snapshot of a training on a "
                       "text of characters says it by itself",
                       "it is not known what the net's tokens stand for");
    LS_TRY(make_room(generator, length, error));
    return encode_characters(generator, text, length, count, error);
}

int lockstep_generator_encode(struct lockstep_generator *generator, const char *text, size_t length,
                              const int32_t **ids, size_t *count, struct lockstep_error *error)
{
    *count = 0;
    int status = encode(generator, text, length, count, ls_api_error(error));
    *ids = status == 0 ? generator->ids : NULL;
    return status;
}

/* ---- To text --------------------------------------------------------------------------------- */

const char *lockstep_generator_token(struct lockstep_generator *generator, int32_t id, int begins,
                                     size_t *length)
{
    const struct ls_characters *characters = &generator->characters;
    struct ls_text *text = &generator->text;
    *length = 0;
    if (id < 0)
        return NULL;
    if (generator->tokenizer == NULL) {
        if ((size_t)id >= characters->count)
            return NULL;
        *length = characters->items[id].length;
        return characters->items[id].bytes;
    }
    if (ls_tokenizer_token(generator->tokenizer, (uint32_t)id, length) == NULL)
        return NULL;
    text->length = *length = 0;
    text->failed = false;
    ls_text_add(text, "");
    ls_decode_token(generator->tokenizer, (uint32_t)id, begins != 0, false, text);
    if (text->failed)
        return NULL;
    *length = text->length;
    return text->data;
}
