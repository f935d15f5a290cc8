/* From bytes to tokens. Knows nothing of messages. A character that cannot stand where it is makes
 * a BAD token, which ends the reading.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "schema/lex.h"

#include <string.h>
#include <strings.h>

/* Independent of the locale, unlike those of <ctype.h>. */
static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool is_name(char c)
{
    return is_digit(c) || c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* The character `ahead` of the current one; '\0' behind the end. */
static char peek(const struct ls_lexer *lexer, size_t ahead)
{
    return (size_t)(lexer->end - lexer->at) > ahead ? lexer->at[ahead] : '\0';
}

/* Over one byte, keeping count of lines and characters. */
static void advance(struct ls_lexer *lexer)
{
    char c = *lexer->at++;
    if (c == '\n') {
        lexer->line++;
        lexer->column = 1;
    } else if (((unsigned char)c & 0xc0) != 0x80) { /* not the rest of a UTF-8 character */
        lexer->column++;
    }
}

/* White space and comments. */
static void skip_space(struct ls_lexer *lexer)
{
    while (lexer->at < lexer->end) {
        if (*lexer->at == '#') {
            while (lexer->at < lexer->end && *lexer->at != '\n')
                advance(lexer);
        } else if (is_space(*lexer->at)) {
            advance(lexer);
        } else {
            return;
        }
    }
}

/* A token that ends the reading, and why. */
static enum ls_token_kind bad(struct ls_lexer *lexer, const char *complaint)
{
    lexer->complaint = complaint;
    return LS_TOKEN_BAD;
}

static void take_digits(struct ls_lexer *lexer)
{
    while (is_digit(peek(lexer, 0)))
        advance(lexer);
}

/* Behind the integer part: fraction, exponent, suffix. True if there was any of it. */
static bool take_fraction(struct ls_lexer *lexer)
{
    const char *start = lexer->at;
    if (peek(lexer, 0) == '.') {
        advance(lexer);
        take_digits(lexer);
    }
    if (peek(lexer, 0) == 'e' || peek(lexer, 0) == 'E') {
        size_t sign = peek(lexer, 1) == '+' || peek(lexer, 1) == '-';
        if (is_digit(peek(lexer, 1 + sign))) {
            for (size_t i = 0; i <= sign; i++)
                advance(lexer);
            take_digits(lexer);
        }
    }
    if (peek(lexer, 0) == 'f' || peek(lexer, 0) == 'F')
        advance(lexer);
    return lexer->at != start;
}

/* Hexadecimal, octal, decimal or float. What follows must be no letter: "12ab" is a slip. */
static enum ls_token_kind take_number(struct ls_lexer *lexer)
{
    enum ls_token_kind kind = LS_TOKEN_INTEGER;
    if (peek(lexer, 0) == '0' && (peek(lexer, 1) == 'x' || peek(lexer, 1) == 'X')) {
        advance(lexer);
        advance(lexer);
        if (!is_hex(peek(lexer, 0)))
            return bad(lexer, "a hexadecimal number has no digits");
        while (is_hex(peek(lexer, 0)))
            advance(lexer);
    } else {
        const char *start = lexer->at;
        take_digits(lexer);
        const char *behind = lexer->at;
        if (take_fraction(lexer))
            kind = LS_TOKEN_FLOAT;
        for (const char *c = start + 1; kind == LS_TOKEN_INTEGER && *start == '0' && c < behind;
             c++)
            if (*c > '7')
                return bad(lexer, "a number that begins with 0 is octal and cannot have 8 or 9");
    }
    if (is_name(peek(lexer, 0)) || peek(lexer, 0) == '.')
        return bad(lexer, "this is neither a number nor a name");
    return kind;
}

/* Up to the same quote on the same line; a backslash protects what follows. */
static enum ls_token_kind take_string(struct ls_lexer *lexer)
{
    char quote = *lexer->at;
    advance(lexer);
    while (lexer->at < lexer->end && *lexer->at != '\n') {
        char c = *lexer->at;
        advance(lexer);
        if (c == quote)
            return LS_TOKEN_STRING;
        if (c == '\\' && lexer->at < lexer->end && *lexer->at != '\n')
            advance(lexer);
    }
    return bad(lexer, "a string is not closed on its line");
}

/* One token, of which the first character tells the kind. */
static enum ls_token_kind take_token(struct ls_lexer *lexer)
{
    char c = peek(lexer, 0);
    if (lexer->at == lexer->end)
        return LS_TOKEN_END;
    if (is_digit(c) || (c == '.' && is_digit(peek(lexer, 1))))
        return take_number(lexer);
    if (is_name(c)) {
        while (is_name(peek(lexer, 0)))
            advance(lexer);
        return LS_TOKEN_NAME;
    }
    if (c == '"' || c == '\'')
        return take_string(lexer);
    if (c == '\0' || memchr("{}<>[]:;,-./", c, 12) == NULL)
        return bad(lexer, "a character that cannot stand here");
    advance(lexer);
    return LS_TOKEN_SYMBOL;
}

void ls_lex_begin(struct ls_lexer *lexer, const char *text, size_t length)
{
    *lexer = (struct ls_lexer){.at = text, .end = text + length, .line = 1, .column = 1};
    if (length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        lexer->at += 3; /* the mark that some editors put in front of UTF-8 */
    ls_lex_next(lexer);
}

void ls_lex_next(struct ls_lexer *lexer)
{
    if (lexer->token.kind == LS_TOKEN_BAD)
        return;
    skip_space(lexer);
    struct ls_token *token = &lexer->token;
    token->start = lexer->at;
    token->line = lexer->line;
    token->column = lexer->column;
    token->kind = take_token(lexer);
    token->length = (size_t)(lexer->at - token->start);
    if (token->kind == LS_TOKEN_BAD && token->length == 0 && lexer->at < lexer->end)
        token->length = 1;
}

bool ls_lex_is(const struct ls_lexer *lexer, char symbol)
{
    return lexer->token.kind == LS_TOKEN_SYMBOL && *lexer->token.start == symbol;
}

bool ls_token_is_word(const struct ls_token *token, const char *word)
{
    return token->kind == LS_TOKEN_NAME && token->length == strlen(word) &&
           strncasecmp(token->start, word, token->length) == 0;
}
