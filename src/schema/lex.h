/* The words of the text format.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_SCHEMA_LEX_H
#define LS_SCHEMA_LEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

enum ls_token_kind {
    LS_TOKEN_END,
    LS_TOKEN_NAME,    /* a letter or _, then letters, digits and _ */
    LS_TOKEN_INTEGER, /* without sign: decimal, 0x hexadecimal, 0 octal */
    LS_TOKEN_FLOAT,   /* with a point, an exponent or a suffix f; without sign */
    LS_TOKEN_STRING,  /* with its quotes, escapes as they stand */
    LS_TOKEN_SYMBOL,  /* one character */
    LS_TOKEN_BAD      /* see ls_lexer.complaint */
};

struct ls_token {
    enum ls_token_kind kind;
    const char *start; /* in the text; not terminated */
    size_t length;
    uint32_t line, column; /* from 1; columns count characters */
};

struct ls_lexer {
    struct ls_token token; /* the current one */
    const char *complaint; /* why it is BAD */
    const char *at, *end;  /* the text behind it */
    uint32_t line, column; /* of `at` */
};

/* Starts with the first token of a text. */
void ls_lex_begin(struct ls_lexer *lexer, const char *text, size_t length);
/* Goes on to the next token; END and BAD stay. */
void ls_lex_next(struct ls_lexer *lexer);

/* Whether the current token is that character. */
bool ls_lex_is(const struct ls_lexer *lexer, char symbol);
/* Whether a token is a certain word, without regard to case. */
bool ls_token_is_word(const struct ls_token *token, const char *word);

/* The value of an integer token; false if it is larger than 64 bits. */
bool ls_token_integer(const struct ls_token *token, uint64_t *value);
/* The value of an integer or float token, read as float and as double, each correctly rounded.
 * False if it is too large or is not decimal. */
bool ls_token_float(const struct ls_token *token, float *value);
bool ls_token_double(const struct ls_token *token, double *value);
/* Appends what a string token means; NULL, or what is wrong with it. */
const char *ls_token_string(const struct ls_token *token, struct ls_text *out);

#endif
