/* What the ids of a file of tokens are: a small text beside it, FILE.about, as `tokenize` writes
 * it. Ids alone say neither how many bytes each has nor which tokenizer they are of.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TEXT_TOKEN_SHEET_H
#define LS_TEXT_TOKEN_SHEET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "text/tokenizer.h"

struct ls_token_sheet {
    bool there;
    uint64_t tokenizer;  /* a hash of its tokens and their ids; never 0 */
    uint32_t vocabulary; /* ids lie below */
    int type_size;       /* bytes of an id: 2 or 4 */
    uint64_t count;      /* ids in the file */
};

/* A hash of what the ids of a tokenizer stand for; never 0. */
uint64_t ls_token_sheet_hash(const struct ls_tokenizer *tokenizer);

/* Writes that of the file `path`; `name` is the tokenizer's, for people. */
int ls_token_sheet_write(const char *path, const char *name, const struct ls_token_sheet *sheet,
                         struct ls_error *error);
/* Reads it; sheet->there is false where there is none. LOCKSTEP_DATA where it is damaged. */
int ls_token_sheet_read(const char *path, struct ls_token_sheet *sheet, struct ls_error *error);

#endif
