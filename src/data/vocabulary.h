/* Vocabularies of characters: the characters that a text may have, in the order of their code
 * points; the number of each is its id.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_DATA_VOCABULARY_H
#define LS_DATA_VOCABULARY_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "data/source.h"

struct ls_vocabulary {
    uint32_t *code; /* owned; ascending */
    int32_t count;
    int32_t ascii[128]; /* ids; -1: it does not have the character */
};

/* The characters of all files. Errors: LOCKSTEP_DATA, for what is no UTF-8 with the file and the
 * byte. */
int ls_vocabulary_read(const struct ls_option_files *files, struct ls_vocabulary *vocabulary,
                       struct ls_error *error);
void ls_vocabulary_free(struct ls_vocabulary *vocabulary);
/* The id of a character; -1: it is not there. */
int32_t ls_vocabulary_find(const struct ls_vocabulary *vocabulary, uint32_t code);

/* The characters, or all 256 bytes (NULL), as class names, which snapshots hold: what can be shown
 * is itself; \n \t \r \\, and other bytes and characters without a picture as \xNN and \u{NN}. */
int ls_vocabulary_name(const struct ls_vocabulary *vocabulary, struct ls_source *source,
                       struct ls_error *error);

/* That bytes of a file at `offset` begin no character. */
int ls_fail_utf8(const char *path, uint64_t offset, struct ls_error *error);

#endif
