/* The model of a tokenizer.json: vocabulary and merges. See text/read.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "base/memory.h"
#include "text/model.h"
#include "text/read.h"

static int read_vocabulary(const struct ls_token_reader *reader, const struct ls_json_node *node)
{
    const struct ls_json_node *vocabulary = ls_json_find(reader->tree, node, "vocab");
    if (vocabulary == NULL || vocabulary->kind != LS_JSON_OBJECT)
        return ls_read_refuse(reader, vocabulary != NULL ? vocabulary : node, NULL,
                              "the model has no vocabulary, an object 'vocab'");
    for (const struct ls_json_node *i = ls_json_first(reader->tree, vocabulary); i != NULL;
         i = ls_json_next(reader->tree, i)) {
        const char *token = ls_json_name(reader->tree, i);
        char place[320];
        if (i->kind != LS_JSON_INTEGER)
            return ls_read_refuse(reader, i, NULL, "the id of '%.100s' is no whole number", token);
        struct ls_error *error = reader->error;
        struct ls_model *model = &reader->tokenizer->model;
        if (i->integer >= 0 && i->integer < LS_TOKEN_IDS &&
            ls_token_vocabulary_add(&model->vocabulary, token, strlen(token),
                                    (uint32_t)i->integer) == LS_TOKEN_VOCABULARY_ADDED)
            continue;
        /* Finding the place takes time, and there is a message now. */
        ls_json_place(reader->tree, i, place);
        LS_TRY(ls_add_model_token(model, place, token, strlen(token), i->integer, error));
    }
    return 0;
}

/* ["left", "right"] or "left right" */
static int read_merge(const struct ls_token_reader *reader, const struct ls_json_node *node,
                      uint32_t rank)
{
    const char *left, *right;
    size_t left_length, right_length;
    struct ls_error problem = {0};
    if (node->kind == LS_JSON_ARRAY && node->count == 2) {
        const struct ls_json_node *first = ls_json_first(reader->tree, node);
        const struct ls_json_node *second = ls_json_next(reader->tree, first);
        if (first->kind != LS_JSON_STRING || second->kind != LS_JSON_STRING)
            return ls_read_refuse(reader, node, NULL, "a merge is two strings");
        left = ls_json_text(reader->tree, first);
        right = ls_json_text(reader->tree, second);
        left_length = first->length;
        right_length = second->length;
    } else {
        left = node->kind == LS_JSON_STRING ? ls_json_text(reader->tree, node) : "";
        const char *space = strchr(left, ' ');
        if (space == NULL || strchr(space + 1, ' ') != NULL)
            return ls_read_refuse(reader, node, NULL,
                                  "a merge is two strings, or one with a space between two tokens");
        right = space + 1;
        left_length = (size_t)(space - left);
        right_length = strlen(right);
    }
    const int status = ls_add_merge(&reader->tokenizer->model, NULL, left, left_length, right,
                                    right_length, rank, &problem);
    if (status == LOCKSTEP_DATA)
        return ls_read_refuse(reader, node, NULL, "%s", problem.problems[0].message);
    if (status != 0)
        ls_error_add(reader->error, &problem);
    return status;
}

static int read_merges(const struct ls_token_reader *reader, const struct ls_json_node *node)
{
    const struct ls_json_node *merges = ls_json_find(reader->tree, node, "merges");
    const struct ls_json_node *merge;
    uint32_t rank = 0;
    LS_TRY(ls_read_array(reader, node, "merges", &merge));
    LS_TRY(ls_make_merges(&reader->tokenizer->model, merges->count, reader->error));
    for (; merge != NULL; merge = ls_json_next(reader->tree, merge)) {
        if (merge->kind == LS_JSON_STRING &&
            strncmp(ls_json_text(reader->tree, merge), "#version", 8) == 0)
            continue;
        LS_TRY(read_merge(reader, merge, rank++));
    }
    return 0;
}

