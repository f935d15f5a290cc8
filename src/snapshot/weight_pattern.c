/* Patterns of names. A pattern is read from its beginning up to the text word, and from its end
 * back to it, so that a name is looked at once, however long it is.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "snapshot/weight_pattern.h"

#include <string.h>

static const char words[] = "ijklx";
enum { TEXT = 4 }; /* the index of x */

/* The index of the word that begins at `at` ("{i}"), or -1. */
static int word_at(const char *at)
{
    if (at[0] != '{' || at[1] == '\0' || at[2] != '}')
        return -1;
    const char *found = strchr(words, at[1]);
    return found != NULL ? (int)(found - words) : -1;
}

/* The words of a pattern as bits. */
static unsigned words_of(const char *pattern)
{
    unsigned found = 0;
    for (; *pattern != '\0'; pattern++) {
        int word = word_at(pattern);
        if (word >= 0)
            found |= 1U << word;
    }
    return found;
}

const char *ls_pattern_problem(const char *pattern)
{
    int texts = 0, before = -1;
    if (*pattern == '\0')
        return "is empty";
    while (*pattern != '\0') {
        int word = word_at(pattern);
        if (word < 0 && (*pattern == '{' || *pattern == '}'))
            return "has braces around something other than i, j, k, l or x";
        if (word >= 0 && before >= 0)
            return "has two words with nothing between them";
        texts += word == TEXT;
        before = word;
        pattern += word >= 0 ? 3 : 1;
    }
    return texts > 1 ? "has {x} twice" : NULL;
}

bool ls_pattern_same_words(const char *a, const char *b)
{
    return words_of(a) == words_of(b);
}

bool ls_pattern_has_words(const char *whole, const char *part)
{
    return (words_of(part) & ~words_of(whole)) == 0;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Notes what a word stands for; false where it stood for something else before. */
static bool note(struct ls_pattern_match *match, int word, const char *at, size_t length)
{
    if (length == 0)
        return false;
    if (match->word[word].at != NULL)
        return match->word[word].length == length && memcmp(match->word[word].at, at, length) == 0;
    match->word[word].at = at;
    match->word[word].length = length;
    return true;
}

bool ls_pattern_fits(const char *pattern, const char *name, struct ls_pattern_match *match)
{
    const char *end = pattern + strlen(pattern), *rest = name + strlen(name);
    *match = (struct ls_pattern_match){0};
    while (pattern < end && word_at(pattern) != TEXT) {
        int word = word_at(pattern);
        size_t length = 0;
        while (word >= 0 && is_digit(name[length]))
            length++;
        if (word < 0 ? *pattern != *name : !note(match, word, name, length))
            return false;
        name += word < 0 ? 1 : length;
        pattern += word < 0 ? 1 : 3;
    }
    if (pattern == end)
        return name == rest;
    while (end > pattern + 3) { /* what stands behind the text, from its end */
        int word = word_at(end - 3);
        size_t length = 0;
        while (word >= 0 && rest - length > name && is_digit(rest[-(ptrdiff_t)length - 1]))
            length++;
        if (word < 0 ? rest == name || end[-1] != rest[-1]
                     : !note(match, word, rest - length, length))
            return false;
        rest -= word < 0 ? 1 : length;
        end -= word < 0 ? 1 : 3;
    }
    return note(match, TEXT, name, (size_t)(rest - name));
}

void ls_pattern_fill(const char *pattern, const struct ls_pattern_match *match, struct ls_text *out)
{
    while (*pattern != '\0') {
        int word = word_at(pattern);
        if (word >= 0 && match->word[word].at != NULL)
            ls_text_add_bytes(out, match->word[word].at, match->word[word].length);
        else
            ls_text_add_bytes(out, pattern, word >= 0 ? 3 : 1);
        pattern += word >= 0 ? 3 : 1;
    }
}
