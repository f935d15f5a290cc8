/* Patterns of names. See base/wildcard.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "base/wildcard.h"

#include <stddef.h>
#include <string.h>

/* Behind the ']' that ends the set at `set` (behind its '['); NULL: there is none. A ']' that comes
 * first is one of the characters. */
static const char *end_of_set(const char *set)
{
    set += *set == '!';
    const char *end = *set != '\0' ? strchr(set + 1, ']') : NULL;
    return end != NULL ? end + 1 : NULL;
}

static bool in_set(const char *set, const char *end, unsigned char c)
{
    const bool other = *set == '!';
    bool found = false;
    for (set += other; set < end - 1; set++) {
        const unsigned char low = (unsigned char)*set;
        unsigned char high = low;
        if (set[1] == '-' && set + 2 < end - 1) {
            high = (unsigned char)set[2];
            set += 2;
        }
        found = found || (low <= c && c <= high);
    }
    return found != other;
}

/* Whether the first character of a name matches what the pattern begins with, which is no '*';
 * *next: the pattern behind that. */
static bool matches_one(const char *pattern, char c, const char **next)
{
    const char *end = *pattern == '[' ? end_of_set(pattern + 1) : NULL;
    if (end != NULL) {
        *next = end;
        return in_set(pattern + 1, end, (unsigned char)c);
    }
    if (*pattern == '\\' && pattern[1] != '\0')
        pattern++;
    else if (*pattern == '?') {
        *next = pattern + 1;
        return true;
    }
    *next = pattern + 1;
    return *pattern == c;
}

/* Only the last '*' is tried with more and more characters: what an earlier one would take can be
 * left to it. */
bool ls_wildcard_matches(const char *pattern, const char *name)
{
    const char *star = NULL, *from = NULL, *next;
    while (*name != '\0') {
        if (*pattern == '*') {
            star = ++pattern;
            from = name;
        } else if (*pattern != '\0' && matches_one(pattern, *name, &next)) {
            pattern = next;
            name++;
        } else if (star != NULL) {
            pattern = star;
            name = ++from;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == '\0';
}
