/* Opening and freeing tokenizers. See text/tokenizer.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "text/tokenizer.h"

#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "text/read.h"

static bool ends_with(const char *path, const char *name)
{
    const size_t length = strlen(path), size = strlen(name);
    return length >= size && strcmp(path + length - size, name) == 0 &&
           (length == size || path[length - size - 1] == '/');
}

static int read_file(const char *path, struct ls_tokenizer *tokenizer, struct ls_error *error)
{
    if (ends_with(path, "vocab.json"))
        return ls_read_gpt2(path, tokenizer, error);
    if (ends_with(path, "merges.txt"))
        return ls_fail(error, LOCKSTEP_DATA, path, "name vocab.json, or the folder of both",
                       "holds the merges of a tokenizer, not its vocabulary");
    const size_t length = strlen(path);
    if (length >= 4 && strcmp(path + length - 4, ".txt") == 0)
        return ls_read_bert(path, tokenizer, error);
    return ls_read_tokenizer_json(path, tokenizer, error);
}

/* The file of a folder that is read; owned by the caller. */
static int find_file(const char *folder, char **path, struct ls_error *error)
{
    static const char *const names[] = {"tokenizer.json", "vocab.json", "vocab.txt"};
    *path = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct ls_text text = {0};
        ls_text_format(&text, "%s/%s", folder, names[i]);
        if (text.failed) {
            ls_text_free(&text);
            return ls_fail_memory(error, folder);
        }
        if (ls_file_exists(text.data)) {
            *path = text.data;
            return 0;
        }
        ls_text_free(&text);
    }
    return ls_fail(error, LOCKSTEP_DATA, folder, NULL,
                   "has no tokenizer: neither tokenizer.json nor vocab.json nor vocab.txt");
}

int ls_tokenizer_open(const char *path, struct ls_tokenizer **tokenizer, struct ls_error *error)
{
    struct ls_tokenizer *mine = ls_alloc(1, sizeof *mine);
    int status = 0;
    *tokenizer = NULL;
    if (mine == NULL)
        return ls_fail_memory(error, path);
    if (ls_is_directory(path))
        status = find_file(path, &mine->path, error);
    else if ((mine->path = ls_copy_string(path)) == NULL)
        status = ls_fail_memory(error, path);
    if (status == 0)
        status = read_file(mine->path, mine, error);
    if (status == 0)
        status = ls_finish_added(mine, error);
    if (status == 0)
        *tokenizer = mine;
    else
        ls_tokenizer_free(mine);
    return status;
}

void ls_tokenizer_free(struct ls_tokenizer *tokenizer)
{
    if (tokenizer == NULL)
        return;
    for (size_t i = 0; i < tokenizer->normal_count; i++) {
        ls_pattern_free(tokenizer->normals[i].pattern);
        ls_free(tokenizer->normals[i].content);
    }
    for (size_t i = 0; i < tokenizer->stage_count; i++)
        ls_pattern_free(tokenizer->stages[i].pattern);
    ls_added_free(&tokenizer->added);
    ls_token_vocabulary_free(&tokenizer->model.vocabulary);
    ls_free(tokenizer->model.prefix);
    ls_free(tokenizer->model.suffix);
    ls_free(tokenizer->model.merges);
    ls_free(tokenizer->decoder.prefix);
    ls_free(tokenizer->path);
    ls_free(tokenizer);
}
