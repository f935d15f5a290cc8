/* Texts beside files of token ids. See text/token_sheet.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "text/token_sheet.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/atomic_file.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/text.h"

static const size_t SHEET_MOST = 1 << 16; /* bytes */

uint64_t ls_token_sheet_hash(const struct ls_tokenizer *tokenizer)
{
    uint64_t hash = 1;
    for (uint32_t id = 0; id < ls_tokenizer_size(tokenizer); id++) {
        size_t length = 0;
        const char *token = ls_tokenizer_token(tokenizer, id, &length);
        hash = token != NULL ? ls_hash(token, length, ls_mix(hash)) : ls_mix(hash + 1);
    }
    return hash != 0 ? hash : 1;
}

static char *path_of(const char *path)
{
    struct ls_text text = {0};
    ls_text_format(&text, "%s.about", path);
    if (text.failed)
        ls_text_free(&text);
    return text.data;
}

int ls_token_sheet_write(const char *path, const char *name, const struct ls_token_sheet *sheet,
                         struct ls_error *error)
{
    struct ls_text text = {0};
    char *about = path_of(path);
    ls_text_format(&text,
                   "tokenizer %016" PRIx64 "\nvocabulary %" PRIu32 "\nbytes %d\nids %" PRIu64
                   "\nfrom %s\n",
                   sheet->tokenizer, sheet->vocabulary, sheet->type_size, sheet->count, name);
    int status = text.failed || about == NULL
                     ? ls_fail_memory(error, "a file")
                     : ls_atomic_replace(about, text.data, text.length, error);
    ls_text_free(&text);
    ls_free(about);
    return status;
}

static bool take(const char *text, struct ls_token_sheet *sheet)
{
    sheet->there =
        sscanf(text, "tokenizer %16" SCNx64 "\nvocabulary %" SCNu32 "\nbytes %d\nids %" SCNu64,
               &sheet->tokenizer, &sheet->vocabulary, &sheet->type_size, &sheet->count) == 4 &&
        sheet->tokenizer != 0 && sheet->vocabulary > 0 && sheet->vocabulary <= INT32_MAX &&
        (sheet->type_size == 2 || sheet->type_size == 4);
    return sheet->there;
}

int ls_token_sheet_read(const char *path, struct ls_token_sheet *sheet, struct ls_error *error)
{
    char *about = path_of(path), *text = NULL;
    size_t size;
    *sheet = (struct ls_token_sheet){.there = false};
    if (about == NULL)
        return ls_fail_memory(error, "a path");
    int status = 0;
    if (ls_file_exists(about))
        status = ls_file_read_text(about, SHEET_MOST, LOCKSTEP_DATA, &text, &size, error);
    if (status == 0 && text != NULL && !take(text, sheet))
        status = ls_fail(error, LOCKSTEP_DATA, about, "remove it, or write the ids again",
                         "does not say what the ids beside it are");
    ls_free(text);
    ls_free(about);
    return status;
}
