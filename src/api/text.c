/* The public interface: tokenizers.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "api/api.h"
#include "api/options.h"
#include "base/memory.h"
#include "text/tokenize.h"

struct lockstep_tokenizer {
    struct ls_tokenizer *inner;
    struct ls_encoder *encoder;
    struct ls_text text; /* what was decoded last */
};

int lockstep_tokenizer_load(const char *path, struct lockstep_tokenizer **tokenizer,
                            struct lockstep_error *error)
{
    struct ls_error *inner = ls_api_error(error);
    *tokenizer = NULL;
    LS_TRY(ls_api_require(path, "path", inner));
    struct lockstep_tokenizer *mine = ls_alloc(1, sizeof *mine);
    if (mine == NULL)
        return ls_fail_memory(inner, path);
    int status = ls_tokenizer_open(path, &mine->inner, inner);
    if (status == 0 && (mine->encoder = ls_encoder_new(mine->inner)) == NULL)
        status = ls_fail_memory(inner, path);
    if (status == 0)
        *tokenizer = mine;
    else
        lockstep_tokenizer_free(mine);
    return status;
}

void lockstep_tokenizer_free(struct lockstep_tokenizer *tokenizer)
{
    if (tokenizer == NULL)
        return;
    ls_encoder_free(tokenizer->encoder);
    ls_tokenizer_free(tokenizer->inner);
    ls_text_free(&tokenizer->text);
    ls_free(tokenizer);
}

uint32_t lockstep_tokenizer_size(const struct lockstep_tokenizer *tokenizer)
{
    return ls_tokenizer_size(tokenizer->inner);
}

int64_t lockstep_tokenizer_id(const struct lockstep_tokenizer *tokenizer, const char *token)
{
    uint32_t id;
    return ls_tokenizer_id(tokenizer->inner, token, strlen(token), &id) ? (int64_t)id : -1;
}

int lockstep_tokenizer_encode(struct lockstep_tokenizer *tokenizer, const char *text, size_t length,
                              int special, const uint32_t **ids, size_t *count,
                              struct lockstep_error *error)
{
    const struct ls_encode_text what = {
        .name = "a text", .first = text, .first_length = length, .special = special != 0};
    struct ls_encoding encoding;
    *ids = NULL;
    *count = 0;
    LS_TRY(ls_encode(tokenizer->encoder, &what, &encoding, ls_api_error(error)));
    *ids = encoding.ids;
    *count = encoding.count;
    return 0;
}

/* Makes room for what is decoded next: memory may have run out before. */
static struct ls_text *empty_text(struct lockstep_tokenizer *tokenizer)
{
    struct ls_text *text = &tokenizer->text;
    text->length = 0;
    text->failed = false;
    ls_text_add(text, "");
    return text;
}

static int hand_out(const struct ls_text *made, const char **text, size_t *length,
                    struct ls_error *error)
{
    if (made->failed)
        return ls_fail_memory(error, "a text");
    *text = made->data;
    *length = made->length;
    return 0;
}

int lockstep_tokenizer_decode_token(struct lockstep_tokenizer *tokenizer, uint32_t id, int begins,
                                    int special, const char **bytes, size_t *length,
                                    struct lockstep_error *error)
{
    struct ls_error *inner = ls_api_error(error);
    struct ls_text *text = empty_text(tokenizer);
    size_t size;
    *bytes = NULL;
    *length = 0;
    if (ls_tokenizer_token(tokenizer->inner, id, &size) == NULL)
        return ls_fail(inner, LOCKSTEP_DATA, tokenizer->inner->path, NULL,
                       "there is no token with the id %u", (unsigned)id);
    ls_decode_token(tokenizer->inner, id, begins != 0, special != 0, text);
    return hand_out(text, bytes, length, inner);
}

int lockstep_tokenizer_decode(struct lockstep_tokenizer *tokenizer, const uint32_t *ids,
                              size_t count, int special, const char **text, size_t *length,
                              struct lockstep_error *error)
{
    struct ls_error *inner = ls_api_error(error);
    struct ls_text *made = empty_text(tokenizer);
    *text = NULL;
    *length = 0;
    LS_TRY(ls_decode(tokenizer->inner, "a text", ids, count, special != 0, made, inner));
    return hand_out(made, text, length, inner);
}

void lockstep_tokenize_options_init(struct lockstep_tokenize_options *options)
{
    *options = (struct lockstep_tokenize_options){.struct_size = sizeof *options};
}

int lockstep_tokenize(const struct lockstep_tokenize_options *options,
                      struct lockstep_tokenize_counts *counts, struct lockstep_error *error)
{
    struct ls_error *inner = ls_api_error(error);
    struct lockstep_tokenize_options mine;
    LS_TRY(LS_API_OPTIONS(mine, options, "lockstep_tokenize_options_init", inner));
    return ls_tokenize(&mine, counts, inner);
}
