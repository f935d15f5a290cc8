/* What tokens mean: integers, floats, strings.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/utf8.h"
#include "schema/lex.h"

/* The digit that a character stands for, or 99. */
static unsigned digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return (unsigned)(c - '0');
    if (c >= 'a' && c <= 'f')
        return (unsigned)(c - 'a') + 10;
    if (c >= 'A' && c <= 'F')
        return (unsigned)(c - 'A') + 10;
    return 99;
}

bool ls_token_integer(const struct ls_token *token, uint64_t *value)
{
    const char *at = token->start, *end = token->start + token->length;
    unsigned base = 10;
    if (token->length > 1 && at[0] == '0') {
        bool hex = at[1] == 'x' || at[1] == 'X';
        base = hex ? 16 : 8;
        at += hex ? 2 : 1;
    }
    uint64_t sum = 0;
    for (; at < end; at++)
        if (__builtin_mul_overflow(sum, base, &sum) ||
            __builtin_add_overflow(sum, digit_of(*at), &sum))
            return false;
    *value = sum;
    return true;
}

/* strtod of the C locale, whatever the host program has set. */
static locale_t c_locale;

static void make_c_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

/* A terminated copy of a decimal number's digits in `buffer` (or a new one, then freed by the
 * caller), without the suffix; NULL if the token is not decimal or there is no memory. */
static char *decimal_text(const struct ls_token *token, char *buffer, size_t size)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_c_locale);
    size_t length = token->length;
    if (token->kind == LS_TOKEN_INTEGER && length > 1 && token->start[0] == '0')
        return NULL; /* hexadecimal or octal: a slip more often than meant */
    if (token->start[length - 1] == 'f' || token->start[length - 1] == 'F')
        length--;
    char *text = length < size ? buffer : ls_alloc(length + 1, 1);
    if (text == NULL || c_locale == (locale_t)0)
        return NULL;
    memcpy(text, token->start, length);
    text[length] = '\0';
    return text;
}

bool ls_token_float(const struct ls_token *token, float *value)
{
    char buffer[64];
    char *text = decimal_text(token, buffer, sizeof buffer);
    if (text == NULL)
        return false;
    *value = strtof_l(text, NULL, c_locale);
    if (text != buffer)
        ls_free(text);
    return !isinf(*value);
}

bool ls_token_double(const struct ls_token *token, double *value)
{
    char buffer[64];
    char *text = decimal_text(token, buffer, sizeof buffer);
    if (text == NULL)
        return false;
    *value = strtod_l(text, NULL, c_locale);
    if (text != buffer)
        ls_free(text);
    return !isinf(*value);
}

/* Up to `most` digits of a base; how many were taken. */
static int take_code(const char **at, const char *end, unsigned base, int most, uint32_t *code)
{
    int taken = 0;
    *code = 0;
    while (taken < most && *at < end && digit_of(**at) < base) {
        *code = *code * base + digit_of(**at);
        (*at)++;
        taken++;
    }
    return taken;
}

static void add_byte(struct ls_text *out, uint32_t byte)
{
    char c = (char)(unsigned char)byte;
    ls_text_add_bytes(out, &c, 1);
}

/* Halves of a character of UTF-16: 0xd800.. first, 0xdc00.. second. */
static bool is_surrogate(uint32_t code, uint32_t first)
{
    return code >= first && code < first + 0x400;
}

/* \uXXXX (a pair of surrogates makes one character) and \UXXXXXXXX. */
static const char *unicode_escape(const char **at, const char *end, int digits, struct ls_text *out)
{
    uint32_t code, low;
    if (take_code(at, end, 16, digits, &code) != digits)
        return digits == 4 ? "\\u takes four hexadecimal digits"
                           : "\\U takes eight hexadecimal digits";
    const char *next = *at + 2;
    if (is_surrogate(code, 0xd800) && end - *at >= 6 && memcmp(*at, "\\u", 2) == 0 &&
        take_code(&next, end, 16, 4, &low) == 4 && is_surrogate(low, 0xdc00)) {
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        *at = next;
    }
    if (code > 0x10ffff || is_surrogate(code, 0xd800) || is_surrogate(code, 0xdc00))
        return "an escape that is not a Unicode character";
    ls_utf8_add(out, code);
    return NULL;
}

/* What follows a backslash. */
static const char *escape(const char **at, const char *end, struct ls_text *out)
{
    static const char names[] = "abfnrtv\\'\"?", values[] = "\a\b\f\n\r\t\v\\'\"?";
    uint32_t code;
    if (take_code(at, end, 8, 3, &code) > 0) {
        if (code > 255)
            return "an octal escape beyond \\377";
        add_byte(out, code);
        return NULL;
    }
    if (*at == end)
        return "a backslash without a character behind it";
    char c = *(*at)++;
    if (c == 'x' || c == 'X') {
        if (take_code(at, end, 16, 2, &code) == 0)
            return "\\x takes hexadecimal digits";
        add_byte(out, code);
        return NULL;
    }
    if (c == 'u' || c == 'U')
        return unicode_escape(at, end, c == 'u' ? 4 : 8, out);
    const char *found = c != '\0' ? strchr(names, c) : NULL;
    if (found == NULL)
        return "an escape that is not known";
    ls_text_add_bytes(out, &values[found - names], 1);
    return NULL;
}

const char *ls_token_string(const struct ls_token *token, struct ls_text *out)
{
    const char *at = token->start + 1, *end = token->start + token->length - 1;
    while (at < end) {
        const char *plain = at;
        while (at < end && *at != '\\')
            at++;
        ls_text_add_bytes(out, plain, (size_t)(at - plain));
        if (at == end)
            break;
        at++;
        const char *complaint = escape(&at, end, out);
        if (complaint != NULL)
            return complaint;
    }
    return NULL;
}
