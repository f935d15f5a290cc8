/* tokenizer.json: the file as a whole, and added tokens. See text/read.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "text/read.h"

static int read_added_token(const struct ls_token_reader *reader, const struct ls_json_node *node)
{
    static const char *const known[] = {"id",     "content",    "single_word", "lstrip",
                                        "rstrip", "normalized", "special",     NULL};
    struct ls_added_token token = {0};
    const char *content = NULL;
    char place[320];
    int64_t id = -1;
    LS_TRY(ls_read_known(reader, node, "an added token", known));
    LS_TRY(ls_read_text(reader, node, "content", &content));
    LS_TRY(ls_read_integer(reader, node, "id", LS_TOKEN_IDS - 1, &id));
    if (content == NULL || id < 0)
        return ls_read_refuse(reader, node, NULL, "an added token without 'content' or 'id'");
    LS_TRY(ls_read_bool(reader, node, "special", &token.special));
    token.normalized = !token.special;
    LS_TRY(ls_read_bool(reader, node, "single_word", &token.single_word));
    LS_TRY(ls_read_bool(reader, node, "lstrip", &token.left));
    LS_TRY(ls_read_bool(reader, node, "rstrip", &token.right));
    LS_TRY(ls_read_bool(reader, node, "normalized", &token.normalized));
    token.id = (uint32_t)id;
    ls_json_place(reader->tree, node, place);
    return ls_add_token(reader->tokenizer, place, content, strlen(content), &token, reader->error);
}

/* The token that pairs are filled up with; cutting and filling itself is asked for elsewhere. */
static int read_padding(const struct ls_token_reader *reader, const struct ls_json_node *node)
{
    struct ls_tokenizer *tokenizer = reader->tokenizer;
    int64_t id = 0, segment = 0;
    if (node == NULL || node->kind != LS_JSON_OBJECT)
        return 0;
    LS_TRY(ls_read_integer(reader, node, "pad_id", LS_TOKEN_IDS - 1, &id));
    LS_TRY(ls_read_integer(reader, node, "pad_type_id", INT32_MAX, &segment));
    tokenizer->has_pad = true;
    tokenizer->pad = (uint32_t)id;
    tokenizer->pad_segment = (uint32_t)segment;
    return 0;
}

static int read_whole(const struct ls_token_reader *reader)
{
    static const char *const known[] = {
        "version",       "truncation",     "padding", "added_tokens", "normalizer",
        "pre_tokenizer", "post_processor", "decoder", "model",        NULL};
    const struct ls_json_tree *tree = reader->tree;
    const struct ls_json_node *whole = &tree->nodes[0];
    LS_TRY(ls_read_known(reader, whole, "a tokenizer", known));
    const char *version = "1.0";
    LS_TRY(ls_read_text(reader, whole, "version", &version));
    if (strcmp(version, "1.0") != 0)
        return ls_read_refuse(reader, whole, NULL, "is of version '%.100s'; 1.0 is read", version);
    const struct ls_json_node *model = ls_json_find(tree, whole, "model");
    const struct ls_json_node *added = ls_json_find(tree, whole, "added_tokens");
    if (model == NULL)
        return ls_read_refuse(reader, whole, NULL, "is no tokenizer: it has no 'model'");
    LS_TRY(ls_read_model(reader, model));
    LS_TRY(ls_read_normalizer(reader, ls_json_find(tree, whole, "normalizer"), 0));
    LS_TRY(ls_read_pre_tokenizer(reader, ls_json_find(tree, whole, "pre_tokenizer"), 0));
    LS_TRY(ls_read_post_processor(reader, ls_json_find(tree, whole, "post_processor"), 0));
    LS_TRY(ls_read_decoder(reader, ls_json_find(tree, whole, "decoder")));
    LS_TRY(read_padding(reader, ls_json_find(tree, whole, "padding")));
    if (added == NULL || added->kind == LS_JSON_NULL)
        return 0;
    if (added->kind != LS_JSON_ARRAY)
        return ls_read_refuse(reader, added, NULL, "'added_tokens' is no array");
    for (const struct ls_json_node *i = ls_json_first(tree, added); i != NULL;
         i = ls_json_next(tree, i))
        LS_TRY(read_added_token(reader, i));
    return 0;
}

int ls_read_tokenizer_json(const char *path, struct ls_tokenizer *tokenizer, struct ls_error *error)
{
    struct ls_json_tree tree = {0};
    const struct ls_token_reader reader = {.tree = &tree, .tokenizer = tokenizer, .error = error};
    char *text;
    size_t size;
    LS_TRY(ls_file_read_text(path, LS_TOKENIZER_FILE_MAX, LOCKSTEP_DATA, &text, &size, error));
    int status = ls_json_tree_read(path, text, size, LOCKSTEP_DATA, &tree, error);
    if (status == 0)
        status = read_whole(&reader);
    ls_json_tree_free(&tree);
    ls_free(text);
    return status;
}
