/* GPT-2's vocab.json and merges.txt, and BERT's vocab.txt. See text/read.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "text/read.h"

/* The path of a file beside another one; owned by the caller. */
static char *beside(const char *path, const char *name)
{
    struct ls_text text = {0};
    const char *slash = strrchr(path, '/');
    ls_text_add_bytes(&text, path, slash != NULL ? (size_t)(slash - path) + 1 : 0);
    ls_text_add(&text, name);
    if (text.failed)
        ls_text_free(&text);
    return text.data;
}

/* The next line of a text, without its end; false: there is none. */
static bool take_line(const char *text, size_t size, size_t *at, const char **line, size_t *length)
{
    if (*at >= size)
        return false;
    const char *end = memchr(text + *at, '\n', size - *at);
    *line = text + *at;
    *length = end != NULL ? (size_t)(end - *line) : size - *at;
    *at += *length + 1;
    if (*length > 0 && (*line)[*length - 1] == '\r')
        (*length)--;
    return true;
}

static void place_of(const char *path, size_t line, char place[320])
{
    snprintf(place, 320, "%.290s:%zu", path, line);
}

/* ---- GPT-2 ----------------------------------------------------------------------------------- */

static int read_vocabulary(const char *path, struct ls_model *model, struct ls_error *error)
{
    struct ls_json_tree tree = {0};
    char *text;
    size_t size;
    LS_TRY(ls_file_read_text(path, LS_TOKENIZER_FILE_MAX, LOCKSTEP_DATA, &text, &size, error));
    int status = ls_json_tree_read(path, text, size, LOCKSTEP_DATA, &tree, error);
    const struct ls_json_node *whole = tree.nodes;
    if (status == 0 && whole->kind != LS_JSON_OBJECT)
        status = ls_fail(error, LOCKSTEP_DATA, path, NULL, "is no object of tokens and their ids");
    for (const struct ls_json_node *i = status == 0 ? ls_json_first(&tree, whole) : NULL;
         i != NULL && status == 0; i = ls_json_next(&tree, i)) {
        const char *token = ls_json_name(&tree, i);
        struct ls_error problem = {0};
        char place[320];
        status = ls_add_model_token(model, NULL, token, strlen(token),
                                    i->kind == LS_JSON_INTEGER ? i->integer : -1, &problem);
        if (status == 0)
            continue;
        ls_json_place(&tree, i, place);
        ls_fail(error, status, place, NULL, "%s", problem.problems[0].message);
    }
    ls_json_tree_free(&tree);
    ls_free(text);
    return status;
}

static int read_merge_lines(const char *path, const char *text, size_t size, struct ls_model *model,
                            struct ls_error *error)
{
    const char *line;
    size_t at = 0, length, number = 0, lines = 1;
    uint32_t rank = 0;
    for (size_t i = 0; i < size; i++)
        lines += text[i] == '\n';
    LS_TRY(ls_make_merges(model, lines, error));
    while (take_line(text, size, &at, &line, &length)) {
        char place[320];
        number++;
        if (length >= 8 && memcmp(line, "#version", 8) == 0)
            continue;
        if (length == 0 && at >= size)
            break;
        const char *space = memchr(line, ' ', length);
        place_of(path, number, place);
        if (space == NULL || memchr(space + 1, ' ', length - (size_t)(space + 1 - line)) != NULL ||
            !ls_utf8_valid(line, length))
            return ls_fail(error, LOCKSTEP_DATA, place, NULL,
                           "a merge is two tokens with a space between them, in UTF-8");
        const size_t left = (size_t)(space - line);
        LS_TRY(ls_add_merge(model, place, line, left, space + 1, length - left - 1, rank++, error));
    }
    return 0;
}

int ls_read_gpt2(const char *path, struct ls_tokenizer *tokenizer, struct ls_error *error)
{
    static const char end[] = "<|endoftext|>";
    struct ls_added_token token = {.special = true, .normalized = true};
    char *merges = beside(path, "merges.txt"), *text = NULL;
    size_t size;
    if (merges == NULL)
        return ls_fail_memory(error, path);
    tokenizer->model.kind = LS_MODEL_BPE;
    tokenizer->decoder.kind = LS_DECODER_BYTES;
    int status = read_vocabulary(path, &tokenizer->model, error);
    if (status == 0)
        status =
            ls_file_read_text(merges, LS_TOKENIZER_FILE_MAX, LOCKSTEP_DATA, &text, &size, error);
    if (status == 0)
        status = read_merge_lines(merges, text, size, &tokenizer->model, error);
    if (status == 0)
        status = ls_add_byte_stages(tokenizer, false, true, error);
    if (status == 0 &&
        ls_token_vocabulary_find(&tokenizer->model.vocabulary, end, strlen(end), &token.id))
        status = ls_add_token(tokenizer, path, end, strlen(end), &token, error);
    ls_free(text);
    ls_free(merges);
    return status;
}

/* ---- BERT ------------------------------------------------------------------------------------ */