static int read_unknown(const struct ls_token_reader *reader, const struct ls_json_node *node,
                        bool required)
{
    struct ls_model *model = &reader->tokenizer->model;
    const char *token = NULL;
    LS_TRY(ls_read_text(reader, node, "unk_token", &token));
    model->has_unknown = token != NULL && ls_token_vocabulary_find(&model->vocabulary, token,
                                                                   strlen(token), &model->unknown);
    if (token != NULL && !model->has_unknown)
        return ls_read_refuse(reader, node, NULL, "'unk_token', '%.100s', is not in the vocabulary",
                              token);
    if (token == NULL && required)
        return ls_read_refuse(reader, node, NULL, "the model has no 'unk_token'");
    return 0;
}

static int read_bpe(const struct ls_token_reader *reader, const struct ls_json_node *node)
{
    static const char *const known[] = {"type",
                                        "dropout",
                                        "unk_token",
                                        "continuing_subword_prefix",
                                        "end_of_word_suffix",
                                        "fuse_unk",
                                        "byte_fallback",
                                        "ignore_merges",
                                        "vocab",
                                        "merges",
                                        NULL};
    struct ls_model *model = &reader->tokenizer->model;
    const struct ls_json_node *dropout = ls_json_find(reader->tree, node, "dropout");
    model->kind = LS_MODEL_BPE;
    LS_TRY(ls_read_known(reader, node, "the model", known));
    if (dropout != NULL && dropout->kind != LS_JSON_NULL &&
        !(dropout->kind == LS_JSON_INTEGER && dropout->integer == 0) &&
        !(dropout->kind == LS_JSON_NUMBER && dropout->number == 0))
        return ls_read_refuse(reader, dropout, "write null",
                              "'dropout', tokens that differ by chance, is not supported");
    LS_TRY(ls_read_copy(reader, node, "continuing_subword_prefix", &model->prefix));
    LS_TRY(ls_read_copy(reader, node, "end_of_word_suffix", &model->suffix));
    LS_TRY(ls_read_bool(reader, node, "fuse_unk", &model->fuse_unknown));
    LS_TRY(ls_read_bool(reader, node, "byte_fallback", &model->byte_fallback));
    LS_TRY(ls_read_bool(reader, node, "ignore_merges", &model->ignore_merges));
    LS_TRY(read_vocabulary(reader, node));
    LS_TRY(read_unknown(reader, node, false));
    return read_merges(reader, node);
}

static int read_wordpiece(const struct ls_token_reader *reader, const struct ls_json_node *node)
{
    static const char *const known[] = {
        "type",  "unk_token", "continuing_subword_prefix", "max_input_chars_per_word",
        "vocab", NULL};
    struct ls_model *model = &reader->tokenizer->model;
    int64_t most = 100;
    model->kind = LS_MODEL_WORDPIECE;
    LS_TRY(ls_read_known(reader, node, "the model", known));
    LS_TRY(ls_read_copy(reader, node, "continuing_subword_prefix", &model->prefix));
    LS_TRY(ls_read_integer(reader, node, "max_input_chars_per_word", 65535, &most));
    model->word_max = (uint32_t)most;
    LS_TRY(read_vocabulary(reader, node));
    return read_unknown(reader, node, true);
}

static int read_wordlevel(const struct ls_token_reader *reader, const struct ls_json_node *node)
{
    static const char *const known[] = {"type", "unk_token", "vocab", NULL};
    reader->tokenizer->model.kind = LS_MODEL_WORDLEVEL;
    LS_TRY(ls_read_known(reader, node, "the model", known));
    LS_TRY(read_vocabulary(reader, node));
    return read_unknown(reader, node, true);
}

int ls_read_model(const struct ls_token_reader *reader, const struct ls_json_node *node)
{
    const char *type;
    LS_TRY(ls_read_type(reader, node, "the model", &type));
    /* Older files do not say which it is. */
    const bool untyped = type[0] == '\0';
    if (strcmp(type, "BPE") == 0 || (untyped && ls_json_find(reader->tree, node, "merges") != NULL))
        return read_bpe(reader, node);
    if (strcmp(type, "WordPiece") == 0 ||
        (untyped && ls_json_find(reader->tree, node, "max_input_chars_per_word") != NULL))
        return read_wordpiece(reader, node);
    if (strcmp(type, "WordLevel") == 0)
        return read_wordlevel(reader, node);
    return ls_read_refuse(reader, node, "there are BPE, WordPiece and WordLevel",
                          "the model '%.100s' is not supported", type);
}
