/* Characters or bytes as tokens: the names that a snapshot has of them (data/vocabulary.h has how
 * they are written).
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_API_CHARACTERS_H
#define LS_API_CHARACTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/names.h"

/* What a token stands for. */
struct ls_character {
    char bytes[5]; /* NUL behind them */
    unsigned char length;
};

struct ls_characters {
    struct ls_character *items; /* by token */
    size_t count;
    int32_t bytes[256];    /* by byte: the token that is it alone; -1: there is none */
    struct ls_names names; /* of characters of several bytes: their tokens */
};

/* Reads the names of classes, one a line. *count stays 0 where they are no characters and no bytes:
 * names of something else. */
int ls_characters_read(const char *names, struct ls_characters *characters, struct ls_error *error);
void ls_characters_free(struct ls_characters *characters);

/* The token that a text begins with, and how many bytes of it that takes; -1: it is none of them,
 * and *size the bytes of a character, or 1. */
int32_t ls_characters_find(const struct ls_characters *characters, const char *text, size_t length,
                           size_t *size);

/* Bytes of the character of UTF-8 that a text begins with; 0: it is none, or does not end. */
size_t ls_character_size(const char *text, size_t length);

#endif