static int read_token_lines(const char *path, struct ls_model *model, struct ls_error *error)
{
    char *text, place[320];
    const char *line;
    size_t size, at = 0, length;
    int64_t id = 0;
    int status = ls_file_read_text(path, LS_TOKENIZER_FILE_MAX, LOCKSTEP_DATA, &text, &size, error);
    while (status == 0 && take_line(text, size, &at, &line, &length)) {
        place_of(path, (size_t)id + 1, place);
        char *token = ls_copy_bytes(line, length);
        if (token == NULL)
            status = ls_fail_memory(error, path);
        else if (!ls_utf8_valid(line, length))
            status = ls_fail(error, LOCKSTEP_DATA, place, NULL, "is not UTF-8, or has a NUL");
        else
            status = ls_add_model_token(model, place, token, length, id++, error);
        ls_free(token);
    }
    ls_free(text);
    return status;
}

/* What tokenizer_config.json beside a vocab.txt says of the normalizer; it may be missing. */
static int read_config(const char *path, bool *lowercase, bool *ideographs, bool *strip,
                       struct ls_tokenizer *tokenizer, struct ls_error *error)
{
    struct ls_json_tree tree = {0};
    const struct ls_token_reader reader = {.tree = &tree, .tokenizer = tokenizer, .error = error};
    char *text;
    size_t size;
    *lowercase = *ideographs = *strip = true;
    if (!ls_file_exists(path))
        return 0;
    LS_TRY(ls_file_read_text(path, LS_TOKENIZER_FILE_MAX, LOCKSTEP_DATA, &text, &size, error));
    int status = ls_json_tree_read(path, text, size, LOCKSTEP_DATA, &tree, error);
    if (status == 0)
        status = ls_read_bool(&reader, tree.nodes, "do_lower_case", lowercase);
    if (status == 0)
        status = ls_read_bool(&reader, tree.nodes, "tokenize_chinese_chars", ideographs);
    *strip = *lowercase;
    if (status == 0)
        status = ls_read_bool(&reader, tree.nodes, "strip_accents", strip);
    ls_json_tree_free(&tree);
    ls_free(text);
    return status;
}

/* BERT's special tokens, and the template that has two of them. */
static int add_bert_tokens(const char *path, struct ls_tokenizer *tokenizer, struct ls_error *error)
{
    static const char *const names[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
    const struct ls_token_vocabulary *vocabulary = &tokenizer->model.vocabulary;
    uint32_t ids[5];
    for (int i = 0; i < 5; i++) {
        struct ls_added_token token = {.special = true};
        if (!ls_token_vocabulary_find(vocabulary, names[i], strlen(names[i]), &ids[i]))
            return ls_fail(error, LOCKSTEP_DATA, path, NULL,
                           "is no vocabulary of BERT: there is no token %s", names[i]);
        token.id = ids[i];
        LS_TRY(ls_add_token(tokenizer, path, names[i], strlen(names[i]), &token, error));
    }
    const struct ls_template_piece first = {.kind = LS_TEMPLATE_TOKEN, .token = ids[2]};
    const struct ls_template_piece end = {.kind = LS_TEMPLATE_TOKEN, .token = ids[3]};
    const struct ls_template_piece end_2 = {
        .kind = LS_TEMPLATE_TOKEN, .token = ids[3], .segment = 1};
    const struct ls_template_piece a = {.kind = LS_TEMPLATE_FIRST};
    const struct ls_template_piece b = {.kind = LS_TEMPLATE_SECOND, .segment = 1};
    tokenizer->single = (struct ls_template){.pieces = {first, a, end}, .count = 3};
    tokenizer->pair = (struct ls_template){.pieces = {first, a, end, b, end_2}, .count = 5};
    tokenizer->model.has_unknown = true;
    tokenizer->model.unknown = ids[1];
    tokenizer->has_pad = true;
    tokenizer->pad = ids[0];
    return 0;
}

int ls_read_bert(const char *path, struct ls_tokenizer *tokenizer, struct ls_error *error)
{
    bool lowercase, ideographs, strip;
    char *config = beside(path, "tokenizer_config.json");
    if (config == NULL)
        return ls_fail_memory(error, path);
    int status = read_config(config, &lowercase, &ideographs, &strip, tokenizer, error);
    ls_free(config);
    LS_TRY(status);
    tokenizer->model.kind = LS_MODEL_WORDPIECE;
    tokenizer->model.word_max = 100;
    tokenizer->model.prefix = ls_copy_string("##");
    tokenizer->decoder = (struct ls_token_decoder){
        .kind = LS_DECODER_WORDPIECE, .prefix = ls_copy_string("##"), .clean_up = true};
    if (tokenizer->model.prefix == NULL || tokenizer->decoder.prefix == NULL)
        return ls_fail_memory(error, path);
    LS_TRY(read_token_lines(path, &tokenizer->model, error));
    LS_TRY(ls_add_bert_normals(tokenizer, true, ideographs, strip, lowercase, error));
    LS_TRY(ls_add_bert_stages(tokenizer, error));
    return add_bert_tokens(path, tokenizer, error);
}
